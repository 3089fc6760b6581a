"""Every loss against the library's own, and its derivatives against differences."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sparing._losses import cheap_gradient, cheap_loss, gate_gradient, softplus
from sparing.engines.linear import losses
from sparing.engines.linear.columns import Columns
from sparing.engines.linear.losses import Logistic, Softmax, Squares, centred, evaluate

from .problems import make


def cases(n_classes):
    Z, y, q, _ = make(n=40, n_classes=n_classes, seed=3)
    weight = np.random.default_rng(3).uniform(size=40)
    return Z, y, q, weight


def test_logistic_is_the_loss_of_f1_and_of_the_gate():
    _, y, q, weight = cases(2)
    scores = 3.0 * np.random.default_rng(0).standard_normal((2, 40))
    value, residual = Logistic(np.stack([y == 1, q]), np.stack([weight, weight])).evaluate(scores)
    expected = weight @ cheap_loss(scores[0], y)
    expected += weight @ (softplus(scores[1]) - q * scores[1])
    assert value == pytest.approx(expected, rel=1e-12)
    assert_allclose(residual[0], cheap_gradient(scores[0], y, weight), atol=1e-14)
    assert_allclose(residual[1], gate_gradient(scores[1], q, weight), atol=1e-14)


def test_softmax_is_the_loss_of_f1():
    _, y, _, weight = cases(4)
    scores = 3.0 * np.random.default_rng(0).standard_normal((4, 40))
    value, residual = Softmax(y, 4, weight).evaluate(scores)
    assert value == pytest.approx(weight @ cheap_loss(scores.T, y), rel=1e-12)
    assert_allclose(residual.T, cheap_gradient(scores.T, y, weight), atol=1e-14)


@pytest.mark.parametrize("size", [1e3, 1e5])
def test_values_and_residuals_stay_finite_far_out(size):
    _, y, q, weight = cases(2)
    for scores in (np.full((1, 40), size), np.full((1, 40), -size)):
        value, residual = Logistic(q[None], weight[None]).evaluate(scores)
        assert np.isfinite(value)
        assert np.abs(residual).max() <= weight.max()
    value, residual = Softmax(y, 2, weight).evaluate(size * np.array([[1.0], [-1.0]]) * np.ones(40))
    assert np.isfinite(value)
    assert np.isfinite(residual).all()


def loss_of(name):
    _, y, q, weight = cases(3)
    return {
        "logistic": Logistic(np.stack([y == 1, q]), np.stack([weight, 2 * weight])),
        "squares": Squares(np.log(q / (1 - q)), weight),
        "softmax": Softmax(y, 3, weight),
    }[name]


@pytest.mark.parametrize("name", ["logistic", "squares", "softmax"])
def test_residuals_and_hessians_are_derivatives(name):
    Z, *_ = cases(3)
    loss, design = loss_of(name), Columns(Z, np.arange(Z.shape[1]))
    rng = np.random.default_rng(1)
    W, V = (rng.standard_normal((design.width, loss.width)) for _ in range(2))
    V -= V.mean(axis=1, keepdims=True) if name == "softmax" else 0.0
    h = 1e-5

    def at(shift):
        value, residual = loss.evaluate(design.scores(W + shift * V))
        return value, design.gradient(residual)

    (up, slope_up), (down, slope_down) = at(h), at(-h)
    assert (up - down) / (2 * h) == pytest.approx(np.vdot(at(0.0)[1], V), rel=1e-7)
    curvature, first = np.empty_like(W), 0
    blocks = loss.hessians(design.scores(W), design)
    for width, block in zip(loss.blocks(design.width), blocks, strict=True):
        part = V[:, first : first + width]
        curvature[:, first : first + width] = (block @ part.T.ravel()).reshape(width, -1).T
        first += width
    change = (slope_up - slope_down) / (2 * h)
    if name == "softmax":
        # What the matrix adds where all classes move together is not seen by moves of mean zero.
        change -= change.mean(axis=1, keepdims=True)
        curvature -= curvature.mean(axis=1, keepdims=True)
    assert_allclose(curvature, change, atol=1e-6)


def test_large_softmaxes_have_one_block_per_class(monkeypatch):
    Z, *_ = cases(3)
    loss, design = loss_of("softmax"), Columns(Z, np.arange(Z.shape[1]))
    monkeypatch.setattr(losses, "_JOINT", 1)
    found = list(loss.hessians(np.zeros((3, 40)), design))
    assert loss.blocks(design.width) == [1, 1, 1]
    # At equal probabilities p(1 − p) is 2/9.
    expected = losses._WITHOUT_CROSS_TERMS * 2 / 9 * design.gram(loss.weight)
    assert_allclose(found, [expected] * 3)


def test_several_losses_are_evaluated_side_by_side():
    _, _, q, weight = cases(3)
    first, last = loss_of("softmax"), Logistic(q[None], weight[None])
    scores = np.random.default_rng(2).standard_normal((4, 40))
    value, residual = evaluate([first, last], scores)
    parts = first.evaluate(scores[:3]), last.evaluate(scores[3:])
    assert value == pytest.approx(parts[0][0] + parts[1][0])
    assert_allclose(residual, np.vstack([parts[0][1], parts[1][1]]))


def test_centring_keeps_the_softmax_and_the_gate():
    _, _, q, weight = cases(3)
    W = np.random.default_rng(4).standard_normal((5, 4))
    loss = loss_of("softmax")
    moved = centred(W, [loss, Logistic(q[None], weight[None])])
    assert_allclose(moved[:, :3].sum(axis=1), 0.0, atol=1e-14)
    assert_allclose(moved[:, 3], W[:, 3])
    scores = W[:, :3].T @ np.random.default_rng(5).standard_normal((5, 40))
    assert loss.evaluate(scores)[0] == pytest.approx(
        loss.evaluate(scores - scores.mean(axis=0))[0], rel=1e-12
    )
    assert centred(W, [loss_of("logistic")]) is W
