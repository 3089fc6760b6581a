"""Supports of the L1 baseline: which there are, and the cheap models and gates on each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sparing._alternation import Problem
from sparing._full_model import FullModel
from sparing._losses import cheap_proba
from sparing._two_level import routed_means
from sparing.costs import FeatureCosts
from sparing.engines.design import Design
from sparing.engines.linear import LinearFit, LinearProblem
from sparing.engines.linear_parts import LinearGate, LinearPredictor, LinearScores
from sparing.system import Stage

Floats = NDArray[np.float64]

_NEVER = 30.0
"""Log-odds of a gate for an f1 that is never wrong, or always: its regression has no end. As far are the ends of a
sweep from all rows."""


def thresholded(
    fit: LinearFit, owner: NDArray[np.intp], costs: FeatureCosts
) -> Iterator[tuple[int, ...]]:
    """Supports of one L1 regression: what is free, then with one column more at a time, by falling coefficients.

    A column comes with the items it needs, and with all other columns that these pay for.
    """
    squares = np.bincount(owner, (fit.coef**2).sum(axis=1), len(costs.columns))
    order = np.argsort(-squares, kind="stable")[: np.count_nonzero(squares)]
    owned = costs.item_prices <= 0
    for column in (None, *order):
        if column is not None:
            owned = owned | costs.needs[column]
        support = ~(costs.needs & ~owned).any(axis=1)
        yield tuple(np.flatnonzero(support).tolist())


def _constant(n_columns: int, side: int) -> LinearFit:
    """A gate that sends everybody (1) or nobody (0)."""
    intercept = np.array([_NEVER if side else -_NEVER])
    return LinearFit(np.zeros((n_columns, 1)), intercept, 0.0, 0.0, 0, True, gate=False)


@dataclass(frozen=True)
class Tried:
    """A cheap stage and what it is worth on the training rows."""

    stage: Stage
    class_weight: float
    loss: float
    cost: float
    rate: float
    n_iter: int


@dataclass(frozen=True)
class _Scored:
    """Scores of f1 and gate on the training rows, and the columns behind them."""

    cheap: Floats
    gate: Floats
    columns: NDArray[np.intp]
    penalty: float = 0.0


@dataclass(frozen=True)
class SupportSolver:
    """Learns f1 and gates on one support after the other.

    Attributes
    ----------
    problem, full : losses, prices, and the full model behind the gates.
    class_weights : weights of "f1 is wrong" among the gate's classes.
    C : inverse strength of the L2 penalties.
    total : sum of the weights of the rows.
    max_iter, tol : of each regression.
    """

    problem: Problem
    full: FullModel
    class_weights: Floats
    C: float
    total: float
    max_iter: int
    tol: float

    def __call__(self, design: Design, Z: Floats, columns: NDArray[np.intp]) -> list[Tried]:
        """One stage per class weight; before them one that sends nobody, and last one that sends everybody."""
        Z = np.ascontiguousarray(Z[:, np.isin(design.owner, columns)])
        design, y = design.restricted(columns), self.problem.y
        n_classes = self.full.proba.shape[1]
        weight = self.problem.weight
        f1 = self._regression(Z, y, n_classes, weight, self.total, None)
        cheap = f1.scores(Z)[0]
        wrong = (cheap_proba(cheap).argmax(axis=1) != y).astype(np.intp)
        predictor = LinearPredictor(LinearScores.of(design, f1.coef, f1.intercept))
        gates = list[LinearFit]()
        for class_weight in self.class_weights:
            sides = np.where(wrong, class_weight, 1.0 - class_weight)
            sides = sides if weight is None else sides * weight
            gates.append(self._gate(Z, wrong, sides, gates[-1] if gates else None))
        tried = [
            self._tried(design, Z, predictor, cheap, gate, float(class_weight))
            for gate, class_weight in zip(gates, self.class_weights, strict=True)
        ]
        # The ends of the sweep: the outermost gates moved out of reach, so that other thresholds can still be set.
        # No regression of their own, they stand for f1's in the count of steps.
        ends = list[Tried]()
        for class_weight, gate, side in ((0.0, gates[0], -1.0), (1.0, gates[-1], 1.0)):
            reach = max(0.0, float(np.max(-side * gate.scores(Z)[0])))
            intercept = gate.intercept + side * (reach + _NEVER)
            moved = replace(gate, intercept=intercept, n_iter=f1.n_iter)
            ends.append(self._tried(design, Z, predictor, cheap, moved, class_weight))
        return [ends[0], *tried, ends[1]]

    def _gate(
        self, Z: Floats, wrong: NDArray[np.intp], weight: Floats, start: LinearFit | None
    ) -> LinearFit:
        """Regression of whether f1 is wrong: above 0 it probably is."""
        among = np.unique(wrong[weight > 0])
        if len(among) == 1:
            return _constant(Z.shape[1], int(among[0]))
        return self._regression(Z, wrong, 2, weight, float(weight.sum()), start)

    def _regression(
        self,
        Z: Floats,
        y: NDArray[np.intp],
        n_classes: int,
        weight: Floats | None,
        total: float,
        start: LinearFit | None,
    ) -> LinearFit:
        """L2 logistic regression of scikit-learn's C: a sum of losses there is a mean here."""
        return LinearProblem(Z, y, n_classes, weight).solve(
            None,
            None,
            ridge=1.0 / (self.C * total),
            tol=self.tol,
            max_iter=self.max_iter,
            start=start,
            gate=False,
        )

    def _tried(
        self,
        design: Design,
        Z: Floats,
        predictor: LinearPredictor,
        cheap: Floats,
        gate: LinearFit,
        class_weight: float,
    ) -> Tried:
        served = LinearGate(LinearScores.of(design, gate.coef, gate.intercept))
        stage, scores = Stage(predictor, served, name="cheap"), gate.scores(Z)[0]
        loss, cost = routed_means(self.problem, self.full, _Scored(cheap, scores, stage.columns))
        rate = float(np.average(scores > 0, weights=self.problem.weight))
        return Tried(stage, class_weight, loss, cost, rate, gate.n_iter)
