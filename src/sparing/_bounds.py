"""Tests of one-sided promises, each with a finite-sample level: no normal approximation anywhere.

The promise "the mean is at most ``limit``" is tested against "it is larger", and kept when the p-value is at most
δ = 1 − confidence. Three kinds of numbers, each with the tightest test measured (``benchmarks/speed/promises.py``):

- 0/1: the exact binomial test (Clopper and Pearson);
- paired answers of two classifiers, a difference in {−1, 0, 1}: an exact unconditional test, maximised over the
  share of rows on which they differ as Berger and Boos (1994) propose;
- anything between two bounds: betting (Waudby-Smith and Ramdas 2024). A gambler stakes against the promise being
  broken; were it broken, his capital would be a supermartingale, and by Ville's inequality it reaches 1/δ with
  probability at most δ.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy
from scipy.stats import beta, binom

Floats = NDArray[np.float64]

_NUISANCE_SHARE = 0.01
"""Part of δ spent on bounding the share of rows on which two classifiers differ."""
_GRID = 65
_SMALLEST_SHARE = 1e-12
_REACH = 9.0
"""Standard deviations outside which a binomial count is left out: less than 1e-15 of it."""
_LARGEST_STAKE = 0.5
"""Part of his capital the gambler may lose on one row."""


def binomial_p_value(errors: int, n: int, limit: float) -> float:
    """P-value of the promise that a rate is at most ``limit``, after ``errors`` in ``n`` independent rows.

    Examples
    --------
    >>> round(binomial_p_value(0, 59, 0.05), 4)
    0.0485
    """
    return float(binom.cdf(errors, n, limit)) if 0 <= limit < 1 else float(limit < 0)


def binomial_bound(errors: int, n: int, delta: float) -> float:
    """Clopper and Pearson's upper bound of a rate.

    Examples
    --------
    >>> round(binomial_bound(0, 59, 0.05), 4)
    0.0495
    """
    return 1.0 if errors >= n else float(beta.ppf(1.0 - delta, errors + 1, n - errors))


def paired_p_value(worse: int, better: int, n: int, limit: float, delta: float = 0.05) -> float:
    """P-value of the promise that a system's accuracy is at most ``limit`` below the full model's.

    Parameters
    ----------
    worse, better : int
        Rows on which only the full model is right, and on which only the system is.
    n : int
        All rows.
    limit : float
        Not negative.
    delta : float, default=0.05
        Level the p-value will be compared with; a hundredth of it is spent on the nuisance parameter.

    Notes
    -----
    Tables (worse, better) are ordered by how much less likely the null hypothesis makes them: the likelihood ratio Λ.
    As a distance to a convex set it grows with ``better`` and falls with ``worse``, so the worst case of the null
    hypothesis lies where the true difference is exactly the limit. What is left unknown there is the share θ of rows on
    which the two differ; P(Λ ≥ observed) is maximised over an exact interval of θ. Given the number m of such rows
    ``worse`` is binomial, and Λ ≥ observed means that it is at most some number that depends on m.

    Examples
    --------
    >>> round(paired_p_value(10, 10, 1000, 0.01), 3)
    0.029
    >>> paired_p_value(20, 10, 1000, 0.01)
    1.0
    """
    if worse - better >= n * limit:
        return 1.0
    differ, gamma = worse + better, _NUISANCE_SHARE * delta
    low = float(beta.ppf(gamma / 2, differ, n - differ + 1)) if differ else 0.0
    low = max(low, limit)
    high = max(binomial_bound(differ, n, gamma / 2), low)
    counts = _likely_counts(n, low, high)
    observed = float(_likelihood_ratio(np.array([worse]), np.array([better]), n, limit)[0])
    most = _most_losses(counts, observed, n, limit)

    def tail(shares: Floats) -> Floats:
        theta = np.maximum(shares[:, None], _SMALLEST_SHARE)
        chance = np.clip((1.0 + limit / theta) / 2, 0.0, 1.0)
        return (binom.pmf(counts, n, theta) * binom.cdf(most, counts, chance)).sum(axis=1)

    grid = np.linspace(low, high, _GRID)
    coarse = tail(grid)
    at = int(coarse.argmax())
    fine = tail(np.linspace(grid[max(at - 1, 0)], grid[min(at + 1, _GRID - 1)], _GRID // 2 + 1))
    return float(min(1.0, max(coarse.max(), fine.max()) + gamma))


def _likelihood_ratio(worse: Floats, better: Floats, n: int, limit: float) -> Floats:
    """Log-likelihood at the rates seen minus the largest one where the difference is exactly ``limit``."""
    same = n - worse - better
    # The rate of ``better`` that maximises the likelihood on that line solves 2n x² − linear x − constant = 0.
    linear = (worse + better) * (1 - limit) - 2 * limit * (better + same)
    constant = better * limit * (1 - limit)
    rate = (linear + np.sqrt(np.maximum(linear**2 + 8 * n * constant, 0.0))) / (4 * n)
    rate = np.clip(rate, 0.0, (1 - limit) / 2)
    seen = xlogy(worse, worse / n) + xlogy(better, better / n) + xlogy(same, same / n)
    line = xlogy(worse, rate + limit) + xlogy(better, rate) + xlogy(same, 1 - limit - 2 * rate)
    return seen - line


def _most_losses(counts: Floats, observed: float, n: int, limit: float) -> Floats:
    """Per number of rows that differ, the largest ``worse`` that speaks as clearly for the promise; −1 for none."""
    low = np.full(len(counts), -1.0)
    # Beyond this the difference is larger than the limit, and the ratio speaks against the promise.
    high = np.minimum(np.ceil((counts + n * limit) / 2), counts + 1)
    while (high - low > 1).any():
        middle = np.floor((low + high) / 2)
        worse = np.maximum(middle, 0.0)
        # The observed table itself must count, whatever the last digit says.
        ratio = _likelihood_ratio(worse, counts - worse, n, limit)
        clear = (middle >= 0) & (ratio >= observed - 1e-9 * max(1.0, observed))
        moves = high - low > 1
        low, high = np.where(moves & clear, middle, low), np.where(moves & ~clear, middle, high)
    return low


def _likely_counts(n: int, low: float, high: float) -> Floats:
    """Counts that a binomial with a rate between ``low`` and ``high`` takes, but for a negligible part."""
    first = n * low - _REACH * np.sqrt(n * low) - _REACH
    last = n * high + _REACH * np.sqrt(n * high) + _REACH
    return np.arange(max(0, int(first)), min(n, int(last)) + 1, dtype=float)


def mean_p_value(
    values: Floats, limit: float, low: float, high: float, delta: float = 0.05
) -> float:
    """P-value of the promise that the mean of numbers between ``low`` and ``high`` is at most ``limit``, by betting.

    Parameters
    ----------
    values : array of shape (n_rows,)
        In an order that has nothing to do with their size: shuffle rows that may be sorted.
    limit, low, high : float
    delta : float, default=0.05
        Level the bets are best for; the p-value is valid at every level.

    Examples
    --------
    >>> values = np.random.default_rng(0).uniform(size=500)
    >>> mean_p_value(values, 0.6, 0, 1) < 0.05 < mean_p_value(values, 0.5, 0, 1)
    True
    """
    if limit >= high:
        return 0.0
    if limit < low:
        return 1.0
    x, m = (values - low) / (high - low), (limit - low) / (high - low)
    n = len(x)
    if x.mean() >= m:
        return 1.0  # the gambler may have been rich before, but nobody would believe him
    seen = np.arange(1, n + 1)
    mean = (0.5 + np.cumsum(x)) / (seen + 1)
    variance = (0.25 + np.cumsum((x - mean) ** 2)) / (seen + 1)
    # Each bet knows only the rows before it; were it otherwise the game would not be fair.
    before = np.concatenate([[0.25], variance[:-1]])
    stakes = np.minimum(np.sqrt(2 * np.log(1 / delta) / (n * before)), _LARGEST_STAKE / (1 - m))
    capital = np.cumsum(np.log1p(stakes * (m - x)))
    return float(min(1.0, np.exp(-max(0.0, float(capital.max())))))


def bound_of(
    p_value: Callable[[float], float], low: float, high: float, delta: float, steps: int = 24
) -> float:
    """Smallest limit a test still accepts at level δ: an upper confidence bound.

    Parameters
    ----------
    p_value : callable
        P-value of a limit, falling in it.
    low, high : float
        The bound is known to lie between them.

    Examples
    --------
    >>> round(bound_of(lambda limit: binomial_p_value(0, 59, limit), 0, 1, 0.05), 4)
    0.0495
    """
    if p_value(low) <= delta:
        return low
    for _ in range(steps):
        middle = (low + high) / 2
        if p_value(middle) <= delta:
            high = middle
        else:
            low = middle
    return high
