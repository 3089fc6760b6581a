"""Bootstrap intervals of a frontier: the rows are drawn again, the same draw for every system and the full model.

What is hard for all systems then does not widen the interval of a difference. Means over rows (accuracy,
misclassification costs) need one matrix product for all resamples; any other score is computed again on every resample.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from sparing._evaluation import Evaluation
from sparing._rows import ScoredRows, n_rows, take_rows
from sparing.metrics.scoring import SystemClassifier, resolve_scoring
from sparing.system import System

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

_CHUNK_CELLS = 1 << 22
_MANY, _FEW = 2000, 200
"""Resamples when a score is a mean over rows, and when it has to be computed on each of them."""


@dataclass(frozen=True, eq=False)
class FrontierIntervals:
    """Intervals of every system of a frontier, in its order; made by :meth:`sparing.Frontier.intervals`.

    Attributes
    ----------
    level : float
    cost, score : arrays of shape (n_systems, 2)
        Lower and upper end.
    loss, saving : arrays of shape (n_systems, 2), or None
        Score below the full model's and part of its cost saved, in pairs; None without a full model.
    resampled_costs, resampled_scores : arrays of shape (n_resamples, n_systems)
    resampled_full : array of shape (n_resamples, 2), or None
        Cost and score of the full model.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> from sparing import AdaptLinClassifier, Frontier
    >>> from sparing.datasets import make_synthetic1
    >>> X, y = make_synthetic1()
    >>> clf = AdaptLinClassifier(SVC(), random_state=0).fit(X[::2], y[::2])
    >>> intervals = Frontier.evaluate([clf], X[1::2], y[1::2]).intervals()
    >>> low, high = intervals.score[0]
    >>> bool(low < clf.score(X[1::2], y[1::2]) < high)
    True
    """

    level: float
    cost: Floats
    score: Floats
    loss: Floats | None
    saving: Floats | None
    resampled_costs: Floats
    resampled_scores: Floats
    resampled_full: Floats | None

    def of(self, resampled: Floats) -> tuple[float, float]:
        """Ends of the interval of any number computed from the resamples."""
        low, high = _ends(resampled, self.level)
        return float(low), float(high)


def frontier_intervals(
    evaluation: Evaluation,
    systems: Sequence[System],
    full: System | None,
    *,
    level: float,
    n_resamples: int | None,
    random_state: int | np.random.Generator | None,
) -> FrontierIntervals:
    """Intervals of systems on the rows of an evaluation; see :meth:`sparing.Frontier.intervals`."""
    if not 0 < level < 1:
        raise ValueError(f"level is between 0 and 1, not {level!r}.")
    every = [*systems, *([] if full is None else [full])]
    means = evaluation.row_losses(every)
    if n_resamples is None:
        n_resamples = _FEW if means is None else _MANY
    if n_resamples < 1:
        raise ValueError(f"n_resamples is at least 1, not {n_resamples!r}.")
    rng = np.random.default_rng(random_state)
    row_costs = evaluation.row_costs(every)
    if means is None:
        drawn = _drawn(evaluation, n_resamples, rng)
        costs, scores = _scored_again(evaluation, every, row_costs, drawn)
    else:
        both = np.concatenate([row_costs, -means], axis=1)
        drawn_means = _means_again(both, evaluation.weight, n_resamples, rng)
        costs, scores = np.hsplit(drawn_means, 2)
        scores = scores + evaluation.perfect
    n = len(systems)
    whole = None if full is None else np.column_stack([costs[:, -1], scores[:, -1]])
    costs, scores = costs[:, :n], scores[:, :n]
    loss = saving = None
    if whole is not None:
        loss = _ends(whole[:, 1:] - scores, level).T
        if (whole[:, 0] > 0).all():
            saving = _ends(1.0 - costs / whole[:, :1], level).T
    return FrontierIntervals(
        level, _ends(costs, level).T, _ends(scores, level).T, loss, saving, costs, scores, whole
    )


def _ends(resampled: Floats, level: float) -> Floats:
    tail = (1 - level) / 2
    return np.quantile(resampled, [tail, 1 - tail], axis=0)


def _means_again(
    values: Floats, weight: Floats | None, n_resamples: int, rng: np.random.Generator
) -> Floats:
    """Weighted means of the columns over rows drawn with replacement: shape (n_resamples, n_columns)."""
    n = len(values)
    weight = np.ones(n) if weight is None else weight
    sums = np.column_stack([weight[:, None] * values, weight])
    out = np.empty((n_resamples, sums.shape[1]))
    size = max(1, _CHUNK_CELLS // n)
    for start in range(0, n_resamples, size):
        stop = min(start + size, n_resamples)
        rows = rng.integers(n, size=(stop - start, n))
        rows += n * np.arange(stop - start)[:, None]
        counts = np.bincount(rows.ravel(), minlength=n * (stop - start)).reshape(-1, n)
        out[start:stop] = counts.astype(float) @ sums
    return out[:, :-1] / out[:, -1:]


def _drawn(
    evaluation: Evaluation, n_resamples: int, rng: np.random.Generator
) -> Iterator[tuple[Rows, Rows | None]]:
    """Rows drawn with replacement, whole queries where there are any, each draw a query of its own."""
    n = n_rows(evaluation.X)
    members: list[Rows] = []
    if evaluation.groups is not None:
        _, code = np.unique(np.asarray(evaluation.groups), return_inverse=True)
        order = np.argsort(code, kind="stable")
        members = np.split(order, np.cumsum(np.bincount(code))[:-1])
    for _ in range(n_resamples):
        if not members:
            yield rng.integers(n, size=n), None
            continue
        chosen = [members[i] for i in rng.integers(len(members), size=len(members))]
        query = np.repeat(np.arange(len(chosen)), [len(rows) for rows in chosen])
        yield np.concatenate(chosen), query


def _scored_again(
    evaluation: Evaluation,
    systems: Sequence[System],
    row_costs: Floats,
    drawn: Iterator[tuple[Rows, Rows | None]],
) -> tuple[Floats, Floats]:
    score = resolve_scoring(evaluation.scoring)
    rows = ScoredRows(evaluation.X, size=6 * max(len(s.stages) for s in systems) + 6)
    models = [SystemClassifier(system, rows) for system in systems]
    answers = [_Answers(m.classes_, m.predict(rows), m.predict_proba(rows)) for m in models]
    costs, scores = [], []
    for indices, query in drawn:
        X, y = take_rows(evaluation.X, indices), evaluation.y[indices]
        weight = None if evaluation.weight is None else evaluation.weight[indices]
        costs.append(np.average(row_costs[indices], axis=0, weights=weight))
        scores.append(
            [score(a.at(indices), X, y, sample_weight=weight, groups=query) for a in answers]
        )
    return np.array(costs), np.array(scores)


class _Answers(ClassifierMixin, BaseEstimator):
    """A fitted classifier that only knows its answers for certain rows."""

    def __init__(self, classes: NDArray[Any], labels: NDArray[Any], proba: Floats) -> None:
        self.classes = classes
        self.labels = labels
        self.proba = proba

    def at(self, rows: Rows) -> _Answers:
        return _Answers(self.classes, self.labels[rows], self.proba[rows])

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        return self

    @property
    def classes_(self) -> NDArray[Any]:
        return self.classes

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: ARG002
        return self.labels

    def predict_proba(self, X: Any) -> Floats:  # noqa: ARG002
        return self.proba
