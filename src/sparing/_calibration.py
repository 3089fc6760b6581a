"""Calibration rows, and what a system does on them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparing._evaluation import loss_matrix, row_loss
from sparing._promises import Facts
from sparing._rows import ScoredRows, take_rows
from sparing.metrics.scoring import SystemClassifier
from sparing.system import Accounting, System


class Calibration:
    """The calibration rows, shuffled once, and what a system does on them."""

    def __init__(
        self, X: Any, y: NDArray[Any], scoring: Any, accounting: Accounting, full: System | None
    ) -> None:
        # Betting reads rows in turn, and sorted ones would be no fair game. A fixed seed makes a fixed certificate.
        shuffled = np.random.default_rng(0).permutation(len(y))
        self.rows = ScoredRows(take_rows(X, shuffled), size=64)
        self.y = y[shuffled]
        self.accounting = accounting
        self.matrix = loss_matrix(scoring)
        self.full_loss = None
        if full is not None:
            answers = SystemClassifier(full, self.rows).predict(self.rows)
            self.full_loss = row_loss(self.matrix, self.y, answers, full.classes)

    def facts(self, system: System) -> Facts:
        """What the promises ask about."""
        model = SystemClassifier(system, self.rows)
        answering, answers = model.route(self.rows), model.predict(self.rows)
        prices = system.costs.of(system.stage_columns()) + system.call_prices()
        by_stage = self.accounting == "stage"
        cost = (
            prices[answering] if by_stage else system.acquisition_cost(self.rows, accounting="path")
        )
        last = len(system.stages) - 1
        return Facts(
            y=self.y,
            answering=answering,
            kept=(answering < last) if system.has_full else np.ones(len(answering), dtype=bool),
            right=answers == self.y,
            loss=row_loss(self.matrix, self.y, answers, system.classes),
            full_loss=self.full_loss,
            cost=cost,
            stage_prices=prices if by_stage else None,
            least=float(prices.min()) if by_stage else 0.0,
            most=float(prices.max()),
        )
