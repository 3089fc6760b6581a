"""OPT2 as a step of the alternation: solve, score the training rows, say what it costs; then refit without penalty.

With a least-squares gate the same step is OPT6 and OPT7 of Adapt-Lstsq, f1 and g under one penalty.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sparing._allocation_rows import log_odds
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
    gate_loss : "kl" fits g to q, "lstsq" to its log-odds.
    """

    rows: LinearProblem
    prices: GroupPenalty
    ridge: float
    owner: NDArray[np.intp]
    support: Booleans | None = None
    gate_loss: Literal["kl", "lstsq"] = "kl"

    def __call__(self, q: Floats, previous: LinearStep | None) -> LinearStep:
        """Minimise over f1 and g for the allocation q, from the previous solution."""
        start = None if previous is None else previous.fit
        return self._step(
            self.rows.solve(
                q,
                self.prices,
                ridge=self.ridge,
                start=start,
                support=self.support,
                **self.gate(q),
            )
        )

    def gate(self, q: Floats) -> dict[str, Any]:
        """Loss and target of the gate, as the engine wants them."""
        target = q if self.gate_loss == "kl" else log_odds(q)
        return {"gate_loss": self.gate_loss, "gate_target": target}

    def debiased(self, q: Floats, step: LinearStep) -> LinearStep:
        """Refit on the columns of a solution without the penalty, which shrinks; q stays."""
        support = np.isin(self.owner, step.columns)
        ridge = max(self.ridge, 1e-6)
        return self._step(
            self.rows.solve(q, None, ridge=ridge, start=step.fit, support=support, **self.gate(q))
        )

    def routed(self, step: LinearStep) -> LinearStep:
        """The same gate, and f1 refitted on the rows that this gate leaves to it; nothing changes if there are none."""
        sent = (step.gate > 0).astype(float)
        if sent.all():
            return step
        support = np.isin(self.owner, step.columns)
        ridge = max(self.ridge, 1e-6)
        f1 = self.rows.solve(sent, None, ridge=ridge, support=support, gate=False)
        coef = np.hstack([f1.coef, step.fit.coef[:, -1:]])
        intercept = np.append(f1.intercept, step.fit.intercept[-1])
        return self._step(replace(f1, coef=coef, intercept=intercept, gate=True))

    def _step(self, fit: LinearFit) -> LinearStep:
        cheap, gate = self.rows.scores(fit)
        extra = self.prices.value(fit.coef) + 0.5 * self.ridge * float(np.sum(fit.coef**2))
        return LinearStep(fit, cheap, gate, extra, np.unique(self.owner[fit.coef.any(axis=1)]))
