"""Kinds of promises: what each says about a system's calibration rows, and the test that decides.

A promise is broken when its quantity exceeds its limit. Called by ``guarantees``, which makes :class:`Facts` of a
system and asks every promise for a p-value; a system keeps its promises when the largest is at most δ.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sparing._bounds import (
    binomial_bound,
    binomial_p_value,
    bound_of,
    mean_p_value,
    paired_p_value,
)
from sparing._certificate import Finding

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

_MOST_ROWS = 10_000_000
"""Sample sizes beyond this are not worth advising."""


@dataclass(frozen=True, eq=False)
class Facts:
    """What a system did on the calibration rows, in an order that has nothing to do with them.

    Attributes
    ----------
    y : labels.
    answering : stage that answers each row.
    kept : rows that were not sent to the full model.
    right : whether the system's answer is right.
    loss : what each row's answer loses: 0 or 1, or its misclassification cost.
    full_loss : the same of the full model; None without one.
    cost : what each row costs.
    stage_prices : what a row answered at each stage costs; None by path, where rows differ.
    least, most : costs a row can have at all.
    """

    y: NDArray[Any]
    answering: NDArray[np.intp]
    kept: Booleans
    right: Booleans
    loss: Floats
    full_loss: Floats | None
    cost: Floats
    stage_prices: Floats | None
    least: float
    most: float


class Promise(ABC):
    """One promise; ``scale`` asks what the same rates on more rows would say."""

    kind: ClassVar[str]
    method: ClassVar[str]
    limit: float

    @abstractmethod
    def p_value(self, facts: Facts, delta: float, scale: float = 1.0) -> float:
        """P-value against the promise being broken."""

    @abstractmethod
    def estimate(self, facts: Facts) -> float:
        """The quantity on these rows."""

    @abstractmethod
    def bound(self, facts: Facts, delta: float) -> float:
        """Upper confidence bound of the quantity."""

    def n(self, facts: Facts) -> int:
        """Rows that say something about it."""
        return len(facts.y)

    @property
    def what(self) -> str:
        """Of what the promise speaks."""
        return ""

    def how(self, facts: Facts) -> str:  # noqa: ARG002
        """Name of the test."""
        return self.method

    def finding(self, facts: Facts, delta: float) -> Finding:
        """The evidence, for a certificate."""
        return Finding(
            self.kind,
            self.what,
            self.limit,
            self.estimate(facts),
            self.bound(facts, delta),
            self.p_value(facts, delta),
            self.n(facts),
            self.how(facts),
        )

    def rows_needed(self, facts: Facts, delta: float) -> int | None:
        """Calibration rows that would do at the rates seen; None when no number would."""
        if not self.estimate(facts) < self.limit:
            return None
        n, scale = len(facts.y), 1.0
        while self.p_value(facts, delta, scale) > delta:
            scale *= 1.1
            if scale * n > _MOST_ROWS:
                return None
        return int(np.ceil(scale * n))

    # -- before there are any facts -----------------------------------------------------------------

    ideal: ClassVar[str] = "a system without mistakes"

    @property
    def of_what(self) -> str:
        """Of which rows it speaks, when not of all."""
        return ""

    @property
    def wish(self) -> str:
        """The promise as it is asked for."""
        return f"{self.kind}={self.limit:g}"

    def rows_among(self, y: NDArray[Any]) -> int:
        """Rows with these labels that could say something about it."""
        return len(y)

    @abstractmethod
    def at_best(self, n: int, delta: float) -> float:
        """P-value from ``n`` rows on which nothing at all goes wrong."""

    def least_rows(self, delta: float) -> int | None:
        """Rows below which no system can be promised to keep it; None when no number is enough."""
        high = 1
        while self.at_best(high, delta) > delta:
            high *= 2
            if high > _MOST_ROWS:
                return None
        low = high // 2
        while high - low > 1:
            middle = (low + high) // 2
            if self.at_best(middle, delta) > delta:
                low = middle
            else:
                high = middle
        return high


@dataclass(frozen=True)
class PairedTolerance(Promise):
    """The system's accuracy is at most ``limit`` below the full model's."""

    limit: float
    kind = "tolerance"
    method = "exact paired test"
    what = "accuracy"
    ideal = "a system that answers like the full model"

    def at_best(self, n: int, delta: float) -> float:
        """Where no answer differs; that nothing is lost can only be shown of a better system."""
        return paired_p_value(0, 0, n, self.limit, delta) if self.limit > 0 else 0.0

    def p_value(self, facts: Facts, delta: float, scale: float = 1.0) -> float:
        """By the rows on which one of the two is right."""
        return self._at(facts, delta, scale, self.limit)

    def _at(self, facts: Facts, delta: float, scale: float, limit: float) -> float:
        difference = _difference(facts)
        worse = round(scale * float(np.sum(difference > 0)))
        better = round(scale * float(np.sum(difference < 0)))
        return paired_p_value(worse, better, round(scale * len(difference)), limit, delta)

    def estimate(self, facts: Facts) -> float:
        """Accuracy lost."""
        return float(_difference(facts).mean())

    def bound(self, facts: Facts, delta: float) -> float:
        """Not below 0: the test is made for tolerances."""
        return bound_of(partial(self._at, facts, delta, 1.0), 0.0, 1.0, delta)


@dataclass(frozen=True)
class BoundedTolerance(Promise):
    """The system's average misclassification cost is at most ``limit`` above the full model's.

    ``reach`` is the largest difference of two entries in a row of the matrix.
    """

    limit: float
    reach: float
    kind = "tolerance"
    method = "betting, rows shuffled"
    what = "minus misclassification cost"
    ideal = "a system that answers like the full model"

    def at_best(self, n: int, delta: float) -> float:
        """Where no answer differs; that nothing is lost can only be shown of a better system."""
        return self._at(np.zeros(n), delta, self.limit) if self.limit > 0 else 0.0

    def p_value(self, facts: Facts, delta: float, scale: float = 1.0) -> float:
        """By betting on the differences."""
        return self._at(_repeated(_difference(facts), scale), delta, self.limit)

    def _at(self, values: Floats, delta: float, limit: float) -> float:
        return mean_p_value(values, limit, -self.reach, self.reach, delta)

    def estimate(self, facts: Facts) -> float:
        """Cost of mistakes above the full model's."""
        return float(_difference(facts).mean())

    def bound(self, facts: Facts, delta: float) -> float:
        """By betting."""
        at = partial(self._at, _difference(facts), delta)
        return bound_of(at, -self.reach, self.reach, delta)


@dataclass(frozen=True)
class Budget(Promise):
    """The average cost is at most ``limit``."""

    limit: float
    kind = "budget"
    method = "betting, rows shuffled"

    def at_best(self, n: int, delta: float) -> float:  # noqa: ARG002
        """A system whose every row costs less needs no proof."""
        return 0.0

    def p_value(self, facts: Facts, delta: float, scale: float = 1.0) -> float:
        """Exact where a row costs one of two prices, by betting otherwise."""
        return self._at(facts, delta, scale, self.limit)

    def _at(self, facts: Facts, delta: float, scale: float, limit: float) -> float:
        two = _two_prices(facts)
        if limit >= facts.most or limit < facts.least:
            return float(limit < facts.least)
        if two is None:
            return mean_p_value(_repeated(facts.cost, scale), limit, facts.least, facts.most, delta)
        dear, n = np.sum(facts.cost > two[0]), len(facts.cost)
        rate = (limit - two[0]) / (two[1] - two[0])
        return binomial_p_value(round(float(scale * dear)), round(scale * n), rate)

    def how(self, facts: Facts) -> str:
        """Which of the two."""
        return self.method if _two_prices(facts) is None else "exact binomial test"

    def estimate(self, facts: Facts) -> float:
        """Average cost."""
        return float(facts.cost.mean())

    def bound(self, facts: Facts, delta: float) -> float:
        """Between the costs a row can have."""
        at = partial(self._at, facts, delta, 1.0)
        return bound_of(at, facts.least, facts.most, delta)


@dataclass(frozen=True)
class WrongRows(Promise):
    """Of the rows not sent to the full model, a share of at most ``limit`` is answered wrongly.

    Given how many rows were kept, the number of errors among them is binomial: the test is exact.
    """

    limit: float
    kind = "max_error"
    method = "exact binomial test"

    def at_best(self, n: int, delta: float) -> float:  # noqa: ARG002
        """Without an error."""
        return binomial_p_value(0, n, self.limit)

    def _rows(self, facts: Facts) -> Booleans:
        return facts.kept

    def p_value(self, facts: Facts, delta: float, scale: float = 1.0) -> float:  # noqa: ARG002
        """By the errors among these rows."""
        rows = self._rows(facts)
        wrong = np.sum(rows & ~facts.right)
        return binomial_p_value(
            round(float(scale * wrong)), round(float(scale * rows.sum())), self.limit
        )

    def n(self, facts: Facts) -> int:
        """Rows the promise is about."""
        return int(self._rows(facts).sum())

    def estimate(self, facts: Facts) -> float:
        """Share of errors."""
        rows = self._rows(facts)
        return float(np.mean(~facts.right[rows])) if rows.any() else 0.0

    def bound(self, facts: Facts, delta: float) -> float:
        """By Clopper and Pearson."""
        rows = self._rows(facts)
        return binomial_bound(int(np.sum(rows & ~facts.right)), int(rows.sum()), delta)


@dataclass(frozen=True)
class MissedRows(WrongRows):
    """Of the rows of one class a share of at most ``limit`` is missed; given their number, exact."""

    label: Any = None
    kind = "min_recall"

    @property
    def wish(self) -> str:
        """A floor, as it is asked for."""
        return f"min_recall={{{self.label!r}: {1 - self.limit:g}}}"

    @property
    def of_what(self) -> str:
        """The class."""
        return f" of class {self.label!r}"

    def rows_among(self, y: NDArray[Any]) -> int:
        """Rows of the class."""
        return int(np.sum(y == self.label))

    def _rows(self, facts: Facts) -> Booleans:
        return facts.y == self.label

    @property
    def what(self) -> str:
        """The class."""
        return repr(self.label)


def _difference(facts: Facts) -> Floats:
    assert facts.full_loss is not None
    return facts.loss - facts.full_loss


def _two_prices(facts: Facts) -> tuple[float, float] | None:
    """The two prices a row can have, when there are no more."""
    if facts.stage_prices is None:
        return None
    prices = np.unique(facts.stage_prices)
    return (float(prices[0]), float(prices[1])) if len(prices) == 2 else None


def _repeated(values: Floats, scale: float) -> Floats:
    return values if scale == 1 else np.resize(values, round(scale * len(values)))
