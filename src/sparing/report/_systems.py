"""The systems a report shows, on its rows.

They are chosen elsewhere or without labels: a report measures, and what is chosen on the rows it measures on would look
better than it is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sparing.frontier import Frontier, threshold_systems
from sparing.metrics.scoring import resolve_scoring
from sparing.report._subject import Subject, same_system
from sparing.system import System

_THRESHOLDS = 21
"""Systems that differ from the fitted one by its threshold, where no frontier is known."""


def measured_systems(
    subject: Subject, X: Any, y: Any, scoring: Any, groups: Any, max_systems: int
) -> tuple[Frontier, int, str]:
    """The systems on these rows, cheapest first, the place of the reported one, and how they came to be."""
    if max_systems < 2:
        raise ValueError(f"max_systems is at least 2, not {max_systems!r}.")
    known, systems, full = subject.frontier, [subject.system], None
    labels: list[Any] = [None]
    if known is not None:
        best = known.pareto()
        spread = np.linspace(0, len(best) - 1, max_systems).round().astype(int)
        # The reported system stands for itself below, whether or not it is one of these.
        others = [
            point
            for point in (best.points[i] for i in np.unique(spread))
            if not same_system(point.system, subject.system)
        ]
        own = next((p.label for p in known if same_system(p.system, subject.system)), None)
        systems += [point.system for point in others]
        labels = [own, *(point.label for point in others)]
        full = None if known.full is None else known.full.system
        some = f"; {len(systems)} are shown, the reported one among them"
        note = (
            f"{len(best)} systems were not beaten on the {known.judge.n_rows:,} rows where they were chosen"
            f"{some if len(systems) < len(best) else ''}. The numbers here are measured on the rows of this report."
        )
        scoring = _known_scoring(known) if scoring is None else scoring
    elif len(subject.system.stages) > 1:
        others, note = _without_frontier(subject.system, X)
        systems += [other for other in others if not same_system(other, subject.system)]
        labels = [None] * len(systems)
    else:
        note = "The model came without other systems to compare with."
    frontier = Frontier.evaluate(
        systems,
        X,
        y,
        scoring="accuracy" if scoring is None else scoring,
        accounting=subject.system.accounting if known is None else known.accounting,
        labels=labels,
        full=full,
        groups=groups,
    )
    order = np.lexsort((frontier.scores, frontier.costs))
    points = tuple(frontier.points[i] for i in order)
    return replace(frontier, points=points), int(np.flatnonzero(order == 0)[0]), note


def _known_scoring(frontier: Frontier) -> Any:
    """How a frontier was scored; a function of the user's own is known to a file by its name only."""
    try:
        resolve_scoring(frontier.scoring)
    except ValueError as error:
        raise ValueError(
            f"The frontier was scored by {frontier.scoring!r}, which is not a name of a scikit-learn scorer: pass the "
            "function itself, scoring=."
        ) from error
    return frontier.scoring


def _without_frontier(system: System, X: Any) -> tuple[list[System], str]:
    """Other systems with the same parts, found without labels: nothing is chosen on the rows of the report."""
    if len(system.stages) == 2:
        return threshold_systems(system, X, _THRESHOLDS), (
            "The systems differ from the reported one by the threshold of its gate; the thresholds were spread over "
            "the rows of this report, without a look at their labels."
        )
    known = np.array(system.thresholds)
    ends = [np.where(np.arange(len(known)) < end, known, np.inf) for end in range(len(known))]
    return [system.with_thresholds(thresholds.tolist()) for thresholds in ends], (
        "The systems differ from the reported one by the last stage a row may reach."
    )
