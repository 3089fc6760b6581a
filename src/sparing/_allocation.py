"""The allocation step: who should go to f0, given the losses and the gate (OPT1).

OPT1 minimises mean[(1−q)A + qB − H(q)] under mean(q) ≤ P_full, with A = ℓ1 + softplus(g) and B = ℓ0 + softplus(−g).
Its solution is q = σ(A − B − β) with β ≥ 0 the smallest that satisfies the bound; since
softplus(g) − softplus(−g) = g, the log-odds are simply ℓ1 − ℓ0 + g − β.

Called by the engines and by the alternation. Knows losses, never prices.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

Floats = NDArray[np.float64]

_CHUNK = 1 << 16
"""Rows per block: temporaries stay in the processor's cache and memory stays flat."""
_SAMPLE = 1 << 14
"""Rows of the sample that finds the first guess of β."""
_TOLERANCE = 1e-12


@dataclass(frozen=True)
class Allocation:
    """Solution of OPT1.

    Attributes
    ----------
    q : probability of going to f0, per row.
    beta : multiplier of the bound on mean(q); 0 when the bound is slack.
    n_passes : passes over the rows it took.
    """

    q: Floats
    beta: float
    n_passes: int

    @property
    def record(self) -> dict[str, float]:
        """What the history of an alternation keeps beside the objective: nothing, the solution is exact."""
        return {}


def allocate(
    cheap_loss: Floats,
    full_loss: Floats,
    gate: Floats,
    full_rate: float,
    weight: Floats | None = None,
    start: float | None = None,
) -> Allocation:
    """Solve OPT1.

    Parameters
    ----------
    cheap_loss, full_loss : losses of f1 and f0 per row.
    gate : g per row.
    full_rate : upper bound on the weighted mean of q (P_full), in [0, 1]. At 0, q is 0 and β infinite.
    weight : weights of the rows, or None for equal ones.
    start : a guess of β, for example the last one in a sequence of similar problems.

    Examples
    --------
    >>> import numpy as np
    >>> loss = np.array([3.0, 2.0, 0.1, 0.0])
    >>> free = allocate(loss, np.zeros(4), np.zeros(4), 1.0)
    >>> free.beta, free.q.round(2)
    (0.0, array([0.95, 0.88, 0.52, 0.5 ]))
    >>> bound = allocate(loss, np.zeros(4), np.zeros(4), 0.25)
    >>> round(bound.beta, 3), round(float(bound.q.mean()), 12)
    (2.766, 0.25)
    """
    log_odds = np.subtract(cheap_loss, full_loss, dtype=np.float64)
    log_odds += gate
    if full_rate <= 0.0:
        return Allocation(np.zeros_like(log_odds), float("inf"), 0)
    share = None if weight is None else weight / weight.sum()
    beta, passes = multiplier(log_odds, full_rate, share, start)
    for rows in _blocks(len(log_odds)):
        block = log_odds[rows]
        block -= beta
        expit(block, out=block)
    return Allocation(log_odds, beta, passes + 1)


def multiplier(
    log_odds: Floats, full_rate: float, share: Floats | None, start: float | None
) -> tuple[float, int]:
    """Smallest β ≥ 0 with Σ share·σ(log_odds − β) ≤ full_rate, and the passes it took.

    Newton's method on logit(mean q(β)), which is exactly linear in β when all rows are alike and close to it otherwise,
    kept inside a bracket. A sample gives the first guess, so that most passes are spent where they count.
    """
    rate, slope = _mean_rate(log_odds, 0.0, share)
    passes = 1
    if rate <= full_rate:
        return 0.0, passes
    low, high = 0.0, float(log_odds.max()) - logit(min(full_rate, 0.5)) + 1.0
    if start is not None and low < start < high:
        beta = start
    elif len(log_odds) > 4 * _SAMPLE:
        beta = min(_sampled_multiplier(log_odds, full_rate, share), high)
    else:
        beta = _newton(0.0, rate, slope, full_rate, low, high)
    target = _TOLERANCE * min(1.0, 1e3 * full_rate)  # a tiny bound deserves a relative error
    for _ in range(100):
        rate, slope = _mean_rate(log_odds, beta, share)
        passes += 1
        if abs(rate - full_rate) <= target:
            return beta, passes
        if rate > full_rate:
            low = beta
        else:
            high = beta
        if high - low <= 4 * np.spacing(high):
            break
        beta = _newton(beta, rate, slope, full_rate, low, high)
    # Losses so large that doubles cannot meet the tolerance: the side that keeps the bound.
    return high, passes


def _sampled_multiplier(log_odds: Floats, full_rate: float, share: Floats | None) -> float:
    """β of a sample of the rows."""
    every = slice(None, None, len(log_odds) // _SAMPLE)
    if share is None:
        return multiplier(log_odds[every], full_rate, None, None)[0]
    total = share[every].sum()
    if not total > 0.0:  # none of the rows that count is in the sample
        return 0.0
    return multiplier(log_odds[every], full_rate, share[every] / total, None)[0]


def _newton(
    beta: float, rate: float, slope: float, full_rate: float, low: float, high: float
) -> float:
    """One Newton step on logit(rate) − logit(full_rate), or bisection when it leaves the bracket."""
    if 0.0 < rate < 1.0 and slope > 0.0:
        proposal = beta + (logit(rate) - logit(full_rate)) * rate * (1.0 - rate) / slope
        if low < proposal < high:
            return float(proposal)
    return 0.5 * (low + high)


def _mean_rate(log_odds: Floats, beta: float, share: Floats | None) -> tuple[float, float]:
    """Weighted mean of q and of q(1−q), which is minus its derivative in β."""
    rate = slope = 0.0
    buffer = np.empty(min(len(log_odds), _CHUNK))
    for rows in _blocks(len(log_odds)):
        q = np.subtract(log_odds[rows], beta, out=buffer[: len(log_odds[rows])])
        expit(q, out=q)
        weighted = q if share is None else q * share[rows]
        first = weighted.sum()
        rate += first
        # Not `@`: BLAS would wake its threads for every block, which takes longer than the block.
        slope += first - np.einsum("i,i->", weighted, q)
    n = len(log_odds) if share is None else 1.0
    return rate / n, slope / n


def _blocks(n: int) -> list[slice]:
    return [slice(i, i + _CHUNK) for i in range(0, n, _CHUNK)]
