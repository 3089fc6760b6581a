"""What a session wants to buy, and what the books say to it."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sparing.runtime._values import Value


def new_key() -> str:
    """An idempotency key: 128 random bits, also after a fork."""
    return os.urandom(16).hex()


class Want(NamedTuple):
    """An item that is not there yet, and what it would be bought for."""

    item: Hashable
    source: str
    price: float
    time_to_live: float | None
    honours_keys: bool
    columns: tuple[Hashable, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """Items to be paid now, in one request, and the columns that come with each.

    ``again`` says that an earlier request of this key has an unknown end: it must be repeated as it was.
    """

    key: str
    source: str
    items: tuple[Hashable, ...]
    columns: tuple[tuple[Hashable, ...], ...]
    again: bool = False


@dataclass(frozen=True, slots=True)
class Claim:
    """What became of some wants.

    Attributes
    ----------
    calls : requests this session now has to make; their prices are reserved.
    reused : values that are paid and still valid, by item.
    waiting : items somebody else is buying at this moment.
    refused : items whose last payment has an unknown end; nothing was claimed when there are any.
    asking : key of the reserved price of asking a stage, None when it is free.
    """

    calls: tuple[Call, ...] = ()
    reused: Mapping[Hashable, Mapping[Hashable, Value]] = field(default_factory=dict)
    waiting: tuple[Hashable, ...] = ()
    refused: tuple[Hashable, ...] = ()
    asking: str | None = None


class Outcome(NamedTuple):
    """How a call ended: with values by item, or without; then ``paid`` is False or None, as in a source's error."""

    key: str
    values: Mapping[Hashable, Mapping[Hashable, Value]] | None
    paid: bool | None = None
    reason: str = ""
