"""A source behind an address: timeout, bounded retries that know what may have been paid, idempotency key."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Generator, Hashable, Iterable, Mapping
from typing import Any, Literal
from urllib.parse import quote
from weakref import WeakKeyDictionary

from sparing.runtime._source import Request, Source, SourceError

_UNPAID = frozenset({429, 503})
"""Statuses that say: not now, come again."""


class HTTPSource(Source):
    """An endpoint that answers in JSON with values by column.

    ``GET`` sends the items as parameters ``item``; ``POST`` sends ``{"entity": …, "items": […], "columns": […]}``. A
    request is repeated only when the first one surely cost nothing (no connection, 429, 503) or the endpoint honours
    idempotency keys.

    Parameters
    ----------
    url : str
        With ``{entity}`` where the entity belongs, if it belongs there.
    items, name, honours_keys, time_to_live
        As for :class:`Source`.
    method : {"GET", "POST"}, default="POST"
    timeout : float, default=5.0
        Seconds per attempt.
    retries : int, default=2
        Attempts after the first, at most.
    backoff : float, default=0.2
        Seconds before the first retry, on average; they double every time and are drawn at random, so that many
        sessions do not come back at the same moment. ``Retry-After`` counts when it is longer, up to ``timeout``.
    key_header : str, default="Idempotency-Key"
    headers : mapping, optional
        Sent with every request: tokens and the like.
    parse : callable, optional
        Turns the decoded JSON into values by column.
    transport, async_transport : httpx transports, optional
        For tests, proxies and special certificates.

    Examples
    --------
    >>> import httpx
    >>> bureau = httpx.MockTransport(lambda request: httpx.Response(200, json={"score": 640}))
    >>> source = HTTPSource("https://bureau.example/{entity}", ["score"], transport=bureau)
    >>> source.fetch(Request("anna", ("score",), ("score",), "key"))
    {'score': 640}
    >>> source.close()
    """

    def __init__(
        self,
        url: str,
        items: Iterable[Hashable] | Mapping[Any, Iterable[Hashable]],
        *,
        name: str = "http",
        honours_keys: bool = False,
        time_to_live: float | None = None,
        method: Literal["GET", "POST"] = "POST",
        timeout: float = 5.0,
        retries: int = 2,
        backoff: float = 0.2,
        key_header: str = "Idempotency-Key",
        headers: Mapping[str, str] | None = None,
        parse: Callable[[Any], Mapping[Any, Any]] | None = None,
        transport: Any = None,
        async_transport: Any = None,
    ) -> None:
        super().__init__(items, name=name, honours_keys=honours_keys, time_to_live=time_to_live)
        try:
            import httpx
        except ImportError as error:
            raise ImportError(
                "HTTPSource calls endpoints with httpx: pip install 'sparing[serve]'."
            ) from error
        self._httpx = httpx
        if method not in ("GET", "POST"):
            raise ValueError(f"method of source {name!r} is 'GET' or 'POST', not {method!r}.")
        self.url = url
        self.method = method
        self.timeout = timeout
        self.retries = retries
        self.backoff = backoff
        self.key_header = key_header
        self._parse = parse
        self._options: dict[str, Any] = {"headers": dict(headers or {}), "timeout": timeout}
        self._client = httpx.Client(transport=transport, **self._options)
        self._async_transport = async_transport
        self._clients: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()

    @property
    def longest(self) -> float:
        """Seconds after which it has answered or given up; a ledger's lease must be longer."""
        pauses = sum(max(2 * self.backoff * 2**i, self.timeout) for i in range(self.retries))
        return self.timeout * (1 + self.retries) + pauses

    def fetch(self, request: Request) -> Mapping[Any, Any]:
        """Call the endpoint, again where that is safe."""
        attempts = self._attempts(request)
        message = next(attempts)
        while True:
            try:
                step: Any = attempts.send(self._client.send(self._client.build_request(**message)))
            except self._httpx.HTTPError as error:
                step = attempts.throw(error)
            if isinstance(step, _Done):
                return step.values
            time.sleep(step)
            message = next(attempts)

    async def afetch(self, request: Request) -> Mapping[Any, Any]:
        """Call the endpoint without holding up the event loop."""
        attempts = self._attempts(request)
        # A client belongs to one event loop, and a source may meet several.
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            client = self._httpx.AsyncClient(transport=self._async_transport, **self._options)
            self._clients[loop] = client
        message = next(attempts)
        while True:
            try:
                step: Any = attempts.send(await client.send(client.build_request(**message)))
            except self._httpx.HTTPError as error:
                step = attempts.throw(error)
            if isinstance(step, _Done):
                return step.values
            await asyncio.sleep(step)
            message = next(attempts)

    def _attempts(self, request: Request) -> Generator[Any, Any, None]:
        """Yield the message to send, take the response or the error, yield the seconds to wait or that it is done."""
        message = self._message(request)
        sure = True  # that nothing was paid so far
        for attempt in range(self.retries + 1):
            healthy = False
            wait = random.uniform(0.0, 2.0 * self.backoff * 2**attempt)
            try:
                response = yield message
                if response.is_success:
                    yield _Done(self._values(response, request))
                    return
                reason = f"status {response.status_code}"
                refused = response.is_client_error and response.status_code != 408
                healthy = refused and response.status_code not in (401, 403, 429)
                sure &= refused or response.status_code in _UNPAID
                again = response.status_code in _UNPAID or not refused
                wait = max(wait, min(_seconds(response.headers.get("Retry-After")), self.timeout))
            except (self._httpx.ConnectError, self._httpx.ConnectTimeout) as error:
                reason, again = f"no connection ({error})", True
            except self._httpx.HTTPError as error:
                reason, again, sure = f"{type(error).__name__} ({error})", True, False
            if not again or not (sure or self.honours_keys) or attempt == self.retries:
                raise SourceError(
                    f"Source {self.name!r}: {reason}, after {attempt + 1} attempt{'s' * (attempt > 0)}.",
                    paid=False if sure else None,
                    final=True,
                    healthy=healthy,
                )
            yield wait

    def _message(self, request: Request) -> dict[str, Any]:
        message: dict[str, Any] = {
            "method": self.method,
            "url": self.url.replace("{entity}", quote(str(request.entity), safe="")),
            "headers": {self.key_header: request.key},
        }
        if self.method == "GET":
            message["params"] = {"item": [str(item) for item in request.items]}
        else:
            message["json"] = {
                "entity": request.entity,
                "items": list(request.items),
                "columns": list(request.columns),
            }
        return message

    def _values(self, response: Any, request: Request) -> Mapping[Any, Any]:
        try:
            content = response.json()
            content = content if self._parse is None else self._parse(content)
        except (ValueError, KeyError, TypeError) as error:
            raise SourceError(
                f"Source {self.name!r} gave an answer that cannot be read: {error}."
            ) from error
        if not isinstance(content, Mapping):
            return content  # the session says what is wrong with it
        names = {str(column): column for column in request.columns}  # names are texts in JSON
        return {names.get(name, name): value for name, value in content.items()}

    def close(self) -> None:
        """Close the connections of :meth:`fetch`."""
        self._client.close()

    async def aclose(self) -> None:
        """Close the connections of :meth:`afetch` in this event loop."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()


class _Done:
    """The values of a successful attempt."""

    def __init__(self, values: Mapping[Any, Any]) -> None:
        self.values = values


def _seconds(header: str | None) -> float:
    """Seconds of a ``Retry-After``; dates are not read."""
    try:
        return max(0.0, float(header or 0.0))
    except ValueError:
        return 0.0
