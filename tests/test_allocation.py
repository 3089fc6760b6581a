import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, logit

from sparing import _allocation
from sparing._allocation import allocate
from sparing._losses import objective
from strategies import allocation_problems


def typical(n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.exponential(1.0, n), rng.exponential(0.3, n), rng.normal(0.0, 2.0, n)


# -- the conditions of optimality ---------------------------------------------------------------------


@given(allocation_problems())
def test_optimality_conditions(problem):
    cheap, full, gate, weight, full_rate = problem
    solution = allocate(cheap, full, gate, full_rate, weight)
    q, rate = solution.q, np.average(solution.q, weights=weight)
    assert ((q >= 0) & (q <= 1)).all()
    assert rate <= full_rate + 1e-12
    assert solution.beta >= 0
    if solution.beta > 0:
        assert rate == pytest.approx(full_rate, abs=1e-12)
    np.testing.assert_allclose(q, expit(cheap - full + gate - solution.beta), rtol=1e-12)


@given(allocation_problems())
def test_slack_bound_has_no_multiplier(problem):
    cheap, full, gate, weight, _ = problem
    free = expit(cheap - full + gate)
    rate = np.average(free, weights=weight)
    solution = allocate(cheap, full, gate, min(1.0, rate + 1e-9), weight)
    assert solution.beta == 0.0
    np.testing.assert_allclose(solution.q, free, rtol=1e-12)


@given(allocation_problems(), st.floats(1e-3, 1.0))
def test_monotone_in_the_full_rate(problem, other_rate):
    cheap, full, gate, weight, full_rate = problem
    low, high = sorted([full_rate, other_rate])
    less, more = (allocate(cheap, full, gate, rate, weight) for rate in (low, high))
    assert less.beta >= more.beta - 1e-9
    assert (less.q <= more.q + 1e-9).all()


@given(allocation_problems(max_rows=5, largest=5.0))
def test_no_other_allocation_is_better(problem):
    cheap, full, gate, weight, full_rate = problem
    weight = np.ones(len(cheap)) if weight is None else weight
    solution = allocate(cheap, full, gate, full_rate, weight)
    share = weight / weight.sum()
    best = minimize(
        lambda q: objective(cheap, full, gate, q, weight),
        np.full(len(cheap), full_rate / 2),
        jac=lambda q: share * (full - cheap - gate + logit(q)),
        bounds=[(1e-9, 1 - 1e-9)] * len(cheap),
        constraints={
            "type": "ineq",
            "fun": lambda q: full_rate - share @ q,
            "jac": lambda q: -share,
        },
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-13},
    )
    assert objective(cheap, full, gate, solution.q, weight) <= best.fun + 1e-9
    if best.success:
        assert best.fun == pytest.approx(objective(cheap, full, gate, solution.q, weight), abs=1e-5)


# -- weights and edges --------------------------------------------------------------------------------


@given(allocation_problems(max_rows=8), st.data())
def test_weights_are_repeated_rows(problem, data):
    cheap, full, gate, _, full_rate = problem
    times = np.array(
        data.draw(st.lists(st.integers(0, 3), min_size=len(cheap), max_size=len(cheap)))
    )
    if not times.any():
        times[0] = 1
    weighted = allocate(cheap, full, gate, full_rate, times.astype(float))
    repeated = allocate(*(np.repeat(a, times) for a in (cheap, full, gate)), full_rate)
    np.testing.assert_allclose(np.repeat(weighted.q, times), repeated.q, atol=1e-9)
    scaled = allocate(cheap, full, gate, full_rate, 17.5 * times)
    np.testing.assert_allclose(scaled.q, weighted.q, atol=1e-9)


def test_nobody_and_everybody():
    cheap, full, gate = typical(50)
    nobody = allocate(cheap, full, gate, 0.0)
    assert not nobody.q.any()
    assert nobody.beta == np.inf
    everybody = allocate(cheap, full, gate, 1.0)
    assert everybody.beta == 0.0
    np.testing.assert_allclose(everybody.q, expit(cheap - full + gate))


def test_a_single_row_and_rows_all_alike():
    for n in (1, 1000):
        solution = allocate(np.full(n, 9.0), np.zeros(n), np.zeros(n), 0.125)
        np.testing.assert_allclose(solution.q, 0.125, atol=1e-12)
        assert solution.beta == pytest.approx(9 - logit(0.125))


@pytest.mark.parametrize("full_rate", [1e-9, 1e-3, 0.3, 0.7, 1 - 1e-9])
@pytest.mark.parametrize("scale", [50.0, 1e4, 1e9])
def test_extreme_losses(scale, full_rate):
    rng = np.random.default_rng(0)
    n = 200
    cheap, full = scale * rng.random(n), scale * rng.random(n)
    solution = allocate(cheap, full, np.zeros(n), full_rate)
    rate = solution.q.mean()
    assert np.isfinite(solution.q).all()
    assert rate <= full_rate + 1e-12
    if solution.beta > 0:  # as close as doubles of this size allow
        assert rate == pytest.approx(full_rate, abs=max(1e-12, 4 * np.spacing(scale)))


@pytest.mark.parametrize("full_rate", np.logspace(-13, -5, 9))
def test_a_tiny_full_rate_is_met_relatively(full_rate):
    rate = allocate(*typical(1000), full_rate).q.mean()
    assert rate == pytest.approx(full_rate, rel=1e-6, abs=0)


def test_inputs_are_left_alone_and_may_be_float32():
    arrays = typical(100)
    copies = [a.copy() for a in arrays]
    exact = allocate(*arrays, 0.2)
    for before, after in zip(copies, arrays, strict=True):
        np.testing.assert_array_equal(before, after)
    rough = allocate(*(a.astype(np.float32) for a in arrays), 0.2)
    assert rough.q.dtype == np.float64
    assert rough.q.mean() == pytest.approx(0.2, abs=1e-12)
    np.testing.assert_allclose(rough.q, exact.q, atol=1e-6)


# -- passes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [100, 10_000, 300_000])
@pytest.mark.parametrize("full_rate", [0.01, 0.1, 0.3, 0.5])
def test_few_passes(n, full_rate):
    solution = allocate(*typical(n), full_rate)
    assert solution.n_passes <= 9
    assert solution.q.mean() == pytest.approx(full_rate, abs=1e-12)


def test_warm_start_saves_passes():
    cheap, full, gate = typical(10_000)
    cold = allocate(cheap, full, 5 * gate, 0.02)
    again = allocate(cheap, full, 5 * gate, 0.02, start=cold.beta)
    assert again.n_passes == 3 < cold.n_passes  # one for the bound, one at the guess, one for q
    similar = allocate(cheap + 1e-6, full, 5 * gate, 0.02, start=cold.beta)
    assert similar.n_passes < cold.n_passes
    assert similar.q.mean() == pytest.approx(0.02, abs=1e-12)


@pytest.mark.parametrize("start", [-5.0, 0.0, 1e9, np.inf, np.nan])
def test_a_bad_guess_does_no_harm(start):
    cheap, full, gate = typical(1000)
    expected = allocate(cheap, full, gate, 0.2)
    np.testing.assert_allclose(allocate(cheap, full, gate, 0.2, start=start).q, expected.q)


@pytest.mark.parametrize("weighted", [True, False])
def test_the_sample_is_only_a_first_guess(monkeypatch, weighted):
    n = 5000
    cheap, full, gate = typical(n)
    # Every 50th row is unlike the others, and these are the rows that get sampled.
    cheap[::50] += 30.0
    weight = np.ones(n) if weighted else None
    expected = allocate(cheap, full, gate, 0.2, weight)
    monkeypatch.setattr(_allocation, "_SAMPLE", 100)
    monkeypatch.setattr(_allocation, "_CHUNK", 64)
    solution = allocate(cheap, full, gate, 0.2, weight)
    np.testing.assert_allclose(solution.q, expected.q, atol=1e-10)


def test_a_sample_of_rows_without_weight(monkeypatch):
    n = 5000
    cheap, full, gate = typical(n)
    weight = np.ones(n)
    weight[::50] = 0.0
    expected = allocate(cheap, full, gate, 0.2, weight)
    monkeypatch.setattr(_allocation, "_SAMPLE", 100)
    solution = allocate(cheap, full, gate, 0.2, weight)
    np.testing.assert_allclose(solution.q, expected.q, atol=1e-10)
