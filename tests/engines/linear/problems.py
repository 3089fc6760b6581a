"""Small problems of the linear engine, and (OPT2) written down once more from the losses of the library."""

import numpy as np
from scipy.optimize import minimize

from sparing._losses import cheap_gradient, cheap_loss, gate_gradient, softplus
from sparing.engines.linear import INTERCEPT_RIDGE
from sparing.engines.penalty import GroupPenalty


def make(n=200, d=4, n_classes=2, seed=0, weighted=False):
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n, d)) @ (np.eye(d) + 0.5 * rng.standard_normal((d, d)))
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    logits = Z @ rng.standard_normal((d, n_classes)) + rng.gumbel(size=(n, n_classes))
    y = logits.argmax(axis=1)
    y[:n_classes] = np.arange(n_classes)
    q = rng.uniform(size=n)
    weight = rng.integers(0, 4, size=n).astype(float) if weighted else None
    return Z, y, q, weight


def singles(d, price=1.0):
    return GroupPenalty([[j] for j in range(d)], np.full(d, price), n_rows=d)


def objective(Z, y, q, w, coef, intercept, penalty, ridge, gate=True):
    """(OPT2) from the losses of the library, nothing shared with the engine."""
    w = np.ones(len(y)) if w is None else w
    scores = Z @ coef + intercept
    cheap = scores[:, :-1] if gate else scores
    loss = (1 - q) * cheap_loss(cheap[:, 0] if cheap.shape[1] == 1 else cheap, y)
    if gate:
        loss = loss + softplus(scores[:, -1]) - q * scores[:, -1]
    value = np.average(loss, weights=w) + 0.5 * ridge * np.sum(coef**2)
    value += 0.5 * INTERCEPT_RIDGE * np.sum(intercept**2)
    return value + (0.0 if penalty is None else penalty.value(coef))


def gradient(Z, y, q, w, fit, ridge):
    """Gradient of the smooth part, coefficients and intercepts, again from the losses of the library."""
    w = np.ones(len(y)) if w is None else w
    w = w / w.sum()
    scores = Z @ fit.coef + fit.intercept
    cheap = scores[:, 0] if scores.shape[1] == 2 else scores[:, :-1]
    residual = cheap_gradient(cheap, y, w * (1 - q)).reshape(len(y), -1)
    residual = np.column_stack([residual, gate_gradient(scores[:, -1], q, w)])
    return Z.T @ residual + ridge * fit.coef, residual.sum(axis=0) + INTERCEPT_RIDGE * fit.intercept


def distance_to_subdifferential(W, G, penalty):
    """The same distance as GroupPenalty.violation, by a general solver."""
    rest, inner, radii = -G, [], []
    for g, weight in zip(penalty.groups, penalty.weights, strict=True):
        norm = np.linalg.norm(W[g])
        if norm > 0:
            rest[g] -= weight * W[g] / norm
        else:
            inner.append(g)
            radii.append(weight)
    if not inner:
        return np.linalg.norm(rest)
    cuts = np.cumsum([rest[g].size for g in inner])

    def left(flat):
        out = rest.copy()
        for g, piece in zip(inner, np.split(flat, cuts[:-1]), strict=True):
            out[g] -= piece.reshape(-1, rest.shape[1])
        return out

    def value(flat):
        out = left(flat)
        return 0.5 * np.sum(out**2), -np.concatenate([out[g].ravel() for g in inner])

    def slack(flat):
        pieces = np.split(flat, cuts[:-1])
        return np.array([r**2 - p @ p for r, p in zip(radii, pieces, strict=True)])

    found = minimize(
        value,
        np.zeros(cuts[-1]),
        jac=True,
        method="SLSQP",
        constraints={"type": "ineq", "fun": slack},
        options={"maxiter": 300, "ftol": 1e-16},
    )
    return np.linalg.norm(left(found.x))


GROUPS = {
    "singles": [[0], [1], [2], [3]],
    "nested": [[0], [1], [0, 1], [2, 3], [0, 1, 2, 3]],
    "overlapping": [[0, 2], [1, 2], [3]],
    "tangled": [[0], [0, 1], [1, 2], [2, 3], [0, 1, 2, 3]],
    "some free": [[0], [2]],
}
