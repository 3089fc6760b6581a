"""Rows of OPT5, the allocation step of Adapt-Lstsq: what each contributes, and where it is smallest.

Seen alone a row has the term −a q + (s − g)² with s = logit q, and in ADMM ρ/2 (q − v)² on top. Its slope in s is
2(s − g) − q(1−q)·(a − ρ(q − v)). It may have two minima when the pull in the last bracket is large and leads through
the half of q's curve that bends the other way. Without ρ the points between which the term is concave are known in
closed form, so the smaller minimum is found for certain.

Called by ``_allocation_lstsq`` alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

LARGEST_LOGIT = 30.0
"""Log-odds of q are kept within these: doubles still tell 1 − q from 1, and a gate fitted to them stays finite."""

ROOT_TOLERANCE = 1e-12

_STEEPEST = np.sqrt(3.0) / 18.0
"""Largest value of q(1−q)(1−2q), the second derivative of q in s."""

_PIECES = 8
"""Points that divide the part where a row may be concave; minima of the separable step are looked for between them."""


def log_odds(q: Floats) -> Floats:
    """Log-odds of q, kept finite: what the gate of Adapt-Lstsq is fitted to (OPT6)."""
    limit = expit(-LARGEST_LOGIT)
    return logit(np.clip(q, limit, 1.0 - limit))


@dataclass(frozen=True)
class Rows:
    """What OPT5 is about.

    Attributes
    ----------
    excess : A, the loss of f1 above that of f0.
    gate : g.
    share : weights, which sum to 1.
    constant : mean loss of f0, the same for every q.
    """

    excess: Floats
    gate: Floats
    share: Floats
    constant: float

    def mean(self, values: Floats) -> float:
        return weighted_mean(values, self.share)

    def value(self, q: Floats) -> float:
        """Value of OPT5."""
        error = log_odds(q) - self.gate
        return self.constant + self.mean((1.0 - q) * self.excess + error * error)

    def minimum(self, beta: float, guess: Floats | None) -> Floats:
        """Log-odds of the exact minimum of each row, when going to f0 costs β."""
        a, g = self.excess - beta, self.gate
        # 2(s − g) = q(1−q)·a at a minimum, and q(1−q) is at most 1/4.
        low, high = g + np.minimum(a, 0.0) / 8.0, g + np.maximum(a, 0.0) / 8.0
        bent = _may_bend(a, g)
        return Terms(a, g, 0.0, 0.0).minimum(low, high, bent, _inflections(a[bent]), guess)

    def separable(self, rho: float, v: Floats, guess: Floats) -> Floats:
        """Log-odds of the separable step of ADMM: the best minimum found from several starts."""
        a, g = self.excess, self.gate
        # A minimum lies between g, where the gate wants it, and where all the rest of the term wants it.
        rest = log_odds(v + a / rho)
        low, high = np.minimum(g, rest), np.maximum(g, rest)
        # Between g and there the pull only falls; it starts with
        pull = a + rho * (v - expit(g))
        bent = _may_bend(pull, g)
        # Where q(1−q) times the pull is below 2 the term is convex: so |s| < log(pull/2) where it is not.
        steep = np.sign(pull[bent]) * np.log(0.5 * np.abs(pull[bent]))
        knots = np.sort(-steep[:, None] * np.linspace(0.0, 1.0, _PIECES), axis=1)
        return Terms(a, g, rho, v).minimum(low, high, bent, knots, guess)


@dataclass(frozen=True)
class Terms:
    """Rows' terms −a q + (s − g)² + ρ/2 (q − v)² as functions of s = logit q."""

    a: Floats
    g: Floats
    rho: float
    v: Floats | float

    def of(self, some: NDArray[Any]) -> Terms:
        v = self.v if isinstance(self.v, float) else self.v[some]
        return Terms(self.a[some], self.g[some], self.rho, v)

    def value(self, s: Floats) -> Floats:
        q = expit(s)
        return -self.a * q + (s - self.g) ** 2 + 0.5 * self.rho * (q - self.v) ** 2

    def slopes(self, s: Floats) -> tuple[Floats, Floats]:
        """First and second derivative."""
        q = expit(s)
        pull = self.a - self.rho * (q - self.v)
        spread = q * (1.0 - q)
        first = 2.0 * (s - self.g) - spread * pull
        return first, 2.0 + spread * (self.rho * spread - (1.0 - 2.0 * q) * pull)

    def minimum(
        self, low: Floats, high: Floats, bent: Booleans, knots: Floats, guess: Floats | None
    ) -> Floats:
        """Where each row is smallest between ``low`` and ``high``.

        Parameters
        ----------
        bent : rows that may have several minima.
        knots : points inside of these rows' intervals; every piece in which the slope turns from down to up is
            searched for its minimum, and so is an end from which it rises.
        guess : where to start; in a piece that does not hold it, in its middle.
        """
        low, high = (np.clip(end, -LARGEST_LOGIT, LARGEST_LOGIT) for end in (low, high))
        s = np.empty_like(low)
        plain = np.flatnonzero(~bent)
        start = None if guess is None else guess[plain]
        s[plain] = self.of(plain)._turning(low[plain], high[plain], start)
        if len(plain) == len(s):
            return s
        several = np.flatnonzero(bent)
        ends = low[several, None], high[several, None]
        edges = np.concatenate([ends[0], np.clip(knots, *ends), ends[1]], axis=1)
        column = Terms(
            self.a[several, None],
            self.g[several, None],
            self.rho,
            self.v if isinstance(self.v, float) else self.v[several, None],
        )
        first = column.slopes(edges)[0]
        left, right = first[:, :-1] < 0, first[:, 1:] > 0
        left[:, 0] = True
        right[:, -1] = True
        row, piece = np.nonzero(left & right)
        found, ends = self.of(several[row]), (edges[row, piece], edges[row, piece + 1])
        middle = 0.5 * (ends[0] + ends[1])
        if guess is not None:
            known = guess[several[row]]
            middle = np.where((ends[0] <= known) & (known <= ends[1]), known, middle)
        places = found._turning(*ends, middle)
        values = found.value(places)
        # By row, the smallest value first: the first place of each row is its minimum.
        order = np.lexsort((values, row))
        _, first_of = np.unique(row[order], return_index=True)
        s[several] = places[order[first_of]]
        return s

    def _turning(self, low: Floats, high: Floats, start: Floats | None) -> Floats:
        """Where the slope turns from down to up in each interval, or the end it falls to: Newton in a bracket."""
        s = 0.5 * (low + high) if start is None else np.clip(start, low, high)
        result, active, terms, last = s.copy(), np.arange(len(s)), self, high - low
        for _ in range(200):
            first, second = terms.slopes(s)
            low, high = np.where(first < 0, s, low), np.where(first > 0, s, high)
            with np.errstate(divide="ignore", invalid="ignore"):
                following = s - first / second
            # Newton from either side of a bend can swing forever: each step at most half the one before.
            good = (second > 0) & (following >= low) & (following <= high)
            good &= np.abs(following - s) <= 0.5 * last
            following = np.where(good, following, 0.5 * (low + high))
            following = np.where(first == 0, s, following)
            last = np.abs(following - s)
            result[active] = s = following
            # What a short step of Newton's leaves is about its square.
            going = last > np.where(good, ROOT_TOLERANCE**0.5, ROOT_TOLERANCE)
            n_going = np.count_nonzero(going)
            if not n_going:
                break
            if n_going < 0.7 * len(going):
                active, s, last = active[going], s[going], last[going]
                low, high, terms = low[going], high[going], terms.of(going)
        return result


def _may_bend(pull: Floats, g: Floats) -> Booleans:
    """Rows that may have two minima: pulled hard enough, and through the half of q's curve that bends that way."""
    return (np.abs(pull) * _STEEPEST > 2.0) & (pull * g < 0)


def _inflections(a: Floats) -> Floats:
    """Log-odds between which a row with so large a pull is concave: a q(1−q)(1−2q) = 2, a cubic in t = |1 − 2q|."""
    angle = np.arccos(-12.0 * np.sqrt(3.0) / np.abs(a)) / 3.0
    far, near = (2.0 / np.sqrt(3.0) * np.cos(angle - turn) for turn in (0.0, 2.0 * np.pi / 3.0))
    # Rounding may put t above 1, where the term is as good as straight.
    ends = -2.0 * np.arctanh(np.minimum(np.stack([far, near], axis=1), 1.0 - 1e-16))
    return np.where(a[:, None] > 0, ends, -ends[:, ::-1])


def weighted_mean(values: Floats, share: Floats) -> float:
    # Not `@`: BLAS would wake its threads, which takes longer than the sum.
    return float(np.einsum("i,i->", share, values))
