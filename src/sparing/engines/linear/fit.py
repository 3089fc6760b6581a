"""The solution of (OPT2): coefficients, and how good they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparing.engines.penalty import Floats


@dataclass(frozen=True, eq=False)
class LinearFit:
    """Solution of (OPT2).

    Attributes
    ----------
    coef : ndarray of shape (n_design_columns, n_outputs + 1)
        f1's coefficients, then g's; without the last column when there is no gate.
    intercept : ndarray of shape (n_outputs + 1,)
    violation : float
        Distance from 0 to the subdifferential of the objective, Frobenius norm over all coefficients and intercepts
        (those of the support, if one was given).
    objective : float
    n_iter : int
    converged : bool
    gate : bool
        Whether the last column is a gate.
    """

    coef: Floats
    intercept: Floats
    violation: float
    objective: float
    n_iter: int
    converged: bool
    gate: bool = True

    def scores(self, Z: Floats) -> tuple[Floats, Floats]:
        """Scores of f1, (n,) for two classes and (n, M) for more, and of the gate (zeros without one)."""
        scores = Z @ self.coef + self.intercept
        gate = scores[:, -1] if self.gate else np.zeros(len(scores))
        cheap = scores[:, :-1] if self.gate else scores
        return (cheap[:, 0] if cheap.shape[1] == 1 else cheap), gate
