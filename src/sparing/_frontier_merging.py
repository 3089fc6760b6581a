"""Systems of several frontiers in one, when they come from the same rows; the full model alone as one more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sparing._evaluation import same_rows
from sparing._frontier_table import as_mapping
from sparing.metrics.scoring import scoring_name

if TYPE_CHECKING:
    from sparing.frontier import Frontier


def merged(first: Frontier, second: Frontier) -> Frontier:
    """Both sets of systems in one; see :meth:`sparing.frontier.Frontier.merged`."""
    if not same_prices(first, second):
        raise ValueError(
            "Frontiers with different prices cannot be compared: reprice(costs) one of them first."
        )
    for what, a, b in [
        ("numbers of rows", first.n_rows, second.n_rows),
        ("scorings", scoring_name(first.scoring), scoring_name(second.scoring)),
        ("accountings", first.accounting, second.accounting),
        ("ways of choosing", first.chosen is None, second.chosen is None),
    ]:
        if a != b:
            raise ValueError(
                f"Frontiers with different {what} cannot be compared: {a!r} and {b!r}."
            )
    rows = [f._evaluation.y for f in (first, second) if f._evaluation is not None]
    if len(rows) == 2 and not np.array_equal(rows[0], rows[1]):
        raise ValueError(
            "Frontiers of different rows cannot be compared, and the labels of these differ: evaluate both on the same "
            "rows, frontier.on(X, y) or Frontier.evaluate(systems, X, y)."
        )
    chosen = None
    if first.chosen is not None and second.chosen is not None:
        chosen = merged(first.chosen, second.chosen)
    return replace(
        first,
        points=first.points + second.points,
        full=first.full or second.full,
        chosen=chosen,
        _evaluation=first._evaluation if same_rows(first._evaluation, second._evaluation) else None,
    )


def same_prices(first: Frontier, second: Frontier) -> bool:
    """Whether the systems of two frontiers were charged by the same price list."""
    lists = [point.system.costs for frontier in (first, second) for point in frontier.points[:1]]
    return len(lists) < 2 or lists[0] == lists[1]


def _named(label: Mapping[str, object], method: str) -> dict[str, object]:
    rest = {("of" if key == "method" else key): value for key, value in label.items()}
    own = rest.get("of")
    return {"method": method, **{k: v for k, v in rest.items() if k != "of" or own != method}}


def named(frontier: Frontier, method: str) -> Frontier:
    """The same systems, whose labels say the method first; a method they name themselves comes as ``of``."""
    points = tuple(
        replace(point, label=_named(as_mapping(point.label), method)) for point in frontier.points
    )
    chosen = None if frontier.chosen is None else named(frontier.chosen, method)
    return replace(frontier, points=points, chosen=chosen)


FULL_ALONE = {"method": "full model"}
"""Label of the full model alone among the systems of a frontier."""


def with_full_alone(frontier: Frontier) -> Frontier:
    """With the full model alone as one more system, where no other is as good: what saves nothing loses nothing."""
    full = frontier.full
    if full is None or any(point.score >= full.score for point in frontier.points):
        return frontier
    return replace(frontier, points=(*frontier.points, replace(full, label=dict(FULL_ALONE))))


def cheaper_than_full(frontier: Frontier) -> Frontier:
    """Without the full model alone and what costs as much; the frontier itself when it does not hold it."""
    alone = [point.cost for point in frontier if point.label == FULL_ALONE]
    cheaper = np.flatnonzero(frontier.costs < min(alone, default=-np.inf))
    return frontier._subset(cheaper) if len(cheaper) else frontier
