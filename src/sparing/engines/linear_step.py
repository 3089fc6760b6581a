"""OPT2 as a step of the alternation: solve, score the training rows, say what it costs; then refit without penalty."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparing.engines.linear import LinearFit, LinearProblem
from sparing.engines.penalty import GroupPenalty

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]


@dataclass(frozen=True)
class LinearStep:
    """A solution of OPT2 with its scores on the training rows."""

    fit: LinearFit
    cheap: Floats
    gate: Floats
    penalty: float
    columns: NDArray[np.intp]


@dataclass(frozen=True)
class LinearStepper:
    """The linear engine for one penalty.

    Attributes
    ----------
    rows : the training rows.
    prices : penalty on the rows of W, already times γ.
    ridge : weight of the squared coefficients.
    owner : column of X behind each design column.
    support : design columns that may be used, None for all.
    """

    rows: LinearProblem
    prices: GroupPenalty
    ridge: float
    owner: NDArray[np.intp]
    support: Booleans | None = None

    def __call__(self, q: Floats, previous: LinearStep | None) -> LinearStep:
        """Minimise over f1 and g for the allocation q, from the previous solution."""
        start = None if previous is None else previous.fit
        fit = self.rows.solve(q, self.prices, ridge=self.ridge, start=start, support=self.support)
        return self._step(fit)

    def debiased(self, q: Floats, step: LinearStep) -> LinearStep:
        """Refit on the columns of a solution without the penalty, which shrinks; q stays."""
        support = np.isin(self.owner, step.columns)
        ridge = max(self.ridge, 1e-6)
        return self._step(self.rows.solve(q, None, ridge=ridge, start=step.fit, support=support))

    def _step(self, fit: LinearFit) -> LinearStep:
        cheap, gate = self.rows.scores(fit)
        extra = self.prices.value(fit.coef) + 0.5 * self.ridge * float(np.sum(fit.coef**2))
        return LinearStep(fit, cheap, gate, extra, np.unique(self.owner[fit.coef.any(axis=1)]))
