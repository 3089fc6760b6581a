"""Comparing methods on one problem: what validation chooses for every wish, frontiers, duels at equal budgets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from paper.objective import Kept
from sparing import Frontier
from sparing.frontier import Point
from sparing.metrics import bootstrap_interval
from sparing.system import ACCOUNTINGS

TOLERANCES = (0.01, 0.005, 0.0)
BUDGETS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8)
"""Shares of the full model's cost at which scores are compared."""
REFERENCE = "adapt-gbrt"
"""The method that others are compared with, in pairs, at equal budgets."""
CHAMPION = "cascade"
"""The method whose duels with every other one are counted."""

Rows = list[dict[str, Any]]


class Comparison(NamedTuple):
    """Rows of the three tables of one problem."""

    choices: Rows
    curves: Rows
    duels: Rows


def compare(
    kept: Sequence[Kept], full: Mapping[str, Kept], n_rows: int, n_units: int | None = None
) -> Comparison:
    """Compare methods.

    Parameters
    ----------
    kept : systems of all methods.
    full : the full model, by accounting.
    n_rows, n_units : test rows, and test units: queries where these are ranked, else rows.
    """
    sizes = n_rows, n_rows if n_units is None else n_units
    out = Comparison([], [], [])
    for accounting in ACCOUNTINGS:
        f0 = full[accounting]
        by_method: dict[str, list[Kept]] = {}
        for k in kept:
            if k.accounting == accounting:
                by_method.setdefault(k.method, []).append(k)
        fronts = {m: frontier_of(mine, f0, n_rows) for m, mine in by_method.items()}
        for method, front in fronts.items():
            out.curves.extend(_curve_row(by_method[method][p.label]) for p in front)
        for tolerance in TOLERANCES:
            for method, front in fronts.items():
                chosen = _choose(front, by_method[method], tolerance=tolerance) or f0
                row = _choice_row(method, chosen, f0, sizes, other=f0)
                out.choices.append({"accounting": accounting, "tolerance": tolerance} | row)
        for share in BUDGETS:
            found = {
                method: _choose(front, by_method[method], budget=share * f0.test[0])
                for method, front in fronts.items()
            }
            for method, chosen in found.items():
                if chosen is not None:
                    row = _choice_row(method, chosen, f0, sizes, other=found.get(REFERENCE))
                    out.choices.append({"accounting": accounting, "budget": share} | row)
            if accounting == "stage" and CHAMPION in found:
                out.duels.extend(_duels(found, share, sizes[1]))
    return out


def frontier_of(kept: Sequence[Kept], full: Kept, n_rows: int) -> Frontier:
    """Frontier on test rows that chooses by the validation numbers; its points stand for systems not kept."""

    def points(where: str) -> tuple[Point, ...]:
        return tuple(Point(None, *getattr(k, where), k.rates, i) for i, k in enumerate(kept))

    def frontier(where: str, chosen: Frontier | None) -> Frontier:
        alone = Point(None, *getattr(full, where), (1.0,), "full model")
        return Frontier(points(where), alone, "accuracy", full.accounting, n_rows, chosen)

    return frontier("test", frontier("validation", None)).pareto()


def _choose(front: Frontier, among: Sequence[Kept], **wish: float) -> Kept | None:
    try:
        return among[front.at(**wish).label]
    except ValueError:  # none qualifies
        return None


def _choice_row(
    method: str, chosen: Kept, full: Kept, sizes: tuple[int, int], *, other: Kept | None
) -> dict[str, Any]:
    """One line of the table; ``low`` and ``high`` bound the difference of its test score to that of ``other``."""
    n_rows, n_units = sizes
    margin = 1.96 * _spread(chosen, full) / np.sqrt(n_rows)
    row = {
        "method": method,
        "validation_cost": chosen.validation[0],
        "validation_score": chosen.validation[1],
        "cost": chosen.test[0],
        "cost_low": chosen.test[0] - margin,
        "cost_high": chosen.test[0] + margin,
        "cut": 1 - chosen.test[0] / full.test[0],
        "score": chosen.test[1],
        "columns": chosen.columns,
        "sent": chosen.rates[-1] if len(chosen.rates) > 1 else float(chosen is full),
        "setting": ", ".join(f"{k}={v}" for k, v in chosen.setting.items()),
        **chosen.more,
    }
    if other is not None:
        row |= _difference(chosen, other, n_units)
    return row


def _spread(kept: Kept, full: Kept) -> float:
    """Standard deviation of the cost of a row; of one gate and by stage it follows from the share that is sent on."""
    if np.isfinite(kept.spread) or kept.accounting != "stage" or len(kept.rates) > 2:
        return kept.spread
    if len(kept.rates) == 1 or kept.rates[1] in (0, 1):
        return 0.0
    sent = kept.rates[1]
    return float(np.sqrt(sent / (1 - sent)) * (full.test[0] - kept.test[0]))


def _difference(one: Kept, other: Kept, n_units: int) -> dict[str, float]:
    interval = bootstrap_interval(one.values(n_units), other=other.values(n_units), random_state=0)
    return {"difference": interval.estimate, "low": interval.low, "high": interval.high}


def _duels(found: Mapping[str, Kept | None], share: float, n_units: int) -> Rows:
    """The champion against every other method at one budget; without numbers where one has no system so cheap."""
    champion, rows = found[CHAMPION], []
    for method, rival in found.items():
        if method == CHAMPION or (champion is None and rival is None):
            continue
        row: dict[str, Any] = {
            "budget": share,
            "method": method,
            "alone": CHAMPION if rival is None else method if champion is None else "",
        }
        if champion is not None and rival is not None:
            row |= _difference(champion, rival, n_units)
        rows.append(row)
    return rows


def _curve_row(kept: Kept) -> dict[str, Any]:
    return {
        "accounting": kept.accounting,
        "method": kept.method,
        "validation_cost": kept.validation[0],
        "validation_score": kept.validation[1],
        "cost": kept.test[0],
        "score": kept.test[1],
        "cheap_share": kept.rates[0],
        "columns": kept.columns,
    }
