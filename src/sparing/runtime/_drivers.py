"""Two ways to run the same flow of a session: with threads, or in an event loop.

A flow is a generator. It yields what takes time (a call to a source, a pause, a look into the books, a model) and gets
the result back; what is yielded here is all that differs between the synchronous and the asynchronous session.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooLate
from typing import Any, NamedTuple

from sparing.runtime._source import Request, Source, SourceError

Flow = Generator[Any, Any, Any]


class Ask(NamedTuple):
    """Call a source."""

    source: Source
    request: Request


class Pause(NamedTuple):
    """Wait some seconds."""

    seconds: float


class Compute(NamedTuple):
    """Call a function that may block, the books or a model; unless it is known to be quick."""

    function: Callable[[], Any]
    quick: bool = False


class Together(NamedTuple):
    """Run flows at the same time; the result is a list of their results or source errors."""

    flows: Sequence[Flow]
    local: Sequence[bool]


class Threads:
    """Runs flows in the calling thread, and what they do together in threads."""

    def __init__(self, timeout: float | None, max_threads: int) -> None:
        self._timeout = timeout
        self._pool = ThreadPoolExecutor(max_threads, thread_name_prefix="sparing")
        # Apart from the others: a call with a timeout is waited for by one of them.
        self._timed = ThreadPoolExecutor(max_threads, thread_name_prefix="sparing-call")

    def run(self, flow: Flow) -> Any:
        """Run a flow to its end."""
        try:
            command = next(flow)
            while True:
                try:
                    result = self._execute(command)
                except Exception as error:
                    command = flow.throw(error)
                else:
                    command = flow.send(result)
        except StopIteration as stop:
            return stop.value

    def _execute(self, command: Any) -> Any:
        kind = type(command)
        if kind is Compute:
            return command.function()
        if kind is Together:
            return self._together(command)
        if kind is Ask:
            return self._ask(command)
        return time.sleep(command.seconds)

    def _ask(self, command: Ask) -> Any:
        source, request = command
        if self._timeout is None or source.local:
            return source.fetch(request)
        future = self._timed.submit(source.fetch, request)
        try:
            return future.result(self._timeout)
        except TooLate:
            future.cancel()
            raise _too_late(source, self._timeout) from None

    def _together(self, command: Together) -> list[Any]:
        flows, local = command
        if len(flows) == 1:
            return [self._outcome(flows[0])]
        # What answers at once is done here, and so is one of the others: a thread less.
        slow = [i for i, quick in enumerate(local) if not quick][:-1]
        futures = {i: self._pool.submit(self._outcome, flows[i]) for i in slow}
        here = {i: self._outcome(flow) for i, flow in enumerate(flows) if i not in futures}
        return [futures[i].result() if i in futures else here[i] for i in range(len(flows))]

    def _outcome(self, flow: Flow) -> Any:
        try:
            return self.run(flow)
        except SourceError as error:
            return error

    def close(self) -> None:
        """Let the threads go."""
        self._pool.shutdown(wait=False)
        self._timed.shutdown(wait=False)


class Loop:
    """Runs flows in the running event loop; what blocks goes to threads."""

    def __init__(self, timeout: float | None) -> None:
        self._timeout = timeout

    async def run(self, flow: Flow) -> Any:
        """Run a flow to its end."""
        try:
            command = next(flow)
            while True:
                try:
                    result = await self._execute(command)
                except Exception as error:
                    command = flow.throw(error)
                else:
                    command = flow.send(result)
        except StopIteration as stop:
            return stop.value

    async def _execute(self, command: Any) -> Any:
        kind = type(command)
        if kind is Compute:
            if command.quick:
                return command.function()
            return await asyncio.to_thread(command.function)
        if kind is Together:
            return await asyncio.gather(*map(self._outcome, command.flows))
        if kind is Ask:
            try:
                async with asyncio.timeout(None if command.source.local else self._timeout):
                    return await command.source.afetch(command.request)
            except TimeoutError:
                raise _too_late(command.source, self._timeout) from None
        return await asyncio.sleep(command.seconds)

    async def _outcome(self, flow: Flow) -> Any:
        try:
            return await self.run(flow)
        except SourceError as error:
            return error


def _too_late(source: Source, timeout: float | None) -> SourceError:
    within = "in time" if timeout is None else f"within {timeout:.10g} s"
    return SourceError(f"Source {source.name!r} gave no answer {within}.")
