"""Tables in memory, read by entity and column: behind :class:`MappingSource` and :class:`MockSource`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np

from sparing.runtime._source import Request, SourceError


def read_row(row: Callable[[Hashable], Any], request: Request, name: str) -> dict[Hashable, Any]:
    """The columns asked for, as plain values."""
    try:
        values = row(request.entity)
    except (KeyError, IndexError):
        raise SourceError(
            f"Source {name!r} knows no entity {request.entity!r}.",
            paid=False,
            final=True,
            healthy=True,
        ) from None
    try:
        return {column: values[column] for column in request.columns}
    except (KeyError, IndexError) as error:
        raise SourceError(
            f"Source {name!r} has no column {error.args[0]!r} for entity {request.entity!r}."
            if isinstance(error, KeyError)
            else f"Source {name!r} lacks one of the columns {list(request.columns)}.",
            paid=False,
            final=True,
            healthy=True,
        ) from None


def row_reader(table: Any) -> Callable[[Hashable], Any]:
    """A function from entity to something that can be indexed by column."""
    if isinstance(table, Mapping):
        return table.__getitem__
    if isinstance(table, np.ndarray):
        if table.ndim != 2:
            raise ValueError(f"A table has rows and columns, this one has shape {table.shape}.")
        return lambda entity: table[_row_number(entity)].tolist()
    if hasattr(table, "loc") and hasattr(table, "columns"):
        if not table.index.is_unique:
            twice = table.index[table.index.duplicated()][0]
            raise ValueError(f"The index of the table names entity {twice!r} more than once.")
        # Column by column: a row of a frame with mixed types would lose whole numbers to floats.
        place = {entity: i for i, entity in enumerate(table.index.tolist())}
        columns = {name: table[name].tolist() for name in table.columns}
        return lambda entity: _FrameRow(columns, place[entity])
    raise TypeError(
        f"A table is a mapping, an array or a pandas frame with the entities as its index, not {type(table).__name__}."
    )


class _FrameRow:
    """One row of columns that are kept as lists."""

    __slots__ = ("_columns", "_place")

    def __init__(self, columns: dict[Hashable, list[Any]], place: int) -> None:
        self._columns = columns
        self._place = place

    def __getitem__(self, column: Hashable) -> Any:
        return self._columns[column][self._place]


def _row_number(entity: Hashable) -> int:
    # A negative number would count from the end, and somebody else's values would be sold.
    if isinstance(entity, bool) or not isinstance(entity, int | np.integer) or entity < 0:
        raise KeyError(entity)
    return int(entity)
