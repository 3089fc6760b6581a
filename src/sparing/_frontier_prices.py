"""A frontier at other prices: the same systems and scores, other costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sparing._evaluation import Point, cost_by_stage
from sparing.costs import FeatureCosts
from sparing.system import System

if TYPE_CHECKING:
    from sparing.frontier import Frontier


def repriced(frontier: Frontier, costs: Any) -> Frontier:
    """The same systems at other prices; see :meth:`sparing.frontier.Frontier.reprice`."""
    # Prices per stage are those of the system with most stages; what has fewer is what comes last of it.
    longest = max((point.system for point in frontier.points), key=_n_calls)
    resolved = longest.with_costs(costs).costs
    systems = [_at(point.system, resolved) for point in frontier.points]
    points = _points(frontier, frontier.points, systems)
    full = frontier.full
    if full is not None:
        full = _points(frontier, [full], [_at(full.system, resolved)])[0]
    chosen = None if frontier.chosen is None else repriced(frontier.chosen, resolved)
    return replace(frontier, points=tuple(points), full=full, chosen=chosen)


def _n_calls(system: System) -> int:
    """Prices per call that a system needs: one for the full model too where it has none."""
    return len(system.stages) + (not system.has_full)


def _at(system: System, costs: FeatureCosts) -> System:
    return system.with_costs(costs.of_last(_n_calls(system)))


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
