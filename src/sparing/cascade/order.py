"""Which columns when: an order of offers whose prefixes make good stages.

Every order could be judged by fitting a model per prefix, which is far too slow to try thousands. So one network is
trained on random sets of columns; it says, on held-out rows, how wrong and how unsure a stage on any set would be, and
an order is judged by what the whole cascade would lose and cost with the best thresholds (``StageScores.value``).
Starts come from giving up the offer that is worth least for its price, one after the other, and from buying the best
for its price; then offers are moved to other places as long as that helps. (Random starts end at the same value.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from sparing.cascade.exits import ByDoubt, StageScores, sorted_by_doubt, telling_prices
from sparing.cascade.network import Booleans, Codes, DrawMasks, Floats, MaskedNetwork, Singles
from sparing.cascade.offers import Offers

SEARCHED = 16
"""Places of an order that are searched; later ones hardly matter to a cascade that stops early."""
_SPARE = 6
"""Offers behind those places that may still be moved to the front."""
_EARNS = 3e-3
"""A stage is kept when leaving it out makes the cascade worse by this share."""
_SHRINK = 0.85
"""Share of the offers kept per step while there are many: later steps look at every single one."""


def random_masks(offers: Offers) -> DrawMasks:
    """Masks of random sets of offers, of all sizes alike."""

    def draw(rng: np.random.Generator, n: int) -> Booleans:
        sizes = rng.integers(0, len(offers) + 1, n)
        ranks = rng.random((n, len(offers)), dtype=np.float32).argsort(axis=1).argsort(axis=1)
        return offers.available(ranks < sizes[:, None])

    return draw


@dataclass(eq=False)
class SubsetJudge:
    """What a stage on any set of offers would say about held-out rows, by a network trained on random sets.

    Attributes
    ----------
    network : trained on other rows.
    offers : what can be bought.
    Z, y : held-out design rows and class codes.
    full_cost : cost of a row that goes to the full model, for which the network with all columns stands in here: the
        full model itself may be so much better than any network that all rows would be sent to it.
    weight : weights of the rows.
    """

    network: MaskedNetwork
    offers: Offers
    Z: Singles
    y: Codes
    full_cost: float
    weight: Floats | None = None
    _known: dict[bytes, tuple[Floats, Floats, ByDoubt]] = field(default_factory=dict)

    def stage(self, mask: Booleans) -> tuple[Floats, Floats, ByDoubt]:
        """Errors and doubts of a stage on some columns, and the rows sorted by doubt."""
        key = np.packbits(mask).tobytes()
        if key not in self._known:
            proba = self.network.proba(self.Z, mask)
            error = (proba.argmax(axis=1) != self.y).astype(float)
            doubt = 1.0 - proba.max(axis=1)
            self._known[key] = error, doubt, sorted_by_doubt(doubt)
        return self._known[key]

    def loss(self, proba: Floats) -> float:
        """Mean log-loss."""
        right = np.maximum(proba[np.arange(len(self.y)), self.y], 1e-6)
        return float(-np.average(np.log(right), weights=self.weight))

    def scores(self, order: Sequence[int], lengths: Sequence[int] | None = None) -> StageScores:
        """Scores of the cascade with a stage per prefix of an order (of some ``lengths``), and the full model."""
        lengths = range(self.first, len(order) + 1) if lengths is None else lengths
        stages = [self.stage(self.offers.mask(order[:k])) for k in lengths]
        costs = [self.offers.price(order[:k]) for k in lengths]
        last = self.stage(np.ones(len(self.offers.costs.columns), dtype=bool))[0]
        errors = np.array([*(error for error, _, _ in stages), last])
        doubts = np.array([doubt for _, doubt, _ in stages])
        return StageScores.of(
            errors,
            doubts,
            np.array([*costs, self.full_cost]),
            self.weight,
            [by_doubt for *_, by_doubt in stages],
        )

    @property
    def first(self) -> int:
        """Length of the shortest prefix that has columns: 0 when some are free."""
        return 0 if self.offers.mask([]).any() else 1


def eliminated(judge: SubsetJudge) -> list[int]:
    """Order of offers found backwards: the last one is given up first.

    Given up is what raises the held-out loss least for its price. While there are many, several go at once.
    """
    offers, left, given_up = judge.offers, list(range(len(judge.offers))), list[int]()
    while len(left) > 1:
        mask = offers.mask(left)
        without = [mask & ~offers.mask([o for o in left if o != offer]) for offer in left]
        groups = [np.flatnonzero(gone) for gone in without]
        base = judge.loss(judge.network.proba(judge.Z, mask))
        losses = [judge.loss(p) for p in judge.network.proba_without(judge.Z, mask, groups)]
        paid = np.array(
            [offers.price(left) - offers.price([o for o in left if o != x]) for x in left]
        )
        worth = (np.array(losses) - base) / np.maximum(paid, 1e-12)
        n_going = max(1, len(left) - max(int(_SHRINK * len(left)), SEARCHED + _SPARE))
        going = [left[i] for i in np.argsort(worth, kind="stable")[:n_going]]
        given_up += going
        left = [o for o in left if o not in going]
    return [*left, *given_up[::-1]]


def bought(judge: SubsetJudge, among: Sequence[int]) -> list[int]:
    """Order of offers found forwards: next is what lowers the held-out loss most for its price."""
    order, left = list[int](), list(among)
    while left:
        marginal = judge.offers.marginal(order)
        free = [o for o in left if marginal[o] == 0]
        if free:
            left = [o for o in left if o not in free]
            continue
        base = judge.loss(judge.network.proba(judge.Z, judge.offers.mask(order)))
        gains = [
            (base - judge.loss(judge.network.proba(judge.Z, judge.offers.mask([*order, o]))))
            / marginal[o]
            for o in left
        ]
        order.append(left.pop(int(np.argmax(gains))))
    return order


def best_order(
    judge: SubsetJudge, report: Callable[[str], None] = lambda _: None
) -> tuple[list[int], list[float]]:
    """The best order found, and the prices η it was judged at."""
    offers = judge.offers
    if len(offers) == 1:
        return [0], telling_prices(judge.scores([0]))
    backward = eliminated(judge)
    head, tail = backward[: SEARCHED + _SPARE], backward[SEARCHED + _SPARE :]
    forward = bought(judge, head)
    places = min(len(head), SEARCHED)
    start = judge.scores(offers.closed(head)[:places])
    prices = telling_prices(start)
    starts = [head, [*forward, *(o for o in head if o not in forward)]]
    results = []
    for i, order in enumerate(starts):
        results.append(_improved(judge, order, places, prices))
        report(f"search {i + 1} of {len(starts)} for an order: {results[-1][0]:.4g}")
    _, order = min(results, key=lambda result: result[0])
    # With a better order other prices tell more.
    prices = telling_prices(judge.scores(offers.closed(order)[:places]))
    value, order = _improved(judge, order, places, prices)
    report(f"last search for an order: {value:.4g}")
    return offers.closed([*order, *tail]), prices


def _improved(
    judge: SubsetJudge, order: list[int], places: int, prices: Sequence[float]
) -> tuple[float, list[int]]:
    """Move single offers to other places as long as the cascade gets better."""

    def value(order: Sequence[int]) -> float:
        return judge.scores(judge.offers.closed(order)[:places]).value(prices)

    best, moved = value(order), True
    while moved:
        moved = False
        for offer in list(order):
            for place in range(places):
                tried = [o for o in order if o != offer]
                tried.insert(place, offer)
                if tried == order:
                    continue
                found = value(tried)
                if found < best * (1 - 1e-6):
                    best, order, moved = found, tried, True
    return best, order


def candidate_lengths(n: int, first: int) -> list[int]:
    """Every length while there are few, growing steps after that."""
    lengths = np.unique(np.geomspace(max(first, 1), max(n, 1), 40).round().astype(int))
    short = np.arange(first, min(n, SEARCHED) + 1)
    return np.union1d(short, lengths[lengths <= n]).tolist()


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
        return StageScores(
            part.errors, part.doubts, part.costs + delays, part.weight, part._sorted
        ).value(prices)

    best = value(kept)
    while len(kept) > 1:
        tried = [(value([k for k in kept if k != gone]), gone) for gone in kept[:-1]]
        found, gone = min(tried)
        if len(kept) - 1 <= n_stages and found > best * (1 + earns):
            break
        kept.remove(gone)
        best = min(best, found) if len(kept) - 1 <= n_stages else found
    return kept
