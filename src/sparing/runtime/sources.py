"""Where values come from: functions, tables, databases, endpoints, and a mock of them for tests and rehearsals.

A source is two methods, ``fetch`` and ``afetch``, as a transport of httpx is. Everything around a call, such as
retries, parallel calls, books and limits, is the session's.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from sparing.runtime._http_source import HTTPSource
from sparing.runtime._mock_source import MockSource
from sparing.runtime._source import Request, Source, SourceError
from sparing.runtime._sql_source import SQLSource
from sparing.runtime._table import read_row, row_reader

__all__ = [
    "CallableSource",
    "HTTPSource",
    "MappingSource",
    "MockSource",
    "Request",
    "SQLSource",
    "Source",
    "SourceError",
]

Items = Iterable[Hashable] | Mapping[Any, Iterable[Hashable]]


class CallableSource(Source):
    """A function of a :class:`Request` that returns values by column; it may be a coroutine function.

    ``Session.predict`` runs a coroutine in an event loop of its own, also in a notebook.

    Parameters
    ----------
    function : callable
        ``function(request)``; ``request.entity`` says who, ``request.items`` what is paid for, ``request.columns`` what
        the answer must hold.
    items, name, honours_keys, time_to_live, local
        As for :class:`Source`; the name is the function's unless given.

    Examples
    --------
    >>> def bureau(request):
    ...     return {"score": 600 + len(request.entity), "loans": 2}
    >>> source = CallableSource(bureau, {"bureau": ["score", "loans"]})
    >>> source.fetch(Request("anna", ("bureau",), ("score", "loans"), "k"))
    {'score': 604, 'loans': 2}
    """

    def __init__(
        self,
        function: Callable[[Request], Mapping[Any, Any] | Awaitable[Mapping[Any, Any]]],
        items: Items,
        *,
        name: str | None = None,
        honours_keys: bool = False,
        time_to_live: float | None = None,
        local: bool = False,
    ) -> None:
        super().__init__(
            items,
            name=getattr(function, "__name__", "callable") if name is None else name,
            honours_keys=honours_keys,
            time_to_live=time_to_live,
            local=local,
        )
        self.function = function
        call = getattr(function, "__call__", None)  # noqa: B004
        self._waits = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)

    def fetch(self, request: Request) -> Mapping[Any, Any]:
        """What the function says."""
        answer = self.function(request)
        if not self._waits:
            return answer  # type: ignore[return-value]
        coroutine = _awaited(answer)  # type: ignore[arg-type]
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(coroutine)
        # Called by a coroutine, or in a notebook: a thread has one loop at a time.
        with ThreadPoolExecutor(1, thread_name_prefix="sparing-loop") as pool:
            return pool.submit(asyncio.run, coroutine).result()

    async def afetch(self, request: Request) -> Mapping[Any, Any]:
        """What the function says; one that is no coroutine runs in a thread."""
        if self._waits:
            return await self.function(request)  # type: ignore[misc]
        return await super().afetch(request)


async def _awaited(answer: Awaitable[Mapping[Any, Any]]) -> Mapping[Any, Any]:
    return await answer


class MappingSource(Source):
    """A table in memory: a mapping of entity to values by column, or a data frame with the entities as its index.

    Parameters
    ----------
    table : mapping of entity to mapping of column to value, pandas frame, or array
        Entities of an array are its row numbers.
    columns : sequence, optional
        Names of the columns of an array; without them they are numbered.
    items, name, time_to_live
        As for :class:`Source`. Reading memory costs nothing twice: keys are honoured.

    Examples
    --------
    >>> source = MappingSource({"anna": {"age": 40, "income": 2500.0}}, ["age", "income"])
    >>> source.fetch(Request("anna", ("age",), ("age",), "k"))
    {'age': 40}
    >>> source.fetch(Request("bert", ("age",), ("age",), "k"))
    Traceback (most recent call last):
    sparing.runtime._source.SourceError: Source 'table' knows no entity 'bert'.
    """

    def __init__(
        self,
        table: Any,
        items: Items,
        *,
        columns: Sequence[Hashable] | None = None,
        name: str = "table",
        time_to_live: float | None = None,
    ) -> None:
        super().__init__(items, name=name, honours_keys=True, time_to_live=time_to_live, local=True)
        self._row = row_reader(table, columns)

    def fetch(self, request: Request) -> Mapping[Any, Any]:
        """The columns asked for of the entity's row."""
        return read_row(self._row, request, self.name)
