"""Log-losses of the cheap model f1, of the full model f0 and of the gate g, and the objective (OPT).

Conventions (one for the whole library): ``y`` holds class codes 0..M-1; the scores of a binary f1 are
one logit per row (of class 1), those of an M-class f1 are M logits per row with a softmax;
``q`` is the probability q(z=0|x) of going to f0 and ``g > 0`` sends a row to f0.

Called by the engines and by the alternation in ``adapt``. Nothing here knows prices or budgets.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_softmax, softmax, xlogy

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

PROBA_FLOOR = 1e-6
"""Probabilities of f0 are clipped here: one confident mistake must not outweigh a million rows."""


def softplus(z: Floats) -> Floats:
    """log(1 + exp(z)) without overflow."""
    return np.logaddexp(0.0, z)


def cheap_loss(scores: Floats, y: Codes) -> Floats:
    """Negative log-likelihood of f1 per row, −log p(y|x; f1).

    Examples
    --------
    >>> import numpy as np
    >>> cheap_loss(np.array([0.0, 100.0]), np.array([1, 1])).round(4)
    array([0.6931, 0.    ])
    """
    if scores.ndim == 1:
        return softplus(np.where(y == 1, -scores, scores))
    return -np.take_along_axis(log_softmax(scores, axis=1), y[:, None], axis=1)[:, 0]


def cheap_proba(scores: Floats) -> Floats:
    """Class probabilities of f1, one column per class."""
    if scores.ndim == 1:
        # Both by expit: 1 − p would lose the small probabilities that log-odds are made of.
        proba = np.empty((len(scores), 2))
        expit(-scores, out=proba[:, 0])
        expit(scores, out=proba[:, 1])
        return proba
    return softmax(scores, axis=1)


def cheap_gradient(scores: Floats, y: Codes, weight: Floats) -> Floats:
    """Gradient of Σ weight × loss in f1's scores; ``weight`` is (1 − q) times the row's weight."""
    if scores.ndim == 1:
        return weight * (expit(scores) - (y == 1))
    gradient = softmax(scores, axis=1)
    gradient[np.arange(len(y)), y] -= 1.0
    gradient *= weight[:, None]
    return gradient


def full_loss(proba: Floats, y: Codes) -> Floats:
    """Negative log-likelihood of f0 per row, from its (out-of-fold) class probabilities."""
    p = np.take_along_axis(proba, y[:, None], axis=1)[:, 0]
    return -np.log(np.clip(p, PROBA_FLOOR, 1.0))


def gate_gradient(gate: Floats, q: Floats, weight: Floats) -> Floats:
    """Gradient of Σ weight × KL(q‖σ(g)) in g."""
    return weight * (expit(gate) - q)


def gate_divergence(q: Floats, gate: Floats) -> Floats:
    """KL divergence per row between the allocation q and the gate's Bernoulli(σ(g)).

    Examples
    --------
    >>> import numpy as np
    >>> gate_divergence(np.array([0.5, 1.0]), np.array([0.0, 0.0])).round(4)
    array([0.    , 0.6931])
    """
    # The cross-entropy as a sum of positive terms: softplus(g) − q·g would cancel for large g.
    p = 1.0 - q
    return xlogy(q, q) + xlogy(p, p) + q * softplus(-gate) + p * softplus(gate)


def objective(
    cheap: Floats, full: Floats, gate: Floats, q: Floats, weight: Floats | None = None
) -> float:
    """First two terms of (OPT): mean of (1−q)·ℓ1 + q·ℓ0 + KL(q‖g). The feature costs are the engine's.

    Parameters
    ----------
    cheap, full : arrays of the losses of f1 and f0 per row.
    gate : g per row.
    q : allocation per row.
    weight : weights of the rows, or None for equal ones.
    """
    value = (1.0 - q) * cheap + q * full + gate_divergence(q, gate)
    return float(np.average(value, weights=weight))
