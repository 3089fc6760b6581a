"""In which order systems are tested for a promise: safest first, by what validation rows say.

Only the power of the tests depends on this, never their level: any order that does not look at the calibration rows is
allowed. So rough standard errors are enough here.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sparing._choice import pareto_order
from sparing.frontier import Frontier
from sparing.system import System

Floats = NDArray[np.float64]

_DOUBT = 1.0
"""Standard errors by which a system may miss a promise on the validation rows and still be tested, after the others."""


class Wishes(Protocol):
    """The part of a guarantee that orders systems."""

    @property
    def tolerance(self) -> float | None:
        """Score to lose."""

    @property
    def budget(self) -> float | None:
        """Average cost."""

    @property
    def max_error(self) -> float | None:
        """Error among the rows kept."""

    @property
    def min_recall(self) -> Any:
        """Floors of recall."""


def safest_first(frontier: Frontier, wishes: Wishes, n: int, max_tests: int) -> list[int]:
    """Positions of the systems to test, one after the other.

    Parameters
    ----------
    frontier : Frontier
        Evaluated on validation rows; of one that reports other rows, those where it chooses.
    wishes : Guarantee
    n : int
        Calibration rows to come.
    max_tests : int

    Returns
    -------
    list of int
        The system with the widest margin first, then cheaper and cheaper ones; with nothing but a budget, dearer and
        dearer ones. Systems that clearly break a promise on the validation rows are left out, and so are those that
        send every row to the full model: a promise about them is empty.
    """
    judge = frontier.judge
    costs = judge.costs
    only_budget = wishes.tolerance is None and wishes.max_error is None and not wishes.min_recall
    kept = np.array([_kept(p.system, p.stage_rates) for p in judge])
    margins = _margins(judge, wishes, kept, n)
    good = np.flatnonzero((margins > -_DOUBT) & (only_budget | (kept > 0)))
    if only_budget:
        order = good[pareto_order(costs[good], judge.scores[good])]
    else:
        # From the widest margin down, each step cheaper and less safe.
        order = good[pareto_order(costs[good], margins[good])][::-1]
    if not len(order):
        return []
    spread = np.linspace(0, len(order) - 1, min(max_tests, len(order))).round().astype(int)
    return order[spread].tolist()


def _kept(system: System, rates: tuple[float, ...]) -> float:
    return 1.0 - rates[-1] if system.has_full else 1.0


def _margins(frontier: Frontier, wishes: Wishes, kept: Floats, n: int) -> Floats:
    """Smallest margin of all promises, in standard errors on n rows."""
    margins = np.full(len(frontier), np.inf)
    if wishes.tolerance is not None:
        best = frontier.scores.max() if frontier.full is None else frontier.full.score
        loss = best - frontier.scores
        # Only rows that are kept can be answered otherwise than by the full model.
        margins = np.minimum(margins, (wishes.tolerance - loss) * np.sqrt(n / (kept + 1 / n)))
    if wishes.budget is not None:
        spread = np.array([_cost_spread(p.system, p.stage_rates) for p in frontier])
        scale = max(float(frontier.costs.max()), np.finfo(float).tiny)
        error = np.maximum(spread, 1e-6 * scale) / np.sqrt(n)
        margins = np.minimum(margins, (wishes.budget - frontier.costs) / error)
    if wishes.max_error is not None:
        limit = wishes.max_error
        wrong = np.array([p.kept_error for p in frontier])
        # Without kept rows there is no such share; a part of a row is rounding.
        if (np.isnan(wrong) & (kept * frontier.n_rows > 0.5)).any():
            raise ValueError(
                f"max_error={limit:g}: this frontier does not say how many of the rows kept were wrong, which orders "
                "its systems. Evaluate them, Frontier.evaluate([p.system for p in frontier.points], X, y) with "
                "validation rows, or save a bundle again that was written without it."
            )
        error = np.sqrt(max(limit * (1 - limit), 1 / n) / np.maximum(n * kept, 1e-9))
        margins = np.minimum(margins, np.where(kept > 0, (limit - wrong) / error, -np.inf))
    if wishes.min_recall:
        # Validation keeps no recalls: what the full model answers is taken to be safest.
        margins = np.minimum(margins, 1.0 / np.sqrt(kept + 1 / n))
    return np.nan_to_num(margins, nan=-np.inf, posinf=np.inf, neginf=-np.inf)


def _cost_spread(system: System, rates: tuple[float, ...]) -> float:
    """Standard deviation of what a row pays, by stage."""
    prices = system.costs.of(system.stage_columns()) + system.call_prices()
    share = np.array(rates)
    return float(np.sqrt(max(0.0, share @ prices**2 - (share @ prices) ** 2)))
