"""The losses of (OPT2): f1's and the gate's, with their derivatives in the scores.

Scores are (outputs, rows). Loss and residual come from one exponential: the functions of ``_losses``, called one after
the other, take several times as long, and this is where a warm start spends its time. A test holds them equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sparing.engines.linear.columns import Columns
from sparing.engines.penalty import Floats

Codes = NDArray[np.intp]

_JOINT = 1200
"""Largest Hessian with cross terms between classes; beyond, one block per class."""

_WITHOUT_CROSS_TERMS = 1.5
"""Factor on such blocks. Between two likely classes the curvature is twice that of each; this works best on average."""


class Loss(Protocol):
    """Weighted sum over rows of a loss of some outputs."""

    @property
    def width(self) -> int:
        """Outputs it is a loss of."""

    def evaluate(self, scores: Floats) -> tuple[float, Floats]:
        """Value, and derivatives in the scores."""

    def blocks(self, rows: int) -> list[int]:
        """Outputs of each block of the Hessian in ``rows`` coefficients per output."""

    def hessians(self, scores: Floats, design: Columns) -> Iterator[Floats]:
        """These blocks, one after the other."""


class Logistic:
    """Logistic loss with soft labels, one per output: f1 of two classes, and the gate."""

    def __init__(self, target: Floats, weight: Floats) -> None:
        self.weight, self.weighted_target = weight, weight * target
        self.width = len(target)

    def evaluate(self, scores: Floats) -> tuple[float, Floats]:
        """Value, and derivatives in the scores."""
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
        """One block per output."""
        return [1] * self.width

    def hessians(self, scores: Floats, design: Columns) -> Iterator[Floats]:
        """Σ w σ(s) σ(−s) zzᵀ."""
        small = np.exp(-np.abs(scores))
        for weight in self.weight * small / (1.0 + small) ** 2:
            yield design.gram(weight)


class Squares:
    """Squared error, one output: the gate of Adapt-Lstsq."""

    width = 1

    def __init__(self, target: Floats, weight: Floats) -> None:
        self.target, self.weight = target, weight

    def evaluate(self, scores: Floats) -> tuple[float, Floats]:
        """Value, and derivatives in the scores."""
        error = scores - self.target
        return float(self.weight @ (error[0] ** 2)), 2.0 * self.weight * error

    def blocks(self, rows: int) -> list[int]:  # noqa: ARG002
        """One block."""
        return [1]

    def hessians(self, scores: Floats, design: Columns) -> Iterator[Floats]:  # noqa: ARG002
        """2 Σ w zzᵀ, the same everywhere."""
        yield design.gram(2.0 * self.weight)


class Softmax:
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
        """Value, and derivatives in the scores."""
        proba, shifted, total = self._proba(scores)
        loss = np.log(total) - shifted[self.y, self.row]
        proba[self.y, self.row] -= 1.0
        proba *= self.weight
        return float(self.weight @ loss), proba

    def blocks(self, rows: int) -> list[int]:
        """One block for all classes, or one each where that would be too large."""
        return [self.width] if self.width * rows <= _JOINT else [1] * self.width

    def hessians(self, scores: Floats, design: Columns) -> Iterator[Floats]:
        """Σ w (diag(p) − ppᵀ) ⊗ zzᵀ, or an upper estimate of its diagonal blocks."""
        proba = self._proba(scores)[0]
        if len(self.blocks(design.width)) == 1:
            yield design.softmax_gram(proba, self.weight)
        else:
            for p in proba:
                yield design.gram(_WITHOUT_CROSS_TERMS * self.weight * p * (1.0 - p))


def evaluate(losses: list[Loss], scores: Floats) -> tuple[float, Floats]:
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


def centred(W: Floats, losses: list[Loss]) -> Floats:
    """Coefficients of a softmax moved to mean zero over the classes: same probabilities, smallest norm."""
    if isinstance(losses[0], Softmax):
        cheap = W[:, : losses[0].width]
        return np.hstack([cheap - cheap.mean(axis=1, keepdims=True), W[:, losses[0].width :]])
    return W
