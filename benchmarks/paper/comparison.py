"""Comparing methods on one problem: what validation chooses for every wish, and frontiers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from paper.objective import Kept
from paper.pairing import difference
from sparing import Frontier
from sparing.frontier import Point
from sparing.system import ACCOUNTINGS

TOLERANCES = (0.01, 0.005, 0.0)
BUDGETS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8)
"""Shares of the full model's cost at which scores are compared."""
WISHES = (
    *(("tolerance", tolerance) for tolerance in TOLERANCES),
    *(("budget", share) for share in BUDGETS),
)

Rows = list[dict[str, Any]]


class Comparison(NamedTuple):
    """What is found on one problem.

    Attributes
    ----------
    choices, curves : rows of two tables.
    answers : worth on each test unit of the system chosen by stage, by method, kind of wish and its value.
    """

    choices: Rows
    curves: Rows
    answers: dict[tuple[str, str, float], np.ndarray]


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
    n_units = n_rows if n_units is None else n_units
    out = Comparison([], [], {})
    for accounting in ACCOUNTINGS:
        f0 = full[accounting]
        by_method: dict[str, list[Kept]] = {}
        for k in kept:
            if k.accounting == accounting:
                by_method.setdefault(k.method, []).append(k)
        fronts = {m: frontier_of(mine, f0, n_rows) for m, mine in by_method.items()}
        for method, front in fronts.items():
            out.curves.extend(_curve_row(by_method[method][p.label]) for p in front)
        for kind, value in WISHES:
            for method, front in fronts.items():
                wish = {kind: value * f0.test[0] if kind == "budget" else value}
                chosen = _choose(front, by_method[method], **wish)
                if chosen is None and kind == "tolerance":
                    chosen = f0
                if chosen is None:
                    continue
                row = _choice_row(method, chosen, f0, n_rows)
                values = chosen.values(n_units)
                if kind == "tolerance":
                    row |= difference(values, f0.values(n_units))
                if accounting == "stage":
                    out.answers[method, kind, value] = values
                out.choices.append({"accounting": accounting, kind: value} | row)
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


def _choice_row(method: str, chosen: Kept, full: Kept, n_rows: int) -> dict[str, Any]:
    margin = 1.96 * _spread(chosen, full) / np.sqrt(n_rows)
    return {
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


def _spread(kept: Kept, full: Kept) -> float:
    """Standard deviation of the cost of a row; of one gate and by stage it follows from the share that is sent on."""
    if np.isfinite(kept.spread) or kept.accounting != "stage" or len(kept.rates) > 2:
        return kept.spread
    if len(kept.rates) == 1 or kept.rates[1] in (0, 1):
        return 0.0
    sent = kept.rates[1]
    return float(np.sqrt(sent / (1 - sent)) * (full.test[0] - kept.test[0]))


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
