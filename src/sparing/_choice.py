"""Choosing among systems by two numbers each, cost (less is better) and score (more is better)."""

from __future__ import annotations

from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparing.metrics.saving import within_budget, within_tolerance

Floats = NDArray[np.float64]

CAUTION = 0.5
"""Standard errors by which a tolerance must be kept on the rows that choose, so that less of it is luck.

Chosen by the losses on other rows of 5000 to 23,000 systems of ann-thyroid (two splits), Letters and MiniBooNE, with a
tolerance of a point and 400 to 3000 choosing rows: 0.5 to 1.6 points without it, 0.4 to 1.2 with it, and the cut fell
by 0 to 4 points.
"""


def pareto_order(costs: ArrayLike, scores: ArrayLike) -> NDArray[np.intp]:
    """Positions of the non-dominated entries, cheapest first; of equals the first.

    Examples
    --------
    >>> pareto_order([3, 1, 2, 2, 1], [0.9, 0.5, 0.4, 0.7, 0.5])
    array([1, 3, 0])
    """
    costs, scores = np.asarray(costs, dtype=float), np.asarray(scores, dtype=float)
    order = np.lexsort((-scores, costs))
    if not len(order):
        return order
    best_before = np.maximum.accumulate(scores[order])[:-1]
    return order[np.concatenate([[True], scores[order][1:] > best_before])]


def best_within_budget(costs: Floats, scores: Floats, budget: float) -> int:
    """Position of the best system that costs at most ``budget``, of equals the cheapest.

    Examples
    --------
    >>> import numpy as np
    >>> best_within_budget(np.array([1.0, 2.0, 3.0]), np.array([0.7, 0.9, 0.8]), budget=2)
    1
    >>> best_within_budget(np.array([1.0, 2.0, 3.0]), np.array([0.7, 0.9, 0.8]), budget=0.5)
    Traceback (most recent call last):
    ...
    ValueError: No system costs at most 0.5 on average. The cheapest costs 1 and scores 0.7; the best scores 0.9 and ...
    """
    allowed = np.flatnonzero(within_budget(costs, budget))
    if not len(allowed):
        raise ValueError(_impossible(f"costs at most {budget:g} on average", costs, scores))
    return _best(costs, scores, allowed)


def cheapest_within_tolerance(
    costs: Floats, scores: Floats, full_score: float, tolerance: float, doubts: Floats | float = 0.0
) -> int:
    """Position of the cheapest system whose score is at least ``full_score − tolerance``, of equals the best.

    With ``doubts``, by which every score may be too high, the tolerance must be kept by that much; when nobody keeps it
    so, the system that comes nearest to it is taken.

    Examples
    --------
    >>> import numpy as np
    >>> costs, scores = np.array([1.0, 2.0, 3.0]), np.array([0.7, 0.9, 0.8])
    >>> cheapest_within_tolerance(costs, scores, 0.9, tolerance=0.2)
    0
    >>> cheapest_within_tolerance(costs, scores, 0.9, tolerance=0.2, doubts=0.01)
    1
    """
    allowed = np.flatnonzero(within_tolerance(scores, full_score, tolerance))
    if not len(allowed):
        wish = f"scores within {tolerance:g} of the full model ({full_score:.4g})"
        raise ValueError(_impossible(wish, costs, scores))
    low = scores - doubts
    sure = allowed[within_tolerance(low[allowed], full_score, tolerance)]
    return _cheapest(costs, scores, sure) if len(sure) else _best(costs, low, allowed)


def check_wish(budget: float | None, tolerance: float | None) -> None:
    """Raise unless exactly one of the two is given, and it is a number."""
    if (budget is None) == (tolerance is None):
        raise ValueError(
            "Give budget or tolerance"
            + (": at(budget=3) or at(tolerance=0.01)." if budget is None else ", not both.")
        )
    for name, wish in (("budget", budget), ("tolerance", tolerance)):
        if not isinstance(wish, Real | None) or isinstance(wish, bool):
            raise TypeError(f"{name} is a number, not {wish!r}.")


def _best(costs: Floats, scores: Floats, among: NDArray[np.intp]) -> int:
    return int(among[np.lexsort((costs[among], -scores[among]))[0]])


def _cheapest(costs: Floats, scores: Floats, among: NDArray[np.intp]) -> int:
    return int(among[np.lexsort((-scores[among], costs[among]))[0]])


def _impossible(wish: str, costs: Floats, scores: Floats) -> str:
    every = np.arange(len(costs))
    cheapest, best = _cheapest(costs, scores, every), _best(costs, scores, every)
    return (
        f"No system {wish}. The cheapest costs {costs[cheapest]:.4g} and scores {scores[cheapest]:.4g}; "
        f"the best scores {scores[best]:.4g} and costs {costs[best]:.4g}."
    )
