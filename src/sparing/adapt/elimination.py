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

_CANDIDATES = 4
"""Items whose loss is tried before one is given up: those with the smallest coefficients per price."""
_SHARE = 0.1
"""Share of the items given up at a time while there are many; one at least."""
_ALTERNATIONS = 10


def eliminate(
    problem: Problem, step: LinearStepper, start: Outcome[LinearStep]
) -> Iterator[Outcome[LinearStep]]:
    """Outcomes with fewer and fewer items, each learnt on from the one before.

    Parameters
    ----------
    problem : losses, bound and prices.
    step : the linear engine without penalty.
    start : where to begin; its columns are the first support.
    """
    costs = problem.costs
    priced = costs.item_prices > 0
    kept = costs.needs[start.fit.columns].any(axis=0) | ~priced
    outcome = start
    while True:
        support = _support(kept, costs.needs, step.owner)
        if not support.any():
            return
        outcome = alternate(
            problem,
            replace(step, support=support),
            (outcome.fit.cheap, outcome.fit.gate),
            max_iter=_ALTERNATIONS,
            tol=1e-3,
        )
        yield outcome
        items = np.flatnonzero(kept & priced)
        if len(items) < 2:
            return
        weights = [_weight(int(i), kept, problem, step, outcome) for i in items]
        items = items[np.argsort(weights, kind="stable")]
        kept = kept.copy()
        if (n := int(_SHARE * len(items))) > 1:
            kept[items[:n]] = False
            continue
        tried = items[:_CANDIDATES]
        losses = np.array([_loss_without(int(i), kept, problem, step, outcome) for i in tried])
        kept[tried[np.argmin(losses / costs.item_prices[tried])]] = False


def _support(kept: Booleans, needs: Booleans, owner: NDArray[np.intp]) -> Booleans:
    """Design columns whose items are all kept."""
    return ~needs[:, ~kept].any(axis=1)[owner]


def _without(item: int, kept: Booleans) -> Booleans:
    rest = kept.copy()
    rest[item] = False
    return rest


def _weight(
    item: int, kept: Booleans, problem: Problem, step: LinearStepper, outcome: Outcome[LinearStep]
) -> float:
    """Norm of the coefficients that would go with an item, per unit of its price."""
    needs = problem.costs.needs
    lost = _support(kept, needs, step.owner) & ~_support(_without(item, kept), needs, step.owner)
    norm = float(np.linalg.norm(outcome.fit.fit.coef[lost]))
    return norm / float(problem.costs.item_prices[item])


def _loss_without(
    item: int, kept: Booleans, problem: Problem, step: LinearStepper, outcome: Outcome[LinearStep]
) -> float:
    """How much the objective grows without an item, the allocation as it is."""
    support = _support(_without(item, kept), problem.costs.needs, step.owner)
    fit = replace(step, support=support)(outcome.q, outcome.fit)
    value = problem.objective(fit.cheap, fit.gate, outcome.q) + fit.penalty
    return max(value - outcome.objective, 0.0)
