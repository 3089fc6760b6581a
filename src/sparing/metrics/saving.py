"""Average cost, and the part of it that is saved: cut = 1 − average cost / the full model's average cost."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparing.system import Accounting

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

_ROUNDING = 1e-12
"""0.91 − 0.01 is not 0.90 in binary: scores and costs this close count as equal."""


def mean_acquisition_cost(
    model: Any,
    X: Any,
    *,
    accounting: Accounting | None = None,
    owned: Any = None,
    sample_weight: Any = None,
) -> float:
    """Average cost per row of a system or a routed classifier.

    Parameters
    ----------
    model : System or fitted routed classifier
        Anything with ``acquisition_cost``.
    X : rows
    accounting : {"stage", "path"} or None
        None is the model's own.
    owned : names of items, mapping or frame of item to bool, or bool array (n_rows, n_items), optional
        Items a row already has; arrays are in the order of ``costs.items``.
    sample_weight : array of shape (n_rows,), optional

    Returns
    -------
    float

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> from sparing import AdaptLinClassifier
    >>> from sparing.datasets import make_synthetic2
    >>> from sparing.metrics import mean_acquisition_cost
    >>> X, y = make_synthetic2()
    >>> clf = AdaptLinClassifier(SVC(gamma=1), feature_costs=[1, 1], full_rate=0.6, random_state=0)
    >>> 1 <= mean_acquisition_cost(clf.fit(X, y), X) <= 2
    True
    """
    if not hasattr(model, "acquisition_cost"):
        raise TypeError(
            f"{type(model).__name__} has no acquisition_cost: pass a System or a fitted routed classifier. "
            "A Pipeline changes the columns that are paid for: put it inside the classifier, as its estimator."
        )
    cost = model.acquisition_cost(X, accounting=accounting, owned=owned)
    return float(np.average(cost, weights=sample_weight))


def saving_at_tolerance(
    costs: Any,
    scores: ArrayLike | None = None,
    *,
    tolerance: float,
    full_cost: float | None = None,
    full_score: float | None = None,
) -> float:
    """Part of the full model's cost saved by the cheapest system within a tolerance of its score.

    Parameters
    ----------
    costs : array of shape (n_systems,), or Frontier
        Average cost of each system; a :class:`~sparing.frontier.Frontier` needs nothing else but the tolerance.
    scores : array of shape (n_systems,)
        Score of each system, larger is better.
    tolerance : float
        Absolute difference in the score: 0.01 is one point of accuracy.
    full_cost, full_score : float
        Average cost and score of the full model alone.

    Returns
    -------
    float
        1 − cost / full_cost. The full model is always there to fall back on, so this is 0, not negative, when no
        system is good enough or none is cheaper. Of a frontier that reports other rows than it chooses by, see
        :meth:`sparing.Frontier.saving`.

    Examples
    --------
    >>> from sparing.metrics import saving_at_tolerance
    >>> saving_at_tolerance([2, 5, 8], [0.80, 0.90, 0.95], full_cost=10, full_score=0.91, tolerance=0.01)
    0.5
    """
    if hasattr(costs, "saving"):
        return float(costs.saving(tolerance))
    if scores is None or full_cost is None or full_score is None:
        raise TypeError("With arrays, scores, full_cost and full_score are needed as well.")
    costs, scores = np.asarray(costs, dtype=float), np.asarray(scores, dtype=float)
    if costs.ndim != 1 or costs.shape != scores.shape:
        raise ValueError(
            f"costs and scores have one entry per system; their shapes are {costs.shape} and {scores.shape}."
        )
    good = costs[within_tolerance(scores, full_score, tolerance)]
    return max(0.0, cut(float(good.min()), full_cost)) if len(good) else 0.0


def cut(cost: float, full_cost: float) -> float:
    """1 − cost / full_cost."""
    if not full_cost > 0:
        raise ValueError(
            f"The full model costs {full_cost:g} on average: there is nothing to save."
        )
    return 1.0 - cost / full_cost


def within_tolerance(scores: Floats, full_score: float, tolerance: float) -> Booleans:
    """Which scores are at least ``full_score − tolerance``, up to rounding."""
    if not np.isfinite(tolerance):
        raise ValueError(f"tolerance is a finite number, not {tolerance!r}.")
    wanted = full_score - tolerance
    return scores >= wanted - _ROUNDING * max(1.0, abs(wanted))


def within_budget(costs: Floats, budget: float) -> Booleans:
    """Which costs are at most ``budget``, up to rounding."""
    if np.isnan(budget):
        raise ValueError("budget is a number, not NaN.")
    return costs <= budget + (_ROUNDING * max(1.0, abs(budget)) if np.isfinite(budget) else 0.0)
