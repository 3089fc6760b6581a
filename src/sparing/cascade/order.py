"""Which columns when: an order of offers whose prefixes make good stages.

A judge (``judges.py``) says how wrong and how unsure a stage on any set of columns would be on held-out rows; an order
is judged by what the whole cascade would lose and cost with the best thresholds (``StageScores.value``). Starts come
from giving up the offer that is worth least for its price, one after the other, and from buying the best for its
price; then offers are moved to other places as long as that helps. On Letters five random starts ended within 2% of
these two, so none are made.

The best order for a point of loss begins with columns that say much together, and has poor stages below half of its
cost. A second order is therefore made for about half the cost (``cheaper_order``): on Letters' held-out rows the
cheapest tenth to fifth of the full model's cost gains 2 to 8 points of accuracy by it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sparing.cascade.exits import StageScores, price_grid, telling_prices
from sparing.cascade.judges import Judge
from sparing.cascade.offers import Offers

SEARCHED = 16
"""Places of an order that are searched; later ones hardly matter to a cascade that stops early."""
_SPARE = 6
"""Offers behind those places that may still be moved to the front."""
_CHEAPER = 0.5
"""What a cheaper order should cost, as a share of what the best one costs."""
CHEAPER_STAGES = 4
"""Stages of a cheaper order that have models of their own, at most: what is not answered by then is dear."""
_CHEAPER_PLACES, _CHEAPER_PATIENCE = 8, 30
"""Places of a cheaper order and further sets of columns that may be asked about for it, where patience ends."""
_EARNS = 3e-3
"""A stage is kept when leaving it out makes the cascade worse by this share."""
_SHRINK = 0.85
"""Share of the offers kept per step while there are many: later steps look at every single one."""


@dataclass(frozen=True)
class Path:
    """An order of purchases and its prefixes that may be stages.

    Attributes
    ----------
    order : of offers.
    few : lengths of prefixes that are worth a model of their own.
    every : lengths where a stage costs no further fit.
    prices : η at which a cheaper order was judged; empty where none was.
    """

    order: list[int]
    few: list[int]
    every: list[int]
    prices: Sequence[float] = ()


def eliminated(judge: Judge) -> list[int]:
    """Order of offers found backwards: the last one is given up first.

    Given up is what raises the held-out loss least for its price. While there are many, several go at once.
    """
    left, given_up = list(range(len(judge.offers))), list[int]()
    while len(left) > 1:
        worth = judge.worth_for_price(left)
        n_going = max(1, len(left) - max(int(_SHRINK * len(left)), SEARCHED + _SPARE))
        going = [left[i] for i in np.argsort(worth, kind="stable")[:n_going]]
        given_up += going
        left = [o for o in left if o not in going]
    return [*left, *given_up[::-1]]


def bought(judge: Judge, among: Sequence[int], n: int | None = None) -> list[int]:
    """Order of offers found forwards: next is what lowers the held-out loss most for its price; ``n`` of them."""
    order, left = list[int](), list(among)
    while left and (n is None or len(order) < n):
        marginal = judge.offers.marginal(order)
        free = [o for o in left if marginal[o] == 0]
        if free:
            left = [o for o in left if o not in free]
            continue
        losses = [judge.loss(judge.proba(judge.offers.mask([*order, o]))) for o in left]
        base = judge.loss(judge.proba(judge.offers.mask(order))) if order else max(losses)
        gains = (base - np.array(losses)) / marginal[left]
        order.append(left.pop(int(np.argmax(gains))))
    return order


def best_order(
    judge: Judge, report: Callable[[str], None] = lambda _: None
) -> tuple[list[int], list[float]]:
    """The best order found, and the prices η it was judged at."""
    offers = judge.offers
    if len(offers) == 1:
        return [0], telling_prices(judge.scores([0]))
    backward = eliminated(judge)
    head, tail = backward[: SEARCHED + _SPARE], backward[SEARCHED + _SPARE :]
    places = min(len(head), SEARCHED)
    starts = [head]
    if judge.patience > len(head) ** 2:
        forward = bought(judge, head)
        starts.append([*forward, *(o for o in head if o not in forward)])
    prices = telling_prices(judge.scores(offers.closed(head)[:places]))
    results = []
    for i, order in enumerate(starts):
        results.append(_improved(judge, order, places, prices))
        report(f"search {i + 1} of {len(starts)} for an order: {results[-1][0]:.4g}")
    _, order = min(results, key=lambda result: result[0])
    # With a better order other prices tell more.
    prices = telling_prices(judge.scores(offers.closed(order)[:places]))
    value, order = _improved(judge, order, places, prices)
    report(f"last search for an order: {value:.4g}, {judge.n_asked} sets of columns tried")
    return offers.closed([*order, *tail]), prices


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
    places = _cheaper_places(judge, order)
    head, tail = order[: places + _SPARE], order[places + _SPARE :]
    n_forward = places
    if np.isfinite(judge.patience):
        # Copies are fitted for every set: they look for the first three purchases.
        n_forward, judge.patience = 3, judge.n_asked + _CHEAPER_PATIENCE
    forward = bought(judge, head[:places], n_forward)
    starts = [head, [*forward, *(o for o in head if o not in forward)]]
    value, found = min(
        (_improved(judge, start, places, price) for start in starts), key=lambda one: one[0]
    )
    report(f"an order for half the cost: {value:.4g}, {best.value(price):.4g} without")
    return judge.offers.closed([*found, *tail]), price


def cheaper_path(judge: Judge, order: list[int], prices: Sequence[float], n: int) -> Path:
    """A cheaper order with the prefixes that are worth a model of their own, ``n`` at most."""
    lengths = candidate_lengths(_cheaper_places(judge, order), judge.offers.first)
    guessed = judge.scores(order, lengths)
    every, few = (
        [lengths[k] for k in drop_stages(guessed, prices, min(n, most), earns=-np.inf)[:-1]]
        for most in (2 * CHEAPER_STAGES, CHEAPER_STAGES)
    )
    return Path(order, few, every, prices)


def _cheaper_places(judge: Judge, order: Sequence[int]) -> int:
    return min(SEARCHED if np.isinf(judge.patience) else _CHEAPER_PLACES, len(order))


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


def _improved(
    judge: Judge, order: list[int], places: int, prices: Sequence[float]
) -> tuple[float, list[int]]:
    """Move single offers to other places, to near ones first, as long as the cascade gets better."""

    def value(order: Sequence[int]) -> float:
        return judge.scores(judge.offers.closed(order)[:places]).value(prices)

    best, moved = value(order), True
    while moved:
        moved = False
        for distance in range(1, len(order)):
            for offer in list(order):
                for place in {order.index(offer) - distance, order.index(offer) + distance}:
                    if not 0 <= place < places or judge.n_asked > judge.patience:
                        continue
                    tried = [o for o in order if o != offer]
                    tried.insert(place, offer)
                    found = value(tried)
                    if found < best * (1 - 1e-6):
                        best, order, moved = found, tried, True
    return best, order


def candidate_lengths(n: int, first: int) -> list[int]:
    """Every length while there are few, growing steps after that."""
    lengths = np.unique(np.geomspace(max(first, 1), max(n, 1), 40).round().astype(int))
    short = np.arange(first, min(n, SEARCHED) + 1)
    return np.union1d(short, lengths[lengths <= n]).tolist()


def spread_lengths(offers: Offers, order: Sequence[int], n: int) -> list[int]:
    """Up to n lengths of prefixes whose prices grow by the same factor, between 3% and 90% of everything.

    Examples
    --------
    >>> from sparing import FeatureCosts
    >>> spread_lengths(Offers.of(FeatureCosts([1.0] * 400)), range(400), 5)
    [22, 38, 66, 116, 205]
    """
    prices = np.array([offers.price(order[: k + 1]) for k in range(len(order))])
    wanted = np.geomspace(0.03, 0.9, n + 2)[1:-1] * prices[-1]
    return np.unique(np.searchsorted(prices, wanted) + 1).tolist()


def drop_stages(
    scores: StageScores,
    prices: Sequence[float],
    n_stages: int,
    price: float = 0.0,
    earns: float = _EARNS,
) -> list[int]:
    """Positions of the stages worth keeping, the last one among them.

    Parameters
    ----------
    scores : of all stages.
    prices : η at which the cascade is judged.
    n_stages : stages before the last, at most.
    price : of a round trip.
    earns : a stage is kept when leaving it out makes the cascade worse by more than this share.
    """
    n = len(scores.costs)
    kept = list(range(n))

    def value(stages: Sequence[int]) -> float:
        part = scores.only(stages)
        # A row answered by the k-th stage has waited for k more round trips.
        delays = price * np.arange(len(stages))
        return replace(part, costs=part.costs + delays).value(prices)

    best = value(kept)
    while len(kept) > 1:
        tried = [(value([k for k in kept if k != gone]), gone) for gone in kept[:-1]]
        found, gone = min(tried, key=lambda one: (one[0], -one[1]))  # of equals the dearest
        if len(kept) - 1 <= n_stages and found > best * (1 + earns):
            break
        kept.remove(gone)
        best = min(best, found) if len(kept) - 1 <= n_stages else found
    return kept
