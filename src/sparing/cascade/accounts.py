"""What stages cost and get wrong on the training rows, the full model behind them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparing._full_model import FullModel
from sparing._routed import Training
from sparing.cascade.coarse import settled
from sparing.cascade.exits import StageScores
from sparing.cascade.network import Booleans
from sparing.cascade.offers import Offers
from sparing.costs import FeatureCosts

Floats = NDArray[np.float64]


class Accounts:
    """Costs and scores of stages, from the columns each has and what it says about the training rows.

    Parameters
    ----------
    training : checked rows.
    full : the full model and its honest probabilities.

    Attributes
    ----------
    full_error : 1 where the full model errs on a row it has not seen.
    """

    def __init__(self, training: Training, full: FullModel) -> None:
        self._training = training
        self._n_full = len(full.stages)
        self.full_error: Floats = (full.codes != training.y).astype(float)
        self._full_mask = np.zeros(training.X.shape[1], dtype=bool)
        self._full_mask[np.concatenate([stage.columns for stage in full.stages])] = True

    def prices(self, kept: Sequence[int] = ()) -> FeatureCosts:
        """Prices with the calls of some of the stages that were given, and of the full model."""
        costs, calls = self._training.costs, self._training.costs.call_price
        if not isinstance(calls, tuple):
            return costs
        left = (*(calls[k] for k in kept), *calls[-self._n_full :])
        return costs.with_call_price(left if len(left) > 1 else left[0])

    def costs(self, masks: Sequence[Booleans], stages: Sequence[int] | None = None) -> Floats:
        """What a row answered at each stage costs, the full model last; ``stages`` are those left of the given ones."""
        prices = self.prices(range(len(masks)) if stages is None else stages)
        bought = np.logical_or.accumulate(np.array([*masks, self._full_mask]), axis=0)
        calls = np.cumsum(prices.call_prices(len(masks) + self._n_full))
        return prices.of(bought) + np.append(calls[: len(masks)], calls[-1])

    def scores(
        self,
        proba: Floats,
        masks: Sequence[Booleans],
        rows: NDArray[np.intp],
        predictors: Sequence[Any] | None = None,
    ) -> StageScores:
        """Scores of stages from their probabilities of some rows, and the columns each has.

        With the fitted ``predictors``, rows that a stage cannot tell apart have one doubt.
        """
        training = self._training
        wrong = [p.argmax(axis=1) != training.y[rows] for p in proba]
        errors = np.array([*wrong, self.full_error[rows]], dtype=float)
        doubts = np.array([1.0 - p.max(axis=1) for p in proba]).reshape(len(proba), len(rows))
        if predictors is not None:
            doubts = settled(doubts, predictors, masks, training.X, rows)
        return StageScores.of(
            errors,
            doubts,
            self.costs(masks),
            None if training.weight is None else training.weight[rows],
        )

    def full_alone(self) -> StageScores:
        """Scores of the full model without any stage before it."""
        n = len(self._training.y)
        return self.scores(np.empty((0, n, 1)), [], np.arange(n))

    def can_save(self, offers: Offers) -> bool:
        """Whether some stage could cost less than the full model."""
        smallest = [offers.mask([offer]) for offer in range(len(offers))]
        if offers.first == 0:
            smallest.append(offers.mask([]))
        return any(np.less(*self.costs([mask])) for mask in smallest)
