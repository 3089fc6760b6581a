"""Groups that overlap: their proximal operator, and quadratics where gradient steps would crawl.

The dual is solved by block-coordinate ascent to a duality gap, and by Newton steps on smoothed norms where that is
slow. Called by ``penalty``.
"""

from __future__ import annotations

import numpy as np

from sparing.engines.group_levels import TINY, Floats, Level, quotient

_SWEEPS = 40
_NEWTON_STEPS = 200


def prox_overlapping(
    lengths: Floats, levels: list[Level], dual: list[Floats], tol: float
) -> Floats:
    """Proximal operator of overlapping groups: the point is ``lengths`` − Σ of one vector per level, inside the balls.

    Block-coordinate ascent, level by level. Strong convexity turns the duality gap into a distance: ‖x − x*‖² ≤ 2 gap.
    """
    if len(dual) != len(levels):
        dual[:] = [np.zeros_like(lengths) for _ in levels]
    x = lengths - sum(dual)
    goal = 0.5 * (tol * float(np.linalg.norm(lengths))) ** 2
    for _ in range(_SWEEPS):
        gone = np.zeros(len(lengths), dtype=bool)
        for position, level in enumerate(levels):
            residual = x + dual[position]
            share = level.taken(residual)
            x, dual[position] = residual * (1.0 - share), residual * share
            gone |= share == 1
        if sum(_gap(level, piece, x) for level, piece in zip(levels, dual, strict=True)) <= goal:
            # A group strictly inside its ball is zero at the optimum, and only in the limit here.
            return np.where(gone, 0.0, x)
    # Sweeps crawl where a group is about to become zero.
    return np.maximum(minimise_smoothed(np.eye(len(x)), lengths, lengths, levels, dual), 0.0)


def _gap(level: Level, piece: Floats, x: Floats) -> float:
    """Σ of weight‖x_g‖ − ⟨x_g, y_g⟩, written without the cancellation that would hide gaps below 1e-16."""
    size, length = level.norms(x), level.norms(piece)
    turn = quotient(x, size[level.label]) - quotient(piece, length[level.label])
    angle = 0.5 * level.norms(turn) ** 2
    slack = level.weights - length
    # A piece that touches its ball does so up to rounding.
    slack[slack < 1e-14 * level.weights] = 0.0
    return float((size * (slack + length * angle))[:-1].sum())


def _solved(H: Floats, b: Floats) -> Floats:
    """Solution of Hx = b, the shortest one where columns repeat each other and the ridge is lost in rounding."""
    try:
        return np.asarray(np.linalg.solve(H, b), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(H, b)[0], dtype=np.float64)


def minimise_smoothed(
    H: Floats, b: Floats, x: Floats | None, levels: list[Level], dual: list[Floats]
) -> Floats:
    """Minimiser of ½⟨x, Hx⟩ − ⟨b, x⟩ + Σ weight‖x_g‖ from x, its order of magnitude; ``dual`` gets the subgradients.

    None starts from the minimiser without the norms.

    Norms are smoothed to √(‖·‖² + ε²) and ε is driven to zero, with the primal-dual linearisation of Chan, Golub and
    Mulet (SIAM J. Sci. Comput. 20, 1999), which keeps Newton's method fast for small ε. Unlike sweeps and gradient
    steps it does not crawl where a group is about to become zero, or where H is ill-conditioned.
    """
    x = _solved(H, b) if x is None else x
    scale, scale_b = (max(float(np.linalg.norm(v)), TINY) for v in (x, b))
    smoothing = 0.1
    dual[:] = [np.zeros_like(x) for _ in levels]
    pairs = [level.label[:, None] == level.label for level in levels]
    for _ in range(_NEWTON_STEPS):
        system, rest = H.copy(), b - H @ x
        sizes = [np.hypot(level.norms(x), smoothing * scale)[level.label] for level in levels]
        for level, size, piece, pair in zip(levels, sizes, dual, pairs, strict=True):
            ratio = level.weights[level.label] / size
            rest -= ratio * x
            outer = np.outer(piece / size, x / size)
            system -= np.where(pair, 0.5 * (outer + outer.T), 0.0)
            system[np.diag_indices_from(system)] += ratio
        move = _solved(system, rest)
        for position, (level, size) in enumerate(zip(levels, sizes, strict=True)):
            along = np.bincount(level.label, x * move, minlength=len(level.weights))[level.label]
            weight = level.weights[level.label]
            piece = (weight * (x + move) - dual[position] * along / size) / size
            length = level.norms(piece)[level.label]
            dual[position] = piece * np.minimum(1.0, weight / np.maximum(length, TINY))
        x = x + move
        error = float(np.linalg.norm(b - H @ x - sum(dual))) / scale_b
        if smoothing <= 1e-14 and error <= 1e-13:
            break
        if error <= smoothing:
            smoothing = max(0.1 * smoothing, 1e-14)
    for level in levels:
        small = (level.norms(x) <= 1e-9 * scale) & (level.weights > 0)
        x = np.where(small[level.label], 0.0, x)
    return x
