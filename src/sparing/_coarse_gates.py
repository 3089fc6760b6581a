"""Systems whose coarse gates are cut one score higher or lower.

A stage that knows the answer to one question has two scores, and every row has one of them. Thresholds tuned on
out-of-fold scores then stand among values that differ from fold to fold, and the model fitted on all rows has its two
scores on one side of them: a gate that was to stop some rows stops all or none. Rows that choose see the scores of that
model, so the cuts next to each threshold are tried there. Gates with many distinct scores are left as they are: one
score more or less changes nothing, and tuning them on the rows that choose would only fit their noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparing._cuts import cut_above
from sparing._rows import ScoredRows
from sparing.system import System

Floats = NDArray[np.float64]

_COARSE = 0.01
"""Share of the rows at a gate that have one score, from which on the gate is coarse there."""


def moved_cuts(systems: Sequence[System], X: Any, n_full: int = 1) -> list[tuple[int, System]]:
    """Systems with one threshold moved across a score that many rows have, each with the position of its origin.

    Parameters
    ----------
    systems : Sequence of System
        Those with several gates are looked at: with one, all cuts are there already.
    X : rows whose scores say where cuts may stand.
    n_full : int, default=1
        Stages of the full model; the gates between them are its own business.
    """
    several = [(i, s) for i, s in enumerate(systems) if _n_gates(s, n_full) > 1]
    if not several:
        return []
    rows = ScoredRows(X, size=6 * max(len(s.stages) for _, s in several) + 6)
    out, seen = list[tuple[int, System]](), set[tuple[Any, ...]]()
    for origin, system in several:
        scores = system.with_thresholds(-np.inf).exit_scores(rows)
        parts = tuple(id(stage.predictor) for stage in system.stages)
        for thresholds in _moves(scores, np.array(system.thresholds), _n_gates(system, n_full)):
            key = (*parts, *thresholds)
            if key not in seen:
                seen.add(key)
                out.append((origin, system.with_thresholds(thresholds)))
    return out


def _n_gates(system: System, n_full: int) -> int:
    """Gates before the full model."""
    return len(system.stages) - (n_full if system.has_full else 1)


def _moves(scores: Floats, thresholds: Floats, n_gates: int) -> list[list[float]]:
    """Thresholds with one of them moved, where that moves a share of the rows that reach its gate."""
    reaches = np.ones(len(scores), dtype=bool)
    out = []
    for gate, threshold in enumerate(thresholds[:n_gates]):
        here = scores[reaches, gate]
        values, counts = np.unique(here, return_counts=True)
        stops = int(np.searchsorted(values, threshold, side="right"))
        # Below: the highest score that stops goes on. Above: the lowest that goes on stops.
        for moved, position in ((stops - 1, stops - 1), (stops, stops + 1)):
            if 0 <= moved < len(values) and counts[moved] >= _COARSE * len(here):
                other = thresholds.copy()
                other[gate] = cut_above(values, position)
                out.append(other.tolist())
        reaches &= scores[:, gate] > threshold
    return out
