"""(OPT2) on all columns, by solving it on those in play until the others are content too."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sparing.engines.linear.columns import Columns
from sparing.engines.linear.fit import LinearFit
from sparing.engines.linear.losses import Loss, centred
from sparing.engines.linear.newton import NewtonSteps, Point
from sparing.engines.linear.quadratic import QuadraticModel
from sparing.engines.penalty import Booleans, Floats, GroupPenalty, Integers

INTERCEPT_RIDGE = 1e-8
"""Only there so that a gate for q ≡ 0, whose intercept would run off, has a minimiser."""

_MARGIN = 0.5
"""Columns that would be bought at this fraction of the price are kept at hand."""

_MOST = 0.7
"""With more than this share of the columns at hand, all of them are: no copy."""


class ActiveSet:
    """(OPT2) on all columns, by solving it on those in play until the others are content too."""

    def __init__(
        self,
        Z: Floats,
        losses: list[Loss],
        penalty: GroupPenalty,
        ridge: float,
        allowed: Booleans,
    ) -> None:
        self.Z, self.losses, self.penalty, self.allowed = Z, losses, penalty, allowed
        self.ridge = np.append(np.full(Z.shape[1], ridge), INTERCEPT_RIDGE)[:, None]
        self.everything = Columns(Z, np.arange(Z.shape[1]))
        # Kept from one penalty of a path to the next.
        self.design: Columns | None = None
        self.model: QuadraticModel | None = None

    def at(self, W: Floats) -> Point:
        """The point W, zero where nothing is allowed."""
        W = centred(np.where(self.allowed[:, None], W, 0.0), self.losses)
        whole = NewtonSteps(self.everything, self.losses, self.penalty, self.ridge)
        return whole.at(W, self.everything.scores(W))

    def run(self, point: Point, tol: float, max_iter: int, gate: bool) -> tuple[LinearFit, Point]:
        """Solve on the columns in play, look at all, repeat until the violation is at most ``tol``."""
        gap = self._gap(point)
        violation, n_iter = float(np.linalg.norm(gap)), 0
        while violation > tol and n_iter < max_iter:
            rows = self._choose(point, gap)
            assert self.design is not None
            part = NewtonSteps(
                self.design, self.losses, self.penalty.restricted(rows), self.ridge[rows]
            )
            here = Point(
                point.W[rows], point.scores, point.residual, point.smooth, point.gradient[rows]
            )
            # A first set of columns, chosen far from the solution, is not worth solving to the end.
            goal = max(tol, 0.01 * violation) if self.model is None else tol
            here, self.model, steps = part.run(here, self.model, goal, max_iter - n_iter)
            W = np.zeros_like(point.W)
            W[rows] = here.W
            gradient = self.everything.gradient(here.residual) + self.ridge * W
            point = Point(W, here.scores, here.residual, here.smooth, gradient)
            before, gap = violation, self._gap(point)
            violation, n_iter = float(np.linalg.norm(gap)), n_iter + max(steps, 1)
            if (
                violation >= before
                and self.penalty.support(gap)[rows].sum() == self.penalty.support(gap).sum()
            ):
                break  # rounding: nothing more to gain
        return self._fit(point, violation, n_iter, tol, gate), point

    def _gap(self, point: Point) -> Floats:
        gap = self.penalty.subgradient_gap(point.W, point.gradient)
        # Rows that may not move have nothing to violate.
        return np.where(self.allowed[:, None], gap, 0.0)

    def _choose(self, point: Point, gap: Floats) -> Integers:
        """Rows in play, the intercepts last; renews the design when it lacks some or has far too many."""
        needed = (self.penalty.support(point.W) | self.penalty.support(gap))[:-1]
        if self.design is None or not np.isin(np.flatnonzero(needed), self.design.columns).all():
            self.design, self.model = Columns(self.Z, self._wanted(point, needed)), None
        elif len(self.design.columns) > 2 * needed.sum() + 8:
            fewer = self._wanted(point, needed)
            if len(fewer) <= _MOST * len(self.design.columns):
                self.design, self.model = Columns(self.Z, fewer), None
        return np.append(self.design.columns, len(point.W) - 1)

    def _wanted(self, point: Point, needed: Booleans) -> Integers:
        """Columns that are used or want to be, or nearly; all of them if that is most of them."""
        gap = self.penalty.scaled(_MARGIN).subgradient_gap(point.W, point.gradient)
        allowed = self.allowed[:-1]
        play = allowed & (needed | self.penalty.support(gap)[:-1])
        return np.flatnonzero(allowed if play.sum() > _MOST * allowed.sum() else play)

    def _fit(
        self, point: Point, violation: float, n_iter: int, tol: float, gate: bool
    ) -> LinearFit:
        if violation > tol:
            warnings.warn(
                f"The linear engine stopped after {n_iter} steps at a violation of {violation:.1e}, above "
                f"tol={tol:.0e}: increase max_iter, ridge or tol.",
                ConvergenceWarning,
                stacklevel=4,
            )
        objective = point.smooth + self.penalty.value(point.W)
        coef, intercept = point.W[:-1].copy(), point.W[-1].copy()
        return LinearFit(coef, intercept, violation, objective, n_iter, violation <= tol, gate)
