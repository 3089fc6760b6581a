"""The inner problem of a proximal Newton step: a quadratic plus the penalty, free of the number of rows."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.linalg import eigsh

from sparing.engines.penalty import Floats, GroupPenalty, Integers

_POLISH = 1500
"""Largest linear system solved inside the inner problem."""

_INNER_STEPS = 2000
"""Proximal gradient steps on the inner problem, at most."""

_PATIENCE = 256
"""Proximal gradient steps before a dearer method takes over; an eighth of that where steps are dear themselves."""


class QuadraticModel:
    """Quadratic model of the smooth part; one block per output, or one for all classes of a softmax."""

    def __init__(self, blocks: list[tuple[slice, Floats]]) -> None:
        self.blocks = blocks

    def times(self, V: Floats) -> Floats:
        """HV."""
        out = np.empty_like(V)
        for outputs, block in self.blocks:
            out[:, outputs] = (block @ V[:, outputs].T.ravel()).reshape(-1, len(V)).T
        return out

    def learn(self, move: Floats, change: Floats) -> None:
        """BFGS update: along the last step the model gets the curvature that was seen."""
        for position, (outputs, block) in enumerate(self.blocks):
            s, y = move[:, outputs].T.ravel(), change[:, outputs].T.ravel()
            Bs = block @ s
            sBs, sy = float(s @ Bs), float(s @ y)
            if sBs > 0 and sy > 1e-8 * sBs:
                block = block - np.outer(Bs / sBs, Bs) + np.outer(y / sy, y)
                self.blocks[position] = outputs, block

    def step(
        self, W: Floats, G: Floats, penalty: GroupPenalty, goal: float
    ) -> tuple[Floats, float]:
        """Minimiser V of ⟨G, V − W⟩ + ½⟨V − W, H(V − W)⟩ + penalty(V), and the decrease it promises.

        The violation falls to ``goal``, or further: where columns differ much in scale, a small violation can be far
        from the minimum and above W itself.
        """
        V, price = W, penalty.value(W)
        for _ in range(4):
            V = self._minimise(V, W, G, penalty, goal)
            move = V - W
            promised = float(np.vdot(G, move)) + penalty.value(V) - price
            if promised + 0.5 * float(np.vdot(move, self.times(move))) <= 0:
                break
            goal *= 0.01
        return V, promised

    def _minimise(
        self, X: Floats, W: Floats, G: Floats, penalty: GroupPenalty, goal: float
    ) -> Floats:
        """Minimise from X to a violation of ``goal``.

        Newton steps on the rows in use come first: often the support is right already. Where it is not, accelerated
        proximal gradient with restart finds it, and Newton steps finish. Where that takes long, because groups overlap
        or columns differ much in scale, ``GroupPenalty.minimise_quadratic`` does not.
        """
        now = penalty.violation(X, G + self.times(X - W))
        X, now = self._polish(X, W, G, penalty, now, goal)
        if now <= goal:
            return X
        step = 1.0 / max(_largest_eigenvalue(block) for _, block in self.blocks)
        ahead, momentum, wait = X, 1.0, 4
        slope = slope_ahead = G + self.times(X - W)
        dual: list[Floats] = []
        support = penalty.support(X)
        patience = _PATIENCE if penalty.laminar else _PATIENCE // 8
        if X.size > _POLISH:
            patience = _INNER_STEPS + 1
        for n in range(1, _INNER_STEPS + 1):
            V = penalty.prox(ahead - step * slope_ahead, step, dual=dual, tol=1e-9)
            if np.vdot(ahead - V, V - X) > 0:
                momentum = 1.0
            grown = 0.5 + np.sqrt(0.25 + momentum**2)
            slope_V = G + self.times(V - W)
            push = (momentum - 1.0) / grown
            ahead, slope_ahead = V + push * (V - X), slope_V + push * (slope_V - slope)
            X, slope, momentum = V, slope_V, grown
            if n % wait:
                continue
            now = penalty.violation(X, slope)
            if now <= goal:
                break
            previous, support = support, penalty.support(X)
            if n >= patience:
                better, then = self._thorough(W, G, penalty, goal)
                return better if then < now else X
            if not np.array_equal(previous, support):
                continue
            X, then = self._polish(X, W, G, penalty, now, goal)
            if then <= goal:
                break
            if then < now:
                ahead, momentum = X, 1.0
                slope = slope_ahead = G + self.times(X - W)
            else:
                wait = min(2 * wait, 64)
        return X

    def _thorough(
        self, W: Floats, G: Floats, penalty: GroupPenalty, goal: float
    ) -> tuple[Floats, float]:
        """Minimise from nothing, by dense linear algebra."""
        V = penalty.minimise_quadratic(
            self._dense(np.arange(len(W)), W.shape[1]), self.times(W) - G
        )
        return self._polish(V, W, G, penalty, penalty.violation(V, G + self.times(V - W)), goal)

    def _polish(
        self, X: Floats, W: Floats, G: Floats, penalty: GroupPenalty, now: float, goal: float
    ) -> tuple[Floats, float]:
        """Newton steps among the rows that are not zero, where everything is smooth."""
        kept = penalty.support(X)
        kept[-1] = True
        rows = np.flatnonzero(kept)
        if len(rows) * X.shape[1] > _POLISH:
            return X, now
        inside = penalty.restricted(rows)
        for _ in range(10):
            slope = (G + self.times(X - W) + penalty.gradient(X))[rows]
            system = self._dense(rows, X.shape[1])
            system += inside.hessian(X[rows])
            try:
                factor = cho_factor(system, overwrite_a=True, check_finite=False)
            except np.linalg.LinAlgError:
                break
            move = cho_solve(factor, slope.T.ravel(), check_finite=False)
            trial = X.copy()
            trial[rows] -= move.reshape(X.shape[1], -1).T
            then = penalty.violation(trial, G + self.times(trial - W))
            if not then < 0.5 * now:
                break
            X, now = trial, then
            if now <= goal:
                break
        return X, now

    def _dense(self, rows: Integers, n_outputs: int) -> Floats:
        """All blocks in one matrix, for some rows."""
        total = np.zeros((n_outputs, len(rows), n_outputs, len(rows)))
        for outputs, block in self.blocks:
            width = outputs.stop - outputs.start
            full = block.reshape(width, len(block) // width, width, -1)
            total[outputs, :, outputs, :] = full[:, rows][..., rows]
        return total.reshape(n_outputs * len(rows), -1)


def _largest_eigenvalue(H: Floats) -> float:
    """Largest eigenvalue, or a few per cent more."""
    if len(H) <= 64:
        return float(np.linalg.eigvalsh(H)[-1])
    start = np.random.default_rng(0).standard_normal(len(H))
    return 1.05 * float(eigsh(H, k=1, v0=start, tol=1e-2, return_eigenvectors=False)[0])
