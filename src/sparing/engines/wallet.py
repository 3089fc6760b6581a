"""The wallet that the trees of f1 and of g share: what has been bought, and what the rest still costs.

Called by ``boosting`` alone. The money itself is counted by ``costs``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparing.costs import FeatureCosts


class Wallet:
    """What has been bought and what the rest still costs, in units of LightGBM's gain.

    LightGBM's gain is ΣG²/H, twice the fall of the summed loss: hence a price of 2·W·cost_penalty·c.

    Parameters
    ----------
    costs : FeatureCosts
    unit : gain that pays for one unit of cost, 2·W·cost_penalty.

    Examples
    --------
    >>> import numpy as np
    >>> wallet = Wallet(FeatureCosts([1, 2], shared={"panel": (5, [0, 1])}), unit=10.0)
    >>> wallet.penalties()["cegb_penalty_feature_coupled"]
    [60.0, 70.0]
    >>> wallet.pay(np.array([True, False]), t=0), wallet.penalties()["cegb_penalty_feature_coupled"]
    (True, [0.0, 20.0])
    """

    def __init__(self, costs: FeatureCosts, unit: float) -> None:
        self._costs = costs
        self._unit = unit
        self._owned = np.zeros(len(costs.items), dtype=bool)
        self._bought = np.zeros(len(costs.columns), dtype=bool)
        self._order: list[tuple[int, int]] = []
        self._prices = unit * costs.marginal(self._owned)

    def penalties(self) -> dict[str, Any]:
        """LightGBM's parameters: what each column would cost now."""
        if self._unit == 0.0:
            return {}
        return {"cegb_tradeoff": 1.0, "cegb_penalty_feature_coupled": self._prices.tolist()}

    def pay(self, used: NDArray[np.bool_], t: int) -> bool:
        """Buy the columns used for the first time; True when one had a price, so that others' gains may be wrong."""
        new = used & ~self._bought
        if not new.any():
            return False
        had_price = bool((self._prices[new] > 0).any())
        self._bought |= new
        self._order += [(int(column), t) for column in np.flatnonzero(new)]
        self._owned |= self._costs.needs[new].any(axis=0)
        self._prices = self._unit * self._costs.marginal(self._owned)
        return had_price

    def receipts(self, used: NDArray[np.bool_]) -> tuple[tuple[int, int], ...]:
        """(column, round) in the order of purchase, without columns that only a rolled-back tree used."""
        return tuple(entry for entry in self._order if used[entry[0]])
