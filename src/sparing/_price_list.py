"""Price lists: reading, checking and printing what a user wrote, each error naming the culprit.

Called by ``costs``, which does the arithmetic.
"""

from __future__ import annotations

import tomllib
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np

Shared = dict[Any, tuple[float, tuple[Any, ...]]]
Derived = dict[Any, tuple[Any, ...]]

ENTRIES = ("prices", "shared", "derived", "call_price")


# -- what a user passes -------------------------------------------------------------------------------


def private_prices(prices: Any, derived: Any) -> dict[Any, float]:
    """Price per column, in the order of the columns; derived columns not mentioned come last, at 0."""
    derived = _mapping("derived", derived)
    is_series = hasattr(prices, "to_dict") and hasattr(prices, "index")
    named = prices.to_dict() if is_series else prices
    if isinstance(named, Mapping):
        if len(named) != len(prices):
            raise ValueError("prices names a column twice.")
        named = dict(named) | {c: 0.0 for c in derived if c not in named}
    else:
        # As objects, so that an error shows the culprit as it was written.
        array = np.asarray(prices, dtype=object)
        if array.ndim != 1:
            raise ValueError(
                f"prices is a mapping or a one-dimensional array, this one has shape {array.shape}: give a price for "
                "every column, or no prices for a cost of 1 each."
            )
        named = dict(enumerate(array.tolist()))
    if not len(prices):
        raise ValueError("prices is empty: give one price per column.")
    return {c: checked_price(f"column {c!r}", value) for c, value in named.items()}


def checked_price(what: str, value: Any) -> float:
    """A price as a float: finite and not negative."""
    try:
        if isinstance(value, str | bytes | bool | np.bool_) or np.ndim(value):
            raise TypeError
        price = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"The price of {what} is {value!r}: give a number.") from None
    if not np.isfinite(price) or price < 0:
        raise ValueError(f"The price of {what} is {price}: give a finite number, 0 or more.")
    return price + 0.0  # no negative zero


def checked_call_price(value: Any) -> float | tuple[float, ...]:
    """One price for the full model, or one per stage."""
    if np.ndim(value) == 0:
        return checked_price("a call (call_price)", value)
    if not len(value):
        raise ValueError("call_price is empty: give one price, or one per stage.")
    return tuple(checked_price(f"stage {i} (call_price)", v) for i, v in enumerate(value))


def shared_items(shared: Any, columns: Mapping[Any, Any]) -> Shared:
    """Price and columns of every shared item."""
    given = _mapping("shared", shared, form=", {'blood draw': (2.10, ['TSH', 'T3'])} for example")
    return {name: _shared_item(name, entry, columns) for name, entry in given.items()}


def _shared_item(
    name: Any, entry: Any, columns: Mapping[Any, Any]
) -> tuple[float, tuple[Any, ...]]:
    if name in columns:
        raise ValueError(f"Shared item {name!r} has the name of a column: give it another name.")
    if isinstance(entry, Mapping) and set(entry) == {"price", "columns"}:
        raise ValueError(
            f"Shared item {name!r} is written as in a file, {entry!r}: give (price, columns), "
            f"({entry['price']!r}, {entry['columns']!r}), or read the whole price list with FeatureCosts.from_dict."
        )
    try:
        if isinstance(entry, Mapping | str | set | frozenset) or isinstance(entry[0], str):
            raise TypeError
        price, members = entry
        members = _names(members)
    except (TypeError, ValueError, LookupError):
        raise ValueError(
            f"Shared item {name!r} is (price, columns), shared={{{name!r}: (2.10, [{short(list(columns)[:2])}])}} for "
            f"example; it is {entry!r}."
        ) from None
    unknown = [c for c in members if c not in columns]
    if unknown:
        raise ValueError(
            unknown_names(f"Shared item {name!r}: column", unknown, columns)
            + " A column that costs nothing but the shared item has the private price 0."
        )
    if not members:
        raise ValueError(f"Shared item {name!r} has no columns.")
    return checked_price(f"shared item {name!r}", price), members


def derived_columns(derived: Any, columns: Mapping[Any, Any]) -> Derived:
    """Inputs of every derived column."""
    out: Derived = {}
    for column, given in _mapping("derived", derived).items():
        try:
            inputs = _names(given)
        except TypeError:
            raise ValueError(
                f"Derived column {column!r} is a list of columns, for example ['TT4', 'T4U']; it is {given!r}."
            ) from None
        unknown = [c for c in (column, *inputs) if c not in columns]
        if unknown:
            raise ValueError(unknown_names(f"Derived column {column!r}: column", unknown, columns))
        if not inputs:
            raise ValueError(f"Derived column {column!r} names no inputs.")
        out[column] = inputs
    return out


def inputs_first(derived: Derived) -> Iterator[Any]:
    """Derived columns in an order in which inputs come before what is computed from them."""
    done: set[Any] = set()

    def visit(column: Any, trail: tuple[Any, ...]) -> Iterator[Any]:
        if column in trail:
            circle = (*trail[trail.index(column) :], column)
            raise ValueError(
                "Derived columns go round in a circle: " + " -> ".join(map(str, circle))
            )
        if column in derived and column not in done:
            for source in derived[column]:
                yield from visit(source, (*trail, column))
            done.add(column)
            yield column

    for column in derived:
        yield from visit(column, ())


def check_names(columns: Sequence[Hashable], priced: Iterable[Hashable]) -> None:
    """Raise unless a table's columns are the priced ones, in any order."""
    found, known = set(columns), set(priced)
    if len(found) < len(columns):
        twice = [c for c in dict.fromkeys(columns) if list(columns).count(c) > 1]
        raise ValueError(
            f"X has more than one column named {short(twice)}: prices need unique names, so rename or drop all but one."
        )
    missing = [c for c in columns if c not in known]
    unknown = [c for c in priced if c not in found]
    if missing or unknown:
        parts = []
        if missing:
            parts.append(f"no price for {short(missing)}")
        if unknown:
            parts.append(f"a price for {short(unknown)}, which X does not have")
        raise ValueError("feature_costs and X name different columns: " + "; ".join(parts) + ".")


def _mapping(what: str, value: Any, form: str = "") -> Mapping[Any, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ValueError(f"{what} is a mapping by name{form}, not {value!r}.")
    return value


def _names(value: Any) -> tuple[Any, ...]:
    """Names as plain Python objects: of one column, a list, or an array."""
    if isinstance(value, str):
        return (value,)
    names = tuple(value.tolist() if hasattr(value, "tolist") else value)
    hash(names)  # a list among the names is a TypeError here, not deep inside
    return names


# -- files --------------------------------------------------------------------------------------------


def read_toml(path: str | PathLike[str]) -> dict[str, Any]:
    """Content of a price list written in TOML."""
    with open(path, "rb") as file:
        try:
            return tomllib.load(file)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{path} is not valid TOML: {error}") from error


def read_entries(content: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of ``FeatureCosts`` from the plain data of a price list."""
    unknown = [entry for entry in content if entry not in ENTRIES]
    if unknown:
        raise ValueError(unknown_names("Entry", unknown, ENTRIES))
    if "prices" not in content:
        raise ValueError("A price list needs the table [prices]: one price per column.")
    shared = {}
    for name, entry in _mapping("shared", content.get("shared")).items():
        if not isinstance(entry, Mapping) or set(entry) != {"price", "columns"}:
            raise ValueError(
                f"Shared item {name!r} needs exactly `price` and `columns`, it has {entry!r}."
            )
        shared[name] = (entry["price"], entry["columns"])
    derived = _mapping("derived", content.get("derived"))
    if not isinstance(content["prices"], Mapping):
        # Columns without names are numbers, which the keys of TOML and JSON cannot be.
        derived = {int(c) if str(c).isdecimal() else c: inputs for c, inputs in derived.items()}
    return {**content, "shared": shared, "derived": derived}


# -- text ---------------------------------------------------------------------------------------------


def price_table(
    private: Mapping[Any, float], shared: Shared, derived: Derived, calls: Sequence[float]
) -> Iterator[str]:
    """Lines of a price list: name, price, what comes with it; the middle of a long one is left out."""
    lines: list[tuple[str, str, str]] = []
    for column, price in private.items():
        notes = [f"+ {name}" for name, (_, members) in shared.items() if column in members]
        if column in derived:
            notes.append("derived from " + ", ".join(map(str, derived[column])))
        shown = f"{price:g}" if price or column not in derived else "-"
        lines.append((str(column), shown, " ".join(notes)))
    lines += [(str(name), f"{price:g}", "shared") for name, (price, _) in shared.items()]
    if any(calls):
        lines.append(("call", ", ".join(f"{c:g}" for c in calls), "per row routed there"))
    if len(lines) > 24:
        lines = [*lines[:12], ("...", "", ""), *lines[-11:]]
    wide, number = (max(len(line[i]) for line in lines) for i in (0, 1))
    for name, amount, note in lines:
        yield f"  {name:<{wide}}  {amount:<{number}}  {note}".rstrip()


def unknown_names(what: str, names: Iterable[Any], known: Iterable[Any]) -> str:
    """Sentence that says which names are not known, and which are."""
    return f"{what} {short(names)} is not known; known are {short(known)}."


def counted(n: int, noun: str) -> str:
    """A number of things.

    Examples
    --------
    >>> counted(1, "column"), counted(2, "column")
    ('1 column', '2 columns')
    """
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def short(names: Iterable[Any]) -> str:
    """A list of names for an error message, of bearable length."""
    names = [repr(n) for n in names]
    return ", ".join(names if len(names) <= 8 else [*names[:7], f"... {len(names)} in all"])
