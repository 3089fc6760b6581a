"""The fitted, immutable form of everything the library learns: stages and prices.

A row enters at stage 0. The stage's gate scores it: **above the threshold it goes on** to the next stage, otherwise the
stage's predictor answers. The last stage has no gate; in most systems it is the full model f0. Estimators learn a
system, a frontier holds many, a bundle stores one, a session runs one. Nothing here learns.

X is an array, a frame, or :class:`~sparing._rows.ScoredRows` around one when many systems are to be evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sparing._price_list import counted
from sparing._rows import check_columns
from sparing._stage import (
    ConfidenceGate,
    Decides,
    Gate,
    Predictor,
    ReadsByRow,
    Stage,
    columns_read,
)
from sparing._walk import Walk, anyone, ask, available, by_probability, read_by, walk
from sparing.costs import FeatureCosts, resolve_costs

__all__ = [
    "ACCOUNTINGS",
    "Accounting",
    "ConfidenceGate",
    "Decides",
    "Gate",
    "Predictor",
    "ReadsByRow",
    "Stage",
    "System",
    "columns_read",
]

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
Rows = NDArray[np.intp]
Accounting = Literal["stage", "path"]

ACCOUNTINGS: tuple[Accounting, ...] = ("stage", "path")


@dataclass(frozen=True, eq=False)
class System:
    """Stages, prices and classes: predicts, routes, and knows what every row costs.

    Parameters
    ----------
    stages : tuple of Stage
        Cheapest first; every stage but the last has a gate.
    costs : FeatureCosts
    classes : ndarray
        Class labels, in the order of the predictors' columns.
    accounting : {"stage", "path"}, default="stage"
        ``"stage"``: a row pays for all columns of every stage it enters. ``"path"``: trees pay only for the columns
        tested on that row's paths.
    has_full : bool, default=True
        Whether the last stage is the full model, whose ``call_price`` rows pay there. A system without one prices its
        stages as if the full model came after them.

    Examples
    --------
    >>> from sparing import AdaptLinClassifier, FeatureCosts
    >>> from sparing.datasets import make_synthetic1
    >>> X, y = make_synthetic1()
    >>> system = AdaptLinClassifier(full_rate=0.5, random_state=0).fit(X, y).system_
    >>> bool(system.route(X).mean() > system.with_thresholds(2.0).route(X).mean())
    True
    >>> dear = system.with_costs(FeatureCosts([1, 1], call_price=10))
    >>> bool(dear.acquisition_cost(X).mean() > system.acquisition_cost(X).mean())
    True
    """

    stages: tuple[Stage, ...]
    costs: FeatureCosts
    classes: NDArray[Any]
    accounting: Accounting = "stage"
    has_full: bool = True

    def __post_init__(self) -> None:
        if not self.stages:
            raise ValueError("A system needs at least one stage.")
        gated = [stage.gate is not None for stage in self.stages]
        if not all(gated[:-1]) or gated[-1]:
            raise ValueError("Every stage but the last needs a gate, and the last has none.")
        n_columns = len(self.costs.columns)
        for index, stage in enumerate(self.stages):
            outside = stage.columns[(stage.columns < 0) | (stage.columns >= n_columns)]
            if len(outside):
                raise ValueError(
                    f"Stage {index} ({stage.name}) reads column {outside[0]}, prices are known for {n_columns} columns."
                )
            if np.isnan(stage.threshold):
                raise ValueError(f"The threshold of stage {index} ({stage.name}) is NaN.")
        self._accounting(self.accounting)
        self.call_prices()  # raises when the prices do not fit the stages

    # -- answers --------------------------------------------------------------------------------

    def predict(self, X: Any) -> NDArray[Any]:
        """Class label per row, by the stage that answers it."""
        return self._labels(X, self._walk(X, by_probability))

    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities per row, by the stage that answers it."""
        return self._walk(X, anyone).proba

    def route(self, X: Any) -> Rows:
        """Stage that answers each row, 0 = cheapest."""
        return self._walk(X).answering

    def exit_scores(self, X: Any) -> Floats:
        """Gate scores of shape (n_rows, n_stages − 1); NaN where a row never came."""
        return self._walk(X).scores

    def _walk(self, X: Any, asks: Callable[[Predictor], bool] | None = None) -> Walk:
        check_columns(X, self.costs.columns)
        return walk(self.stages, X, len(self.classes), asks)

    def _labels(self, X: Any, way: Walk) -> NDArray[Any]:
        """Label per row: the most probable one, or what the predictor decides."""
        codes = way.proba.argmax(axis=1)
        for index, stage in enumerate(self.stages):
            rows = np.flatnonzero(way.answering == index)
            if len(rows) and isinstance(stage.predictor, Decides):
                codes[rows] = ask("label", stage.predictor, stage.predictor.decide, X, rows)
        return self.classes[codes]

    # -- money ----------------------------------------------------------------------------------

    def stage_columns(self) -> Booleans:
        """Columns bought up to and including each stage: bool of shape (n_stages, n_columns)."""
        mask = np.zeros((len(self.stages), len(self.costs.columns)), dtype=bool)
        for index, stage in enumerate(self.stages):
            mask[index, stage.columns] = True
        return np.logical_or.accumulate(mask, axis=0)

    def call_prices(self) -> Floats:
        """Cost of the calls of a row answered at each stage: that stage's and those passed before."""
        n = len(self.stages)
        prices = self.costs.call_prices(n if self.has_full else n + 1)
        return np.cumsum(prices)[:n]

    def acquisition_mask(self, X: Any, *, accounting: Accounting | None = None) -> Booleans:
        """Columns each row pays for: bool of shape (n_rows, n_columns)."""
        accounting = self._accounting(accounting)
        return self._mask(X, self.route(X), accounting)

    def _mask(self, X: Any, answering: Rows, accounting: Accounting) -> Booleans:
        if accounting == "stage":
            return self.stage_columns()[answering]
        mask = np.zeros((len(answering), len(self.costs.columns)), dtype=bool)
        for index, stage in enumerate(self.stages):
            entered = np.flatnonzero(answering >= index)
            if not len(entered):
                break
            asked = entered
            if stage.gate is not None:
                mask[entered] |= read_by(stage.gate, X, entered, mask.shape[1])
                if not stage.gate.reads_predictor:
                    asked = entered[answering[entered] == index]
            if len(asked):
                mask[asked] |= read_by(stage.predictor, X, asked, mask.shape[1])
        return mask

    def acquisition_cost(
        self, X: Any, *, accounting: Accounting | None = None, owned: Any = None
    ) -> Floats:
        """Cost of each row: items bought plus the calls of the stages entered.

        Parameters
        ----------
        X : rows
        accounting : {"stage", "path"} or None
            None is the system's own.
        owned : names of items; mapping or data frame of item to bool; or bool array, optional
            Items a row already has, see :meth:`FeatureCosts.of <sparing.FeatureCosts.of>`.
        """
        return self._cost(X, self.route(X), self._accounting(accounting), owned)

    def answers(self, X: Any) -> tuple[NDArray[Any], Rows, Floats]:
        """Label, stage and cost of each row: ``predict``, ``route`` and ``acquisition_cost``, every gate asked once."""
        way = self._walk(X, by_probability)
        cost = self._cost(X, way.answering, self.accounting, None)
        return self._labels(X, way), way.answering, cost

    def _cost(self, X: Any, answering: Rows, accounting: Accounting, owned: Any) -> Floats:
        calls = self.call_prices()[answering]
        if accounting == "stage" and owned is None:
            return self.costs.of(self.stage_columns())[answering] + calls
        return self.costs.of(self._mask(X, answering, accounting), owned=owned) + calls

    def _accounting(self, accounting: Accounting | None) -> Accounting:
        accounting = self.accounting if accounting is None else accounting
        if accounting not in ACCOUNTINGS:
            raise ValueError(f"accounting is 'stage' or 'path', not {accounting!r}.")
        return accounting

    def explain(self, X: Any) -> list[dict[str, Any]]:
        """Per row: who answered, what was bought at which price, and every gate passed on the way.

        Returns
        -------
        list of dict with ``stage``, ``name``, ``prediction``, ``items`` (item → price), ``call_price``, ``cost`` and
        ``exits`` (one dict per gate asked: ``stage``, ``score``, ``threshold``, ``goes_on``). ``prediction`` is None
        when the stage that answers is a model that cannot be asked here.
        """
        way = self._walk(X, lambda p: available(p) and by_probability(p))
        labels = self._labels(X, way).tolist()
        items = self.costs.items_of(self._mask(X, way.answering, self.accounting))
        calls = self.call_prices()
        rows = []
        for i, stage in enumerate(way.answering.tolist()):
            bought = {
                self.costs.items[j]: float(self.costs.item_prices[j])
                for j in np.flatnonzero(items[i])
            }
            rows.append(
                {
                    "stage": stage,
                    "name": self.stages[stage].name,
                    "prediction": labels[i] if available(self.stages[stage].predictor) else None,
                    "items": bought,
                    "call_price": float(calls[stage]),
                    "cost": sum(bought.values()) + float(calls[stage]),
                    "exits": [
                        {
                            "stage": s,
                            "score": float(way.scores[i, s]),
                            "threshold": float(threshold),
                            "goes_on": s < stage,
                        }
                        for s, threshold in enumerate(self.thresholds[: stage + 1])
                    ],
                }
            )
        return rows

    # -- the same system, otherwise -------------------------------------------------------------

    def with_costs(self, costs: Any) -> System:
        """The same stages at other prices; nothing is refitted."""
        columns = self.costs.columns
        unnamed = columns == tuple(range(len(columns)))
        return replace(self, costs=resolve_costs(costs, len(columns) if unnamed else columns))

    def with_thresholds(self, thresholds: float | Sequence[float]) -> System:
        """The same stages with other thresholds: one number for all gates, or one per gate."""
        n_gates = len(self.stages) - 1
        values = np.asarray(thresholds, dtype=float)
        if values.ndim == 0:
            values = np.full(n_gates, values)
        if values.shape != (n_gates,) or np.isnan(values).any():
            raise ValueError(f"Give one threshold per gate, {n_gates} here; got {thresholds!r}.")
        gated = tuple(
            replace(stage, threshold=float(value))
            for stage, value in zip(self.stages[:-1], values, strict=True)
        )
        return replace(self, stages=(*gated, self.stages[-1]))

    @property
    def thresholds(self) -> tuple[float, ...]:
        """Thresholds of the gates, cheapest stage first."""
        return tuple(stage.threshold for stage in self.stages[:-1])

    def __repr__(self) -> str:
        bought = self.stage_columns()
        prices = self.costs.of(bought) + self.call_prices()
        lines = [
            f"System: {counted(len(self.stages), 'stage')}, {len(self.classes)} classes, by {self.accounting}"
        ]
        reached = True
        for index, stage in enumerate(self.stages):
            goes_on = "" if stage.gate is None else f", {_passes(stage.threshold)}"
            if not reached:
                goes_on = ", nobody comes this far"
            lines.append(
                f"  {index} {stage.name}: {counted(bought[index].sum(), 'column')}, {prices[index]:.10g}{goes_on}"
            )
            reached &= stage.gate is None or stage.threshold < np.inf
        return "\n".join(lines)


def _passes(threshold: float) -> str:
    """What a gate does, in words."""
    if np.isinf(threshold):
        return "answers everything" if threshold > 0 else "sends everything on"
    return f"goes on above {threshold:.4g}"
