"""What classifiers with one gate in front of a full model share: g, f1, and what a system of theirs is for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparing._alternation import EngineFit, Problem, column_mask
from sparing._full_model import FullModel
from sparing._losses import cheap_loss
from sparing._routed import RoutedClassifier

Floats = NDArray[np.float64]

AUTO_SHARE = 0.1
"""``cost_penalty="auto"`` of linear models: this share of the penalty at which nothing would be bought."""


class TwoLevelClassifier(RoutedClassifier):
    """Base of the classifiers whose first stage is a cheap model f1 with a gate g."""

    def gate_function(self, X: Any) -> Floats:
        """The gate g per row: above 0 (or the threshold set later) the row goes to the full model."""
        X = self._rows(X)
        stage = self.system_.stages[0]
        assert stage.gate is not None
        proba = stage.predictor.predict_proba(X) if stage.gate.reads_predictor else None
        return stage.gate.score(X, proba)

    @property
    def cheap_(self) -> Any:
        """The cheap predictor f1."""
        return self.system_.stages[0].predictor

    @property
    def gate_(self) -> Any:
        """The gate g."""
        return self.system_.stages[0].gate


def routed_objective(problem: Problem, full: FullModel, fit: EngineFit, price: float) -> float:
    """What a system is for, as a number: mean log-loss of its answers plus ``price`` × mean cost."""
    loss, cost = routed_means(problem, full, fit)
    return loss + price * cost


def routed_means(problem: Problem, full: FullModel, fit: EngineFit) -> tuple[float, float]:
    """Mean log-loss and mean cost of the answers of a system on the training rows; f0's losses are honest."""
    costs, n = problem.costs, len(problem.costs.columns)
    cheap = column_mask(fit.columns, n)
    every = cheap | column_mask(np.concatenate([s.columns for s in full.stages]), n)
    # f1 may have a price per call as well: rows that stay pay it too.
    calls = np.cumsum(costs.call_prices(1 + len(full.stages)))
    sent = fit.gate > 0
    loss = np.where(sent, problem.full_loss, cheap_loss(fit.cheap, problem.y))
    cost = np.where(sent, costs.of(every) + calls[-1], costs.of(cheap) + calls[0])
    weight = problem.weight
    return float(np.average(loss, weights=weight)), float(np.average(cost, weights=weight))
