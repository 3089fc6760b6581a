"""Hard caps on money, and what a session does when something goes wrong.

A cap is checked and the price reserved before anything is bought: in the ledger's transaction where there is one, so
that all processes together cannot overshoot, under a lock otherwise.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Literal

from sparing.runtime._claim import Call, Claim, Outcome, Want, new_key

__all__ = ["LimitError", "Limits", "Policy"]

BUCKETS = 60
"""Parts of a time window. The oldest part counts in full: a cap is kept in every window, with a sixtieth to spare."""

_TINY = 1e-9
"""Share of a cap by which sums of prices may miss it through rounding."""


class LimitError(RuntimeError):
    """A purchase would go over a cap; nothing was bought.

    Examples
    --------
    >>> from sparing.runtime import Limits
    >>> Limits(per_entity=5).check("anna", 3.0, spent=lambda: 4.0, spent_in=lambda seconds: 0.0)
    Traceback (most recent call last):
    sparing.runtime.limits.LimitError: Entity 'anna' has cost 4; another 3 would go over its limit of 5.
    """


@dataclass(frozen=True)
class Limits:
    """Hard caps on what is spent, items and calls together.

    Parameters
    ----------
    per_entity : float or None, default=None
        What one entity may cost, all its purchases in the books together.
    per_window : mapping of seconds to money, optional
        What may be spent in any stretch of time of this length: ``{3600: 500, 86400: 4000}``.

    Examples
    --------
    >>> Limits(per_entity=40.0, per_window={3600: 500.0})
    Limits(per_entity=40.0, per_window={3600.0: 500.0})
    >>> Limits(per_entity=-1)
    Traceback (most recent call last):
    ValueError: per_entity is -1, must be a number ≥ 0.
    """

    per_entity: float | None = None
    per_window: Mapping[float, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.per_entity is not None and not (
            _is_number(self.per_entity) and self.per_entity >= 0
        ):
            raise ValueError(f"per_entity is {self.per_entity!r}, must be a number ≥ 0.")
        if not isinstance(self.per_window, Mapping):
            raise TypeError(
                f"per_window is {self.per_window!r}, must be a mapping of seconds to money: {{3600: 500}} is 500 in "
                "any hour."
            )
        for seconds, cap in self.per_window.items():
            if not (_is_number(seconds) and _is_number(cap) and seconds > 0 and cap >= 0):
                raise ValueError(
                    f"per_window has {seconds!r}: {cap!r}; give seconds > 0 and money ≥ 0."
                )
        windows = {float(seconds): float(cap) for seconds, cap in self.per_window.items()}
        object.__setattr__(self, "per_window", windows)

    def check(
        self,
        entity: Hashable,
        price: float,
        spent: Callable[[], float],
        spent_in: Callable[[float], float],
    ) -> None:
        """Raise when this price on top of what is spent goes over a cap.

        Parameters
        ----------
        entity : whom it is for.
        price : what is about to be reserved.
        spent : gives what the entity has cost so far.
        spent_in : gives what was spent in the last so many seconds.
        """
        if price <= 0:
            return
        if self.per_entity is not None and over(spent() + price, self.per_entity):
            raise LimitError(
                f"Entity {entity!r} has cost {spent():.10g}; another {price:.10g} would go over its limit of "
                f"{self.per_entity:.10g}."
            )
        for seconds, cap in self.per_window.items():
            before = spent_in(seconds)
            if over(before + price, cap):
                raise LimitError(
                    f"{before:.10g} were spent in the last {seconds:.10g} s; another {price:.10g} for entity "
                    f"{entity!r} would go over the limit of {cap:.10g}."
                )


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def over(amount: float, cap: float) -> bool:
    """Whether an amount is over a cap, rounding aside."""
    return amount > cap + _TINY * max(1.0, abs(cap))


@dataclass(frozen=True)
class Policy:
    """What a session does when a source fails, a limit is reached, or nobody knows whether a payment went through.

    Parameters
    ----------
    on_failure : {"degrade", "raise"}, default="degrade"
        ``"degrade"`` answers with the best stage whose columns are all there, and says so in the answer (``degraded``,
        ``reason``); when there is none it raises :class:`NoAnswerError`, as ``"raise"`` always does.
    unknown : {"refuse", "retry"}, default="refuse"
        What to do about a payment whose end is unknown (a crash, an answer that never came) at a source that does not
        honour idempotency keys: not pay again, or pay again, which counts again in the books and under the limits.
        Sources that honour them are always asked again, under the same key. Items that cost nothing are always asked
        for again.
    retries : int, default=2
        Calls of a source after the first one failed.
    backoff : float, default=0.1
        Seconds before the first retry, on average; they double each time and are drawn at random.
    timeout : float or None, default=None
        Longest wait for one call, where the source has no timeout of its own. The thread that waits for it is lost
        until the source comes back.
    refuse_missing : bool or collection of columns, default=False
        Columns in which NaN or None is no answer; True for all.
    breaker_failures : int, default=5
        Failures of a source in a row after which it is left alone.
    breaker_pause : float, default=30.0
        Seconds it is left alone; then one call is tried.

    Examples
    --------
    >>> Policy(on_failure="raise", retries=0).retries
    0
    >>> Policy(unknown="maybe")
    Traceback (most recent call last):
    ValueError: unknown is 'refuse' or 'retry', not 'maybe'.
    """

    on_failure: Literal["degrade", "raise"] = "degrade"
    unknown: Literal["refuse", "retry"] = "refuse"
    retries: int = 2
    backoff: float = 0.1
    timeout: float | None = None
    refuse_missing: bool | Collection[Any] = False
    breaker_failures: int = 5
    breaker_pause: float = 30.0

    def __post_init__(self) -> None:
        choices = {"on_failure": ("degrade", "raise"), "unknown": ("refuse", "retry")}
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise ValueError(
                    f"{name} is {allowed[0]!r} or {allowed[1]!r}, not {getattr(self, name)!r}."
                )
        if isinstance(self.refuse_missing, str):
            raise TypeError(f"refuse_missing: give a list of columns, [{self.refuse_missing!r}].")
        for name, least in (("retries", 0), ("backoff", 0), ("breaker_failures", 1)):
            if not getattr(self, name) >= least:
                raise ValueError(f"{name} is {getattr(self, name)!r}, must be at least {least}.")


class Purse:
    """Books of one process, for sessions without a ledger: it knows what was spent and forgets every value.

    It has the methods of a ledger that a session calls.

    With a cap per entity it remembers one sum for every entity that has cost something, for as long as it lives: an
    entity may come back at any time, and its cap holds then as well. With many entities use a ledger, which keeps
    purchases in its file. Without such a cap nothing is kept by entity.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._by_entity: dict[Hashable, tuple[float, int]] = {}  # spent, and in how many bookings
        self._buckets: defaultdict[float, dict[int, float]] = defaultdict(dict)
        self._open: dict[str, tuple[Hashable, float, float, bool]] = {}

    def claim(
        self,
        entity: Hashable,
        wants: Sequence[Want],
        *,
        limits: Limits,
        asking: tuple[str, float] | None = None,
        unknown: str = "refuse",  # noqa: ARG002
    ) -> Claim:
        """Reserve the prices, or raise :class:`LimitError`."""
        by_source: defaultdict[str, list[Want]] = defaultdict(list)
        for want in wants:
            by_source[want.source].append(want)
        now = self._clock()
        prices = [sum(want.price for want in group) for group in by_source.values()]
        call_price = 0.0 if asking is None else asking[1]
        with self._lock:
            limits.check(
                entity,
                sum(prices) + call_price,
                lambda: self._by_entity.get(entity, (0.0, 0))[0],
                lambda seconds: self._spent_in(seconds, now),
            )
            calls = []
            for (source, group), price in zip(by_source.items(), prices, strict=True):
                key = new_key()
                self._book(key, entity, price, now, limits)
                items = tuple(want.item for want in group)
                calls.append(Call(key, source, items, tuple(want.columns for want in group)))
            asked = new_key() if call_price else None
            if asked is not None:
                self._book(asked, entity, call_price, now, limits)
        return Claim(tuple(calls), asking=asked)

    def repeat(self, key: str, *, limits: Limits, reason: str) -> str | None:  # noqa: ARG002
        """Reserve the price of a request that may have been paid once more, or raise :class:`LimitError`."""
        now = self._clock()
        with self._lock:
            entity, price, _, _ = self._open[key]
            limits.check(
                entity,
                price,
                lambda: self._by_entity.get(entity, (0.0, 0))[0],
                lambda seconds: self._spent_in(seconds, now),
            )
            del self._open[key]
            another = new_key()
            self._book(another, entity, price, now, limits)
        return another

    def _book(self, key: str, entity: Hashable, price: float, now: float, limits: Limits) -> None:
        counted = limits.per_entity is not None and price > 0
        self._open[key] = (entity, price, now, counted)
        if counted:
            spent, bookings = self._by_entity.get(entity, (0.0, 0))
            self._by_entity[entity] = (spent + price, bookings + 1)
        for seconds in limits.per_window:
            buckets = self._buckets[seconds]
            bucket = int(now // (seconds / BUCKETS))
            buckets[bucket] = buckets.get(bucket, 0.0) + price

    def _spent_in(self, seconds: float, now: float) -> float:
        buckets = self._buckets[seconds]
        first = int(now // (seconds / BUCKETS)) - BUCKETS
        for old in [bucket for bucket in buckets if bucket < first]:
            del buckets[old]
        return sum(buckets.values())

    def close_calls(self, outcomes: Sequence[Outcome]) -> None:
        """Give back what surely was not paid."""
        with self._lock:
            for outcome in outcomes:
                entity, price, opened, counted = self._open.pop(outcome.key)
                if outcome.values is None and outcome.paid is False:
                    if counted:
                        self._give_back(entity, price)
                    for seconds, buckets in self._buckets.items():
                        bucket = int(opened // (seconds / BUCKETS))
                        if bucket in buckets:
                            buckets[bucket] -= price

    def _give_back(self, entity: Hashable, price: float) -> None:
        spent, bookings = self._by_entity.pop(entity)
        if bookings > 1:
            self._by_entity[entity] = (spent - price, bookings - 1)
