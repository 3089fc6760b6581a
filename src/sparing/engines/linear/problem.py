"""(OPT2) for given rows: checked once, then solved for many allocations and penalties."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.parallel import _get_threadpool_controller

from sparing.engines.linear.active_set import ActiveSet
from sparing.engines.linear.fit import LinearFit
from sparing.engines.linear.losses import Logistic, Loss, Softmax, Squares
from sparing.engines.penalty import Floats, GroupPenalty

_ONE_THREAD = 600
"""Coefficients up to which BLAS is kept to one thread. More gain little on so small products, and on a busy machine
their many short waits for each other cost ten times the work."""


class LinearProblem:
    """Data of (OPT2), prepared once and solved for many allocations and penalties.

    Parameters
    ----------
    Z : array of shape (n, n_design_columns)
        Standardised design, as made by ``Design``.
    y : int array of shape (n,)
        Class codes 0..n_classes-1.
    n_classes : int
        Two classes: f1 is one logit. More: one logit per class.
    sample_weight : array of shape (n,), optional

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.standard_normal((400, 5))
    >>> y = (Z[:, 0] + Z[:, 1] + rng.logistic(size=400) > 0).astype(int)
    >>> problem = LinearProblem(Z, y, n_classes=2)
    >>> prices = GroupPenalty([[j] for j in range(5)], np.ones(5), n_rows=5)
    >>> q = np.full(400, 0.3)
    >>> largest = problem.max_penalty(q, prices)
    >>> fit = problem.solve(q, prices.scaled(0.5 * largest))
    >>> np.flatnonzero(prices.support(fit.coef))
    array([0, 1])
    >>> fit.violation < 1e-6
    True
    """

    def __init__(
        self, Z: ArrayLike, y: ArrayLike, n_classes: int, sample_weight: ArrayLike | None = None
    ) -> None:
        self._Z = np.ascontiguousarray(Z, dtype=float)
        self._y = np.asarray(y, dtype=np.intp)
        n = len(self._Z)
        if n_classes < 2:
            raise ValueError(f"n_classes is {n_classes}: f1 needs at least two classes.")
        if self._y.shape != (n,) or n == 0 or self._y.min() < 0 or self._y.max() >= n_classes:
            raise ValueError(f"y must hold one code 0..{n_classes - 1} for each of the {n} rows.")
        weight = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        if weight.shape != (n,) or not (weight >= 0).all() or not 0 < weight.sum() < np.inf:
            raise ValueError("sample_weight must be one finite non-negative number per row.")
        self._weight = weight / weight.sum()
        self.n_classes = n_classes
        self.n_outputs = 1 if n_classes == 2 else n_classes

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the design."""
        return self._Z.shape[0], self._Z.shape[1]

    def solve(
        self,
        q: ArrayLike | None,
        penalty: GroupPenalty | None,
        *,
        ridge: float = 1e-4,
        tol: float = 1e-6,
        max_iter: int = 200,
        start: LinearFit | None = None,
        gate: bool = True,
        gate_loss: Literal["kl", "lstsq"] = "kl",
        gate_target: ArrayLike | None = None,
        support: ArrayLike | None = None,
    ) -> LinearFit:
        """Solve (OPT2) for one allocation and one penalty.

        Parameters
        ----------
        q : array of shape (n,) or None
            Probability of going to the full model; None is 0 everywhere.
        penalty : GroupPenalty or None
            Already times γ (``GroupPenalty.scaled``); None is no penalty.
        ridge : float
            Weight of ½‖W‖². Without it separable data have no minimiser.
        tol : float
            Largest distance to the subdifferential at which to stop.
        max_iter : int
            Newton steps, at most.
        start : LinearFit, optional
            Where to start: a solution for another penalty or allocation.
        gate : bool
            False solves for f1 alone, with weights 1 − q.
        gate_loss : {"kl", "lstsq"}
            Loss of the gate: soft-label logistic, or (gate_target − g)².
        gate_target : array of shape (n,), optional
            What g is fitted to: probabilities for "kl" (q by default), logits for "lstsq" (required).
        support : bool array of shape (n_design_columns,), optional
            Rows of W that may be different from zero, for a refit on a support.

        Returns
        -------
        LinearFit
        """
        losses = self._losses(q, gate, gate_loss, gate_target)
        solver = self._solver(losses, penalty, ridge, support)
        W = self._start(start, gate)
        with _threads_for(W):
            return solver.run(solver.at(W), tol, max_iter, gate)[0]

    def path(
        self,
        q: ArrayLike | None,
        penalty: GroupPenalty,
        gammas: ArrayLike,
        *,
        ridge: float = 1e-4,
        tol: float = 1e-6,
        max_iter: int = 200,
        start: LinearFit | None = None,
        gate: bool = True,
        gate_loss: Literal["kl", "lstsq"] = "kl",
        gate_target: ArrayLike | None = None,
    ) -> list[LinearFit]:
        """Solve for several multiples of a penalty, the largest first, each from the last one's solution.

        Parameters
        ----------
        q : array of shape (n,) or None
        penalty : GroupPenalty
            Not yet times γ.
        gammas : array
        ridge, tol, max_iter, start, gate, gate_loss, gate_target
            As in ``solve``; ``max_iter`` is per penalty.

        Returns
        -------
        list of LinearFit, in the order of ``gammas``
        """
        values = np.asarray(gammas, dtype=float)
        losses = self._losses(q, gate, gate_loss, gate_target)
        fits: dict[int, LinearFit] = {}
        solver = self._solver(losses, penalty, ridge, None)
        W = self._start(start, gate)
        with _threads_for(W):
            point = solver.at(W)
            for i in np.argsort(-values, kind="stable"):
                solver.penalty = penalty.scaled(float(values[i])).with_free_rows(1)
                fits[int(i)], point = solver.run(point, tol, max_iter, gate)
        return [fits[i] for i in range(len(values))]

    def max_penalty(
        self,
        q: ArrayLike | None,
        penalty: GroupPenalty,
        *,
        ridge: float = 1e-4,
        gate: bool = True,
        gate_loss: Literal["kl", "lstsq"] = "kl",
        gate_target: ArrayLike | None = None,
    ) -> float:
        """Smallest γ at which the solution buys nothing: every row of W that costs something is zero."""
        losses = self._losses(q, gate, gate_loss, gate_target)
        solver = self._solver(losses, None, ridge, ~penalty.covered)
        W = self._start(None, gate)
        with _threads_for(W):
            _, point = solver.run(solver.at(W), 1e-8, 200, gate)
            return penalty.dual_norm(point.gradient[:-1])

    def scores(self, fit: LinearFit) -> tuple[Floats, Floats]:
        """Scores of f1 and g on the rows of the problem, see ``LinearFit.scores``."""
        return fit.scores(self._Z)

    def _losses(
        self, q: ArrayLike | None, gate: bool, gate_loss: str, gate_target: ArrayLike | None
    ) -> list[Loss]:
        n = len(self._Z)
        allocation = np.zeros(n) if q is None else np.asarray(q, dtype=float)
        if allocation.shape != (n,) or not ((allocation >= 0) & (allocation <= 1)).all():
            raise ValueError(f"q must be a probability for each of the {n} rows.")
        if gate_loss not in ("kl", "lstsq"):
            raise ValueError(f'gate_loss must be "kl" or "lstsq", got {gate_loss!r}.')
        if gate_target is None and gate_loss == "lstsq" and gate:
            raise ValueError('gate_loss="lstsq" needs gate_target, the logits of q.')
        target = allocation if gate_target is None else np.asarray(gate_target, dtype=float)
        if target.shape != (n,) or not np.isfinite(target).all():
            raise ValueError(f"gate_target must be one finite number for each of the {n} rows.")
        w, cheap = self._weight, self._weight * (1.0 - allocation)
        if self.n_outputs > 1:
            first: list[Loss] = [Softmax(self._y, self.n_classes, cheap)]
        elif gate and gate_loss == "kl":
            # Two logistic losses side by side: one pass over both.
            return [Logistic(np.stack([self._y == 1, target]), np.stack([cheap, w]))]
        else:
            first = [Logistic((self._y == 1)[None].astype(float), cheap[None])]
        if not gate:
            return first
        last = Logistic(target[None], w[None]) if gate_loss == "kl" else Squares(target, w)
        return [*first, last]

    def _start(self, start: LinearFit | None, gate: bool) -> Floats:
        shape = (self._Z.shape[1] + 1, self.n_outputs + gate)
        if start is None:
            return np.zeros(shape)
        W = np.vstack([start.coef, start.intercept])
        if W.shape != shape:
            raise ValueError(
                f"start has coefficients of shape {start.coef.shape}, this problem needs {(shape[0] - 1, shape[1])}."
            )
        return W

    def _solver(
        self,
        losses: list[Loss],
        penalty: GroupPenalty | None,
        ridge: float,
        support: ArrayLike | None,
    ) -> ActiveSet:
        n_rows = self._Z.shape[1]
        penalty = penalty or GroupPenalty([], [], n_rows)
        if penalty.n_rows != n_rows:
            raise ValueError(
                f"The penalty is for {penalty.n_rows} rows, the design has {n_rows} columns."
            )
        allowed = (
            np.ones(n_rows, dtype=bool) if support is None else np.asarray(support, dtype=bool)
        )
        return ActiveSet(
            self._Z, losses, penalty.with_free_rows(1), ridge, np.append(allowed, True)
        )


def _threads_for(W: Floats) -> Any:
    """Context in which BLAS has the threads that this many coefficients deserve."""
    if W.size > _ONE_THREAD:
        return nullcontext()
    return _get_threadpool_controller().limit(limits=1, user_api="blas")
