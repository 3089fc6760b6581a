"""A frontier in a few numbers: the area under it, what it saves, and the intervals of both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from sparing.frontier import Frontier

Floats = NDArray[np.float64]


def area_weights(frontier: Frontier, low: float | None, high: float | None) -> Floats:
    """Share of the budgets from ``low`` to ``high`` that buy each system; see :meth:`sparing.Frontier.area`."""
    judge, order = frontier.judge, frontier.pareto_positions()
    costs = judge.costs[order]
    if low is None:
        low = float(costs[0])
    if high is None:
        high = float(costs[-1]) if judge.full is None else judge.full.cost
    if low < costs[0] and not np.isclose(low, costs[0]):
        raise ValueError(
            f"Nothing can be bought for {low:g}: the cheapest system costs {costs[0]:.4g}; low is at least that."
        )
    if not low < high:
        raise ValueError(f"The budgets go from {low:g} to {high:g}: high must be larger.")
    weights = np.zeros(len(frontier))
    until = np.append(costs[1:], np.inf).clip(low, high)
    weights[order] = (until - costs.clip(low, high)) / (high - low)
    return weights


def frontier_summary(
    frontier: Frontier,
    tolerances: Sequence[float],
    *,
    level: float | None,
    low: float | None,
    high: float | None,
    random_state: int | np.random.Generator | None,
) -> dict[str, Any]:
    """Plain numbers; see :meth:`sparing.Frontier.summary`."""
    best = frontier.pareto()
    weights = area_weights(frontier, low, high)
    out: dict[str, Any] = {
        "cheapest": {"cost": best.points[0].cost, "score": best.points[0].score},
        "best": {"cost": best.points[-1].cost, "score": best.points[-1].score},
        "full": None,
        "area": float(weights @ frontier.scores),
        "saving": {},
    }
    if frontier.full is not None:
        out["full"] = {"cost": frontier.full.cost, "score": frontier.full.score}
        out["saving"] = {float(t): frontier.saving(t) for t in tolerances}
    if level is None:
        return out
    drawn = frontier.intervals(level, random_state=random_state)
    out["area_interval"] = drawn.of(drawn.resampled_scores @ weights)
    out["saving_interval"] = {}
    for t, saving in out["saving"].items():
        ends = [0.0, 0.0]
        if saving > 0 and drawn.saving is not None:
            chosen = frontier.at(tolerance=t)
            index = next(i for i, point in enumerate(frontier) if point is chosen)
            ends = drawn.saving[index].tolist()
        out["saving_interval"][t] = tuple(ends)
    return out
