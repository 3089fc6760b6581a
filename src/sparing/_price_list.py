"""Checks of a price list: names, numbers, shared and derived entries, each error naming the culprit.

Called by ``costs`` alone.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np


def private_prices(prices: Any) -> dict[Any, float]:
    if not isinstance(prices, Mapping):
        array = np.asarray(prices)
        if array.ndim != 1 or array.size == 0:
            raise ValueError(
                f"prices is a mapping or a one-dimensional array, this one has shape {array.shape}."
            )
        prices = dict(enumerate(array.tolist()))
    if not prices:
        raise ValueError("prices is empty: give one price per column.")
    return {column: checked_price(f"column {column!r}", value) for column, value in prices.items()}


def checked_price(what: str, value: Any) -> float:
    try:
        price = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"The price of {what} is {value!r}: give a number.") from None
    if not np.isfinite(price) or price < 0:
        raise ValueError(f"The price of {what} is {price}: give a finite number, 0 or more.")
    return price


def checked_call_price(value: Any) -> float | tuple[float, ...]:
    if np.ndim(value) == 0:
        return checked_price("a call (call_price)", value)
    return tuple(checked_price(f"stage {i} (call_price)", v) for i, v in enumerate(value))


def shared_entry(name: Any, entry: Any, columns: tuple[Any, ...]) -> tuple[float, tuple[Any, ...]]:
    try:
        price, members = entry
        members = tuple([members] if isinstance(members, str) else members)
    except (TypeError, ValueError):
        raise ValueError(
            f"Shared item {name!r} is (price, columns), for example (2.10, ['TSH', 'T3']); it is {entry!r}."
        ) from None
    unknown = [c for c in members if c not in columns]
    if unknown:
        raise ValueError(
            unknown_names(f"Shared item {name!r} names column", unknown, columns)
            + " A column that costs nothing but the shared item has the private price 0."
        )
    if not members:
        raise ValueError(f"Shared item {name!r} has no columns.")
    return checked_price(f"shared item {name!r}", price), members


def check_derived(derived: Mapping[Any, tuple[Any, ...]], columns: tuple[Any, ...]) -> None:
    for column, inputs in derived.items():
        unknown = [c for c in (column, *inputs) if c not in columns]
        if unknown:
            raise ValueError(
                unknown_names(f"Derived column {column!r} names column", unknown, columns)
            )
        if not inputs:
            raise ValueError(f"Derived column {column!r} names no inputs.")


def inputs_first(derived: Mapping[Any, tuple[Any, ...]]) -> Iterator[Any]:
    """Derived columns in an order in which inputs come before what is computed from them."""
    done: set[Any] = set()

    def visit(column: Any, trail: tuple[Any, ...]) -> Iterator[Any]:
        if column in trail:
            raise ValueError(
                "Derived columns go round in a circle: " + " -> ".join(map(str, (*trail, column)))
            )
        if column in derived and column not in done:
            for source in derived[column]:
                yield from visit(source, (*trail, column))
            done.add(column)
            yield column

    for column in derived:
        yield from visit(column, ())


def check_names(columns: Sequence[Hashable], priced: tuple[Hashable, ...]) -> None:
    missing = [c for c in columns if c not in set(priced)]
    unknown = [c for c in priced if c not in set(columns)]
    if missing or unknown:
        parts = []
        if missing:
            parts.append(f"no price for {short(missing)}")
        if unknown:
            parts.append(f"a price for {short(unknown)}, which X does not have")
        raise ValueError("feature_costs and X name different columns: " + "; ".join(parts) + ".")


def unknown_names(what: str, names: Sequence[Any], known: Sequence[Any]) -> str:
    return f"{what} {short(names)} is not known; known are {short(known)}."


def short(names: Iterable[Any]) -> str:
    names = [repr(n) for n in names]
    return ", ".join(names if len(names) <= 8 else [*names[:7], f"... {len(names)} in all"])
