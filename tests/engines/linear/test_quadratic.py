"""The inner problem: its minimiser by optimality, whichever way it is found."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sparing.engines.linear import quadratic
from sparing.engines.linear.quadratic import QuadraticModel
from sparing.engines.penalty import GroupPenalty

from .problems import GROUPS


def make(groups="singles", *, joint=False, condition=10.0, seed=0):
    """A model of 4 rows and an intercept in two outputs, a point, a gradient and a penalty."""
    rng = np.random.default_rng(seed)

    def block(side):
        A = rng.standard_normal((side, side)) * np.geomspace(1.0, condition**0.5, side)
        return A.T @ A / side + 0.01 * np.eye(side)

    blocks = (
        [(slice(0, 2), block(10))] if joint else [(slice(k, k + 1), block(5)) for k in range(2)]
    )
    W, G = rng.standard_normal((5, 2)), rng.standard_normal((5, 2))
    weights = rng.uniform(0.1, 0.5, len(GROUPS[groups]))
    return QuadraticModel(blocks), W, G, GroupPenalty(GROUPS[groups], weights, 4).with_free_rows(1)


@pytest.mark.parametrize("groups", sorted(GROUPS))
@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("condition", [10.0, 1e6])
def test_a_step_minimises_the_model_plus_the_penalty(groups, joint, condition):
    model, W, G, penalty = make(groups, joint=joint, condition=condition)
    V, promised = model.step(W, G, penalty, 1e-8)
    assert penalty.violation(V, G + model.times(V - W)) <= 1e-8
    assert promised == pytest.approx(
        np.vdot(G, V - W) + penalty.value(V) - penalty.value(W), abs=1e-12
    )
    assert promised <= 0


@pytest.mark.parametrize(
    ("name", "value"), [("_POLISH", 0), ("_PATIENCE", 0), ("_PATIENCE", 10**6)]
)
@pytest.mark.parametrize("groups", ["nested", "tangled"])
def test_every_way_leads_to_the_same_minimiser(groups, name, value, monkeypatch):
    model, W, G, penalty = make(groups)
    expected = model.step(W, G, penalty, 1e-10)[0]
    monkeypatch.setattr(quadratic, name, value)
    assert_allclose(model.step(W, G, penalty, 1e-8)[0], expected, atol=1e-6)


def test_learning_gives_the_curvature_that_was_seen_and_stays_positive():
    model, W, G, _ = make()
    move, change = W, np.abs(G) * np.sign(W)
    model.learn(move, change)
    for outputs, block in model.blocks:
        seen = block @ move[:, outputs].T.ravel()
        assert_allclose(seen, change[:, outputs].T.ravel(), atol=1e-12)
        assert np.linalg.eigvalsh(block)[0] > 0


def test_negative_curvature_is_not_learnt():
    model, W, _, _ = make()
    before = [block.copy() for _, block in model.blocks]
    model.learn(W, -W)
    for old, (_, new) in zip(before, model.blocks, strict=True):
        assert_allclose(new, old)


@pytest.mark.parametrize("side", [5, 90])
def test_the_largest_eigenvalue_is_not_underestimated(side):
    A = np.random.default_rng(0).standard_normal((side, side))
    H = A @ A.T
    exact = np.linalg.eigvalsh(H)[-1]
    assert exact * (1 - 1e-12) <= quadratic._largest_eigenvalue(H) <= 1.1 * exact
