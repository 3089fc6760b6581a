"""One curve of a FrontierDisplay: plain arrays, from a frontier or from arrays."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparing._choice import cheapest_within_tolerance, pareto_order
from sparing.frontier import Frontier
from sparing.metrics.saving import saving_at_tolerance

Floats = NDArray[np.float64]
Pair = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Curve:
    """One curve of a :class:`FrontierDisplay`.

    Attributes
    ----------
    costs, scores : arrays of shape (n_points,)
        The systems worth having, cheapest first.
    name : str or None
    other_costs, other_scores : arrays
        The other systems, drawn faintly.
    cheap : (cost, score) or None
        The best cheap model alone.
    marked : (cost, score) or None
        The cheapest system within the tolerance.
    saving : float or None
        What it saves of the full model's cost.
    band : array of shape (n_points, 2) or None
        Ends of the interval of every score, drawn as a band.

    Examples
    --------
    >>> from sparing.displays import Curve, FrontierDisplay
    >>> display = FrontierDisplay.from_predictions([1, 2, 4], [0.8, 0.9, 0.95], name="boosted trees")
    >>> curve, = display.curves
    >>> isinstance(curve, Curve), curve.name, curve.costs
    (True, 'boosted trees', array([1., 2., 4.]))
    """

    costs: Floats
    scores: Floats
    name: str | None = None
    other_costs: Floats = field(default_factory=lambda: np.empty(0))
    other_scores: Floats = field(default_factory=lambda: np.empty(0))
    cheap: Pair | None = None
    marked: Pair | None = None
    saving: float | None = None
    band: Floats | None = None


def curve_of_frontier(
    frontier: Frontier, name: str | None, tolerance: float | None, level: float | None = None
) -> Curve:
    """Curve of a frontier, whether its systems were chosen on its own rows or on others.

    With a ``level``, the scores get bootstrap intervals.
    """
    pareto = frontier.pareto()
    best = {id(point) for point in pareto}
    # Of a cascade the first stage is no rival: a later one may be both.
    alone = [p for p in pareto if len(p.stage_rates) == 2 and p.stage_rates[0] == 1]
    cheap = max(alone, key=lambda point: point.score, default=None)
    saving, marked = None, None
    if tolerance is not None and frontier.full is not None:
        saving = frontier.saving(tolerance)
        marked = frontier.at(tolerance=tolerance) if saving > 0 else None
    return _curve(
        frontier.costs,
        frontier.scores,
        np.array([id(point) in best for point in frontier]),
        name=name,
        cheap=None if cheap is None else (cheap.cost, cheap.score),
        marked=None if marked is None else (marked.cost, marked.score),
        saving=saving,
        band=None
        if level is None
        else pareto.intervals(level).score[np.argsort(pareto.costs, kind="stable")],
    )


def _curve(costs: Floats, scores: Floats, best: NDArray[np.bool_], **rest: Any) -> Curve:
    order = np.flatnonzero(best)[np.argsort(costs[best], kind="stable")]
    return Curve(
        costs[order], scores[order], other_costs=costs[~best], other_scores=scores[~best], **rest
    )


def curve_of_arrays(
    costs: ArrayLike,
    scores: ArrayLike,
    name: str | None,
    full: Pair | None,
    cheap: Pair | None,
    tolerance: float | None,
) -> Curve:
    """Curve of costs and scores."""
    costs, scores = np.asarray(costs, dtype=float), np.asarray(scores, dtype=float)
    saving, marked = None, None
    if tolerance is not None and full is not None:
        saving = saving_at_tolerance(
            costs, scores, tolerance=tolerance, full_cost=full[0], full_score=full[1]
        )
        if saving > 0:
            index = cheapest_within_tolerance(costs, scores, full[1], tolerance)
            marked = (float(costs[index]), float(scores[index]))
    best = np.isin(np.arange(len(costs)), pareto_order(costs, scores))
    return _curve(costs, scores, best, name=name, cheap=cheap, marked=marked, saving=saving)
