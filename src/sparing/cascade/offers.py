"""What can be bought next: sets of items that open columns, and orders of them.

A column is there once all its items are; buying for one column may open others for nothing (the panel comes whole).
So what a cascade puts in order are *offers*, the distinct sets of priced items that columns need. Columns whose items
are all free are there from the start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparing.costs import FeatureCosts

Booleans = NDArray[np.bool_]
Columns = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Offers:
    """The distinct sets of priced items behind the columns.

    Attributes
    ----------
    costs : prices.
    items : bool of shape (n_offers, n_items), the items of each offer.

    Examples
    --------
    >>> from sparing import FeatureCosts
    >>> costs = FeatureCosts({"age": 0, "TSH": 20, "T3": 9}, shared={"draw": (2, ["TSH", "T3"])})
    >>> offers = Offers.of(costs)
    >>> len(offers), offers.names(0)
    (2, ['TSH', 'draw'])
    >>> offers.columns([]), offers.columns([1]), offers.columns([1, 0])
    (array([0]), array([0, 2]), array([0, 1, 2]))
    >>> offers.price([1]), offers.price([1, 0])
    (11.0, 31.0)
    """

    costs: FeatureCosts
    items: Booleans

    @classmethod
    def of(cls, costs: FeatureCosts) -> Offers:
        """Offers of a price list, in the order of its columns."""
        priced = costs.needs & (costs.item_prices > 0)
        _, first = np.unique(priced, axis=0, return_index=True)
        chosen = priced[np.sort(first)]
        return cls(costs, chosen[chosen.any(axis=1)])

    def __len__(self) -> int:
        return len(self.items)

    @property
    def first(self) -> int:
        """Length of the shortest prefix of an order that has columns: 0 when some are free."""
        return 0 if self.mask([]).any() else 1

    def available(self, chosen: Booleans) -> Booleans:
        """Columns that are there when some offers were bought.

        Parameters
        ----------
        chosen : bool of shape (..., n_offers)

        Returns
        -------
        bool of shape (..., n_columns)
        """
        # Counts of items are small: float32 holds them exactly, and products of floats are fast.
        bought = chosen.astype(np.float32) @ self.items.astype(np.float32) > 0
        priced = self.costs.needs & (self.costs.item_prices > 0)
        missing = (~bought).astype(np.float32) @ priced.T.astype(np.float32)
        return missing == 0

    def mask(self, order: Sequence[int]) -> Booleans:
        """Columns that are there once the offers of ``order`` were bought, as a mask."""
        chosen = np.zeros(len(self), dtype=bool)
        chosen[list(order)] = True
        return self.available(chosen)

    def prefixes(self, order: Sequence[int], lengths: Sequence[int]) -> list[Booleans]:
        """Columns that are there once the first so many offers of ``order`` were bought, per length."""
        return [self.mask(order[:length]) for length in lengths]

    def columns(self, order: Sequence[int]) -> Columns:
        """Columns that are there once the offers of ``order`` were bought."""
        return np.flatnonzero(self.mask(order))

    def price(self, order: Sequence[int]) -> float:
        """What these offers cost together."""
        bought = self.items[list(order)].any(axis=0)
        return float(self.costs.item_prices[bought].sum())

    def marginal(self, order: Sequence[int]) -> NDArray[np.float64]:
        """What each offer costs for someone who has bought some."""
        bought = self.items[list(order)].any(axis=0)
        prices = np.where(bought, 0.0, self.costs.item_prices)
        return np.asarray(self.items @ prices, dtype=float)

    def names(self, offer: int) -> list[str]:
        """Names of an offer's items."""
        return [str(self.costs.items[i]) for i in np.flatnonzero(self.items[offer])]

    def closed(self, order: Sequence[int]) -> list[int]:
        """An order without offers that come for nothing with earlier ones."""
        kept = list[int]()
        bought = np.zeros(self.items.shape[1], dtype=bool)
        for offer in order:
            if (self.items[offer] & ~bought).any():
                kept.append(int(offer))
                bought |= self.items[offer]
        return kept

    def added(self, order: Sequence[int], start: int, end: int) -> list[str]:
        """Items that an order buys between two of its places, those not bought before."""
        before = self.items[list(order[:start])].any(axis=0)
        added = self.items[list(order[start:end])].any(axis=0) & ~before
        return [str(self.costs.items[i]) for i in np.flatnonzero(added)]

    def in_words(self, order: Sequence[int]) -> list[list[str]]:
        """Items in the order of purchase, those bought together in one list."""
        return [self.added(order, k, k + 1) for k in range(len(order))]

    def stage_name(self, order: Sequence[int], start: int, end: int) -> str:
        """What a stage buys on top of the one before it: its dearest items."""
        prices = dict(zip(map(str, self.costs.items), self.costs.item_prices, strict=True))
        names = sorted(self.added(order, start, end), key=lambda name: -prices[name])
        return "+ " + ", ".join(names[:2]) + ", …" * (len(names) > 2) if names else "free"
