"""Cost and score of many systems on the same rows, parts in common computed once.

Called by :class:`~sparing.frontier.Frontier`. What a row pays depends on the stage that answers it and on nothing else
the gates do, so systems that differ by thresholds alone share one table of costs: one number per stage, or by path one
per stage and row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.validation import _check_sample_weight

from sparing._full_model import FullModel
from sparing._rows import ScoredRows, n_rows
from sparing.costs import FeatureCosts
from sparing.metrics.scoring import SystemClassifier, resolve_scoring, scoring_name
from sparing.system import Accounting, System

Floats = NDArray[np.float64]
Label = Mapping[str, Any] | str | None


@dataclass(frozen=True)
class Point:
    """One system, evaluated.

    Attributes
    ----------
    system : System
    cost : float
        Average cost per row.
    score : float
        Larger is better.
    stage_rates : tuple of float
        Share of the rows answered by each stage, cheapest first.
    label : mapping, str or None
        Where the system comes from: method and settings.
    kept_error : float
        Share of wrong answers among the rows that are not sent to the full model; NaN when there are none.
    loss_error : float
        Standard error of what its score loses against the full model's; NaN when the score is no mean over rows, or
        there is no full model.

    Examples
    --------
    >>> from sparing import Frontier, GreedyMiserClassifier
    >>> from sparing.datasets import make_synthetic1
    >>> X, y = make_synthetic1()
    >>> clf = GreedyMiserClassifier(n_estimators=5, cost_penalty=0, random_state=0).fit(X, y)
    >>> point = Frontier.evaluate([clf], X, y).points[0]
    >>> point.cost, point.stage_rates
    (2.0, (1.0,))
    """

    system: System
    cost: float
    score: float
    stage_rates: tuple[float, ...]
    label: Label = None
    kept_error: float = np.nan
    loss_error: float = np.nan

    def __repr__(self) -> str:
        rates = " ".join(f"{rate:.2f}" for rate in self.stage_rates)
        label = f", {label_text(self.label)}" if self.label is not None else ""
        return f"Point(cost={self.cost:.4g}, score={self.score:.4g}, stages {rates}{label})"


def label_text(label: Label) -> str:
    """A label in one line."""
    if isinstance(label, Mapping):
        return ", ".join(f"{k}={_short(v)}" for k, v in label.items())
    return "" if label is None else str(label)


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


class Evaluation:
    """Rows on which systems are judged.

    Parameters
    ----------
    X, y : rows and labels
    scoring : see :func:`~sparing.metrics.scoring.resolve_scoring`.
    accounting : {"stage", "path"}
    sample_weight : array of shape (n_rows,), optional
    groups : array of shape (n_rows,), optional
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        scoring: Any,
        accounting: Accounting,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> None:
        self.X = X.X if isinstance(X, ScoredRows) else X
        if not hasattr(self.X, "shape"):
            self.X = np.asarray(self.X)
        self.y = column_or_1d(np.asarray(y))
        self._labels = np.unique(self.y)
        check_consistent_length(self.X, self.y)
        self.weight = sample_weight
        if sample_weight is not None:
            self.weight = _check_sample_weight(sample_weight, self.y, dtype=np.float64)
        self.groups = groups
        self.accounting = accounting
        self.scoring = scoring
        self._score = resolve_scoring(scoring)

    def points(
        self, systems: Sequence[System], labels: Sequence[Label], full: System | None = None
    ) -> list[Point]:
        """Every system evaluated, in the order given, and compared with the full model if there is one."""
        rows = self._scored_rows(systems)
        full_losses = None
        if full is not None and self._is_mean:
            full_losses = self._row_loss(SystemClassifier(full, rows))
        out: dict[int, Point] = {}
        for i in _neighbours(systems):
            system = systems[i]
            self._check_classes(system)
            model = SystemClassifier(system, rows)
            answering = model.route(rows)
            rates = self._rates(system, answering)
            cost = self._cost(system, rows, answering, rates)
            score, kept_error = self._score_of(model), self._kept_error(model, answering)
            loss_error = np.nan
            if full_losses is not None:
                loss_error = self._loss_error(model, full_losses, rates)
            out[i] = Point(system, cost, score, rates, labels[i], kept_error, loss_error)
        return [out[i] for i in range(len(systems))]

    def repriced(self, points: Sequence[Point], systems: Sequence[System]) -> list[Point]:
        """The points with the costs of the same systems at other prices."""
        rows = self._scored_rows(systems)
        out: dict[int, Point] = {}
        for i in _neighbours(systems):
            cost = self._cost(systems[i], rows, systems[i].route(rows), points[i].stage_rates)
            out[i] = replace(points[i], system=systems[i], cost=cost)
        return [out[i] for i in range(len(systems))]

    def row_costs(self, systems: Sequence[System]) -> Floats:
        """What every row pays in every system: shape (n_rows, n_systems)."""
        rows = self._scored_rows(systems)
        out = np.empty((len(self.y), len(systems)))
        for i in _neighbours(systems):
            out[:, i] = systems[i].acquisition_cost(rows, accounting=self.accounting)
        return out

    def row_losses(self, systems: Sequence[System]) -> Floats | None:
        """What every row takes off a perfect score, shape (n_rows, n_systems); None when the score is no mean."""
        if not self._is_mean:
            return None
        rows = self._scored_rows(systems)
        out = np.empty((len(self.y), len(systems)))
        for i in _neighbours(systems):
            out[:, i] = self._row_loss(SystemClassifier(systems[i], rows))
        return out

    def _row_loss(self, model: SystemClassifier) -> Floats:
        answers = model.predict(model.rows)
        return row_loss(loss_matrix(self.scoring), self.y, answers, model.system.classes)

    def _loss_error(
        self, model: SystemClassifier, full_losses: Floats, rates: tuple[float, ...]
    ) -> float:
        """Standard error of the mean of paired differences."""
        if model.system.has_full and rates[-1] == 1:
            return 0.0
        difference = self._row_loss(model) - full_losses
        weight = np.ones(len(difference)) if self.weight is None else self.weight
        n = weight.sum() ** 2 / (weight**2).sum()
        mean = np.average(difference, weights=weight)
        variance = np.average((difference - mean) ** 2, weights=weight)
        # One more row on which they differ: a few rows without any do not show that there are none.
        unseen = max(np.ptp(full_losses), 1.0) ** 2 / n
        return float(np.sqrt((variance + unseen) / n))

    @property
    def _is_mean(self) -> bool:
        return is_accuracy(self.scoring) or loss_matrix(self.scoring) is not None

    @property
    def perfect(self) -> float:
        """Score of a system without losses, where scores are means over rows."""
        return float(is_accuracy(self.scoring))

    def _scored_rows(self, systems: Sequence[System]) -> ScoredRows:
        # Probabilities, labels and gate scores of every stage of a system; by path also the columns its parts read.
        return ScoredRows(self.X, size=6 * max(len(system.stages) for system in systems) + 6)

    def _rates(self, system: System, answering: NDArray[np.intp]) -> tuple[float, ...]:
        counts = np.bincount(answering, weights=self.weight, minlength=len(system.stages))
        return tuple((counts / counts.sum()).tolist())

    def _cost(
        self,
        system: System,
        rows: ScoredRows,
        answering: NDArray[np.intp],
        rates: tuple[float, ...],
    ) -> float:
        if self.accounting == "stage":
            return cost_by_stage(system, rates)
        table = rows.remember(
            "path costs", (*_parts(system), system.costs), lambda: _path_costs(system, rows)
        )
        return float(np.average(table[answering, np.arange(len(answering))], weights=self.weight))

    def _kept_error(self, model: SystemClassifier, answering: NDArray[np.intp]) -> float:
        system = model.system
        kept = answering < len(system.stages) - system.has_full
        weight = kept if self.weight is None else kept * self.weight
        if not weight.sum() > 0:
            return np.nan
        return float(np.average(model.predict(model.rows) != self.y, weights=weight))

    def _score_of(self, model: SystemClassifier) -> float:
        score = self._score(model, self.X, self.y, sample_weight=self.weight, groups=self.groups)
        if np.isnan(score):
            raise ValueError(f"scoring={scoring_name(self.scoring)} gave NaN for {model.system!r}")
        return score

    def _check_classes(self, system: System) -> None:
        if not np.isin(self._labels, system.classes).any():
            raise ValueError(
                f"y has none of the classes of the system, {system.classes.tolist()[:10]}; its labels are "
                f"{self._labels.tolist()[:10]}."
            )


def is_accuracy(scoring: Any) -> bool:
    """Whether a scoring is accuracy, by name or as scikit-learn's function."""
    return scoring == "accuracy" if isinstance(scoring, str) else scoring is accuracy_score


def loss_matrix(scoring: Any) -> Floats | None:
    """The misclassification costs a scoring is made of; None when it is something else."""
    if isinstance(scoring, str) or callable(scoring):
        return None
    resolve_scoring(scoring)  # raises on what is no square matrix
    return np.asarray(scoring, dtype=float)


def row_loss(
    matrix: Floats | None, y: NDArray[Any], answers: NDArray[Any], classes: NDArray[Any]
) -> Floats:
    """What each answer costs: 0 or 1 without a matrix."""
    if matrix is None:
        return (answers != y).astype(float)
    place = {label: i for i, label in enumerate(classes.tolist())}
    unknown = [label for label in np.unique(y).tolist() if label not in place]
    if unknown or len(matrix) != len(place):
        raise ValueError(
            f"The misclassification cost matrix of {len(matrix)} classes, the labels {np.unique(y).tolist()} and the "
            f"classes {list(place)} do not fit together."
        )
    true, said = (np.array([place[v] for v in labels.tolist()]) for labels in (y, answers))
    return matrix[true, said]


def system_of(model: Any) -> System:
    """The system of a fitted routed classifier, or the system itself."""
    system = getattr(model, "system_", model)
    if not isinstance(system, System):
        raise TypeError(
            f"A system or a fitted routed classifier is needed, not {type(model).__name__}."
        )
    return system


def cost_by_stage(system: System, rates: tuple[float, ...]) -> float:
    """Average cost by stage: what a row pays depends only on the stage that answers it."""
    prices = system.costs.of(system.stage_columns()) + system.call_prices()
    return float(prices @ np.array(rates))


def _path_costs(system: System, rows: ScoredRows) -> Floats:
    """What each row pays by path, were it answered at each stage: shape (n_stages, n_rows)."""
    n_gates = len(system.stages) - 1
    table = np.empty((n_gates + 1, n_rows(rows)))
    for stage in range(n_gates + 1):
        thresholds = np.where(np.arange(n_gates) < stage, -np.inf, np.inf)
        everyone = system.with_thresholds(thresholds.tolist())
        table[stage] = everyone.acquisition_cost(rows, accounting="path")
    return table


def _parts(system: System) -> tuple[object, ...]:
    return tuple(part for stage in system.stages for part in (stage.predictor, stage.gate))


def _neighbours(systems: Sequence[System]) -> list[int]:
    """Systems with parts in common one after the other, so that little needs to be remembered."""
    return sorted(range(len(systems)), key=lambda i: [id(part) for part in _parts(systems[i])])


def one_accounting(systems: Sequence[System], accounting: Accounting | None) -> Accounting:
    """The accounting asked for, or the one all systems have."""
    own = {system.accounting for system in systems}
    if accounting is not None:
        if accounting not in ("stage", "path"):
            raise ValueError(f"accounting is 'stage' or 'path', not {accounting!r}.")
        return accounting
    if len(own) > 1:
        raise ValueError(
            "Some systems count by stage, others by path, and costs counted differently cannot be compared: pass "
            "accounting='stage' or 'path'."
        )
    return own.pop()


def same_rows(a: Evaluation | None, b: Evaluation | None) -> bool:
    """Whether two evaluations are known to be of the same rows and weights."""
    if a is None or b is None or a.X is not b.X:
        return False
    if a.weight is None or b.weight is None:
        return a.weight is b.weight
    return np.array_equal(a.weight, b.weight)


def full_alone(full: FullModel, costs: FeatureCosts) -> System:
    """The full model without anything before it; of prices per stage it pays its own."""
    return System(full.stages, costs.of_last(len(full.stages)), full.classes)


def stage_alone(system: System, index: int = -1) -> System:
    """The system that asks one stage only: f0 by default, the cheap model with ``index=0``.

    Columns, prices and accounting are the same; its gate, and the gate's columns, are gone.

    Parameters
    ----------
    system : System
    index : int, default=-1

    Examples
    --------
    >>> from sparing import AdaptLinClassifier
    >>> from sparing.datasets import make_synthetic1
    >>> from sparing.frontier import stage_alone
    >>> X, y = make_synthetic1()
    >>> clf = AdaptLinClassifier(cv=2, random_state=0).fit(X, y)
    >>> full = stage_alone(clf.system_)
    >>> bool((full.predict(X) == clf.estimator_.predict(X)).all())
    True
    """
    stages = range(len(system.stages))
    is_full = system.has_full and stages[index] == stages[-1]
    costs = system.costs
    if isinstance(costs.call_price, tuple):
        own = costs.call_price[stages[index]]
        costs = costs.with_call_price(own if is_full else (own, 0.0))
    stage = replace(system.stages[index], gate=None, threshold=0.0)
    return replace(system, stages=(stage,), costs=costs, has_full=is_full)
