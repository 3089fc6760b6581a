import numpy as np
import pytest
from scipy.special import expit, softmax

from sparing._allocation import allocate
from sparing._losses import cheap_gradient, cheap_loss, gate_gradient, objective
from sparing.engines.gradients import FixedAllocation, RoundObjective, SolvedAllocation


def scene(n_classes, n=50, seed=0):
    rng = np.random.default_rng(seed)
    n_cheap = 1 if n_classes == 2 else n_classes
    return {
        "y": rng.integers(0, n_classes, n),
        "raw": np.asfortranarray(rng.normal(scale=3, size=(n, n_cheap + 1))),
        "base": rng.normal(size=n_cheap + 1),
        "weight": rng.exponential(size=n),
        "q": rng.random(n),
        "full_loss": rng.exponential(size=n),
    }


def split(s, n_classes):
    scores = s["raw"] + s["base"]
    return scores[:, 0] if n_classes == 2 else scores[:, :-1], scores[:, -1]


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("newton", [False, True])
def test_gradients_and_hessians(n_classes, newton):
    s = scene(n_classes)
    q, weight = s["q"], s["weight"]
    allocation = FixedAllocation(q, weight, s["full_loss"])
    rounds = RoundObjective(s["y"], n_classes, weight, s["base"], newton, allocation)
    gradient, hessian = rounds(s["raw"], None)
    assert gradient.dtype == hessian.dtype == np.float32
    assert gradient.flags.f_contiguous
    cheap, gate = split(s, n_classes)
    expected = cheap_gradient(cheap, s["y"], weight * (1 - q)).reshape(len(q), -1)
    np.testing.assert_allclose(gradient[:, :-1], expected, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(
        gradient[:, -1], gate_gradient(gate, q, weight), rtol=1e-5, atol=1e-7
    )
    if newton:
        p = expit(cheap)[:, None] if n_classes == 2 else softmax(cheap, axis=1)
        factor = 1.0 if n_classes == 2 else n_classes / (n_classes - 1)
        kept = (weight * (1 - q))[:, None]
        np.testing.assert_allclose(
            hessian[:, :-1], factor * kept * p * (1 - p), rtol=1e-4, atol=1e-7
        )
        np.testing.assert_allclose(
            hessian[:, -1], weight * expit(gate) * expit(-gate), rtol=1e-4, atol=1e-7
        )
    else:
        np.testing.assert_allclose(hessian, np.tile(weight[:, None], hessian.shape[1]), rtol=1e-6)
    value = objective(cheap_loss(cheap, s["y"]), s["full_loss"], gate, q, weight)
    assert rounds.history == [pytest.approx((value, np.average(q, weights=weight)))]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_again_gives_the_same_numbers(n_classes):
    s = scene(n_classes)
    rounds = RoundObjective(s["y"], n_classes, s["weight"], s["base"][:-1], True, None)
    raw = s["raw"][:, 0] if n_classes == 2 else s["raw"][:, :-1]
    first = [array.copy() for array in rounds(raw, None)]
    for before, after in zip(first, rounds.again(raw, None), strict=True):
        np.testing.assert_array_equal(before, after)
    assert len(rounds.history) == 1


@pytest.mark.parametrize("full_rate", [1e-4, 0.1, 0.5, 0.99, 1.0])
def test_the_allocation_is_followed_from_round_to_round(full_rate):
    rng = np.random.default_rng(0)
    n = 400
    loss, full_loss, gate = rng.exponential(size=(3, n))
    weight = rng.exponential(size=n)
    solved = SolvedAllocation(full_loss, full_rate, weight)
    for _ in range(8):
        value, rate = solved.update(loss, gate, np.logaddexp(0, gate))
        exact = allocate(loss, full_loss, gate, full_rate, weight)
        assert rate == pytest.approx(np.average(exact.q, weights=weight), rel=2e-2)
        # q is optimal for its own β: the identity for the value holds to the last digits.
        assert value == pytest.approx(objective(loss, full_loss, gate, solved.q, weight), rel=1e-9)
        np.testing.assert_allclose(solved.kept, weight * (1 - solved.q))
        loss *= 0.9
        gate += 0.1 * rng.normal(size=n)


def test_an_allocation_too_steep_for_newton_is_solved_by_bisection():
    n = 100
    solved = SolvedAllocation(np.zeros(n), 0.3, np.ones(n))
    _, rate = solved.update(np.full(n, 1e4), np.zeros(n), np.full(n, np.log(2)))
    assert rate == pytest.approx(0.3, rel=1e-3)


def test_far_scores_stay_finite():
    s = scene(2)
    s["raw"][:3] = [[800.0, -800.0], [-800.0, 800.0], [0.0, 0.0]]
    rounds = RoundObjective(
        s["y"], 2, s["weight"], s["base"], True, SolvedAllocation(s["full_loss"], 0.3, s["weight"])
    )
    gradient, hessian = rounds(s["raw"], None)
    assert np.isfinite(gradient).all()
    assert (hessian >= 0).all()
