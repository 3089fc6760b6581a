"""Budgets that a frontier has nothing for: below its cheapest stage, and between two stages that are far apart.

A question with two answers leaves groups of rows that are equally doubtful. They are answered or sent on together, and
a frontier has nothing between the two costs, however far these are apart. A price η does not see what is missing there:
it takes one end of a gap or the other. Nor does it begin with one column where three together say far more for little
on top, so that who can pay for one only has nothing. What is bought in a gap is therefore chosen by the errors at
budgets in it.
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
LOWEST = 0.05
"""A frontier begins with a gap when all of it costs more than this share of the full model's cost."""
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
    ground : where there is no lower end, the length of the shortest prefix that has columns: from there on every
        purchase makes a stage.
    """

    stages: Prefixes
    length: int
    low: float
    high: float
    ground: int | None = None

    def bridged(self, bought: Sequence[int]) -> Prefixes:
        """The stages with some purchases after the prefix, and a stage that has them."""
        before = self.stages.order[: self.length]
        rest = [o for o in self.stages.order[self.length :] if o not in bought]
        first = [length for length in self.stages.lengths if length <= self.length]
        if self.ground is not None:
            first = [*range(self.ground, len(bought))]
        behind = [length for length in self.stages.lengths if length > self.length][:_BEHIND]
        # A prefix has what was bought in the gap on top, but for what it had anyway.
        longer = [n + len(set(bought) - set(self.stages.order[:n])) for n in behind]
        return Prefixes(
            [*before, *bought, *rest],
            sorted({*first, self.length + len(bought), *longer}),
        )


Frontier = Sequence[tuple[Prefixes, Choice]]
"""Choices that no other one beats, the cheapest first, each with the stages it belongs to."""


def bridges(judge: Judge, known: Sequence[Prefixes], most: int) -> list[Prefixes]:
    """Stages for budgets below those that are known, and for those in the widest gap of these, where this helps.

    Parameters
    ----------
    judge : of orders.
    known : stages that there are, those for little money last.
    most : stages at most.
    """
    found = list[Prefixes]()
    if lowest := lowest_gap(judge, known[-1]):
        bought = _purchases(judge, lowest)
        begun = [bought] if bought is not None else []
        if bought and (better := _better_start(judge, lowest, bought[0])):
            begun.append(better)
        for order, lengths in map(lowest.bridged, begun):
            found.append(Prefixes(order, lengths[:most]))
    traced = [(stages, choice) for stages in known for choice in _traced(judge, stages)]
    # Each choice with the stages it belongs to, the non-dominated ones only.
    stages_of = {id(choice): stages for stages, choice in traced}
    frontier = [(stages_of[id(c)], c) for c in pareto(choice for _, choice in traced)]
    if widest := widest_gap(judge, frontier):
        bought = _purchases(judge, widest)
        if bought and len((bridged := widest.bridged(bought)).lengths) <= most:
            found.append(bridged)
    return found


def lowest_gap(judge: Judge, stages: Prefixes) -> Gap | None:
    """The gap below the cheapest of some stages, if that is dear."""
    if not stages.lengths:
        return None
    cheapest = judge.offers.price(stages.order[: stages.lengths[0]])
    dear = cheapest > LOWEST * judge.full_cost
    return Gap(stages, 0, 0.0, cheapest, judge.offers.first) if dear else None


def _better_start(judge: Judge, gap: Gap, start: int) -> list[int]:
    """A single purchase that costs more than another one and says more, the best of those; none if there is none."""
    offers = judge.offers
    alone = {
        o: float(np.average(judge.stage(offers.mask([o]))[0], weights=judge.weight))
        for o in gap.stages.order
        if o == start
        or (
            offers.price([start]) < offers.price([o]) < gap.high and judge.n_asked <= judge.patience
        )
    }
    best = min(alone, key=lambda o: alone[o])
    return [] if best == start else [best]


def widest_gap(judge: Judge, frontier: Frontier) -> Gap | None:
    """The widest gap between neighbours, if it is wide and more could be bought at its lower end."""
    gaps = list[Gap]()
    for (stages, left), (_, right) in pairwise(frontier):
        last = int(np.flatnonzero(left.shares)[-1])
        wide = right.cost - left.cost > _WIDE * judge.full_cost
        if wide and left.error - right.error > _DEEP and last < len(stages.lengths):
            gaps.append(Gap(stages, stages.lengths[last], left.cost, right.cost))
    return max(gaps, key=lambda gap: gap.high - gap.low, default=None)


def _purchases(judge: Judge, gap: Gap) -> list[int] | None:
    """Offers that are bought in a gap; None where nothing helps or all is too dear."""
    if np.isfinite(judge.patience):
        judge.patience = judge.n_asked + _PATIENCE
    offers, bought, best = judge.offers, list[int](), None
    before, left = gap.stages.order[: gap.length], gap.stages.order[gap.length :]
    if gap.ground:  # nobody is answered at any budget in the gap
        least = 1.0
    else:
        least = _missed(judge, gap, bought)
        best = None if gap.ground is None else bought  # columns that cost nothing
    while len(bought) < _PURCHASES:
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
    return best


def _missed(judge: Judge, gap: Gap, bought: Sequence[int]) -> float:
    """Mean error at budgets in a gap, with some purchases in it."""
    frontier = pareto(_traced(judge, gap.bridged(bought)))
    costs = np.array([choice.cost for choice in frontier])
    errors = np.array([1.0, *(choice.error for choice in frontier)])
    budgets = np.linspace(gap.low, gap.high, _BUDGETS + 2)[1:-1]
    return float(errors[np.searchsorted(costs, budgets, side="right")].mean())


def _traced(judge: Judge, stages: Prefixes) -> list[Choice]:
    return trace(judge.scores(*stages, settled=True), _PRICES)
