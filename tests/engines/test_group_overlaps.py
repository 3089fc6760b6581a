import numpy as np
import pytest
from numpy.testing import assert_allclose

from sparing.engines import group_overlaps
from sparing.engines.group_levels import levels_of
from sparing.engines.group_overlaps import minimise_smoothed, prox_overlapping

CHAIN = tuple(np.array(g) for g in ([0, 1], [1, 2], [2, 3], [3, 4], [0, 1, 2, 3, 4]))


def chain(scale=1.0):
    weights = scale * np.array([0.3, 0.5, 0.2, 0.4, 0.1])
    return weights, list(levels_of(CHAIN, weights, 5)[0])


def certified(x, b, weights, levels, dual):
    """Largest failure of: b − x is Σ of the dual, and each piece is a subgradient of its norms at x."""
    worst = float(np.abs(b - x - sum(dual)).max())
    for level, piece in zip(levels, dual, strict=True):
        for g, weight in enumerate(level.weights[:-1]):
            rows = level.label == g
            worst = max(worst, float(np.linalg.norm(piece[rows])) - weight)
            worst = max(
                worst, weight * float(np.linalg.norm(x[rows])) - float(piece[rows] @ x[rows])
            )
    return worst


@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("sweeps", [0, 40])
def test_the_dual_certifies_the_proximal_point(scale, sweeps, monkeypatch):
    monkeypatch.setattr(group_overlaps, "_SWEEPS", sweeps)
    weights, levels = chain(scale)
    lengths = np.array([1.0, 0.2, 0.8, 0.1, 2.0])
    dual: list = []
    x = prox_overlapping(lengths, levels, dual, 1e-10)
    assert (x >= 0).all()
    assert certified(x, lengths, weights, levels, dual) <= 1e-8


@pytest.mark.parametrize("condition", [1.0, 1e8])
def test_smoothed_newton_is_as_good_as_its_neighbours(condition):
    rng = np.random.default_rng(0)
    weights, levels = chain()
    A = rng.standard_normal((8, 5)) * np.geomspace(1.0, condition**0.5, 5)
    H, b = A.T @ A, rng.standard_normal(5)

    def value(v):
        norms = [w * np.linalg.norm(v[g]) for w, g in zip(weights, CHAIN, strict=True)]
        return 0.5 * v @ H @ v - b @ v + sum(norms)

    x = minimise_smoothed(H, b, None, levels, [])
    best = value(x)
    for size in (1e-6, 1e-3, 1.0):
        for _ in range(20):
            assert value(x + size * rng.standard_normal(5)) >= best - 1e-12


def test_where_it_starts_does_not_matter():
    _, levels = chain()
    H, b = np.diag(np.arange(1.0, 6.0)), np.array([2.0, -1.0, 3.0, 0.5, -2.0])
    expected = minimise_smoothed(H, b, None, levels, [])
    assert_allclose(minimise_smoothed(H, b, np.ones(5), levels, []), expected, atol=1e-9)
