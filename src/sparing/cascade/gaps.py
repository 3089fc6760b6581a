"""Budgets between two stages that are far apart: cheap purchases that tell the rows in between apart.

A question with two answers leaves groups of rows that are equally doubtful. They are answered or sent on together, and
a frontier has nothing between the two costs, however far these are apart. A price η does not see what is missing there:
it takes one end of a gap or the other. What is bought in a gap is therefore chosen by the errors at budgets in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from sparing.cascade.exits import Choice, pareto, trace
from sparing.cascade.judges import Judge

_WIDE, _DEEP = 0.1, 0.005
"""Neighbours of a frontier have a gap between them when their costs differ by this share of the full model's, and their
errors by as much as this. Where a frontier is nearly flat nothing is missing."""
_CHEAP = 0.5
"""What is bought in a gap costs at most this share of it, or too few rows could go on."""
_BUDGETS = 5
"""Budgets in a gap by which purchases are chosen."""
_PURCHASES = 6
"""Purchases in a gap, at most."""
_BEHIND = 2
"""Stages behind a gap that are kept: they have models of their own, as they know what was bought in the gap."""
_PATIENCE = 30
"""Further sets of columns that may be asked about where patience ends."""
_PRICES = 20
"""Prices η from which the frontier of an order is traced."""


class Prefixes(NamedTuple):
    """An order of offers and the lengths of its prefixes that are stages."""

    order: list[int]
    lengths: list[int]


@dataclass(frozen=True)
class Gap:
    """Two costs between which a frontier has nothing.

    Attributes
    ----------
    stages : those of the system at the lower end.
    length : prefix that its dearest rows have bought.
    low, high : the costs.
    """

    stages: Prefixes
    length: int
    low: float
    high: float

    def bridged(self, bought: Sequence[int]) -> Prefixes:
        """The stages with some purchases after the prefix, and a stage that has them."""
        before = self.stages.order[: self.length]
        rest = [o for o in self.stages.order[self.length :] if o not in bought]
        first = [length for length in self.stages.lengths if length <= self.length]
        behind = [length for length in self.stages.lengths if length > self.length][:_BEHIND]
        # A prefix has what was bought in the gap on top, but for what it had anyway.
        longer = [n + len(set(bought) - set(self.stages.order[:n])) for n in behind]
        return Prefixes(
            [*before, *bought, *rest],
            sorted({*first, self.length + len(bought), *longer}),
        )


def bridge(judge: Judge, known: Sequence[Prefixes]) -> Prefixes | None:
    """Stages for budgets in the widest gap of what is known; None where no gap is wide, or nothing helps.

    Parameters
    ----------
    judge : of orders.
    known : stages that there are.
    """
    gap = widest_gap(judge, known)
    if gap is None:
        return None
    if np.isfinite(judge.patience):
        judge.patience = judge.n_asked + _PATIENCE
    offers, bought = judge.offers, list[int]()
    least = _missed(judge, gap, bought)
    best = bought
    while len(bought) < _PURCHASES:
        before, left = gap.stages.order[: gap.length], gap.stages.order[gap.length :]
        marginal = offers.marginal([*before, *bought])
        spent = offers.price([*before, *bought]) - offers.price(before)
        cheap = _CHEAP * (gap.high - gap.low) - spent
        tried = [
            ([*bought, o], _missed(judge, gap, [*bought, o]))
            for o in left
            if 0 < marginal[o] <= cheap and judge.n_asked <= judge.patience
        ]
        if not tried:
            break
        bought, missed = min(tried, key=lambda one: one[1])
        # One purchase may tell nothing without the next.
        if missed < least:
            best, least = bought, missed
    return gap.bridged(best) if best else None


def widest_gap(judge: Judge, known: Sequence[Prefixes]) -> Gap | None:
    """The widest gap between neighbours of a frontier, if it is wide and more could be bought at its lower end."""
    found = dict[int, tuple[Prefixes, Choice]]()
    for stages in known:
        for choice in _traced(judge, stages):
            found[id(choice)] = stages, choice
    frontier = pareto(choice for _, choice in found.values())
    gaps = list[Gap]()
    for left, right in pairwise(frontier):
        stages, _ = found[id(left)]
        last = int(np.flatnonzero(left.shares)[-1])
        wide = right.cost - left.cost > _WIDE * judge.full_cost
        if wide and left.error - right.error > _DEEP and last < len(stages.lengths):
            gaps.append(Gap(stages, stages.lengths[last], left.cost, right.cost))
    return max(gaps, key=lambda gap: gap.high - gap.low, default=None)


def _missed(judge: Judge, gap: Gap, bought: Sequence[int]) -> float:
    """Mean error at budgets in a gap, with some purchases in it."""
    frontier = pareto(_traced(judge, gap.bridged(bought)))
    costs = np.array([choice.cost for choice in frontier])
    errors = np.array([1.0, *(choice.error for choice in frontier)])
    budgets = np.linspace(gap.low, gap.high, _BUDGETS + 2)[1:-1]
    return float(errors[np.searchsorted(costs, budgets, side="right")].mean())


def _traced(judge: Judge, stages: Prefixes) -> list[Choice]:
    return trace(judge.scores(*stages, settled=True), _PRICES)
