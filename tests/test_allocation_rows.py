"""Rows of OPT5: their minima are the smallest values there are, also where two of them compete."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from sparing._allocation_rows import LARGEST_LOGIT, Rows, Terms, log_odds

GRID = np.linspace(-LARGEST_LOGIT, LARGEST_LOGIT, 12001)
NUMBER = st.floats(-50.0, 50.0)


def rows(excess, gate):
    excess, gate = np.atleast_1d(excess).astype(float), np.atleast_1d(gate).astype(float)
    return Rows(excess, gate, np.full(len(excess), 1 / len(excess)), 0.0)


def value(s, a, g, rho=0.0, v=0.0):
    return -a * expit(s) + (s - g) ** 2 + 0.5 * rho * (expit(s) - v) ** 2


@given(NUMBER, NUMBER, st.floats(0.0, 2000.0), st.one_of(st.none(), st.floats(-30.0, 30.0)))
def test_no_log_odds_are_better_than_the_minimum_of_a_row(excess, gate, beta, guess):
    start = None if guess is None else np.array([guess])
    s = rows(excess, gate).minimum(beta, start)
    a = excess - beta
    # The guess may decide how the minimum is found, never which one.
    assert value(s, a, gate)[0] <= value(GRID, a, gate).min() + 1e-8 * (1 + abs(a))


@given(NUMBER, NUMBER, st.floats(0.1, 2000.0), st.floats(-1.0, 2.0), st.floats(-30.0, 30.0))
def test_nor_than_the_separable_step(excess, gate, rho, v, guess):
    s = rows(excess, gate).separable(rho, np.array([v]), np.array([guess]))
    scale = 1 + abs(excess) + rho
    assert (
        value(s, excess, gate, rho, v)[0] <= value(GRID, excess, gate, rho, v).min() + 1e-6 * scale
    )


def test_two_minima_that_compete():
    # Far from f0 for the gate's sake, or close to it for the loss's: each is right on its side of a tie.
    near, far = rows(60.0, -6.0), rows(80.0, -6.0)
    assert near.minimum(0.0, None)[0] < -4.0
    assert far.minimum(0.0, None)[0] > 0.0
    both = rows([60.0, 80.0], [-6.0, -6.0]).minimum(0.0, None)
    np.testing.assert_allclose(both, [near.minimum(0.0, None)[0], far.minimum(0.0, None)[0]])
    mirrored = rows([-60.0, -80.0], [6.0, 6.0]).minimum(0.0, None)
    np.testing.assert_allclose(mirrored, -both, atol=1e-9)


def test_derivatives():
    rng = np.random.default_rng(0)
    terms = Terms(rng.normal(0, 9, 50), rng.normal(0, 3, 50), 7.0, rng.random(50))
    s, h = rng.normal(0, 3, 50), 1e-5
    first, second = terms.slopes(s)
    np.testing.assert_allclose(
        first, (terms.value(s + h) - terms.value(s - h)) / (2 * h), atol=1e-5
    )
    change = terms.slopes(s + h)[0] - terms.slopes(s - h)[0]
    np.testing.assert_allclose(second, change / (2 * h), atol=1e-5)


def test_log_odds_stay_finite():
    ends = log_odds(np.array([0.0, 1e-300, 0.5, 1.0 - 1e-16, 1.0]))
    np.testing.assert_allclose(ends, [-30, -30, 0, 30, 30], atol=1e-2)
    s = rows([1e9, -1e9, 0.0, 0.0], [0.0, 0.0, 1e9, -1e9]).minimum(0.0, None)
    assert np.isfinite(s).all()
    assert (np.abs(s) <= LARGEST_LOGIT).all()


@pytest.mark.parametrize("n", [1, 300])
def test_rows_do_not_know_each_other(n):
    rng = np.random.default_rng(n)
    excess, gate = rng.normal(0, 30, n), rng.normal(0, 5, n)
    together = rows(excess, gate).minimum(3.0, None)
    alone = [rows(a, g).minimum(3.0, None)[0] for a, g in zip(excess, gate, strict=True)]
    np.testing.assert_allclose(together, alone, atol=1e-7)
