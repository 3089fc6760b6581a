"""Values of columns: which ones a session takes from a source, and how the ledger writes them down."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Iterable, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from sparing.runtime._source import SourceError

Value = bool | int | float | str | None

_PLAIN = frozenset({bool, int, float, str, type(None)})


def plain(value: Any) -> Value:
    """A value as plain data: what arrays, frames and databases hold becomes a Python number, text or None.

    Examples
    --------
    >>> import numpy as np
    >>> plain(np.int64(3)), plain(np.float32(0.5)), plain("x")
    (3, 0.5, 'x')
    """
    if type(value) in _PLAIN:
        return value
    if isinstance(value, np.generic):
        value = value.item()
    elif isinstance(value, Decimal):
        value = float(value)
    elif type(value).__name__ == "NAType":
        value = None
    if type(value) not in _PLAIN:
        raise TypeError(f"a {type(value).__name__}, not a number, a text or None")
    return value


def is_missing(value: Value) -> bool:
    """None or NaN."""
    return value is None or value != value


class ColumnKinds(NamedTuple):
    """Columns that hold numbers for sure, and columns that hold text for sure.

    Examples
    --------
    >>> kinds = ColumnKinds(frozenset({"age"}), frozenset({"sex"}))
    >>> kinds.wrong("age", "old"), kinds.wrong("sex", 1), kinds.wrong("age", None)
    ("the text 'old', must be a number", 'the int 1, must be a text', None)
    """

    numbers: frozenset[Hashable] = frozenset()
    texts: frozenset[Hashable] = frozenset()

    def wrong(self, column: Hashable, value: Value) -> str | None:
        """What is wrong with a value; None when nothing is known to be. A missing one is never of the wrong kind."""
        if isinstance(value, str):
            return f"the text {value!r}, must be a number" if column in self.numbers else None
        if column in self.texts and not is_missing(value):
            return f"the {type(value).__name__} {value!r}, must be a text"
        return None


def checked_answer(
    answer: Any,
    columns: Iterable[Hashable],
    *,
    source: str,
    entity: Hashable,
    kinds: ColumnKinds,
    complete: frozenset[Hashable],
) -> dict[Hashable, Value]:
    """The columns of a source's answer, or a :class:`SourceError` that says what is wrong with it.

    Parameters
    ----------
    answer : what the source returned.
    columns : what it must hold.
    kinds : columns that hold numbers and never text, or text and never numbers.
    complete : columns in which a missing value is not taken for an answer.
    """
    if not isinstance(answer, Mapping):
        raise SourceError(
            f"Source {source!r} answered with a {type(answer).__name__} for entity {entity!r}, not with values by "
            "column."
        )
    values: dict[Hashable, Value] = {}
    for column in columns:
        try:
            value = answer[column]
        except KeyError:
            raise SourceError(
                f"The answer of source {source!r} for entity {entity!r} lacks column {column!r}."
            ) from None
        if type(value) is not float:
            try:
                value = plain(value)
            except TypeError as error:
                raise SourceError(
                    f"Column {column!r} from source {source!r} for entity {entity!r} is {error}."
                ) from None
        wrong = None if type(value) is float and not kinds.texts else kinds.wrong(column, value)
        if wrong:
            raise SourceError(
                f"Column {column!r} from source {source!r} for entity {entity!r} is {wrong}."
            )
        if type(value) is float and math.isinf(value):
            raise SourceError(
                f"Column {column!r} from source {source!r} for entity {entity!r} is infinite."
            )
        if complete and column in complete and is_missing(value):
            raise SourceError(
                f"Column {column!r} from source {source!r} for entity {entity!r} is missing, which is refused there."
            )
        values[column] = value
    return values


def to_json(values: Mapping[Any, Value]) -> str:
    """Values by column as JSON pairs: whole numbers, fractions, texts, NaN and None stay what they are.

    Examples
    --------
    >>> text = to_json({"age": 40, 3: float("nan"), "name": "40"})
    >>> text
    '[["age", 40], [3, NaN], ["name", "40"]]'
    >>> from_json(text)
    {'age': 40, 3: nan, 'name': '40'}
    """
    # Pairs, because the names of a JSON object are all texts and columns may be numbered.
    return json.dumps([[_name(column), value] for column, value in values.items()])


def from_json(text: str) -> dict[Hashable, Value]:
    """Inverse of :func:`to_json`."""
    return dict(json.loads(text))


@lru_cache(maxsize=4096, typed=True)
def name_to_json(name: Hashable) -> str:
    """A text or a whole number, such that 1 and "1" stay apart."""
    return json.dumps(_name(name))


@lru_cache(maxsize=4096, typed=True)
def names_to_json(names: tuple[Hashable, ...]) -> str:
    """Several of them."""
    return json.dumps([_name(name) for name in names])


def _name(name: Hashable) -> str | int:
    if isinstance(name, np.integer):
        name = int(name)
    if isinstance(name, bool) or not isinstance(name, str | int):
        raise TypeError(
            f"Entities, items and columns in a ledger are texts or whole numbers, not {name!r}: use str(...)."
        )
    return name
