"""A circuit breaker: a source that fails again and again is left alone for a while, then tried once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Literal

from sparing.runtime._source import SourceError


class Breaker:
    """Closed: calls pass. Open: they fail at once. Half open: one passes, and decides.

    Parameters
    ----------
    name : str
        The source's, for the error.
    failures : int
        Failures in a row that open it.
    pause : float
        Seconds it stays open.
    clock : callable

    Examples
    --------
    >>> breaker = Breaker("bureau", failures=2, pause=60.0)
    >>> breaker.failed(); breaker.failed(); breaker.state
    'open'
    """

    def __init__(
        self,
        name: str,
        failures: int,
        pause: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self._allowed = failures
        self._pause = pause
        self._clock = clock
        self._lock = threading.Lock()
        self._in_a_row = 0
        self._opened: float | None = None
        self._trial: float | None = None

    @property
    def state(self) -> Literal["closed", "open", "half-open"]:
        """How it stands now."""
        opened = self._opened
        if opened is None:
            return "closed"
        return "open" if self._clock() < opened + self._pause else "half-open"

    def check(self) -> None:
        """Raise when a call would be one too many."""
        if self._opened is None:
            return
        with self._lock:
            now, opened = self._clock(), self._opened
            if opened is None:
                return
            left = opened + self._pause - now
            # A trial that never came back must not keep the circuit open for ever.
            tried = self._trial is not None and now < self._trial + self._pause
            if left <= 0 and not tried:
                self._trial = now
                return
        raise SourceError(
            f"Source {self.name!r} failed {self._in_a_row} times in a row and is not asked "
            + (f"for another {left:.0f} s." if left > 0 else "until a trial has come back."),
            paid=False,
            final=True,
        )

    def worked(self) -> None:
        """Note that the source is well: an answer, or a refusal that was the request's own fault."""
        if self._in_a_row:
            with self._lock:
                self._in_a_row, self._opened, self._trial = 0, None, None

    def failed(self) -> None:
        """Note a failure."""
        with self._lock:
            self._in_a_row += 1
            if self._in_a_row >= self._allowed:
                self._opened, self._trial = self._clock(), None
