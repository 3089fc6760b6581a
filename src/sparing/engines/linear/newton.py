"""Proximal Newton steps on some columns of the design, all others zero."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparing.engines.linear.columns import Columns
from sparing.engines.linear.losses import Loss, centred, evaluate
from sparing.engines.linear.quadratic import QuadraticModel
from sparing.engines.penalty import Floats, GroupPenalty

_GAIN_FRESH = 4.6
"""Logarithm by which a step with a new Hessian divides the violation, until one has been seen: by a hundred."""


@dataclass(eq=False)
class Point:
    """Where a solver is: coefficients with the intercepts as last row, and all that is known there."""

    W: Floats
    scores: Floats
    residual: Floats
    smooth: float
    gradient: Floats


class NewtonSteps:
    """(OPT2) on some columns, all others zero: proximal Newton steps with an Armijo line search."""

    def __init__(
        self, design: Columns, losses: list[Loss], penalty: GroupPenalty, ridge: Floats
    ) -> None:
        self.design, self.losses, self.penalty, self.ridge = design, losses, penalty, ridge

    def at(self, W: Floats, scores: Floats) -> Point:
        """The point W, whose scores are known."""
        value, residual = evaluate(self.losses, scores)
        return self._point(W, scores, value, residual)

    def _point(self, W: Floats, scores: Floats, value: float, residual: Floats) -> Point:
        value += 0.5 * float(np.sum(self.ridge * W**2))
        gradient = self.design.gradient(residual) + self.ridge * W
        return Point(W, scores, residual, value, gradient)

    def model(self, point: Point) -> QuadraticModel:
        """Second-order model of the smooth part at a point."""
        blocks, first = [], 0
        for loss in self.losses:
            widths = loss.blocks(len(self.ridge))
            scores = point.scores[first : first + loss.width]
            for width, block in zip(widths, loss.hessians(scores, self.design), strict=True):
                block[np.diag_indices_from(block)] += np.tile(self.ridge[:, 0], width)
                blocks.append((slice(first, first + width), block))
                first += width
        return QuadraticModel(blocks)

    def _price(self) -> float:
        """About how many steps a Hessian costs, from the time per row of its products and of a step's."""
        rows, outputs = len(self.ridge), sum(loss.width for loss in self.losses)
        sides = np.array([rows * w for loss in self.losses for w in loss.blocks(rows)])
        return float(np.sum(sides + 0.05 * sides**2) / (0.5 * rows * outputs + 9 * outputs + 15))

    def run(
        self, point: Point, model: QuadraticModel | None, tol: float, max_iter: int
    ) -> tuple[Point, QuadraticModel | None, int]:
        """Steps until the violation is at most ``tol``, or until they gain nothing."""
        violation = self.penalty.violation(point.W, point.gradient)
        n_iter, renew, gain_fresh = 0, model is None, _GAIN_FRESH
        patience = 1.0 + np.sqrt(3.0 * self._price())
        while violation > tol and n_iter < max_iter:
            n_iter += 1
            fresh = renew
            if model is None or renew:
                model = self.model(point)
            following = self._step(point, model, max(0.01 * violation, 0.3 * tol))
            if following is None:
                if fresh:
                    break  # the step is below rounding: nothing more to gain
                renew = True
                continue
            before, (point, full_step) = violation, following
            violation = self.penalty.violation(point.W, point.gradient)
            gain = float(np.log(before / max(violation, 1e-3 * tol)))
            if fresh:
                gain_fresh = max(gain, 0.05)
            # A new Hessian is worth its price when steps with the old one gain much less than the first one did. How
            # much less was measured on problems of two to 26 classes; between 1 + √price and 1 + price all do.
            renew = not full_step or gain < gain_fresh / patience
        return point, model, n_iter

    def _step(self, point: Point, model: QuadraticModel, goal: float) -> tuple[Point, bool] | None:
        """One proximal Newton step; None if it does not decrease the objective."""
        V, promised = model.step(point.W, point.gradient, self.penalty, goal)
        V = centred(V, self.losses)
        move, scores_V = V - point.W, self.design.scores(V)
        current = point.smooth + self.penalty.value(point.W)
        # Decreases below the rounding of the objective cannot be seen: do not ask for them.
        noise = 4 * np.finfo(float).eps * abs(current)
        size = 1.0
        for _ in range(25):
            W, scores = V, scores_V
            if size < 1.0:
                W, scores = point.W + size * move, point.scores + size * (scores_V - point.scores)
            value, residual = evaluate(self.losses, scores)
            total = value + 0.5 * float(np.sum(self.ridge * W**2)) + self.penalty.value(W)
            if total <= current + 1e-4 * size * promised + noise:
                found = self._point(W, scores, value, residual)
                model.learn(W - point.W, found.gradient - point.gradient)
                return found, size == 1.0
            size *= 0.5
        return None
