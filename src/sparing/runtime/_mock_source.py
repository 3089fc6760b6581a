"""A source to rehearse with: it can be slow, fail in every way a real one does, and it counts what was paid."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Literal

from sparing.runtime._source import Request, Source, SourceError
from sparing.runtime._table import read_row, row_reader

Fault = Literal["refused", "timeout", "lost", "nonsense", "missing"] | Exception | None


class MockSource(Source):
    """A table that answers after a while, or not, and keeps its own book of what was paid.

    Parameters
    ----------
    table, columns : as for :class:`MappingSource`
    items, name, time_to_live
        As for :class:`Source`.
    latency : float or callable, default=0.0
        Seconds a call takes, or a function that says so.
    faults : iterable, default=()
        What goes wrong, one entry per call: None (nothing), ``"refused"`` (an error before payment), ``"timeout"`` (no
        answer, not paid, but the caller cannot know), ``"lost"`` (paid, and the answer never comes), ``"nonsense"``
        (paid, the answer is no mapping), ``"missing"`` (paid, a column is not there), or an exception to raise. After
        the last entry all calls go well.
    honours_keys : bool, default=True
        Whether a request with a known key is answered without being paid again.

    Attributes
    ----------
    paid : Counter of (entity, item)
        How often each was paid.
    n_calls : int
        Calls, whatever became of them.

    Examples
    --------
    >>> source = MockSource({"anna": {"score": 640}}, ["score"], faults=["lost"])
    >>> request = Request("anna", ("score",), ("score",), "key 1")
    >>> source.fetch(request)
    Traceback (most recent call last):
    sparing.runtime._source.SourceError: Source 'mock': the answer was lost.
    >>> source.fetch(request), source.paid  # the same key: answered, not paid again
    ({'score': 640}, Counter({('anna', 'score'): 1}))
    """

    def __init__(
        self,
        table: Any,
        items: Iterable[Hashable] | Mapping[Any, Iterable[Hashable]],
        *,
        columns: Sequence[Hashable] | None = None,
        name: str = "mock",
        latency: float | Callable[[], float] = 0.0,
        faults: Iterable[Fault] = (),
        honours_keys: bool = True,
        time_to_live: float | None = None,
    ) -> None:
        super().__init__(
            items,
            name=name,
            honours_keys=honours_keys,
            time_to_live=time_to_live,
            local=not callable(latency) and latency == 0,
        )
        self._row = row_reader(table, columns)
        self._latency = latency
        self._faults = iter(faults)
        self._known: set[str] = set()
        self._lock = threading.Lock()
        self.paid: Counter[tuple[Hashable, Hashable]] = Counter()
        self.n_calls = 0

    def fetch(self, request: Request) -> Mapping[Any, Any]:
        """Wait, then answer or fail."""
        seconds = self._seconds()
        if seconds > 0:
            time.sleep(seconds)
        return self._answer(request)

    async def afetch(self, request: Request) -> Mapping[Any, Any]:
        """Wait without a thread, then answer or fail."""
        seconds = self._seconds()
        if seconds > 0:
            await asyncio.sleep(seconds)
        return self._answer(request)

    def _seconds(self) -> float:
        return self._latency() if callable(self._latency) else self._latency

    def _answer(self, request: Request) -> Mapping[Any, Any]:
        with self._lock:
            self.n_calls += 1
            fault = next(self._faults, None)
            if fault == "refused":
                raise SourceError(f"Source {self.name!r} refused the call.", paid=False)
            if fault == "timeout":
                raise SourceError(f"Source {self.name!r} gave no answer in time.")
            if isinstance(fault, Exception):
                raise fault
            values = read_row(self._row, request, self.name)
            if not (self.honours_keys and request.key in self._known):
                self._known.add(request.key)
                self.paid.update((request.entity, item) for item in request.items)
        if fault == "lost":
            raise SourceError(f"Source {self.name!r}: the answer was lost.")
        if fault == "nonsense":
            return "nonsense"  # type: ignore[return-value]
        if fault == "missing":
            del values[next(iter(values))]
        elif fault is not None:
            raise ValueError(f"Unknown fault {fault!r} of source {self.name!r}.")
        return values
