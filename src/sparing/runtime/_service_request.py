"""What a client sends, read with suspicion: JSON of a known form, finite numbers, columns that exist."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sparing.runtime._service_problem import Problem
from sparing.runtime._values import Value

LONGEST_TEXT = 1024
"""Characters of a text in a column, and of an entity."""
LARGEST_ENTITY = 9 * 10**18
"""Fits 64 bits with room to spare: readers of the description may count with rounded numbers above."""
_FIELDS = ("entity", "columns", "token", "answer_now")
_NAMED = 20
"""Unknown columns that an error names at most."""


@dataclass(frozen=True)
class Asked:
    """A request for an answer.

    Attributes
    ----------
    entity : whom the server buys for; None when the client buys.
    columns : values by column.
    token : of a conversation to continue.
    answer_now : whether to answer with what is there instead of asking for more.
    """

    entity: str | int | None
    columns: dict[Hashable, Value]
    token: str | None = None
    answer_now: bool = False


def read_json(body: bytes) -> dict[str, Any]:
    """The object in a body, or a :class:`Problem`.

    Examples
    --------
    >>> read_json(b'{"entity": "anna"}')
    {'entity': 'anna'}
    >>> read_json(b'{"a": 1, "a": 2}')
    Traceback (most recent call last):
    sparing.runtime._service_problem.Problem: json
    """
    try:
        content = json.loads(body.decode("utf-8"), object_pairs_hook=_object)
    except UnicodeDecodeError:
        raise Problem(400, "json", "The body is not UTF-8.") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, character {error.colno}"
        raise Problem(400, "json", f"The body is not JSON: {error.msg}, {where}.") from None
    except (ValueError, RecursionError):  # a number of ten thousand digits, brackets without end
        raise Problem(400, "json", "The body is not JSON that this service reads.") from None
    if not isinstance(content, dict):
        raise Problem(400, "json", "The body must be a JSON object.")
    return content


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise Problem(400, "json", "An object in the body has the same name twice.")
    return content


class Reader:
    """Reads requests about one model.

    Parameters
    ----------
    columns : of the model.
    numbers : columns that hold numbers for sure.
    complete : columns in which a missing value is refused.

    Examples
    --------
    >>> reader = Reader(["age", "sex"], numbers={"age"})
    >>> reader.asked(b'{"columns": {"age": 40, "sex": "f"}}').columns
    {'age': 40, 'sex': 'f'}
    >>> reader.asked(b'{"columns": {"age": NaN}}')
    Traceback (most recent call last):
    sparing.runtime._service_problem.Problem: column-value
    """

    def __init__(
        self,
        columns: Sequence[Hashable],
        numbers: Collection[Hashable],
        complete: Collection[Hashable] = (),
    ) -> None:
        self._column: dict[str, Hashable] = {str(column): column for column in columns}
        if len(self._column) < len(columns):
            raise ValueError(
                "Two columns have the same name once they are written as text: JSON cannot tell them apart."
            )
        self._numbers, self._complete = frozenset(numbers), frozenset(complete)

    def asked(self, body: bytes) -> Asked:
        """A request for an answer, or a :class:`Problem`."""
        content = read_json(body)
        check_fields(content, _FIELDS)
        entity = _entity(content.get("entity"))
        token = content.get("token")
        if token is not None and not isinstance(token, str):
            raise Problem(422, "token-invalid", "token must be the text that came with the items.")
        now = content.get("answer_now", False)
        if not isinstance(now, bool):
            raise Problem(422, "field", "answer_now must be true or false.")
        if entity is None and "columns" not in content:
            raise Problem(
                422,
                "field",
                "Send an entity, and the server buys; or send columns, and it says what else it needs.",
            )
        if entity is not None and (token is not None or now):
            raise Problem(
                422, "field", "token and answer_now go with columns alone, not with an entity."
            )
        return Asked(entity, self.values(content.get("columns", {})), token, now)

    def values(self, given: Any) -> dict[Hashable, Value]:
        """Checked values by column."""
        if not isinstance(given, Mapping):
            raise Problem(422, "field", "columns must be an object of values by column.")
        unknown = [name for name in given if name not in self._column]
        if unknown:
            raise Problem(
                422,
                "unknown-column",
                f"The model knows no column {_shown(unknown[0])}; GET /v1/model lists them.",
                columns=[_cut(name) for name in unknown[:_NAMED]],
            )
        return {self._column[name]: self._value(name, value) for name, value in given.items()}

    def _value(self, name: str, value: Any) -> Value:
        wrong = None
        if isinstance(value, str):
            if self._column[name] in self._numbers:
                wrong = "is a text, must be a number"
            elif len(value) > LONGEST_TEXT:
                wrong = f"is a text of {len(value)} characters, at most {LONGEST_TEXT} are taken"
            elif not _is_unicode(value):
                wrong = "holds half a surrogate pair, which is no text"
        elif isinstance(value, int | float):
            try:
                number = float(value)
            except OverflowError:
                number = math.inf
            if math.isnan(number):
                wrong = "is NaN; send null for a missing value"
            elif math.isinf(number):
                wrong = "is infinite or too large"
        elif value is None:
            if self._column[name] in self._complete:
                wrong = "is null, which is refused in this column"
        else:
            kind = "a list" if isinstance(value, list) else "an object"
            wrong = f"is {kind}, must be a number, a text, true, false or null"
        if wrong is not None:
            raise Problem(422, "column-value", f"Column {_shown(name)} {wrong}.", column=name)
        return value


def check_fields(content: Mapping[str, Any], allowed: Sequence[str]) -> None:
    """Raise when an object has a name that is not expected."""
    for name in content:
        if name not in allowed:
            raise Problem(
                422, "field", f"Unknown field {_shown(name)}; there are {', '.join(allowed)}."
            )


def whole(number: Any) -> int | None:
    """A whole number, which JSON may also write as 1.0; None for anything else.

    Examples
    --------
    >>> whole(2.0), whole(2.5), whole(True)
    (2, None, None)
    """
    if isinstance(number, float) and number.is_integer():
        return int(number)
    return number if isinstance(number, int) and not isinstance(number, bool) else None


def _entity(entity: Any) -> str | int | None:
    if entity is None:
        return None
    if not isinstance(entity, str):
        entity = whole(entity)
    if entity is None:
        raise Problem(422, "entity", "entity must be a text or a whole number.")
    if isinstance(entity, int):
        if abs(entity) > LARGEST_ENTITY:
            raise Problem(422, "entity", "entity is too large a number: send it as text.")
    elif not 0 < len(entity) <= LONGEST_TEXT or not _is_unicode(entity):
        raise Problem(422, "entity", f"entity must be a text of 1 to {LONGEST_TEXT} characters.")
    return entity


def _is_unicode(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _cut(name: str) -> str:
    return name if len(name) <= 80 else name[:77] + "..."


def _shown(name: str) -> str:
    return repr(_cut(name))
