"""Lines on stderr for people who wait: what is being done, for how long, and about how long it will take."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_EVERY = 20.0
"""Seconds between two lines while a fit goes on."""


class Progress:
    """Tells how far a number of fits has come.

    Parameters
    ----------
    verbose : int
        0 says nothing.
    every : float, default=20
        Seconds between two lines while nothing else is said.

    Examples
    --------
    >>> progress = Progress(verbose=0)
    >>> with progress.of([1.0, 3.0]):
    ...     progress.done(0, "a quick fit")
    ...     progress.left() >= 0
    True
    """

    def __init__(self, verbose: int, every: float = _EVERY) -> None:
        self.verbose = verbose
        self._every = every
        self._began = time.perf_counter()
        self._round = self._last = self._began
        self._efforts = list[float]()
        self._ready = set[int]()

    def say(self, text: str) -> None:
        """One line, with the time passed."""
        if self.verbose:
            seconds = time.perf_counter() - self._began
            print(f"[{seconds:6.1f} s] {text}", file=sys.stderr, flush=True)

    @contextmanager
    def of(self, efforts: list[float]) -> Iterator[None]:
        """Watch over fits that take about so much time, each in units of the others."""
        self._round = time.perf_counter()
        self._efforts, self._ready = efforts, set()
        over = threading.Event()

        def tell() -> None:
            while not over.wait(self._every):
                n, of = len(self._ready), len(self._efforts)
                self.say(f"{n} of {of} fits are ready, going on{self._estimate()}")

        watch = threading.Thread(target=tell, daemon=True) if self.verbose else None
        if watch is not None:
            watch.start()
        try:
            yield
        finally:
            over.set()
            if watch is not None:
                watch.join()

    def done(self, number: int, name: str) -> None:
        """A fit is ready."""
        self._ready.add(number)
        self._last = time.perf_counter()
        n, of = len(self._ready), len(self._efforts)
        self.say(f"{name}: {n} of {of} fits{self._estimate() if n < of else ''}")

    def left(self) -> float | None:
        """Seconds to go if the other fits take as long as those that are ready, in proportion to their efforts."""
        spent = sum(self._efforts[i] for i in self._ready)
        if not spent:
            return None
        whole = (self._last - self._round) * sum(self._efforts) / spent
        return max(0.0, self._round + whole - time.perf_counter())

    def _estimate(self) -> str:
        left = self.left()
        if left is None:
            return ""
        return f", about {left:.0f} s left" if left else ", longer than expected"
