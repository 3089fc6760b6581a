"""Giving up items one after the other: a path of ever cheaper linear systems from one solution.

The group penalty of OPT2 shrinks the coefficients it keeps, which moves f1, g and with them the allocation: the columns
it chooses last are not the ones that would have been missed least.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sparing._alternation import Outcome, Problem, alternate
from sparing.engines.linear_step import LinearStep, LinearStepper

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

_SHARE = 0.1
"""Share of the items given up at a time while there are many; one at least."""
_SINGLES = 32
"""Columns tried alone, at most; the last ones kept when there are more."""


def eliminate(
    problem: Problem,
    step: LinearStepper,
    start: Outcome[LinearStep],
    scores: tuple[Floats, Floats],
    max_iter: int,
) -> Iterator[Outcome[LinearStep]]:
    """Outcomes with fewer and fewer items, each learnt on from the one before; then single columns with their items.

    Parameters
    ----------
    problem : losses, bound and prices.
    step : the linear engine without penalty.
    start : where to begin; its columns are the first support.
    scores : scores of f1 and g from which single columns are learnt: the last one kept need not be the best alone.
    max_iter : alternations for each support.
    """
    costs = problem.costs
    priced = costs.item_prices > 0
    kept = costs.needs[start.fit.columns].any(axis=0) | ~priced
    given_up: list[int] = []
    outcome = start
    while (items := np.flatnonzero(kept & priced)).size > 1:
        support = _support(kept, costs.needs, step.owner)
        following = (outcome.fit.cheap, outcome.fit.gate)
        outcome = _learn(problem, step, support, following, max_iter)
        yield outcome
        weights = [_weight(int(i), kept, problem, step, outcome) for i in items]
        order = items[np.argsort(weights, kind="stable")]
        leaving = order[: max(1, int(_SHARE * len(items)))]
        given_up += leaving.tolist()
        kept = kept.copy()
        kept[leaving] = False
    # A column may need several items, a blood draw and a test: alone it stands with all of them.
    rank = np.zeros(len(priced))
    rank[given_up] = 1 + np.arange(len(given_up))
    rank[items] = 1 + len(given_up)
    purchases = np.unique(costs.needs[(costs.needs & priced).any(axis=1)] | ~priced, axis=0)
    last = [float(rank[each & priced].min()) for each in purchases]
    for i in np.argsort(-np.array(last), kind="stable")[:_SINGLES]:
        support = _support(purchases[i], costs.needs, step.owner)
        yield _learn(problem, step, support, scores, max_iter)


def _learn(
    problem: Problem,
    step: LinearStepper,
    support: Booleans,
    scores: tuple[Floats, Floats],
    max_iter: int,
) -> Outcome[LinearStep]:
    restricted = replace(step, support=support)
    return alternate(problem, restricted, scores, max_iter=max_iter, tol=1e-3, extrapolate=True)


def _support(kept: Booleans, needs: Booleans, owner: NDArray[np.intp]) -> Booleans:
    """Design columns whose items are all kept."""
    return np.asarray(~(needs & ~kept).any(axis=1))[owner]


def _weight(
    item: int, kept: Booleans, problem: Problem, step: LinearStepper, outcome: Outcome[LinearStep]
) -> float:
    """Norm of the coefficients that would go with an item, per unit of its price."""
    needs, rest = problem.costs.needs, kept.copy()
    rest[item] = False
    lost = _support(kept, needs, step.owner) & ~_support(rest, needs, step.owner)
    norm = float(np.linalg.norm(outcome.fit.fit.coef[lost]))
    return norm / float(problem.costs.item_prices[item])
