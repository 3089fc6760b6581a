"""What stands before every request: keys, rates, sizes, safe headers, one log line, no error that tells much."""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

from sparing.runtime._service_keys import Keys, Rates, is_loopback
from sparing.runtime._service_log import LOGGER, describe
from sparing.runtime._service_metrics import Metrics
from sparing.runtime._service_problem import PROBLEM, Problem, to_bytes

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

OPEN = frozenset({"/", "/healthz"})
"""Paths that need no key: they hold no data."""

_SAFE = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
_NOTHING = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")
_FORWARDED = (b"forwarded", b"x-forwarded-for", b"x-real-ip")
_FAILURES = (1.0, 20.0)
"""Wrong keys per second and at once that an address may try."""


class Guard:
    """ASGI middleware around the whole service.

    Parameters
    ----------
    app : what it guards.
    keys : Keys or None
        None lets everybody in who calls from this machine.
    rates : Rates or None
    max_body : int
        Bytes of a body at most.
    body_seconds : float
        Seconds in which a body must have come.
    metrics : Metrics
    """

    def __init__(
        self,
        app: App,
        *,
        keys: Keys | None,
        rates: Rates | None,
        max_body: int,
        body_seconds: float,
        metrics: Metrics,
    ) -> None:
        self._app = app
        self._keys, self._rates = keys, rates
        self._failures = Rates(*_FAILURES)
        self._max_body, self._body_seconds = max_body, body_seconds
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        if scope["type"] != "http":
            return await send({"type": "websocket.close", "code": 1008})
        begin = time.perf_counter()
        request_id = os.urandom(8).hex()
        state = scope.setdefault("state", {})
        # A mapping of its own: what the handler adds to the log line.
        notes: dict[str, Any] = {}
        state["request_id"], state["notes"], state["caller"] = request_id, notes, ""
        out = _Out(send, request_id)
        try:
            headers = dict(scope["headers"])
            state["caller"] = self._admit(scope, headers)
            await self._app(scope, self._bounded(scope, headers, receive), out.send)
        except Problem as problem:
            notes["problem"] = problem.kind
            await out.problem(problem)
        except Exception as error:
            notes |= describe(error)
            detail = (
                "Something went wrong here; the operator finds it in the log by the request_id."
            )
            await out.problem(Problem(500, "internal", detail))
        finally:
            seconds = time.perf_counter() - begin
            # The route as it is written in the code: a path may hold anything.
            route = getattr(scope.get("route"), "path", "unmatched")
            self._metrics.request(route, out.status, seconds)
            level = 40 if out.status >= 500 else 20
            if LOGGER.isEnabledFor(level):
                fields = {
                    "request_id": request_id,
                    "method": scope["method"] if scope["method"] in _METHODS else "other",
                    "route": route,
                    "status": out.status,
                    "ms": round(1e3 * seconds, 3),
                    "key": state["caller"],
                    **notes,
                }
                LOGGER.log(level, "request", extra={"fields": fields})

    # -- who ----------------------------------------------------------------------------------------

    def _admit(self, scope: Scope, headers: dict[bytes, bytes]) -> str:
        """The name of the caller, or a :class:`Problem`."""
        address = (scope.get("client") or ("", 0))[0]
        if scope["path"] in OPEN:
            if self._keys is None:
                _check_local(address, headers)
            self._check_rate(f"address {address}")
            return ""
        if self._keys is None:
            _check_local(address, headers)
            name: str | None = "local"
        else:
            name = self._keys.name_of(_given_key(headers))
        if name is None:
            wait = self._failures.wait(address)
            if wait:
                raise _too_many(wait)
            raise Problem(
                401,
                "key",
                "Send a key of this service: Authorization: Bearer KEY.",
                headers={"www-authenticate": "Bearer"},
            )
        self._check_rate(f"key {name}")
        return name

    def _check_rate(self, caller: str) -> None:
        wait = 0.0 if self._rates is None else self._rates.wait(caller)
        if wait:
            raise _too_many(wait)

    # -- how much -----------------------------------------------------------------------------------

    def _bounded(self, scope: Scope, headers: dict[bytes, bytes], receive: Receive) -> Receive:
        """``receive`` that ends bodies which are too long or too slow."""
        if scope["method"] not in ("POST", "PUT"):
            return receive
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or len(length) > 15 or int(length) > self._max_body:
            raise self._too_long()
        kind = headers.get(b"content-type", b"").split(b";")[0].strip().lower()
        deadline = time.monotonic() + self._body_seconds
        size, more = 0, True

        async def bounded() -> Message:
            nonlocal size, more
            if not more:
                return await receive()
            # Looked at where a body is read: a path that takes none says so first.
            if kind != b"application/json":
                # Also what keeps other sites' forms out: a browser asks before it sends this type.
                raise Problem(415, "content-type", "Send Content-Type: application/json.")
            try:
                async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                    message = await receive()
            except TimeoutError:
                raise Problem(
                    408, "slow", f"The body did not come within {self._body_seconds:.10g} s."
                ) from None
            size += len(message.get("body", b""))
            more = message.get("more_body", False)
            if size > self._max_body:
                raise self._too_long()
            return message

        return bounded

    def _too_long(self) -> Problem:
        return Problem(413, "size", f"A body has at most {self._max_body} bytes here.")


_METHODS = frozenset({"GET", "POST", "PUT", "HEAD", "OPTIONS", "DELETE", "PATCH"})


class _Out:
    """``send`` with safe headers; remembers the status."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self._request_id = request_id
        self.status = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = list(message.get("headers", ()))
            if not any(name == b"content-security-policy" for name, _ in headers):
                headers.append(_NOTHING)
            headers += [*_SAFE, (b"x-request-id", self._request_id.encode())]
            message = {**message, "headers": headers}
        await self._send(message)

    async def problem(self, problem: Problem) -> None:
        if self.status:  # half an answer is out: nothing can be said any more
            return
        body = to_bytes(problem.content(self._request_id))
        headers = [
            (b"content-type", PROBLEM.encode()),
            (b"content-length", str(len(body)).encode()),
            *((name.encode(), value.encode()) for name, value in problem.headers.items()),
        ]
        start = {"type": "http.response.start", "status": problem.status, "headers": headers}
        with suppress(Exception):  # whoever sends half a request may be gone before the answer
            await self.send(start)
            await self.send({"type": "http.response.body", "body": body})


def _given_key(headers: dict[bytes, bytes]) -> str:
    scheme, _, key = headers.get(b"authorization", b"").partition(b" ")
    if scheme.lower() != b"bearer":
        key = headers.get(b"x-api-key", b"")
    return key.strip().decode("latin-1")


def _check_local(address: str, headers: dict[bytes, bytes]) -> None:
    """Raise unless a request comes from this machine and no proxy, and was meant for it.

    Without the last, any web page could call the service through a name that points here.
    """
    host = headers.get(b"host", b"").decode("latin-1").strip()
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    if (
        not is_loopback(address)
        or not is_loopback(name)
        or any(header in headers for header in _FORWARDED)
    ):
        raise Problem(
            403, "local", "This service runs without keys and answers only this machine itself."
        )


def _too_many(wait: float) -> Problem:
    return Problem(
        429,
        "rate",
        f"Too many requests: wait {wait:.3g} s.",
        headers={"retry-after": str(max(1, math.ceil(wait)))},
    )
