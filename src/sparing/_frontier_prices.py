"""A frontier at other prices: the same systems and scores, other costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sparing._evaluation import Point, cost_by_stage
from sparing.system import System

if TYPE_CHECKING:
    from sparing.frontier import Frontier


def repriced(frontier: Frontier, costs: Any) -> Frontier:
    """The same systems at other prices; see :meth:`sparing.frontier.Frontier.reprice`."""
    # Prices per stage are those of the system with most stages; what has fewer is what comes last of it.
    longest = max((point.system for point in frontier.points), key=lambda s: len(s.stages))
    resolved = longest.with_costs(costs).costs
    systems = [
        point.system.with_costs(resolved.of_last(len(point.system.stages)))
        for point in frontier.points
    ]
    points = _points(frontier, frontier.points, systems)
    full = frontier.full
    if full is not None:
        last = resolved.of_last(len(full.system.stages))
        full = _points(frontier, [full], [full.system.with_costs(last)])[0]
    chosen = None if frontier.chosen is None else repriced(frontier.chosen, resolved)
    return replace(frontier, points=tuple(points), full=full, chosen=chosen)


def _points(frontier: Frontier, points: Sequence[Point], systems: Sequence[System]) -> list[Point]:
    if frontier.accounting == "stage":
        return [
            replace(point, system=system, cost=cost_by_stage(system, point.stage_rates))
            for point, system in zip(points, systems, strict=True)
        ]
    if frontier._evaluation is None:
        raise ValueError(
            "By path the cost depends on the rows, and this frontier has none any more (it was stored, or merged "
            "from different rows): evaluate its systems again, re-priced by system.with_costs."
        )
    return frontier._evaluation.repriced(points, systems)
