"""Which columns when: an order of offers whose prefixes make good stages.

A judge (``judges.py``) says how wrong and how unsure a stage on any set of columns would be on held-out rows; an order
is judged by what the whole cascade would lose and cost with the best thresholds (``StageScores.value``). Starts come
from giving up the offer that is worth least for its price, one after the other, and from buying the best for its
price. From there single offers are moved to other places: at random, also where that is a little worse, and ever less
so; then, one by one, only where it helps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sparing.cascade.exits import StageScores, telling_prices, wider
from sparing.cascade.judges import Judge
from sparing.cascade.offers import Offers

SEARCHED = 16
"""Places of an order that are searched; later ones hardly matter to a cascade that stops early."""
SPARE = 6
"""Offers behind those places that may still be moved to the front."""
_MOVES, _WORSE = 500, 0.01
"""Random moves of a search, and by what share a cascade may become worse at the first of them, about.

Moves that help are not enough: on Letters the orders in which they ended, from whatever start, were 3 to 5% worse on
other rows than those found like this, which agree in their first six columns.
"""
_WALKED = 5000
"""Rows that judge, from which on there is a walk: fewer have enough chance in them that it finds what suits them alone.

On MiniBooNE's 2000 rows (one split, two and four networks of each third) its orders are worth the same and 3% less on
other rows than those of moves that help.
"""
_EARNS = 3e-3
"""A stage is kept when leaving it out makes the cascade worse by this share."""
_SHRINK = 0.85
"""Share of the offers kept per step while there are many: later steps look at every single one."""


def eliminated(judge: Judge) -> list[int]:
    """Order of offers found backwards: the last one is given up first.

    Given up is what raises the held-out loss least for its price. While there are many, several go at once.
    """
    left, given_up = list(range(len(judge.offers))), list[int]()
    while len(left) > 1:
        worth = judge.worth_for_price(left)
        n_going = max(1, len(left) - max(int(_SHRINK * len(left)), SEARCHED + SPARE))
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
    head, tail = backward[: SEARCHED + SPARE], backward[SEARCHED + SPARE :]
    places = min(len(head), SEARCHED)
    starts = [head]
    if judge.patience > len(head) ** 2:
        forward = bought(judge, head)
        starts.append([*forward, *(o for o in head if o not in forward)])
    prices = telling_prices(judge.scores(offers.closed(head)[:places]))
    results = []
    for i, order in enumerate(starts):
        results.append(searched(judge, order, places, wider(prices)))
        report(
            f"search {i + 1} of {len(starts)} for an order: {results[-1][0]:.4g} per row, errors at their price"
        )
    _, order = min(results, key=lambda result: result[0])
    # With a better order other prices tell more.
    prices = telling_prices(judge.scores(offers.closed(order)[:places]))
    value, order = searched(judge, order, places, wider(prices))
    report(f"last search for an order: {value:.4g}, {judge.n_asked} sets of columns tried")
    return offers.closed([*order, *tail]), prices


def searched(
    judge: Judge, order: list[int], places: int, prices: Sequence[float]
) -> tuple[float, list[int]]:
    """Move single offers to other places until no move makes the cascade better, and say how good it is.

    A judge of many rows that can be asked about any number of sets of columns is asked about random moves first.
    """
    value = Value(judge, places, prices)
    walks = np.isinf(judge.patience) and len(judge.y) >= _WALKED
    return improved(value, annealed(value, order) if walks else order)


@dataclass(frozen=True)
class Value:
    """What an order is worth to a judge: the lower, the better.

    Attributes
    ----------
    judge : of orders.
    places : of an order that count.
    prices : η at which the cascade is judged.
    """

    judge: Judge
    places: int
    prices: Sequence[float]

    def __call__(self, order: Sequence[int]) -> float:
        """Value of the cascade with a stage per prefix."""
        return self.judge.scores(self.judge.offers.closed(order)[: self.places]).value(self.prices)


def annealed(value: Value, order: list[int], seed: int = 0) -> list[int]:
    """The best order on a random walk that takes steps back ever more rarely."""
    rng = np.random.default_rng(seed)
    best = now = value(order)
    found = order
    for left in np.linspace(_WORSE, 0, _MOVES, endpoint=False):
        tried = list(order)
        offer = tried.pop(rng.integers(len(order)))
        tried.insert(rng.integers(value.places), offer)
        if tried == order:
            continue
        worth = value(tried)
        if worth < now + left * best * rng.exponential():
            now, order = worth, tried
        if now < best:
            best, found = now, order
    return found


def improved(value: Value, order: list[int]) -> tuple[float, list[int]]:
    """Move single offers to other places, to near ones first, as long as the cascade gets better."""
    judge, places = value.judge, value.places
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
        return scores.only(stages).value(prices, price)

    best = value(kept)
    while len(kept) > 1:
        tried = [(value([k for k in kept if k != gone]), gone) for gone in kept[:-1]]
        found, gone = min(tried, key=lambda one: (one[0], -one[1]))  # of equals the dearest
        if len(kept) - 1 <= n_stages and found > best * (1 + earns):
            break
        kept.remove(gone)
        best = min(best, found) if len(kept) - 1 <= n_stages else found
    if price and np.isfinite(earns):
        # Where trips are dear, two stages may be worth it only without each other.
        few = added_stages(value, n, n_stages, earns)
        kept = min(kept, few, key=value)
    return kept


def added_stages(
    value: Callable[[Sequence[int]], float], n: int, n_stages: int, earns: float
) -> list[int]:
    """Positions of stages that are worth adding to the last of ``n``, one after the other."""
    kept = [n - 1]
    best = value(kept)
    while len(kept) <= min(n_stages, n - 1):
        tried = [(value(sorted([*kept, k])), k) for k in range(n - 1) if k not in kept]
        found, new = min(tried)
        if found > best * (1 - earns):
            break
        kept, best = sorted([*kept, new]), found
    return kept
