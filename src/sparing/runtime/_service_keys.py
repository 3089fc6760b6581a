"""Who may ask a service, and how often."""

from __future__ import annotations

import hmac
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path

SHORTEST = 16
"""Characters a key has at least: shorter ones can be guessed."""

_REMEMBERED = 10_000
"""Callers whose rates are remembered; whoever has not called for longest is forgotten first."""


KeysLike = Mapping[str, str] | Iterable[str]
"""Keys by name, or without names."""


class Keys:
    """API keys by name; only their hashes are kept.

    Parameters
    ----------
    keys : mapping of name to key, or iterable of keys
        Without names they are called after the beginning of their hash. Names appear in logs, keys never.

    Examples
    --------
    >>> keys = Keys({"shop": "a-long-random-text"})
    >>> keys.name_of("a-long-random-text"), keys.name_of("a-long-random-texT")
    ('shop', None)
    >>> Keys(["short"])
    Traceback (most recent call last):
    ValueError: A key has 5 characters, must have at least 16: take `secrets.token_urlsafe()`.
    """

    def __init__(self, keys: KeysLike) -> None:
        if isinstance(keys, str):
            raise TypeError("keys is a list of keys, or a mapping of name to key, not one text.")
        pairs = (
            list(keys.items())
            if isinstance(keys, Mapping)
            else [(f"key-{_hash(key).hex()[:8]}", key) for key in keys]
        )
        for _, key in pairs:
            if len(key) < SHORTEST:
                raise ValueError(
                    f"A key has {len(key)} characters, must have at least {SHORTEST}: take `secrets.token_urlsafe()`."
                )
            if not key.isascii() or any(character.isspace() for character in key):
                raise ValueError(
                    "A key has letters that HTTP headers do not carry: use ASCII without spaces."
                )
        self._hashes = {name: _hash(key) for name, key in pairs}

    def __len__(self) -> int:
        return len(self._hashes)

    def __contains__(self, name: object) -> bool:
        return name in self._hashes

    def __or__(self, other: Keys) -> Keys:
        for name in self._hashes.keys() & other._hashes.keys():
            if not hmac.compare_digest(self._hashes[name], other._hashes[name]):
                raise ValueError(f"Two different keys have the name {name!r}: give them two names.")
        both = Keys(())
        both._hashes = {**self._hashes, **other._hashes}
        return both

    def name_of(self, key: str) -> str | None:
        """The name of a key, None when there is no such key; takes the same time wherever the difference is."""
        given = _hash(key)
        found = None
        # Every key is compared, also after a match, and hashes all have the same length.
        for name, known in self._hashes.items():
            if hmac.compare_digest(given, known):
                found = name
        return found


def _hash(key: str) -> bytes:
    return sha256(key.encode("utf-8", "surrogatepass")).digest()


def read_keys(path: str | os.PathLike[str]) -> dict[str, str]:
    r"""Keys from a file: one per line, ``name: key``; empty lines and those that begin with # say nothing.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "keys")
    ...     _ = file.write_text("# two customers\nshop: a-long-random-text\nbank: another-random-text\n")
    ...     sorted(read_keys(file))
    ['bank', 'shop']
    """
    keys: dict[str, str] = {}
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        name, colon, key = text.partition(":")
        if not colon or not name.strip() or name.strip() in keys:
            # The line itself is not shown: it may be a key.
            raise ValueError(
                f"{path}, line {number}: write `name: key`, every name once, or a comment after #."
            )
        keys[name.strip()] = key.strip()
    return keys


def is_loopback(host: str) -> bool:
    """Whether an address or host name is this machine's own.

    Examples
    --------
    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class Rates:
    """Requests per second of every caller: a bucket that fills steadily and may be emptied at once.

    Parameters
    ----------
    rate : float
        Requests per second in the long run.
    burst : float
        Requests at once after a rest.

    Examples
    --------
    >>> now = 0.0
    >>> rates = Rates(rate=2.0, burst=1.0, clock=lambda: now)
    >>> rates.wait("shop"), rates.wait("shop"), rates.wait("bank")
    (0.0, 0.5, 0.0)
    >>> now = 0.5
    >>> rates.wait("shop")
    0.0
    """

    def __init__(
        self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if not rate > 0 or not burst >= 1:
            raise ValueError(f"rate is {rate!r} and burst {burst!r}: give > 0 and at least 1.")
        self._rate, self._burst, self._clock = float(rate), float(burst), clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, caller: str) -> float:
        """Seconds to wait before the next request; 0 lets this one pass and counts it."""
        now = self._clock()
        left, before = self._buckets.get(caller, (self._burst, now))
        left = min(self._burst, left + (now - before) * self._rate)
        passes = left >= 1.0
        self._buckets[caller] = (left - passes, now)
        self._buckets.move_to_end(caller)
        if len(self._buckets) > _REMEMBERED:
            self._buckets.popitem(last=False)
        return 0.0 if passes else (1.0 - left) / self._rate
