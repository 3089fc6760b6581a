"""What a round of boosting asks of the losses: gradients and hessians of f1 and g, and the allocation q.

Equations (M_out logits of f1, one of g, w the row's weight):

- f1, two classes: w(1−q)(σ(f1) − y), hessian w(1−q)σ(1−σ); M classes: w(1−q)(p − onehot), hessian
  M/(M−1)·w(1−q)p(1−p), the factor LightGBM's own multi-class objective has;
- g: w(σ(g) − q), hessian wσ(g)(1−σ(g));
- q: given (:class:`FixedAllocation`) or re-solved before every round (:class:`SolvedAllocation`).

Called by ``boosting`` once per round: it is the whole overhead over plain LightGBM, so everything is computed in
buffers that live as long as the fit and have the layout LightGBM reads.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit, xlogy

from sparing._allocation import allocate

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

_NEAR = 1e-3
"""Relative distance to full_rate at which a round is content with its β; the next one corrects it."""
_PASSES = 6
"""Passes over the rows that a round may take to get there; one or two is what most need."""


class RoundAllocation(Protocol):
    """Where q comes from in a round."""

    q: Floats
    kept: Floats
    """w(1−q): how much of each row f1 has to answer."""

    def update(self, loss: Floats, gate: Floats, gate_soft: Floats) -> tuple[float, float]:
        """Objective without penalty and mean of q, given ℓ1, g and softplus(g)."""


class RoundObjective:
    """Custom objective of a booster whose outputs are f1's logits and, with a gate, g.

    Parameters
    ----------
    y : class codes.
    n_classes : int
    weight : weights of the rows.
    base : start scores, one per output.
    newton : bool
        False puts the weight in the place of every hessian: least squares on the negative gradient.
    allocation : RoundAllocation or None
        None: no gate, f1 answers everywhere.
    """

    def __init__(
        self,
        y: Codes,
        n_classes: int,
        weight: Floats,
        base: Floats,
        newton: bool,
        allocation: RoundAllocation | None,
    ) -> None:
        n = len(y)
        self.n_cheap = 1 if n_classes == 2 else n_classes
        self.base = base
        self.allocation = allocation
        self.history: list[tuple[float, float]] = []
        self._newton = newton
        self._weight = weight
        self._total = float(weight.sum())
        self._factor = 1.0 if n_classes == 2 else n_classes / (n_classes - 1)
        self._sign = np.where(y == 1, -1.0, 1.0)
        # Position of every row's own class in an array of shape (n_classes, n).
        self._own = y * n + np.arange(n)
        self._gradient = np.empty((len(base), n), dtype=np.float32)
        self._hessian = np.tile(weight.astype(np.float32), (len(base), 1))
        self._proba = np.empty((self.n_cheap, n))
        self._buffer = np.empty((self.n_cheap, n))
        self._loss, self._gate, self._gate_rate, self._gate_soft = np.empty((4, n))

    def __call__(self, raw: Floats, _: object) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Gradients and hessians at LightGBM's raw scores, of shape (n,) or (n, n_outputs)."""
        self.history.append(self.evaluate(raw))
        if self.allocation is not None:
            self._fill_gate(self.allocation.q)
        self._fill_cheap(self._weight if self.allocation is None else self.allocation.kept)
        return self.again(raw, _)

    def again(self, _raw: Floats, _: object) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The last gradients and hessians once more, for a round that is grown again."""
        # LightGBM takes arrays of shape (n, n_outputs) in Fortran order without a copy.
        if len(self.base) == 1:
            return self._gradient[0], self._hessian[0]
        return self._gradient.T, self._hessian.T

    def evaluate(self, raw: Floats) -> tuple[float, float]:
        """Objective without penalty and mean of q at these scores; leaves losses and q behind."""
        scores = raw[None, :] if raw.ndim == 1 else raw.T
        self._evaluate_cheap(scores[: self.n_cheap])
        if self.allocation is None:
            return _dot(self._weight, self._loss) / self._total, 0.0
        np.add(scores[self.n_cheap], self.base[self.n_cheap], out=self._gate)
        _softplus_and_sigmoid(self._gate, self._gate_soft, self._gate_rate)
        return self.allocation.update(self._loss, self._gate, self._gate_soft)

    def _evaluate_cheap(self, scores: Floats) -> None:
        """Losses and probabilities of f1."""
        proba, loss = self._proba, self._loss
        if self.n_cheap == 1:
            # The logit of the wrong class: the loss is its softplus, σ its probability.
            wrong = np.add(scores[0], self.base[0], out=self._buffer[0])
            wrong *= self._sign
            _softplus_and_sigmoid(wrong, loss, proba[0])
            return
        np.add(scores, self.base[: self.n_cheap, None], out=proba)
        np.take(proba, self._own, out=loss, mode="clip")
        largest = proba.max(axis=0)
        loss -= largest
        proba -= largest
        np.exp(proba, out=proba)
        total = proba.sum(axis=0)
        proba /= total
        np.subtract(np.log(total, out=total), loss, out=loss)

    def _fill_cheap(self, kept: Floats) -> None:
        proba, buffer = self._proba, self._buffer
        if self._newton:
            np.multiply(proba, proba, out=buffer)
            np.subtract(proba, buffer, out=buffer)
            buffer *= kept
            np.multiply(
                buffer, self._factor, out=self._hessian[: self.n_cheap], casting="same_kind"
            )
        if self.n_cheap == 1:
            # The wrong class's probability with the wrong class's sign is σ(f1) − y.
            proba *= self._sign
        else:
            proba.reshape(-1)[self._own] -= 1.0
        np.multiply(proba, kept, out=self._gradient[: self.n_cheap], casting="same_kind")

    def _fill_gate(self, q: Floats) -> None:
        rate, buffer = self._gate_rate, self._buffer[0]
        if self._newton:
            np.multiply(rate, rate, out=buffer)
            np.subtract(rate, buffer, out=buffer)
            np.multiply(buffer, self._weight, out=self._hessian[-1], casting="same_kind")
        np.subtract(rate, q, out=buffer)
        np.multiply(buffer, self._weight, out=self._gradient[-1], casting="same_kind")


class FixedAllocation:
    """q given from outside: one step of the alternation."""

    def __init__(self, q: Floats, weight: Floats, full_loss: Floats | None = None) -> None:
        self.q = q
        self.kept = weight * (1.0 - q)
        total = weight.sum()
        self._share = weight / total
        self._rate = _dot(self._share, q)
        # The part of the objective that neither f1 nor g can change.
        constant = xlogy(q, q) + xlogy(1.0 - q, 1.0 - q)
        if full_loss is not None:
            constant += q * full_loss
        self._constant = _dot(self._share, constant)
        self._kept_share = self.kept / total
        self._sent_share = self._share * q

    def update(self, loss: Floats, gate: Floats, gate_soft: Floats) -> tuple[float, float]:
        """Mean of (1−q)ℓ1 + qℓ0 + KL(q‖σ(g)), and of q."""
        value = _dot(self._kept_share, loss) + _dot(self._share, gate_soft)
        return value - _dot(self._sent_share, gate) + self._constant, self._rate


class SolvedAllocation:
    """q re-solved (OPT1) before every round: a generalised EM in one run.

    β starts from the last round's and gets at most a few Newton steps: a round moves the scores so little that solving
    OPT1 to the last digit would be wasted.
    """

    def __init__(self, full_loss: Floats, full_rate: float, weight: Floats) -> None:
        self.q, self.kept = np.empty((2, len(weight)))
        self.beta = 0.0
        self._full_loss = full_loss
        self._full_rate = full_rate
        self._weight = weight
        self._share = weight / weight.sum()
        self._odds, self._tilted, self._soft = np.empty((3, len(weight)))

    def update(self, loss: Floats, gate: Floats, gate_soft: Floats) -> tuple[float, float]:
        """Solve for q; the minimum over q of the objective is mean[ℓ1 + softplus(g) − softplus(s)] − β·mean(q)."""
        q, share, target = self.q, self._share, self._full_rate
        odds = np.subtract(loss, self._full_loss, out=self._odds)
        odds += gate
        for _ in range(_PASSES):
            beta = self.beta
            tilted = np.subtract(odds, beta, out=self._tilted)
            _softplus_and_sigmoid(tilted, self._soft, q)
            rate = _dot(share, q)
            if abs(rate - target) <= _NEAR * target or (beta == 0.0 and rate < target):
                break
            # Newton's method on logit(mean q), as in ``allocate``.
            slope = rate - _dot(share, np.square(q, out=tilted))
            if not (0.0 < rate < 1.0) or slope < 1e-9:
                self.beta = allocate(loss, self._full_loss, gate, target, share).beta
                continue
            step = (logit(rate) - logit(target)) * rate * (1.0 - rate) / slope
            self.beta = max(0.0, beta + step)
        np.subtract(1.0, q, out=self.kept)
        self.kept *= self._weight
        value = _dot(share, loss) + _dot(share, gate_soft) - _dot(share, self._soft) - beta * rate
        return value, rate


def _dot(a: Floats, b: Floats) -> float:
    """Scalar product without BLAS, whose threads cost more than they bring and would touch the last digit."""
    return float(np.einsum("i,i->", a, b))


def _softplus_and_sigmoid(z: Floats, softplus: Floats, sigmoid: Floats) -> None:
    """Both from one exponential and without a temporary: log σ(z) = z − softplus(z)."""
    np.abs(z, out=sigmoid)
    np.negative(sigmoid, out=sigmoid)
    np.exp(sigmoid, out=sigmoid)
    np.log1p(sigmoid, out=softplus)
    np.maximum(z, 0.0, out=sigmoid)
    softplus += sigmoid
    np.subtract(z, softplus, out=sigmoid)
    np.exp(sigmoid, out=sigmoid)
