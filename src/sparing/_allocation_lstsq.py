"""The allocation step of Adapt-Lstsq: who should go to f0 when g is held to the log-odds of q (OPT5).

OPT5 minimises Σ w [(1−q)A + (logit q − g)²] under Σ w q ≤ P_full, with A = ℓ1 − ℓ0 and weights that sum to 1. Rows
meet in the bound alone, and each row's own term is not convex. ADMM splits q into a separable copy, minimised row by
row over s = logit q, and a copy z that is projected onto the bound:

    q ← argmin −A q + (s − g)² + ρ/2 (q − z + u)²,   z ← Π(q + u),   u ← u + q − z.

Distances count with the weights of the rows, so that weights leave both steps as they are and equal copies of rows.

Beside it stands the dual, max over β ≥ 0 of Σ w min_s [(1−q)A + (s − g)² + β q] − β P_full. The minimum of a row is
found exactly, so every value of the dual is a lower bound on OPT5, and the gap between the two certifies the solution.

Called by Adapt-Lstsq's problem. Knows losses, never prices.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from sparing._allocation import Allocation, multiplier
from sparing._allocation_rows import ROOT_TOLERANCE, Rows, Terms, log_odds, weighted_mean

Floats = NDArray[np.float64]

_FLAT = 0.02
"""Smallest q(1−q) that the first ρ of ADMM is made for."""

_BALANCING = 60
"""Iterations of ADMM in which ρ may still change; it converges for one that stays."""

_FIRST = 100.0
"""Largest first guess of the multiplier: where q hardly moves, Newton's would be anything."""

_GAP = 1e-9
"""Relative gap at which the search for the best multiplier ends."""

_GAP_ENOUGH = 1e-6
"""Relative gap to the bound at which the dual's allocation is as good as solved: one iteration of ADMM confirms it."""


@dataclass(frozen=True)
class LstsqAllocation(Allocation):
    """Solution of OPT5; ``n_passes`` counts the times all rows were minimised.

    Attributes
    ----------
    objective : value of OPT5 at q.
    bound : lower bound from the dual: no allocation is better.
    n_iter : iterations of ADMM; 0 when the bound on mean(q) is slack.
    primal_residual, dual_residual : where ADMM stopped; root mean squares over the rows.
    """

    objective: float
    bound: float
    n_iter: int
    primal_residual: float
    dual_residual: float

    @property
    def record(self) -> dict[str, float]:
        """What the history of an alternation keeps of it."""
        return {"allocation_objective": self.objective, "allocation_bound": self.bound}


def lstsq_objective(
    cheap_loss: Floats, full_loss: Floats, gate: Floats, q: Floats, weight: Floats | None = None
) -> float:
    """Mean of (1−q)·ℓ1 + q·ℓ0 + (logit q − g)², which OPT5, OPT6 and OPT7 minimise in turn.

    Examples
    --------
    >>> import numpy as np
    >>> lstsq_objective(np.array([1.0]), np.array([0.5]), np.array([2.0]), np.array([0.5]))
    4.75
    """
    value = (1.0 - q) * cheap_loss + q * full_loss + (log_odds(q) - gate) ** 2
    return float(np.average(value, weights=weight))


def allocate_lstsq(
    cheap_loss: Floats,
    full_loss: Floats,
    gate: Floats,
    full_rate: float,
    weight: Floats | None = None,
    start: float | None = None,
    *,
    tol: float = 1e-5,
    max_iter: int = 100,
) -> LstsqAllocation:
    """Solve OPT5 by ADMM, and bound it by its dual.

    Parameters
    ----------
    cheap_loss, full_loss : losses of f1 and f0 per row.
    gate : g per row.
    full_rate : upper bound on the weighted mean of q (P_full), in [0, 1]. At 0, q is 0 and β infinite.
    weight : weights of the rows, or None for equal ones.
    start : a guess of the multiplier β, for example the last one in a sequence of similar problems.
    tol : ADMM stops when both residuals are below it: the primal one in units of q, the dual one relative to β.
    max_iter : iterations of ADMM, at most.

    Returns
    -------
    LstsqAllocation
        ADMM starts from the dual's multiplier and allocation. q is its separable copy, moved onto the bound by a
        small common step of the log-odds, or the dual's own allocation where that is better: rows that tie can keep
        ADMM from settling.

    Examples
    --------
    >>> import numpy as np
    >>> loss = np.array([3.0, 2.0, 0.1, 0.0])
    >>> solution = allocate_lstsq(loss, np.zeros(4), np.zeros(4), 0.25)
    >>> round(float(solution.q.mean()), 9), bool(solution.objective - solution.bound < 1e-6)
    (0.25, True)
    """
    n = len(gate)
    share = np.full(n, 1.0 / n) if weight is None else weight / weight.sum()
    excess = np.subtract(cheap_loss, full_loss, dtype=np.float64)
    rows = Rows(excess, np.asarray(gate, dtype=np.float64), share, weighted_mean(full_loss, share))
    if full_rate <= 0.0:
        q = np.zeros(n)
        return LstsqAllocation(q, float("inf"), 0, rows.value(q), rows.value(q), 0, 0.0, 0.0)
    free = rows.minimum(0.0, None)
    q = expit(free)
    if rows.mean(q) <= full_rate:
        return LstsqAllocation(q, 0.0, 1, rows.value(q), rows.value(q), 0, 0.0, 0.0)
    guess = start if start is not None and 0.0 < start < np.inf else None
    dual = maximise_dual(rows, full_rate, free, guess)
    starts = [dual.s, dual.filled(rows, full_rate)]
    found = [_onto_bound(rows, s, full_rate) for s in starts]
    values = [value for _, value in found]
    begin = starts[int(np.argmin(values))]
    # Rows that tie would keep ADMM going for nothing.
    settled = min(values) - dual.bound <= _GAP_ENOUGH * (1.0 + abs(dual.bound))
    most = 1 if settled else max_iter
    split = admm(rows, full_rate, begin, dual.beta, tol=tol, max_iter=most)
    found.append(_onto_bound(rows, split.s, full_rate))
    q, value = min(found, key=lambda each: each[1])
    passes = 1 + split.n_iter + dual.n_passes
    ends = (split.n_iter, split.primal, split.dual)
    return LstsqAllocation(q, dual.beta, passes, value, dual.bound, *ends)


def _onto_bound(rows: Rows, s: Floats, full_rate: float) -> tuple[Floats, float]:
    """Allocation of log-odds s that keeps the bound, all rows moved by the same small step, and its value.

    Room that is left is worth β per unit: rows are also tried a little higher, which rows far from a gate they agree
    with would rather not.
    """
    tried = []
    for higher in (0.0, 1.0):
        step, _ = multiplier(s + higher, full_rate, rows.share, higher)
        q = expit(s + (higher - step))
        tried.append((q, rows.value(q)))
    return min(tried, key=lambda each: each[1])


# -- ADMM ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Split:
    """Where ADMM ended: log-odds of the separable copy, multiplier, residuals."""

    s: Floats
    beta: float
    n_iter: int
    primal: float
    dual: float


def admm(
    rows: Rows,
    full_rate: float,
    s: Floats,
    beta: float,
    *,
    tol: float,
    max_iter: int,
) -> Split:
    """Alternate separable minima and projections until both residuals are small; ρ keeps them in balance.

    Parameters
    ----------
    s, beta : log-odds and multiplier to start from.
    tol : largest residuals, see :func:`allocate_lstsq`.
    max_iter : iterations, at most.
    """
    # A row's own curvature in q is 2/(q(1−q))²: a ρ like that of a row at the bound is a good one to begin with.
    rho, q = 2.0 / max(full_rate * (1.0 - full_rate), _FLAT) ** 2, expit(s)
    u = np.full_like(q, beta / rho)
    z, price = project(q + u, full_rate, rows.share)
    for n_iter in range(1, max_iter + 1):
        s = rows.separable(rho, z - u, s)
        q, before = expit(s), z
        z, price = project(q + u, full_rate, rows.share)
        u += q - z
        primal = np.sqrt(rows.mean((q - z) ** 2))
        dual = rho * np.sqrt(rows.mean((z - before) ** 2))
        scale = max(1.0, rho * price)
        if primal <= tol and dual <= tol * scale:
            break
        if n_iter <= _BALANCING and max(primal * scale, dual) > 10.0 * min(primal * scale, dual):
            factor = 2.0 if primal * scale > dual else 0.5
            rho *= factor
            u /= factor
    return Split(s, rho * price, n_iter, float(primal), float(dual))


def project(v: Floats, full_rate: float, share: Floats) -> tuple[Floats, float]:
    """Projection onto {Σ share·z ≤ full_rate} ∩ [0, 1]ⁿ in the norm with the same weights, and its multiplier.

    It is z = clip(v − μ, 0, 1) with the smallest μ ≥ 0 that meets the bound. The mean of z is piecewise linear in μ:
    Newton's method in a bracket ends after a few pieces.

    Examples
    --------
    >>> import numpy as np
    >>> z, price = project(np.array([1.5, 0.5, 0.2]), 0.5, np.full(3, 1 / 3))
    >>> z, round(price, 9)
    (array([1. , 0.4, 0.1]), 0.1)
    """
    low, high, price = 0.0, float(v.max()), 0.0
    for _ in range(200):
        z = np.clip(v - price, 0.0, 1.0)
        over = weighted_mean(z, share) - full_rate
        if abs(over) <= ROOT_TOLERANCE * full_rate or (price == 0.0 and over < 0):
            break
        if over > 0:
            low = price
        else:
            high = price
        if high - low <= 4 * np.spacing(high):
            break
        falling = weighted_mean(((z > 0.0) & (z < 1.0)).astype(float), share)
        price = price + over / falling if falling > 0 else -1.0
        if not low < price < high:
            price = 0.5 * (low + high)
    return z, price


# -- the dual ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Dual:
    """The best multiplier, the bound it proves, and the allocations around it.

    Attributes
    ----------
    beta, bound : where the dual is largest, and its value there.
    s : log-odds of the allocation at ``beta``; mean(q) may be a little above the bound.
    keeps, breaks : log-odds of the allocations of a larger and a smaller multiplier, one on each side of the bound;
        close to the best they differ where rows have two minima that tie.
    """

    beta: float
    bound: float
    s: Floats
    keeps: Floats
    breaks: Floats
    n_passes: int

    def filled(self, rows: Rows, full_rate: float) -> Floats:
        """The allocation that keeps the bound, with as many rows on their other minimum as it leaves room for."""
        s, q, other = self.keeps.copy(), expit(self.keeps), expit(self.breaks)
        gain = rows.share * (other - q)
        order = np.argsort(-gain, kind="stable")
        fits = gain[order].cumsum() <= full_rate - rows.mean(q)
        chosen = order[fits & (gain[order] > 0)]
        s[chosen] = self.breaks[chosen]
        return s


def maximise_dual(rows: Rows, full_rate: float, free: Floats, start: float | None = None) -> Dual:
    """Maximise the dual, which is concave, by Newton steps kept inside a bracket.

    Two tangents of a concave function bound it from above where they meet: the search ends when they cannot be more
    than ``_GAP`` above the best value seen.

    Parameters
    ----------
    free : log-odds of the allocation at multiplier 0, which breaks the bound on mean(q).
    start : a guess of the multiplier.
    """
    low = _Tangent.at(rows, full_rate, 0.0, free)
    high: _Tangent | None = None
    best = here = low
    beta = min(low.newton, _FIRST) if start is None else start
    for n_passes in range(1, 200):
        here = _Tangent.at(rows, full_rate, beta, rows.minimum(beta, here.s))
        best = max(best, here, key=lambda tangent: tangent.value)
        if here.slope > 0:
            low = here
        else:
            high = here
        if high is None:
            beta = min(max(here.newton, 1.1 * beta), 4.0 * beta + 1.0)
            continue
        meet = low.meets(high)
        if low.value + low.slope * (meet - low.beta) - best.value <= _GAP * (1.0 + abs(best.value)):
            break
        inside = low.beta < here.newton < high.beta
        beta = here.newton if inside and n_passes % 4 else 0.5 * (low.beta + high.beta)
    assert high is not None
    return Dual(best.beta, best.value, best.s, high.s, low.s, n_passes)


@dataclass(frozen=True)
class _Tangent:
    """The dual at one multiplier.

    Attributes
    ----------
    s : log-odds of the rows' minima.
    value, slope : of the dual; the slope is what mean(q) is above the bound.
    newton : multiplier at which mean(q) would keep the bound exactly if its own slope stayed.
    """

    beta: float
    s: Floats
    value: float
    slope: float
    newton: float

    @classmethod
    def at(cls, rows: Rows, full_rate: float, beta: float, s: Floats) -> _Tangent:
        q, error = expit(s), s - rows.gate
        slope = rows.mean(q) - full_rate
        value = rows.constant + rows.mean((1.0 - q) * rows.excess + error * error) + beta * slope
        bend = Terms(rows.excess - beta, rows.gate, 0.0, 0.0).slopes(s)[1]
        fall = rows.mean((q * (1.0 - q)) ** 2 / np.maximum(bend, 1e-3))
        return cls(beta, s, value, slope, beta + slope / max(fall, 1e-300))

    def meets(self, other: _Tangent) -> float:
        """Multiplier at which two tangents have the same value."""
        offset = (other.value - other.slope * other.beta) - (self.value - self.slope * self.beta)
        difference = self.slope - other.slope
        meet = offset / difference if difference > 0 else self.beta
        return float(np.clip(meet, self.beta, other.beta))
