"""What a source is: two methods that deliver items for an entity, and what the session must know about it."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any


class SourceError(RuntimeError):
    """A source did not deliver.

    Parameters
    ----------
    message : str
    paid : bool or None, default=None
        False when the request surely cost nothing (refused, never sent); None when nobody can know: an answer that
        never came may have been charged. Only requests that surely cost nothing are taken out of the books.
    final : bool, default=False
        Whether to ask again is of no use: the entity does not exist, or the source has tried for itself.
    healthy : bool, default=False
        Whether the source works and the request was at fault; the circuit breaker does not count it then.

    Examples
    --------
    >>> raise SourceError("no such person", paid=False, final=True)
    Traceback (most recent call last):
    sparing.runtime._source.SourceError: no such person
    """

    def __init__(
        self,
        message: str,
        *,
        paid: bool | None = None,
        final: bool = False,
        healthy: bool = False,
    ) -> None:
        super().__init__(message)
        self.paid = paid
        self.final = final
        self.healthy = healthy


@dataclass(frozen=True, slots=True)
class Request:
    """One call to a source: everything that is bought from it in one round trip.

    Attributes
    ----------
    entity : whom it is about.
    items : what is paid for.
    columns : what the answer must hold.
    key : idempotency key. A repeated request has the same key, the same items and the same entity.

    Examples
    --------
    >>> Request("anna", ("bureau",), ("score", "loans"), "7f3a").items
    ('bureau',)
    """

    entity: Hashable
    items: tuple[Hashable, ...]
    columns: tuple[Hashable, ...]
    key: str


class Source(ABC):
    """Delivers items for an entity. Subclasses write :meth:`fetch`, and :meth:`afetch` where they can wait cheaply.

    Parameters
    ----------
    items : iterable of items, or mapping of item to columns
        What it sells. Without columns, an item delivers the column of its name and those the price list says come with
        it; with columns, exactly these.
    name : str
        For the books and for error messages; the sources of a session have different names.
    honours_keys : bool, default=False
        Whether a repeated request with the same key is answered again without being charged again.
    time_to_live : float or None, default=None
        Seconds for which a delivered value may be used again from the ledger; None is for ever, 0 never.
    local : bool, default=False
        Whether it answers at once, from memory: then no thread is worth its while.

    Examples
    --------
    >>> class Register(Source):
    ...     def fetch(self, request):
    ...         return {"age": 40}
    >>> Register(["age"], name="register").fetch(Request("anna", ("age",), ("age",), "k"))
    {'age': 40}
    """

    def __init__(
        self,
        items: Iterable[Hashable] | Mapping[Any, Iterable[Hashable]],
        *,
        name: str,
        honours_keys: bool = False,
        time_to_live: float | None = None,
        local: bool = False,
    ) -> None:
        if isinstance(items, str):
            raise TypeError(f"items of source {name!r} is a text: give a list, [{items!r}].")
        if isinstance(items, Mapping):
            self.items: dict[Hashable, tuple[Hashable, ...] | None] = {
                item: _columns(item, columns, name) for item, columns in items.items()
            }
        else:
            self.items = dict.fromkeys(items)
        if not self.items:
            raise ValueError(f"Source {name!r} sells nothing: give it at least one item.")
        if time_to_live is not None and not time_to_live >= 0:
            raise ValueError(f"time_to_live of source {name!r} is {time_to_live!r}, must be ≥ 0.")
        self.name = name
        self.honours_keys = honours_keys
        self.time_to_live = time_to_live
        self.local = local

    @abstractmethod
    def fetch(self, request: Request) -> Mapping[Any, Any]:
        """Values by column, or a :class:`SourceError`."""

    async def afetch(self, request: Request) -> Mapping[Any, Any]:
        """The same without holding up an event loop; by default in a thread."""
        if self.local:
            return self.fetch(request)
        return await asyncio.to_thread(self.fetch, request)

    def close(self) -> None:  # noqa: B027
        """Give back connections, if there are any."""

    async def aclose(self) -> None:  # noqa: B027
        """Give back the connections of this event loop, if there are any."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r}, items={list(self.items)})"


def _columns(item: Hashable, columns: Iterable[Hashable], name: str) -> tuple[Hashable, ...]:
    if isinstance(columns, str):
        raise TypeError(f"Columns of item {item!r} of source {name!r}: give a list, [{columns!r}].")
    return tuple(columns)


def source_list(sources: Any) -> list[Source]:
    """Sources as a list, which may be given as a single one.

    Examples
    --------
    >>> source_list([{"age": 1}])
    Traceback (most recent call last):
    TypeError: sources has a dict where a Source belongs: wrap it, MappingSource(table, items).
    """
    if isinstance(sources, Source):
        return [sources]
    if isinstance(sources, str | bytes | Mapping) or not isinstance(sources, Iterable):
        raise TypeError(f"sources is a Source or a list of them, not a {type(sources).__name__}.")
    found = list(sources)
    for source in found:
        if isinstance(source, Source):
            continue
        name = type(source).__name__
        if isinstance(source, type) and issubclass(source, Source):
            raise TypeError(
                f"sources has the class {source.__name__}: make one, {source.__name__}(...)."
            )
        wrapper = "CallableSource(function" if callable(source) else "MappingSource(table"
        raise TypeError(f"sources has a {name} where a Source belongs: wrap it, {wrapper}, items).")
    return found
