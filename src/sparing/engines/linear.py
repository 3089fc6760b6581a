"""The linear engine: f1 and g of Adapt-Lin together, given the allocation q. This is (OPT2).

Minimises over W (a row per design column; f1's coefficients, then g's in the last column) and free intercepts

    mean_i w_i [(1 − q_i) ℓ1(f1_i) + softplus(g_i) − q_i g_i] + ridge/2 ‖W‖² + Σ_items price × ‖rows that need the item‖

by proximal Newton steps on the columns in play. The data are seen only through gradients and Hessians, all row-wise
work is in BLAS; the inner problem (a quadratic plus the penalty) does not depend on the number of rows. A Hessian is
kept, and corrected along every step, for as long as that pays. Stops on the distance to the subdifferential.
Adapt-Lstsq uses the same engine with a least-squares gate.

Called by ``adapt``. Nothing here knows budgets, prices or the full model.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.linalg import eigsh
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.parallel import _get_threadpool_controller

from sparing.engines.penalty import Booleans, Floats, GroupPenalty, Integers

Codes = NDArray[np.intp]

INTERCEPT_RIDGE = 1e-8
"""Only there so that a gate for q ≡ 0, whose intercept would run off, has a minimiser."""

_CHUNK_CELLS = 1 << 18
"""Cells of the weighted design built at a time: about what fits in a core's cache."""

_JOINT = 1200
"""Largest Hessian with cross terms between classes; beyond, one block per class."""

_WITHOUT_CROSS_TERMS = 1.5
"""Factor on such blocks. Between two likely classes the curvature is twice that of each; this works best on average."""

_POLISH = 1500
"""Largest linear system solved inside the inner problem."""

_INNER_STEPS = 2000
"""Proximal gradient steps on the inner problem, at most."""

_PATIENCE = 256
"""Proximal gradient steps before a dearer method takes over; an eighth of that where steps are dear themselves."""

_ONE_THREAD = 600
"""Coefficients up to which BLAS is kept to one thread. More gain little on so small products, and on a busy machine
their many short waits for each other cost ten times the work."""

_GAIN_FRESH = 4.6
"""Logarithm by which a step with a new Hessian divides the violation, until one has been seen: by a hundred."""

_MARGIN = 0.5
"""Columns that would be bought at this fraction of the price are kept at hand."""

_MOST = 0.7
"""With more than this share of the columns at hand, all of them are: no copy."""


# -- the three losses ------------------------------------------------------------------------------------------------
# Scores are (outputs, rows). Loss and residual come from one exponential: the functions of ``_losses``, called one
# after the other, take several times as long, and this is where a warm start spends its time. A test holds them equal.


class _Logistic:
    """Logistic loss with soft labels, one per output: f1 of two classes, and the gate."""

    def __init__(self, target: Floats, weight: Floats) -> None:
        self.weight, self.weighted_target = weight, weight * target
        self.width = len(target)

    def evaluate(self, scores: Floats) -> tuple[float, Floats]:
        scores = np.maximum(scores, -700.0)  # the exponential stays finite
        proba = np.exp(-scores)
        proba += 1.0
        np.reciprocal(proba, out=proba)
        # softplus(s) = s − log σ(s)
        value = np.vdot(self.weight, scores - np.log(proba)) - np.vdot(self.weighted_target, scores)
        proba *= self.weight
        proba -= self.weighted_target
        return float(value), proba

    def blocks(self, rows: int) -> list[int]:  # noqa: ARG002
        return [1] * self.width

    def hessians(self, scores: Floats, design: _Columns) -> Iterator[Floats]:
        small = np.exp(-np.abs(scores))
        for weight in self.weight * small / (1.0 + small) ** 2:
            yield design.gram(weight)


class _Squares:
    """Squared error, one output: the gate of Adapt-Lstsq."""

    width = 1

    def __init__(self, target: Floats, weight: Floats) -> None:
        self.target, self.weight = target, weight

    def evaluate(self, scores: Floats) -> tuple[float, Floats]:
        error = scores - self.target
        return float(self.weight @ (error[0] ** 2)), 2.0 * self.weight * error

    def blocks(self, rows: int) -> list[int]:  # noqa: ARG002
        return [1]

    def hessians(self, scores: Floats, design: _Columns) -> Iterator[Floats]:  # noqa: ARG002
        yield design.gram(2.0 * self.weight)


class _Softmax:
    """Multinomial log-loss, one output per class: f1 of three classes or more."""

    def __init__(self, y: Codes, n_classes: int, weight: Floats) -> None:
        self.y, self.width, self.weight = y, n_classes, weight
        self.row = np.arange(len(y))

    def _proba(self, scores: Floats) -> tuple[Floats, Floats, Floats]:
        shifted = scores - scores.max(axis=0)
        proba = np.exp(shifted)
        total = proba.sum(axis=0)
        proba /= total
        return proba, shifted, total

    def evaluate(self, scores: Floats) -> tuple[float, Floats]:
        proba, shifted, total = self._proba(scores)
        loss = np.log(total) - shifted[self.y, self.row]
        proba[self.y, self.row] -= 1.0
        proba *= self.weight
        return float(self.weight @ loss), proba

    def blocks(self, rows: int) -> list[int]:
        return [self.width] if self.width * rows <= _JOINT else [1] * self.width

    def hessians(self, scores: Floats, design: _Columns) -> Iterator[Floats]:
        proba = self._proba(scores)[0]
        if len(self.blocks(design.width)) == 1:
            yield design.softmax_gram(proba, self.weight)
        else:
            for p in proba:
                yield design.gram(_WITHOUT_CROSS_TERMS * self.weight * p * (1.0 - p))


class _Columns:
    """Some columns of the design and the intercept: scores, and weighted Gram matrices a block of rows at a time."""

    def __init__(self, Z: Floats, columns: Integers) -> None:
        self.columns = columns
        self.width = len(columns) + 1
        # A contiguous copy pays for itself: it is read by every step until the next Hessian.
        self.Z = Z if len(columns) == Z.shape[1] else np.take(Z, columns, axis=1)

    def scores(self, W: Floats) -> Floats:
        """Scores, (outputs, rows), of coefficients of these columns and intercepts."""
        return np.ascontiguousarray((self.Z @ W[:-1]).T) + W[-1][:, None]

    def gradient(self, residual: Floats) -> Floats:
        """Gradient in these coefficients and the intercepts."""
        return np.vstack([(residual @ self.Z).T, residual.sum(axis=1)])

    def _weighted(self, root: Floats, cells: int) -> Iterator[tuple[slice, Floats]]:
        step = max(_CHUNK_CELLS // cells, 64)
        buffer = np.empty((min(step, len(root)), self.width))
        for first in range(0, len(root), step):
            rows = slice(first, min(first + step, len(root)))
            part = buffer[: rows.stop - first]
            np.multiply(self.Z[rows], root[rows, None], out=part[:, :-1])
            part[:, -1] = root[rows]
            yield rows, part

    def gram(self, weight: Floats) -> Floats:
        """[Z 1]ᵀ diag(weight) [Z 1]."""
        total = np.zeros((self.width, self.width))
        for _, part in self._weighted(np.sqrt(weight), self.width):
            total += part.T @ part
        return total

    def softmax_gram(self, proba: Floats, weight: Floats) -> Floats:
        """Hessian of the multinomial loss, classes stacked: (diag(p) − ppᵀ) between them."""
        n_classes = len(proba)
        total = np.zeros((n_classes, self.width, n_classes, self.width))
        flat = total.reshape(n_classes * self.width, -1)
        for rows, part in self._weighted(np.sqrt(weight), n_classes * self.width):
            p = proba[:, rows].T
            outer = (p[:, :, None] * part[:, None, :]).reshape(len(part), -1)
            flat -= outer.T @ outer
            for k, root in enumerate(np.sqrt(p.T)):
                scaled = part * root[:, None]
                total[k, :, k, :] += scaled.T @ scaled
        # Nothing curves when all classes move together, and solutions do not move that way (see ``_centred``): any
        # curvature there makes the matrix regular and changes nothing else.
        total += flat.diagonal().mean() / n_classes * np.eye(self.width)[:, None, :]
        return flat


# -- the inner problem: a quadratic plus the penalty, free of the number of rows ---------------------------------------


class _Model:
    """Quadratic model of the smooth part; one block per output, or one for all classes of a softmax."""

    def __init__(self, blocks: list[tuple[slice, Floats]]) -> None:
        self.blocks = blocks

    def times(self, V: Floats) -> Floats:
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


# -- the solver --------------------------------------------------------------------------------------------------------


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


@dataclass(eq=False)
class _Point:
    """Where a solver is: coefficients with the intercepts as last row, and all that is known there."""

    W: Floats
    scores: Floats
    residual: Floats
    smooth: float
    gradient: Floats


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
    ) -> list[Any]:
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
            first: list[Any] = [_Softmax(self._y, self.n_classes, cheap)]
        elif gate and gate_loss == "kl":
            # Two logistic losses side by side: one pass over both.
            return [_Logistic(np.stack([self._y == 1, target]), np.stack([cheap, w]))]
        else:
            first = [_Logistic((self._y == 1)[None].astype(float), cheap[None])]
        if not gate:
            return first
        last = _Logistic(target[None], w[None]) if gate_loss == "kl" else _Squares(target, w)
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
        losses: list[Any],
        penalty: GroupPenalty | None,
        ridge: float,
        support: ArrayLike | None,
    ) -> _Solver:
        n_rows = self._Z.shape[1]
        penalty = penalty or GroupPenalty([], [], n_rows)
        if penalty.n_rows != n_rows:
            raise ValueError(
                f"The penalty is for {penalty.n_rows} rows, the design has {n_rows} columns."
            )
        allowed = (
            np.ones(n_rows, dtype=bool) if support is None else np.asarray(support, dtype=bool)
        )
        return _Solver(self._Z, losses, penalty.with_free_rows(1), ridge, np.append(allowed, True))


class _Part:
    """(OPT2) on some columns, all others zero: proximal Newton steps with an Armijo line search."""

    def __init__(
        self, design: _Columns, losses: list[Any], penalty: GroupPenalty, ridge: Floats
    ) -> None:
        self.design, self.losses, self.penalty, self.ridge = design, losses, penalty, ridge

    def at(self, W: Floats, scores: Floats) -> _Point:
        value, residual = _evaluate(self.losses, scores)
        return self._point(W, scores, value, residual)

    def _point(self, W: Floats, scores: Floats, value: float, residual: Floats) -> _Point:
        value += 0.5 * float(np.sum(self.ridge * W**2))
        gradient = self.design.gradient(residual) + self.ridge * W
        return _Point(W, scores, residual, value, gradient)

    def model(self, point: _Point) -> _Model:
        blocks, first = [], 0
        for loss in self.losses:
            widths = loss.blocks(len(self.ridge))
            scores = point.scores[first : first + loss.width]
            for width, block in zip(widths, loss.hessians(scores, self.design), strict=True):
                block[np.diag_indices_from(block)] += np.tile(self.ridge[:, 0], width)
                blocks.append((slice(first, first + width), block))
                first += width
        return _Model(blocks)

    def _price(self) -> float:
        """About how many steps a Hessian costs, from the time per row of its products and of a step's."""
        rows, outputs = len(self.ridge), sum(loss.width for loss in self.losses)
        sides = np.array([rows * w for loss in self.losses for w in loss.blocks(rows)])
        return float(np.sum(sides + 0.05 * sides**2) / (0.5 * rows * outputs + 9 * outputs + 15))

    def run(
        self, point: _Point, model: _Model | None, tol: float, max_iter: int
    ) -> tuple[_Point, _Model | None, int]:
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

    def _step(self, point: _Point, model: _Model, goal: float) -> tuple[_Point, bool] | None:
        """One proximal Newton step; None if it does not decrease the objective."""
        V, promised = model.step(point.W, point.gradient, self.penalty, goal)
        V = _centred(V, self.losses)
        move, scores_V = V - point.W, self.design.scores(V)
        current = point.smooth + self.penalty.value(point.W)
        # Decreases below the rounding of the objective cannot be seen: do not ask for them.
        noise = 4 * np.finfo(float).eps * abs(current)
        size = 1.0
        for _ in range(25):
            W, scores = V, scores_V
            if size < 1.0:
                W, scores = point.W + size * move, point.scores + size * (scores_V - point.scores)
            value, residual = _evaluate(self.losses, scores)
            total = value + 0.5 * float(np.sum(self.ridge * W**2)) + self.penalty.value(W)
            if total <= current + 1e-4 * size * promised + noise:
                found = self._point(W, scores, value, residual)
                model.learn(W - point.W, found.gradient - point.gradient)
                return found, size == 1.0
            size *= 0.5
        return None


class _Solver:
    """(OPT2) on all columns, by solving it on those in play until the others are content too."""

    def __init__(
        self,
        Z: Floats,
        losses: list[Any],
        penalty: GroupPenalty,
        ridge: float,
        allowed: Booleans,
    ) -> None:
        self.Z, self.losses, self.penalty, self.allowed = Z, losses, penalty, allowed
        self.ridge = np.append(np.full(Z.shape[1], ridge), INTERCEPT_RIDGE)[:, None]
        self.everything = _Columns(Z, np.arange(Z.shape[1]))
        # Kept from one penalty of a path to the next.
        self.design: _Columns | None = None
        self.model: _Model | None = None

    def at(self, W: Floats) -> _Point:
        W = _centred(np.where(self.allowed[:, None], W, 0.0), self.losses)
        whole = _Part(self.everything, self.losses, self.penalty, self.ridge)
        return whole.at(W, self.everything.scores(W))

    def run(self, point: _Point, tol: float, max_iter: int, gate: bool) -> tuple[LinearFit, _Point]:
        """Solve on the columns in play, look at all, repeat until the violation is at most ``tol``."""
        gap = self._gap(point)
        violation, n_iter = float(np.linalg.norm(gap)), 0
        while violation > tol and n_iter < max_iter:
            rows = self._choose(point, gap)
            assert self.design is not None
            part = _Part(self.design, self.losses, self.penalty.restricted(rows), self.ridge[rows])
            here = _Point(
                point.W[rows], point.scores, point.residual, point.smooth, point.gradient[rows]
            )
            # A first set of columns, chosen far from the solution, is not worth solving to the end.
            goal = max(tol, 0.01 * violation) if self.model is None else tol
            here, self.model, steps = part.run(here, self.model, goal, max_iter - n_iter)
            W = np.zeros_like(point.W)
            W[rows] = here.W
            gradient = self.everything.gradient(here.residual) + self.ridge * W
            point = _Point(W, here.scores, here.residual, here.smooth, gradient)
            before, gap = violation, self._gap(point)
            violation, n_iter = float(np.linalg.norm(gap)), n_iter + max(steps, 1)
            if (
                violation >= before
                and self.penalty.support(gap)[rows].sum() == self.penalty.support(gap).sum()
            ):
                break  # rounding: nothing more to gain
        return self._fit(point, violation, n_iter, tol, gate), point

    def _gap(self, point: _Point) -> Floats:
        gap = self.penalty.subgradient_gap(point.W, point.gradient)
        # Rows that may not move have nothing to violate.
        return np.where(self.allowed[:, None], gap, 0.0)

    def _choose(self, point: _Point, gap: Floats) -> Integers:
        """Rows in play, the intercepts last; renews the design when it lacks some or has far too many."""
        needed = (self.penalty.support(point.W) | self.penalty.support(gap))[:-1]
        if self.design is None or not np.isin(np.flatnonzero(needed), self.design.columns).all():
            self.design, self.model = _Columns(self.Z, self._wanted(point, needed)), None
        elif len(self.design.columns) > 2 * needed.sum() + 8:
            fewer = self._wanted(point, needed)
            if len(fewer) <= _MOST * len(self.design.columns):
                self.design, self.model = _Columns(self.Z, fewer), None
        return np.append(self.design.columns, len(point.W) - 1)

    def _wanted(self, point: _Point, needed: Booleans) -> Integers:
        """Columns that are used or want to be, or nearly; all of them if that is most of them."""
        gap = self.penalty.scaled(_MARGIN).subgradient_gap(point.W, point.gradient)
        allowed = self.allowed[:-1]
        play = allowed & (needed | self.penalty.support(gap)[:-1])
        return np.flatnonzero(allowed if play.sum() > _MOST * allowed.sum() else play)

    def _fit(
        self, point: _Point, violation: float, n_iter: int, tol: float, gate: bool
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


def _threads_for(W: Floats) -> Any:
    """Context in which BLAS has the threads that this many coefficients deserve."""
    if W.size > _ONE_THREAD:
        return nullcontext()
    return _get_threadpool_controller().limit(limits=1, user_api="blas")


def _evaluate(losses: list[Any], scores: Floats) -> tuple[float, Floats]:
    """Value of the losses, and their derivatives in the scores."""
    if len(losses) == 1:
        return losses[0].evaluate(scores)
    value, first = 0.0, 0
    residual = np.empty_like(scores)
    for loss in losses:
        part = slice(first, first + loss.width)
        loss_value, residual[part] = loss.evaluate(scores[part])
        value, first = value + loss_value, part.stop
    return value, residual


def _centred(W: Floats, losses: list[Any]) -> Floats:
    """Coefficients of a softmax moved to mean zero over the classes: same probabilities, smallest norm."""
    if isinstance(losses[0], _Softmax):
        cheap = W[:, : losses[0].width]
        return np.hstack([cheap - cheap.mean(axis=1, keepdims=True), W[:, losses[0].width :]])
    return W
