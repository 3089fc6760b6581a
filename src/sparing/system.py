"""The fitted, immutable form of everything the library learns: stages and prices.

A row enters at stage 0. The stage's gate scores it: **above the threshold it goes on** to the next stage, otherwise the
stage's predictor answers. The last stage has no gate; in most systems it is the full model f0. Estimators learn a
system, a frontier holds many, a bundle stores one, a session runs one. Nothing here learns.

Predictors and gates see X at full width and may read only their own ``columns``: a served row holds nothing but
placeholders in the columns that were not bought.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparing._rows import ScoredRows, n_rows, take_rows
from sparing.costs import FeatureCosts, resolve_costs

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
Accounting = Literal["stage", "path"]

ACCOUNTINGS: tuple[Accounting, ...] = ("stage", "path")


class Predictor(Protocol):
    """What answers at a stage. May also have ``columns_read(X)``, see :func:`columns_read`."""

    @property
    def columns(self) -> NDArray[np.intp]:
        """Positions of all columns of X it may read."""

    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities, one column per class of the system."""


class Gate(Protocol):
    """What decides whether a row goes on. May also have ``columns_read(X)``."""

    @property
    def columns(self) -> NDArray[np.intp]:
        """Positions of all columns of X it may read itself."""

    @property
    def reads_predictor(self) -> bool:
        """Whether the score needs the probabilities of the stage's own predictor."""

    def score(self, X: Any, proba: Floats | None) -> Floats:
        """Score per row; above the stage's threshold the row goes on."""


@runtime_checkable
class ReadsByRow(Protocol):
    """A predictor or gate, usually of trees, that reads fewer columns on some rows than on others."""

    def columns_read(self, X: Any) -> Booleans:
        """Columns tested for each row: bool of shape (n_rows, n_columns of X)."""


@dataclass(frozen=True)
class Stage:
    """One round trip: columns bought together, a predictor, and a gate that says who goes on.

    Parameters
    ----------
    predictor : Predictor
    gate : Gate or None
        None at the last stage.
    threshold : float, default=0.0
        A row goes on when the gate's score is above it.
    name : str, default="stage"
        For people: "cheap", "full".
    """

    predictor: Predictor
    gate: Gate | None = None
    threshold: float = 0.0
    name: str = "stage"

    @property
    def columns(self) -> NDArray[np.intp]:
        """Columns the gate and the predictor may read."""
        if self.gate is None:
            return np.unique(self.predictor.columns)
        return np.union1d(self.predictor.columns, self.gate.columns)


@dataclass(frozen=True)
class ConfidenceGate:
    """Go on when the stage's own predictor is not sure: score = 1 − its largest probability.

    Examples
    --------
    >>> import numpy as np
    >>> ConfidenceGate().score(None, np.array([[0.9, 0.1], [0.4, 0.6]])).round(2)
    array([0.1, 0.4])
    """

    columns = np.empty(0, dtype=np.intp)
    reads_predictor = True

    def score(self, X: Any, proba: Floats | None) -> Floats:  # noqa: ARG002
        """One minus the largest class probability."""
        assert proba is not None
        return 1.0 - proba.max(axis=1)


def columns_read(part: Predictor | Gate, X: Any, n_columns: int) -> Booleans:
    """Columns a predictor or gate reads on each row; all of its own unless it knows better."""
    if isinstance(part, ReadsByRow):
        return part.columns_read(X)
    mask = np.zeros(n_columns, dtype=bool)
    mask[part.columns] = True
    return np.broadcast_to(mask, (n_rows(X), n_columns))


@dataclass(frozen=True)
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

    def __post_init__(self) -> None:
        if not self.stages:
            raise ValueError("A system needs at least one stage.")
        gated = [stage.gate is not None for stage in self.stages]
        if not all(gated[:-1]) or gated[-1]:
            raise ValueError("Every stage but the last needs a gate, and the last has none.")
        self.costs.call_prices(len(self.stages))  # raises when the prices do not fit the stages

    # -- answers --------------------------------------------------------------------------------

    def predict(self, X: Any) -> NDArray[Any]:
        """Class label per row, by the stage that answers it."""
        return self.classes[self.predict_proba(X).argmax(axis=1)]

    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities per row, by the stage that answers it."""
        answering = self.route(X)
        proba = np.empty((len(answering), len(self.classes)))
        for index, stage in enumerate(self.stages):
            rows = np.flatnonzero(answering == index)
            if len(rows):
                proba[rows] = _proba(stage.predictor, X, rows)
        return proba

    def route(self, X: Any) -> NDArray[np.intp]:
        """Stage that answers each row, 0 = cheapest."""
        return self._walk(X)[0]

    def exit_scores(self, X: Any) -> Floats:
        """Gate scores of shape (n_rows, n_stages − 1); NaN where a row never came."""
        return self._walk(X)[1]

    def _walk(self, X: Any) -> tuple[NDArray[np.intp], Floats]:
        n = n_rows(X)
        answering = np.zeros(n, dtype=np.intp)
        scores = np.full((n, len(self.stages) - 1), np.nan)
        rows = np.arange(n)
        for index, stage in enumerate(self.stages[:-1]):
            if not len(rows):
                break
            scores[rows, index] = _gate_score(stage, X, rows)
            rows = rows[scores[rows, index] > stage.threshold]
            answering[rows] = index + 1
        return answering, scores

    # -- money ----------------------------------------------------------------------------------

    def stage_columns(self) -> Booleans:
        """Columns bought up to and including each stage: bool of shape (n_stages, n_columns)."""
        mask = np.zeros((len(self.stages), len(self.costs.columns)), dtype=bool)
        for index, stage in enumerate(self.stages):
            mask[index, stage.columns] = True
        return np.logical_or.accumulate(mask, axis=0)

    def acquisition_mask(self, X: Any, *, accounting: Accounting | None = None) -> Booleans:
        """Columns each row pays for: bool of shape (n_rows, n_columns)."""
        answering = self.route(X)
        if self._accounting(accounting) == "stage":
            return self.stage_columns()[answering]
        mask = np.zeros((len(answering), len(self.costs.columns)), dtype=bool)
        for index, stage in enumerate(self.stages):
            here = np.flatnonzero(answering == index)
            if len(here):
                mask[here] |= _read(stage.predictor, X, here, mask.shape[1])
            entered = np.flatnonzero(answering >= index)
            if stage.gate is None or not len(entered):
                continue
            mask[entered] |= _read(stage.gate, X, entered, mask.shape[1])
            gone = np.flatnonzero(answering > index)
            if stage.gate.reads_predictor and len(gone):
                mask[gone] |= _read(stage.predictor, X, gone, mask.shape[1])
        return mask

    def acquisition_cost(
        self, X: Any, *, accounting: Accounting | None = None, owned: ArrayLike | None = None
    ) -> Floats:
        """Cost of each row: items bought plus the calls of the stages entered.

        Parameters
        ----------
        X : rows
        accounting : {"stage", "path"} or None
            None is the system's own.
        owned : bool array of shape (n_rows, n_items) or (n_items,), optional
            Items a row already has, in the order of ``costs.items``.
        """
        answering = self.route(X)
        calls = np.cumsum(self.costs.call_prices(len(self.stages)))[answering]
        if self._accounting(accounting) == "stage" and owned is None:
            return self.costs.of(self.stage_columns())[answering] + calls
        mask = self.acquisition_mask(X, accounting=accounting)
        return self.costs.of(mask, owned=owned) + calls

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
        ``exits`` (one dict per gate passed: ``stage``, ``score``, ``threshold``, ``goes_on``). ``prediction`` is None
        when the stage that answers is a model that cannot be asked here.
        """
        answering, scores = self._walk(X)
        items = self.costs.items_of(self.acquisition_mask(X))
        calls = np.cumsum(self.costs.call_prices(len(self.stages)))
        predictions = self._predictions_if_possible(X, answering)
        rows = []
        for i, stage in enumerate(answering.tolist()):
            bought = {
                self.costs.items[j]: float(self.costs.item_prices[j])
                for j in np.flatnonzero(items[i])
            }
            exits = [
                {
                    "stage": s,
                    "score": float(scores[i, s]),
                    "threshold": float(self.stages[s].threshold),
                    "goes_on": bool(scores[i, s] > self.stages[s].threshold),
                }
                for s in range(len(self.stages) - 1)
                if not np.isnan(scores[i, s])
            ]
            rows.append(
                {
                    "stage": stage,
                    "name": self.stages[stage].name,
                    "prediction": predictions[i],
                    "items": bought,
                    "call_price": float(calls[stage]),
                    "cost": sum(bought.values()) + float(calls[stage]),
                    "exits": exits,
                }
            )
        return rows

    def _predictions_if_possible(self, X: Any, answering: NDArray[np.intp]) -> list[Any]:
        out: list[Any] = [None] * len(answering)
        for index, stage in enumerate(self.stages):
            rows = np.flatnonzero(answering == index)
            if len(rows) and getattr(stage.predictor, "available", True):
                labels = self.classes[_proba(stage.predictor, X, rows).argmax(axis=1)]
                for i, label in zip(rows.tolist(), labels.tolist(), strict=True):
                    out[i] = label
        return out

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
        calls = np.cumsum(self.costs.call_prices(len(self.stages)))
        lines = [
            f"System: {len(self.stages)} stages, {len(self.classes)} classes, by {self.accounting}"
        ]
        for index, stage in enumerate(self.stages):
            price = self.costs.of(bought[index]) + calls[index]
            goes_on = "" if stage.gate is None else f", goes on above {stage.threshold:.4g}"
            lines.append(
                f"  {index} {stage.name}: {bought[index].sum()} columns, {price:.10g}{goes_on}"
            )
        return "\n".join(lines)


def _proba(predictor: Predictor, X: Any, rows: NDArray[np.intp]) -> Floats:
    if isinstance(X, ScoredRows):
        return X.remember("proba", predictor, lambda: predictor.predict_proba(X.X))[rows]
    return predictor.predict_proba(take_rows(X, rows))


def _gate_score(stage: Stage, X: Any, rows: NDArray[np.intp]) -> Floats:
    gate = stage.gate
    assert gate is not None
    if isinstance(X, ScoredRows):
        every = np.arange(n_rows(X))

        def compute() -> Floats:
            proba = _proba(stage.predictor, X, every) if gate.reads_predictor else None
            return gate.score(X.X, proba)

        # The same gate object may stand behind several predictors: the pair is what is remembered.
        key = (id(gate), id(stage.predictor))
        return X.remember(f"gate {key}", gate, compute)[rows]
    here = take_rows(X, rows)
    return gate.score(here, stage.predictor.predict_proba(here) if gate.reads_predictor else None)


def _read(part: Predictor | Gate, X: Any, rows: NDArray[np.intp], n_columns: int) -> Booleans:
    if isinstance(X, ScoredRows):
        return X.remember("read", part, lambda: columns_read(part, X.X, n_columns))[rows]
    return columns_read(part, take_rows(X, rows), n_columns)
