"""Tables in memory, read by entity and column: behind :class:`MappingSource` and :class:`MockSource`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
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
    except (KeyError, IndexError, TypeError) as error:
        if isinstance(error, KeyError):
            text = f"Source {name!r} has no column {error.args[0]!r} for entity {request.entity!r}."
        else:
            text = (
                f"The table of source {name!r} is an array without the columns {list(request.columns)}: name its "
                "columns with `columns`."
            )
        raise SourceError(
            text,
            paid=False,
            final=True,
            healthy=True,
        ) from None


def row_reader(table: Any, columns: Sequence[Hashable] | None = None) -> Callable[[Hashable], Any]:
    """A function from entity to something that can be indexed by column; ``columns`` names those of an array."""
    if columns is not None and not isinstance(table, np.ndarray):
        raise TypeError(
            f"columns names the columns of an array; this {type(table).__name__} has names."
        )
    if isinstance(table, Mapping):
        return table.__getitem__
    if isinstance(table, np.ndarray):
        if table.ndim != 2:
            raise ValueError(f"A table has rows and columns, this one has shape {table.shape}.")
        if columns is not None:
            if len(columns) != table.shape[1]:
                raise ValueError(
                    f"columns has {len(columns)} names, the table {table.shape[1]} columns."
                )
            return lambda entity: dict(
                zip(columns, table[_row_number(entity)].tolist(), strict=True)
            )
        return lambda entity: table[_row_number(entity)].tolist()
    if hasattr(table, "loc") and hasattr(table, "columns"):
        if not table.index.is_unique:
            twice = table.index[table.index.duplicated()][0]
            raise ValueError(f"The index of the table names entity {twice!r} more than once.")
        # Column by column: a row of a frame with mixed types would lose whole numbers to floats.
        place = {entity: i for i, entity in enumerate(table.index.tolist())}
        lists = {name: table[name].tolist() for name in table.columns}
        return lambda entity: _FrameRow(lists, place[entity])
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
