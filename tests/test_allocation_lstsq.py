"""OPT5: an allocation close to its dual bound, whatever the losses, weights and ties."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, logit

from sparing._allocation_lstsq import (
    admm,
    allocate_lstsq,
    lstsq_objective,
    maximise_dual,
    project,
)
from sparing._allocation_rows import Rows
from strategies import allocation_problems


def typical(n, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    cheap, full = rng.exponential(scale, n), rng.exponential(0.3 * scale, n)
    return cheap, full, rng.normal(0.5 * (cheap - full), scale)


def rows_of(cheap, full, gate):
    n = len(gate)
    return Rows(cheap - full, gate, np.full(n, 1 / n), full.mean())


# -- the allocation -----------------------------------------------------------------------------------


@settings(deadline=None)
@given(allocation_problems(max_rows=12))
def test_between_the_bound_and_every_other_allocation(problem):
    cheap, full, gate, weight, full_rate = problem
    solution = allocate_lstsq(cheap, full, gate, full_rate, weight)
    q = solution.q
    assert ((q >= 0) & (q <= 1)).all()
    assert np.average(q, weights=weight) <= full_rate + 1e-9
    value = lstsq_objective(cheap, full, gate, q, weight)
    assert solution.objective == pytest.approx(value, rel=1e-9, abs=1e-9)
    assert solution.bound <= solution.objective + 1e-7 * (1 + abs(value))
    # No allocation that keeps the bound is below it.
    rng = np.random.default_rng(0)
    share = np.ones(len(q)) if weight is None else weight
    for spread in (0.1, 1.0, 5.0):
        other = expit(logit(np.clip(q, 1e-12, 1 - 1e-12)) + rng.normal(0, spread, len(q)))
        other *= min(1.0, full_rate / np.average(other, weights=share))
        worse = lstsq_objective(cheap, full, gate, other, weight)
        assert worse >= solution.bound - 1e-7 * (1 + abs(worse))


@pytest.mark.parametrize("full_rate", [0.05, 0.3, 0.6])
@pytest.mark.parametrize("scale", [0.5, 2.0, 6.0])
def test_the_gap_to_the_bound_is_small(scale, full_rate):
    solution = allocate_lstsq(*typical(3000, scale=scale), full_rate)
    assert solution.q.mean() <= full_rate + 1e-9
    assert -1e-9 < solution.objective - solution.bound < 1e-5 * solution.objective


@pytest.mark.parametrize("scale", [0.3, 1.0])
def test_admm_gets_there_by_itself(scale):
    problem = typical(500, scale=scale)
    rows = rows_of(*problem)
    free = rows.minimum(0.0, None)
    found = admm(rows, 0.3, free, 0.0, tol=1e-6, max_iter=500)
    assert found.primal <= 1e-6
    assert 1 < found.n_iter < 500
    solution = allocate_lstsq(*problem, 0.3)
    np.testing.assert_allclose(expit(found.s), solution.q, atol=1e-4)
    assert found.beta == pytest.approx(solution.beta, rel=1e-3)
    # Its separable copy never reaches 0 or 1, so the gate has something to be fitted to.
    assert (np.abs(found.s) <= 30).all()


@pytest.mark.parametrize("seed", range(3))
def test_as_a_general_solver_where_rows_are_convex(seed):
    cheap, full, gate = typical(8, seed, scale=0.7)
    solution = allocate_lstsq(cheap, full, gate, 0.35)
    best = minimize(
        lambda s: lstsq_objective(cheap, full, gate, expit(s)),
        np.full(8, -1.0),
        constraints={"type": "ineq", "fun": lambda s: 0.35 - expit(s).mean()},
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    assert solution.objective == pytest.approx(best.fun, abs=1e-6)


def test_a_slack_bound_leaves_every_row_at_its_own_minimum():
    cheap, full, gate = typical(200)
    solution = allocate_lstsq(cheap, full, gate, 1.0)
    assert (solution.beta, solution.n_iter, solution.n_passes) == (0.0, 0, 1)
    assert solution.objective == solution.bound
    s, q = logit(solution.q), solution.q
    np.testing.assert_allclose(2 * (s - gate), (cheap - full) * q * (1 - q), atol=1e-8)


def test_who_goes_to_f0():
    # The sign of the library: a large loss of f1, or a large g, sends a row to f0.
    flat = np.zeros(3)
    by_loss = allocate_lstsq(np.array([0.0, 2.0, 4.0]), flat, flat, 1.0).q
    assert by_loss[0] == pytest.approx(0.5)
    assert (np.diff(by_loss) > 0).all()
    by_gate = allocate_lstsq(flat, flat, np.array([-3.0, 0.0, 3.0]), 1.0).q
    np.testing.assert_allclose(by_gate, expit([-3.0, 0.0, 3.0]))
    assert (allocate_lstsq(flat, flat + 2.0, flat, 1.0).q < 0.5).all()


def test_nobody():
    cheap, full, gate = typical(30)
    solution = allocate_lstsq(cheap, full, gate, 0.0)
    assert not solution.q.any()
    assert solution.beta == np.inf
    assert np.isfinite(solution.objective)


def test_rows_all_alike_share_the_bound():
    # Every row has two minima that tie at the best multiplier: some must take the one, some the other.
    solution = allocate_lstsq(np.full(1000, 100.0), np.zeros(1000), np.full(1000, -6.0), 0.4)
    assert solution.q.mean() <= 0.4 + 1e-9
    assert solution.objective - solution.bound < 0.1  # one row's share of 100
    assert len(np.unique(solution.q.round(2))) > 1


@settings(deadline=None)
@given(allocation_problems(max_rows=8, largest=8.0), st.data())
def test_weights_are_repeated_rows(problem, data):
    cheap, full, gate, _, full_rate = problem
    times = np.array(
        data.draw(st.lists(st.integers(0, 3), min_size=len(cheap), max_size=len(cheap)))
    )
    if not times.any():
        times[0] = 1
    weighted = allocate_lstsq(cheap, full, gate, full_rate, 17.5 * times)
    repeated = allocate_lstsq(*(np.repeat(a, times) for a in (cheap, full, gate)), full_rate)
    # The bound is the same; copies may part where a row ties, a heavy row cannot.
    assert weighted.bound == pytest.approx(repeated.bound, rel=1e-6, abs=1e-6)
    if repeated.objective - repeated.bound < 1e-7 > weighted.objective - weighted.bound:
        np.testing.assert_allclose(np.repeat(weighted.q, times), repeated.q, atol=1e-3)


@pytest.mark.parametrize("start", [None, 0.0, -5.0, 1e-9, 3.0, 1e6, np.inf, np.nan])
def test_any_guess_leads_to_the_same_allocation(start):
    problem = typical(400)
    expected = allocate_lstsq(*problem, 0.2)
    again = allocate_lstsq(*problem, 0.2, start=start)
    assert again.objective == pytest.approx(expected.objective, abs=1e-7)


def test_a_good_guess_saves_passes():
    cheap, full, gate = typical(2000)
    cold = allocate_lstsq(cheap, full, gate, 0.1)
    warm = allocate_lstsq(cheap + 1e-5, full, gate, 0.1, start=cold.beta)
    assert warm.n_passes < cold.n_passes


@pytest.mark.parametrize("full_rate", [1e-6, 0.3, 1 - 1e-6])
@pytest.mark.parametrize("scale", [1e3, 1e6])
def test_extreme_losses(scale, full_rate):
    rng = np.random.default_rng(0)
    solution = allocate_lstsq(*(scale * rng.random((2, 200))), rng.normal(0, 40, 200), full_rate)
    assert np.isfinite(solution.objective)
    assert solution.q.mean() <= full_rate * (1 + 1e-6)
    assert solution.bound <= solution.objective + 1e-9 * abs(solution.objective)


# -- its parts ----------------------------------------------------------------------------------------


@given(allocation_problems())
def test_the_projection_is_the_nearest_point(problem):
    v, _, gate, weight, full_rate = problem
    v = 0.1 * gate
    share = np.full(len(v), 1 / len(v)) if weight is None else weight / weight.sum()
    z, price = project(v, full_rate, share)
    assert ((z >= 0) & (z <= 1)).all()
    assert share @ z <= full_rate + 1e-9
    assert price >= 0
    # Conditions of optimality: what the price alone explains, and none without need.
    np.testing.assert_allclose(z, np.clip(v - price, 0, 1), atol=1e-12)
    assert price == 0 or share @ z == pytest.approx(full_rate, abs=1e-9)


@pytest.mark.parametrize("full_rate", [0.02, 0.2, 0.45])
def test_the_dual_is_below_every_primal_value_and_nearly_touches(full_rate):
    rows = rows_of(*typical(300, scale=4.0))
    dual = maximise_dual(rows, full_rate, rows.minimum(0.0, None))
    assert rows.mean(expit(dual.keeps)) <= full_rate < rows.mean(expit(dual.breaks))
    for beta in dual.beta * np.array([0.5, 0.9, 1.1, 2.0]):
        s = rows.minimum(float(beta), None)
        other = rows.value(expit(s)) + beta * (rows.mean(expit(s)) - full_rate)
        assert other <= dual.bound + 1e-7 * (1 + abs(dual.bound))
    filled = dual.filled(rows, full_rate)
    assert rows.mean(expit(filled)) <= full_rate + 1e-12
    assert rows.value(expit(filled)) >= dual.bound - 1e-7
