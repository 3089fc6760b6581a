"""Orders of purchases with the prefixes that may be stages: the best one, and others for budgets that it neglects.

The best order for a point of loss begins with columns that say much together, and has poor stages below half of its
cost. A second order is therefore made for about half the cost: on Letters' held-out rows, budgets of a tenth to a fifth
of the full model's cost gain 2 to 8 points of accuracy by it. Where the two begin late, or leave a wide gap because a
cheap stage tells few rows apart, further ones bridge it (``gaps.py``): on one split of ann-thyroid budgets of a tenth
to a third of the full model's cost gain 1 to 6 points.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sparing._routed import Training
from sparing._rows import take_rows
from sparing.cascade.exits import StageScores, price_grid
from sparing.cascade.gaps import Prefixes, bridges
from sparing.cascade.judges import Judge
from sparing.cascade.kernel_path import kernel_order
from sparing.cascade.offers import Offers
from sparing.cascade.order import (
    SEARCHED,
    SPARE,
    best_order,
    bought,
    candidate_lengths,
    drop_stages,
    searched,
    spread_lengths,
)
from sparing.cascade.training import one_thread
from sparing.engines.design import Design

_TRIED = 40_000
"""Rows that the kernel machine draws from, at most."""
_CHEAPER = 0.5
"""What a cheaper order should cost, as a share of what the best one costs."""
_CHEAPER_STAGES = 4
"""Stages of a cheaper order that have models of their own, at most: what is not answered by then is dear."""
_CHEAPER_PLACES, _CHEAPER_PATIENCE = 8, 30
"""Places of a cheaper order that are searched, and further sets of columns that may be asked about for it where
patience ends."""


@dataclass(frozen=True)
class Path:
    """An order of purchases and its prefixes that may be stages.

    Attributes
    ----------
    order : of offers.
    few : lengths of prefixes that are worth a model of their own.
    every : lengths where a stage costs no further fit.
    prices : η at which a cheaper order was judged; empty where none was.
    whole : whether all stages stay: those that bridge a gap are worth nothing at any price.
    """

    order: list[int]
    few: list[int]
    every: list[int]
    prices: Sequence[float] = ()
    whole: bool = False


def only_path(offers: Offers) -> Path:
    """The path of a single purchase, or none."""
    lengths = candidate_lengths(len(offers), offers.first)
    return Path(list(range(len(offers))), lengths, lengths)


def judged_paths(judge: Judge, most: int, trip: float, report: Callable[[str], None]) -> list[Path]:
    """The best order, a cheaper one, and one for what lies far between the stages of these, as a judge sees them.

    Parameters
    ----------
    judge : of orders.
    most : stages before the full model, at most.
    trip : price of a round trip.
    report : says what was found.
    """
    with one_thread():
        order, prices = best_order(judge, report)
        cheaper, low = cheaper_order(judge, order, prices, report)
    lengths = candidate_lengths(len(order), judge.offers.first)
    # The judge only guesses which stages will be worth a model of their own: rather some too many.
    guessed = judge.scores(order, lengths)
    ahead = drop_stages(guessed, prices, most, trip, earns=-np.inf)
    paths = [
        Path(order, [lengths[k] for k in ahead[:-1]], lengths),
        cheaper_path(judge, cheaper, low, most),
    ]
    with one_thread():
        found = bridges(judge, [Prefixes(path.order, path.few) for path in paths], most)
    for bridging in found:
        report("an order for budgets below all stages, or between stages that are far apart")
        paths.append(Path(*bridging, bridging.lengths, whole=True))
    return paths


def kernel_paths(training: Training, offers: Offers, design: Design, most: int) -> list[Path]:
    """The order of a kernel machine; stages for little money are the first of many that are spread evenly."""
    seed, weight = training.seed or 0, training.weight
    rows = np.arange(len(training.y)) if weight is None else np.flatnonzero(weight)
    if len(rows) > _TRIED:
        rows = np.random.default_rng(seed).permutation(rows)[:_TRIED]
    found = kernel_order(
        offers,
        design.owner,
        design.transform(take_rows(training.X, rows)).astype(np.float32),
        training.y[rows],
        len(training.classes),
        None if weight is None else weight[rows],
        seed,
    )
    order = offers.closed(found)
    few = spread_lengths(offers, order, most)
    every = sorted({*candidate_lengths(len(order), offers.first), *few})
    first = few[: min(most, _CHEAPER_STAGES)]
    return [Path(order, few, every), Path(order, first, first)]


def cheaper_order(
    judge: Judge,
    order: list[int],
    prices: Sequence[float],
    report: Callable[[str], None],
) -> tuple[list[int], list[float]]:
    """An order for about half the cost of another one, and the prices it was judged at.

    Parameters
    ----------
    judge : of orders.
    order, prices : the best order and the prices it was judged at.
    report : says what was found.
    """
    best = judge.scores(order[:SEARCHED])
    price = cheaper_prices(best, prices)
    places = min(_CHEAPER_PLACES, len(order))
    head, tail = order[: places + SPARE], order[places + SPARE :]
    n_forward = places
    if np.isfinite(judge.patience):
        # Copies are fitted for every set: they look for the first three purchases.
        n_forward, judge.patience = 3, judge.n_asked + _CHEAPER_PATIENCE
    forward = bought(judge, head[:places], n_forward)
    starts = [head, [*forward, *(o for o in head if o not in forward)]]
    value, found = min(
        (searched(judge, start, places, price) for start in starts), key=lambda one: one[0]
    )
    report(f"an order for half the cost: {value:.4g}, {best.value(price):.4g} without")
    return judge.offers.closed([*found, *tail]), price


def cheaper_path(judge: Judge, order: list[int], prices: Sequence[float], n: int) -> Path:
    """A cheaper order with the prefixes that are worth a model of their own, ``n`` at most."""
    lengths = candidate_lengths(min(_CHEAPER_PLACES, len(order)), judge.offers.first)
    guessed = judge.scores(order, lengths)
    every, few = (
        [lengths[k] for k in drop_stages(guessed, prices, min(n, most), earns=-np.inf)[:-1]]
        for most in (2 * _CHEAPER_STAGES, _CHEAPER_STAGES)
    )
    return Path(order, few, every, prices)


def cheaper_prices(scores: StageScores, prices: Sequence[float]) -> list[float]:
    """The price η at which a cascade costs half of what it costs at some prices; more rather than less.

    Where its cost falls in one step past the half, or does not fall so far, it is the price of the last step: at which
    whatever costs less is worth most.
    """
    usual = np.mean([scores.cost_and_error(scores.thresholds(price))[0] for price in prices])
    grid = price_grid(scores)
    costs = np.array([scores.cost_and_error(scores.thresholds(price))[0] for price in grid])
    enough = np.flatnonzero((costs >= _CHEAPER * usual) & (costs > costs[0]))
    return [grid[int(enough[0]) if len(enough) else 0]]
