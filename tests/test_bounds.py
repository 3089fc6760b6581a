import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, multinomial

from sparing._bounds import (
    binomial_bound,
    binomial_p_value,
    bound_of,
    mean_p_value,
    paired_p_value,
)

DELTA = 0.05


@given(st.integers(0, 40), st.integers(40, 80), st.floats(0.01, 0.99))
def test_binomial_is_scipys_exact_test(errors, n, limit):
    expected = binomtest(errors, n, limit, alternative="less").pvalue
    assert binomial_p_value(errors, n, limit) == pytest.approx(expected)
    bound = binomial_bound(errors, n, DELTA)
    interval = binomtest(errors, n, alternative="less").proportion_ci(1 - DELTA)
    assert bound == pytest.approx(interval.high)
    inverted = bound_of(lambda at: binomial_p_value(errors, n, at), 0, 1, DELTA)
    assert inverted == pytest.approx(bound, abs=1e-6)


def test_limits_at_the_edges():
    assert binomial_p_value(3, 10, 1.0) == 0
    assert binomial_p_value(0, 10, 0.0) == 1
    assert binomial_bound(10, 10, DELTA) == 1
    assert mean_p_value(np.array([0.2]), 1.0, 0.0, 1.0) == 0
    assert mean_p_value(np.array([0.2]), -0.1, 0.0, 1.0) == 1


@pytest.fixture(scope="module")
def rejected():
    """All tables of 100 rows for which a loss of at most 2 points is believed."""
    n, limit, most = 100, 0.02, 36
    tables = [
        (b, c)
        for b in range(most)
        for c in range(most)
        if b - c < n * limit and paired_p_value(b, c, n, limit, DELTA) <= DELTA
    ]
    return n, limit, np.array(tables)


@pytest.mark.parametrize("share", [0.02, 0.05, 0.1, 0.15, 0.2])
@pytest.mark.parametrize("beyond", [0.0, 0.01])
def test_paired_test_has_its_level_exactly(rejected, share, beyond):
    n, limit, tables = rejected
    loss = min(limit + beyond, share)
    chances = [(share + loss) / 2, (share - loss) / 2, 1 - share]
    rows = np.column_stack([tables, n - tables.sum(axis=1)])
    assert multinomial.pmf(rows, n, chances).sum() <= DELTA


def test_paired_test_wastes_little_of_its_level(rejected):
    n, limit, tables = rejected
    chances = [(0.2 + limit) / 2, (0.2 - limit) / 2, 0.8]
    rows = np.column_stack([tables, n - tables.sum(axis=1)])
    assert multinomial.pmf(rows, n, chances).sum() > 0.04


@settings(max_examples=25)
@given(st.integers(0, 30), st.integers(0, 30), st.floats(0, 0.1))
def test_paired_p_value_grows_with_losses_and_falls_with_the_limit(worse, better, limit):
    n = 300
    p = paired_p_value(worse, better, n, limit)
    assert 0 < p <= 1
    # Up to the resolution at which the nuisance interval moves with the counts.
    assert paired_p_value(worse + 3, better, n, limit) >= p - 2e-3
    assert paired_p_value(worse, better + 3, n, limit) <= p + 2e-3
    assert paired_p_value(worse, better, n, limit + 0.01) <= p + 2e-3


def test_identical_answers_need_no_more_rows_than_a_binomial():
    # A loss of 1 % hides in 299 rows with probability 0.05 when it is all on one side.
    assert paired_p_value(0, 0, 298, 0.01) > DELTA > paired_p_value(0, 0, 300, 0.01)


@pytest.mark.parametrize("draw", ["uniform", "rare", "two"])
def test_betting_has_its_level(draw):
    rng = np.random.default_rng(0)
    samples = {
        "uniform": lambda: rng.uniform(-1, 1, 300),
        "rare": lambda: rng.choice([-1.0, 0.0, 1.0], 300, p=[0.01, 0.98, 0.01]),
        "two": lambda: rng.choice([-1.0, 1.0], 300),
    }
    broken = np.mean([mean_p_value(samples[draw](), 0.0, -1.0, 1.0) <= DELTA for _ in range(600)])
    assert broken <= DELTA + 3 * np.sqrt(DELTA / 600)


def test_betting_adapts_to_small_variance():
    rng = np.random.default_rng(0)
    quiet, loud = rng.normal(0, 0.01, 400).clip(-1, 1), rng.choice([-1.0, 1.0], 400)
    bounds = [
        bound_of(lambda at, x=x: mean_p_value(x, at, -1, 1), -1, 1, DELTA) - x.mean()
        for x in (quiet, loud)
    ]
    assert bounds[0] < 0.03 < bounds[1]
    hoeffding = np.sqrt(2 * np.log(1 / DELTA) / 400)
    assert bounds[1] < 1.15 * hoeffding


@given(st.floats(0.1, 10), st.floats(-5, 5))
def test_betting_does_not_know_units(scale, shift):
    values = np.random.default_rng(1).uniform(size=50)
    p = mean_p_value(values, 0.6, 0, 1)
    moved = mean_p_value(scale * values + shift, scale * 0.6 + shift, shift, scale + shift)
    assert moved == pytest.approx(p, rel=1e-6)


def test_nothing_above_the_limit_is_promised_below_it():
    # The capital would have been large after the zeros.
    values = np.concatenate([np.zeros(100), np.ones(150)])
    assert mean_p_value(values, 0.59, 0, 1) == 1
    assert mean_p_value(values[:100], 0.59, 0, 1) < DELTA
