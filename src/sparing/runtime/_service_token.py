"""The thread of a conversation in which the client buys: signed, expiring, and kept by the client.

A token says where the answer stands: which system at which thresholds, the columns the client had at first, the gates
passed. It holds no value of a column, only a keyed digest of them, and the server keeps nothing.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from sparing.runtime._service_problem import Problem
from sparing.runtime._values import Value

_INVALID = "This token was not made by this service, or was changed: start again without it."


@dataclass(frozen=True)
class Conversation:
    """Where an answer stands.

    Attributes
    ----------
    caller : name of the key that began it.
    position : of the system that serves it, see the exit.
    thresholds : of its gates; they stay what they were when it began.
    scores : of the gates passed.
    first : columns the client had at first, as numbers.
    """

    caller: str
    position: int
    thresholds: tuple[float, ...]
    scores: tuple[float, ...] = ()
    first: tuple[int, ...] = ()


class Tokens:
    """Writes and reads tokens.

    Parameters
    ----------
    secret : bytes
        Processes that share it read each other's tokens.
    model : str
        Digest of the model: tokens of another one are refused.
    lifetime : float
        Seconds a token is good for.

    Examples
    --------
    >>> tokens = Tokens(b"0" * 32, model="m", lifetime=60.0)
    >>> talk = Conversation("shop", 0, (0.5,), (0.7,), (0, 2))
    >>> token = tokens.write(talk, {0: 1.5, 2: "f"})
    >>> tokens.read(token, "shop") == talk
    True
    >>> tokens.check_values(token, {0: 1.5, 2: "m"})
    Traceback (most recent call last):
    sparing.runtime._service_problem.Problem: token-values
    """

    def __init__(
        self,
        secret: bytes | None,
        *,
        model: str,
        lifetime: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if secret is not None and len(secret) < 16:
            raise ValueError(f"secret has {len(secret)} bytes, must have at least 16.")
        if not lifetime > 0:
            raise ValueError(f"The lifetime of tokens is {lifetime!r}, must be > 0 seconds.")
        self._secret = secrets.token_bytes(32) if secret is None else secret
        self._model = model[:16]
        self._lifetime = lifetime
        self._clock = clock

    def write(self, talk: Conversation, values: Mapping[int, Value]) -> str:
        """A token; ``values`` are all columns seen so far, by number."""
        given = sorted(values)
        content = {
            "model": self._model,
            "until": int(self._clock() + self._lifetime),
            "caller": talk.caller,
            "position": talk.position,
            "thresholds": talk.thresholds,
            "scores": talk.scores,
            "first": _bits(talk.first),
            "given": _bits(given),
            "digest": self._digest(values, given),
        }
        body = _encode(json.dumps(content, separators=(",", ":")).encode())
        return f"{body}.{_encode(self._sign(body))}"

    def read(self, token: str, caller: str) -> Conversation:
        """Where the answer stands, or a :class:`Problem`."""
        content = self._content(token)
        if not hmac.compare_digest(content["caller"].encode(), caller.encode()):
            raise Problem(400, "token-invalid", _INVALID)
        if content["model"] != self._model:
            raise Problem(
                409, "token-model", "The model has changed since: start again without the token."
            )
        if content["until"] < self._clock():
            raise Problem(
                410,
                "token-expired",
                f"This token was good for {self._lifetime:.10g} s: start again without it.",
            )
        return Conversation(
            content["caller"],
            content["position"],
            tuple(content["thresholds"]),
            tuple(content["scores"]),
            _numbers(content["first"]),
        )

    def check_values(self, token: str, values: Mapping[int, Value]) -> None:
        """Raise unless the columns given before are given again as they were."""
        content = self._content(token)
        given = _numbers(content["given"])
        if any(j not in values for j in given) or not hmac.compare_digest(
            content["digest"], self._digest(values, given)
        ):
            raise Problem(
                409,
                "token-values",
                "A token continues with the columns sent before, unchanged, and the new ones: send all of them, or "
                "start again without it.",
            )

    def _content(self, token: str) -> dict[str, Any]:
        body, dot, signature = token.partition(".")
        if not dot or not body.isascii() or not signature.isascii():
            raise Problem(400, "token-invalid", _INVALID)
        try:
            right = hmac.compare_digest(_decode(signature), self._sign(body))
        except (ValueError, binascii.Error):
            right = False
        if not right:
            raise Problem(400, "token-invalid", _INVALID)
        # Nothing of it was looked at before this line; from here on it is what this service wrote.
        content: dict[str, Any] = json.loads(_decode(body))
        return content

    def _sign(self, body: str) -> bytes:
        return hmac.digest(self._secret, b"token:" + body.encode(), sha256)

    def _digest(self, values: Mapping[int, Value], given: Sequence[int]) -> str:
        # 1 and 1.0 are the same number to most clients' JSON.
        cells = [
            [j, float(v) if isinstance(v := values[j], int) and not isinstance(v, bool) else v]
            for j in given
        ]
        text = json.dumps(cells)
        return _encode(hmac.digest(self._secret, b"values:" + text.encode(), sha256))


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    if _encode(data) != text:  # one text per token: stray bits at the end are refused too
        raise ValueError("not the way this service writes it")
    return data


def _bits(numbers: Sequence[int]) -> str:
    """A set of columns in little room."""
    return f"{sum(1 << j for j in numbers):x}"


def _numbers(bits: str) -> tuple[int, ...]:
    value = int(bits, 16)
    return tuple(j for j in range(value.bit_length()) if value >> j & 1)
