import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy.special import expit, log_softmax

from sparing._losses import (
    PROBA_FLOOR,
    cheap_gradient,
    cheap_loss,
    cheap_proba,
    full_loss,
    gate_divergence,
    gate_gradient,
    objective,
    softplus,
)
from strategies import class_codes

RNG = np.random.default_rng(0)
SCORES = npst.arrays(float, 5, elements=st.floats(-700, 700))
RATES = npst.arrays(float, 5, elements=st.floats(0, 1))


def numerical_gradient(function, at, step=1e-6):
    gradient = np.empty_like(at)
    for index in np.ndindex(at.shape):
        up, down = at.copy(), at.copy()
        up[index] += step
        down[index] -= step
        gradient[index] = (function(up) - function(down)) / (2 * step)
    return gradient


# -- values -------------------------------------------------------------------------------------------


def test_values_by_hand():
    np.testing.assert_allclose(softplus(np.array([0.0, 2.0])), np.log(1 + np.exp([0.0, 2.0])))
    scores = np.array([0.5, -1.5])
    p = 1 / (1 + np.exp(-scores))
    np.testing.assert_allclose(cheap_loss(scores, np.array([1, 0])), -np.log([p[0], 1 - p[1]]))
    scores = np.array([[0.2, -1.0, 3.0], [0.0, 0.0, 0.0]])
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(cheap_loss(scores, np.array([1, 2])), -np.log([p[0, 1], p[1, 2]]))
    np.testing.assert_allclose(cheap_proba(scores), p)
    proba = np.array([[0.25, 0.75], [1.0, 0.0]])
    np.testing.assert_allclose(
        full_loss(proba, np.array([0, 1])), [np.log(4), -np.log(PROBA_FLOOR)]
    )


def test_divergence_by_hand():
    q, g = np.array([0.2, 0.7]), np.array([-1.0, 0.5])
    p = expit(g)
    expected = q * np.log(q / p) + (1 - q) * np.log((1 - q) / (1 - p))
    np.testing.assert_allclose(gate_divergence(q, g), expected)


@given(SCORES, class_codes(5, 2))
def test_binary_is_two_class_softmax(scores, y):
    two = np.column_stack([np.zeros(5), scores])
    np.testing.assert_allclose(cheap_loss(scores, y), cheap_loss(two, y), atol=1e-12)
    np.testing.assert_allclose(cheap_proba(scores), cheap_proba(two), rtol=1e-12, atol=0)
    gradient = cheap_gradient(two, y, np.ones(5))
    np.testing.assert_allclose(cheap_gradient(scores, y, np.ones(5)), gradient[:, 1], atol=1e-12)
    np.testing.assert_allclose(gradient.sum(axis=1), 0, atol=1e-12)


# -- gradients ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_cheap_gradient(n_classes):
    n = 6
    scores = RNG.normal(size=n if n_classes == 2 else (n, n_classes))
    y, weight = RNG.integers(n_classes, size=n), RNG.random(n)
    numeric = numerical_gradient(lambda s: (weight * cheap_loss(s, y)).sum(), scores)
    np.testing.assert_allclose(cheap_gradient(scores, y, weight), numeric, atol=1e-8)


def test_cheap_gradient_leaves_its_input_alone():
    scores, y = np.ones((2, 3)), np.array([0, 1])
    cheap_gradient(scores, y, np.ones(2))
    assert (scores == 1).all()


def test_gate_gradient():
    gate, q, weight = RNG.normal(size=6), RNG.random(6), RNG.random(6)
    numeric = numerical_gradient(lambda g: (weight * gate_divergence(q, g)).sum(), gate)
    np.testing.assert_allclose(gate_gradient(gate, q, weight), numeric, atol=1e-8)


# -- extremes -----------------------------------------------------------------------------------------

HUGE = np.array([-1e8, -800.0, -40.0, 0.0, 40.0, 800.0, 1e8])


@pytest.mark.parametrize("label", [0, 1])
def test_extreme_scores_stay_finite(label):
    y = np.full(len(HUGE), label)
    for scores in (HUGE, np.column_stack([HUGE, -HUGE, np.zeros(len(HUGE))])):
        loss, proba = cheap_loss(scores, y), cheap_proba(scores)
        assert np.isfinite(loss).all()
        assert (loss >= 0).all()
        np.testing.assert_allclose(proba.sum(axis=1), 1)
        assert np.isfinite(cheap_gradient(scores, y, np.ones(len(y)))).all()
    # Linear in the tail, not cut off.
    assert cheap_loss(np.array([-1e8]), np.array([1]))[0] == pytest.approx(1e8)


def test_small_probabilities_are_not_lost():
    proba = cheap_proba(np.array([-50.0, 50.0]))
    np.testing.assert_allclose(np.log(proba[:, 1]) - np.log(proba[:, 0]), [-50, 50])


def test_full_loss_of_a_confident_mistake_is_bounded():
    loss = full_loss(np.array([[0.0, 1.0], [1e-300, 1.0]]), np.array([0, 0]))
    np.testing.assert_array_equal(loss, -np.log(PROBA_FLOOR))
    assert full_loss(np.array([[0.0, 1.0 + 1e-9]]), np.array([1]))[0] == 0.0


@given(RATES, SCORES)
def test_divergence_is_never_negative(q, gate):
    divergence = gate_divergence(q, gate)
    assert np.isfinite(divergence).all()
    assert (divergence >= -1e-15 * (1 + np.abs(gate))).all()


@given(SCORES)
def test_divergence_from_itself_is_nothing(gate):
    np.testing.assert_allclose(gate_divergence(expit(gate), gate), 0, atol=1e-13)


def test_divergence_does_not_cancel():
    # softplus(g) − q·g would be off by a thousandth here: both terms are 1e13.
    gate, q = np.array([1e13]), np.array([1.0])
    assert gate_divergence(q, gate)[0] == 0.0
    assert gate_divergence(np.array([1 - 2.0**-50]), gate)[0] == pytest.approx(1e13 * 2.0**-50)


# -- the objective ------------------------------------------------------------------------------------


@given(RATES, SCORES, npst.arrays(float, 5, elements=st.floats(0.01, 10)))
def test_objective_is_the_bound_on_the_likelihood_of_the_composite(q, gate, weight):
    cheap, full = RNG.exponential(size=5), RNG.exponential(size=5)
    value = objective(cheap, full, gate, q, weight)
    terms = (1 - q) * cheap + q * full + gate_divergence(q, gate)
    assert value == pytest.approx((weight * terms).sum() / weight.sum())
    # Jensen: the expected loss bounds the loss of the mixture, with equality at the posterior q.
    mixture = -np.logaddexp(log_sigmoid(gate) - full, log_sigmoid(-gate) - cheap)
    assert value >= np.average(mixture, weights=weight) - 1e-9
    posterior = expit(gate + cheap - full)
    assert objective(cheap, full, gate, posterior, weight) == pytest.approx(
        np.average(mixture, weights=weight), abs=1e-9
    )


def log_sigmoid(z):
    return log_softmax(np.column_stack([np.zeros_like(z), z]), axis=1)[:, 1]


def test_objective_without_weights_is_a_mean():
    one = np.ones(4)
    assert objective(2 * one, 4 * one, 0 * one, 0.5 * one) == pytest.approx(3.0)
    assert objective(2 * one, 4 * one, 0 * one, 0.5 * one, 7 * one) == pytest.approx(3.0)
