"""One answer in the making: the cells that are there, and what they took."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from sparing.runtime._answer import Exit
from sparing.runtime._row import NAN
from sparing.runtime._values import ColumnKinds, Value, plain


class Job:
    """Everything a session knows about an entity while it works on the answer."""

    __slots__ = (
        *("asked", "asking", "bought", "brought", "cells", "elapsed", "entity", "exits"),
        *("known", "probabilities", "reused", "text", "there"),
    )

    def __init__(self, entity: Hashable, n_columns: int) -> None:
        self.entity = entity
        self.cells: list[Value] = [NAN] * n_columns
        self.there: set[int] = set()
        self.text = False
        self.known: frozenset[Hashable] = frozenset()
        self.bought: list[Hashable] = []
        self.brought: dict[
            Hashable, str
        ] = {}  # source of each column that was bought, now or before
        self.reused: list[Hashable] = []
        self.asked = -1  # last stage that was asked
        self.asking: str | None = None  # key of the reserved price of asking a stage
        self.probabilities: dict[int, Any] = {}  # of stages whose gate read them
        self.exits: list[Exit] = []
        self.elapsed: dict[str, float] = {}

    def know(
        self,
        known: Mapping[Any, Any],
        place: Mapping[Hashable, int],
        kinds: ColumnKinds,
    ) -> None:
        """Take over what the caller knows."""
        values: dict[Hashable, Value] = {}
        for column, value in known.items():
            if column not in place:
                raise ValueError(
                    f"known has column {column!r}, which the system does not know. Its columns are {list(place)}."
                )
            try:
                values[column] = plain(value)
            except TypeError as error:
                raise ValueError(f"Column {column!r} in known is {error}: {value!r}.") from None
            wrong = kinds.wrong(column, values[column])
            if wrong:
                raise ValueError(f"Column {column!r} in known is {wrong}.")
        self.fill(values, place)
        self.known = frozenset(values)

    def fill(self, values: Mapping[Hashable, Value], place: Mapping[Hashable, int]) -> None:
        """Put values into their cells; what the caller knows stays."""
        for column, value in values.items():
            j = place.get(column)
            if j is None or column in self.known:
                continue
            self.cells[j] = value
            self.there.add(j)
            if type(value) is str:
                self.text = True

    def cells_of(self, places: Iterable[int]) -> list[Value]:
        """A row of some of the cells; nothing stands in the others."""
        cells: list[Value] = [NAN] * len(self.cells)
        for j in places:
            cells[j] = self.cells[j]
        return cells
