"""What a service does behind its paths: answers, conversations with clients that buy, the lever, the accounts."""

from __future__ import annotations

import asyncio
import math
import sqlite3
import sys
import time
from collections.abc import Coroutine, Hashable, Mapping
from dataclasses import replace
from typing import Any

from sparing.runtime._answer import Answer, NoAnswerError
from sparing.runtime._drivers import Loop
from sparing.runtime._service_activity import Activity, Buyer, cause_of
from sparing.runtime._service_client import ItemsNeeded
from sparing.runtime._service_lever import Lever, Serving
from sparing.runtime._service_problem import Problem, finite
from sparing.runtime._service_request import Asked, Reader, check_fields, read_json, whole
from sparing.runtime._service_token import Conversation, Tokens
from sparing.runtime._source import SourceError
from sparing.runtime._values import Value
from sparing.runtime.ledger import Ledger
from sparing.runtime.limits import LimitError
from sparing.runtime.pacing import Pacer
from sparing.system import System

_LEDGER_SECONDS = 5.0
"""Seconds for which sums of the ledger are kept: it is read from end to end for them."""

_REASONS = {
    "limit": "a spending limit was reached",
    "source": "a source, or a model, did not answer",
    "client": "the client asked for an answer with what is there",
}


class Answers:
    """Everything a service says.

    Parameters
    ----------
    system : System or Bundle
    lever : Lever
    tokens : Tokens
    activity : Activity
    ledger, pacer : the session's.
    buys : bool
        Whether there are sources.
    timeout : float
        Seconds after which a client is sent away; what was begun for it ends all the same.
    max_in_flight : int
        Answers under way at the same time at most.
    """

    def __init__(
        self,
        system: System,
        lever: Lever,
        tokens: Tokens,
        activity: Activity,
        *,
        ledger: Ledger | None,
        pacer: Pacer | None,
        buys: bool,
        timeout: float,
        max_in_flight: int,
    ) -> None:
        self.lever, self.activity = lever, activity
        self._tokens, self._ledger, self._pacer = tokens, ledger, pacer
        self.buys, self._timeout, self._most = buys, timeout, max_in_flight
        desk = lever.serving.desk
        self._columns = system.costs.columns
        self._place = {column: j for j, column in enumerate(self._columns)}
        self._reader = Reader(self._columns, desk.numbers, desk.complete)
        self._loop = Loop(None)
        self._under_way: set[asyncio.Task[Answer]] = set()
        self._ledger_sums: tuple[float, dict[str, Any]] = (-math.inf, {})
        self.closing = False

    # -- answers --------------------------------------------------------------------------------------

    async def predict(
        self, body: bytes, caller: str, request_id: str, notes: dict[str, Any]
    ) -> Any:
        """The answer to a request, or the items it needs; ``notes`` goes to the log."""
        asked = self._reader.asked(body)
        if self.closing:
            raise _busy("This service is closing.")
        if len(self._under_way) >= self._most:
            raise _busy(f"{self._most} answers are under way.")
        if asked.entity is not None:
            return await self._bought_here(asked, request_id, notes)
        return await self._bought_there(asked, caller, request_id, notes)

    async def _bought_here(self, asked: Asked, request_id: str, notes: dict[str, Any]) -> Any:
        if not self.buys:
            raise Problem(
                422,
                "no-sources",
                "This service has no sources to buy from: send columns without an entity, and it says what it needs.",
            )
        session = self.lever.serving.session
        lacking = [c for c in session.only_known if c not in asked.columns]
        if lacking:
            raise Problem(
                422,
                "columns-needed",
                f"No source sells column {str(lacking[0])!r}: send it in columns.",
                columns=[str(c) for c in lacking],
            )
        answer = await self._end(
            session.apredict(asked.entity, asked.columns), asked.columns, "server", request_id
        )
        return self._told(answer, session.system, "server", notes)

    async def _bought_there(
        self, asked: Asked, caller: str, request_id: str, notes: dict[str, Any]
    ) -> Any:
        values = {self._place[column]: value for column, value in asked.columns.items()}
        if asked.token is None:
            serving, talk = self._begin(caller, values)
        else:
            talk = self._tokens.read(asked.token, caller)
            self._tokens.check_values(asked.token, values)
            serving = self.lever.serving_at(talk.position)
        flow = serving.desk.visit(
            f"clients of {talk.caller}",
            asked.columns,
            frozenset(self._columns[j] for j in talk.first),
            talk.thresholds,
            scores=talk.scores,
            answer_now=asked.answer_now,
        )
        system = serving.session.system
        try:
            answer = await self._end(self._loop.run(flow), asked.columns, "client", request_id)
        except ItemsNeeded as needed:
            notes |= {"buyer": "client", "needs": len(needed.round.wants), "stage": needed.stage}
            return self._needed(needed, talk, values, system)
        if self._pacer is not None:
            self._pacer.update(answer.cost)
        return self._told(answer, system, "client", notes)

    def _begin(self, caller: str, values: Mapping[int, Value]) -> tuple[Serving, Conversation]:
        serving = self.lever.serving
        thresholds = (
            serving.session.system.thresholds if self._pacer is None else self._pacer.thresholds
        )
        first = tuple(sorted(values))
        return serving, Conversation(caller, serving.position, thresholds, first=first)

    async def _end(
        self,
        work: Coroutine[Any, Any, Answer],
        columns: Mapping[Hashable, Value],
        buyer: Buyer,
        request_id: str,
    ) -> Answer:
        """Wait for an answer, no longer than allowed. What was begun ends well: it may have been paid."""
        task = asyncio.ensure_future(work)
        self._under_way.add(task)
        task.add_done_callback(lambda done: self._done(done, buyer, request_id))
        try:
            async with asyncio.timeout(self._timeout):
                return await asyncio.shield(task)
        except TimeoutError:
            raise Problem(
                504, "timeout", f"No answer within {self._timeout:.10g} s; ask again later."
            ) from None
        except NoAnswerError as error:
            raise _no_answer(error) from error
        except sqlite3.Error as error:
            raise _busy("The books cannot be written at the moment.") from error
        except (ValueError, TypeError, ArithmeticError) as error:
            if not columns:
                raise
            # The models know best what they can take; their words may quote what they were given.
            raise Problem(
                422,
                "columns-refused",
                "The model cannot use these values: look for a text where it wants a number, or a number that is "
                "too large.",
                columns=[str(column) for column in columns],
            ) from error

    def _done(self, task: asyncio.Task[Answer], buyer: Buyer, request_id: str) -> None:
        self._under_way.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, NoAnswerError):
            self.activity.note_failure(error.cost, buyer, error.bought)
        elif error is None and not task.cancelled():
            self.activity.note(task.result(), buyer, request_id)

    def _told(
        self, answer: Answer, system: System, buyer: Buyer, notes: dict[str, Any]
    ) -> dict[str, Any]:
        notes |= {
            "buyer": buyer,
            "stage": answer.stage,
            "cost": answer.cost,
            "bought": len(answer.bought),
            "reused": len(answer.reused),
        }
        reason = None
        if answer.degraded:
            cause = cause_of(answer.reason)
            reason = f"{_REASONS[cause]} at stage {len(answer.exits)}"
            notes["degraded"] = cause
        return {
            "status": "answered",
            "prediction": _label(answer.prediction),
            "probabilities": [finite(p) for p in answer.probabilities.tolist()],
            "stage": answer.stage,
            "stage_name": system.stages[answer.stage].name,
            "cost": answer.cost,
            "bought": list(answer.bought),
            "reused": list(answer.reused),
            "exits": [
                {"stage": e.stage, "score": finite(e.score), "threshold": finite(e.threshold)}
                for e in answer.exits
            ],
            "degraded": answer.degraded,
            "reason": reason,
        }

    def _needed(
        self, needed: ItemsNeeded, talk: Conversation, values: Mapping[int, Value], system: System
    ) -> dict[str, Any]:
        lacking = set(needed.lacking)
        later = replace(talk, scores=needed.scores)
        return {
            "status": "items_needed",
            "stage": needed.stage,
            "stage_name": system.stages[needed.stage].name,
            "items": [
                {
                    "item": want.item,
                    "price": want.price,
                    "columns": [str(c) for c in want.columns if c in lacking],
                }
                for want in needed.round.wants
            ],
            "columns": [str(c) for c in needed.lacking],
            "price": math.fsum(want.price for want in needed.round.wants),
            "token": self._tokens.write(later, values),
        }

    async def close(self, seconds: float) -> None:
        """Take no more requests and wait for what is under way."""
        self.closing = True
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=seconds)

    # -- the lever and the accounts ----------------------------------------------------------------

    def places(self) -> dict[str, Any]:
        """Where the lever stands and where it can go."""
        n_gates = len(self.lever.system.stages) - 1
        return self.lever.state() | {
            "places": [
                {
                    "position": number,
                    "cost": place.cost,
                    "score": None if place.score is None else finite(place.score),
                    "stage_rates": [finite(rate) for rate in place.stage_rates],
                }
                for number, place in enumerate(self.lever.places)
            ],
            "recent_scores": self.activity.score_quantiles(n_gates),
        }

    async def move(self, body: bytes, notes: dict[str, Any]) -> dict[str, Any]:
        """Move the lever."""
        content = read_json(body)
        check_fields(content, ("position", "thresholds", "target"))
        if not content:
            raise Problem(422, "exit", "Give a position, thresholds or a target.")
        position, thresholds = whole(content.get("position")), content.get("thresholds")
        target = content.get("target")
        if "position" in content and position is None:
            raise Problem(422, "exit", "position must be a whole number.")
        if "thresholds" in content:
            if not isinstance(thresholds, list):
                raise Problem(422, "exit", "thresholds must be a list, one number per gate.")
            thresholds = [_threshold(value, gate) for gate, value in enumerate(thresholds)]
        if "target" in content and not _is_money(target):
            raise Problem(422, "exit", "target must be money per answer, > 0.")
        before = self.lever.position
        await asyncio.to_thread(
            self.lever.move, position=position, thresholds=thresholds, target=target
        )
        if self.lever.position != before:
            self.activity.forget_scores()
        notes |= self.lever.state()
        return self.places()

    async def spend(self) -> dict[str, Any]:
        """What was spent: by this process since it began, and by all in the ledger."""
        system = self.lever.system
        return self.activity.summary() | {
            "stage_names": [stage.name for stage in system.stages],
            "stage_prices": (
                system.costs.of(system.stage_columns()) + system.call_prices()
            ).tolist(),
            "breakers": self.lever.serving.session.breakers,
            "ledger": None if self._ledger is None else await self._sums(self._ledger),
        }

    async def _sums(self, ledger: Ledger) -> dict[str, Any]:
        made, sums = self._ledger_sums
        if time.monotonic() - made > _LEDGER_SECONDS:
            sums = await asyncio.to_thread(
                lambda: {
                    "paid": ledger.total(),
                    "at_risk": ledger.at_risk(),
                    "by_day": ledger.by_day()[-90:],
                    "by_item": ledger.by_item(),
                }
            )
            self._ledger_sums = (time.monotonic(), sums)
        return sums


def _label(label: Any) -> Any:
    return finite(label) if isinstance(label, float) else label


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_money(value: Any) -> bool:
    return _is_number(value) and 0 < value <= sys.float_info.max


def _threshold(value: Any, gate: int) -> float:
    if value in ("inf", "-inf"):
        return float(value)
    try:
        number = float(value) if _is_number(value) else math.nan
    except OverflowError:
        number = math.nan
    if not math.isfinite(number):
        raise Problem(422, "exit", f"Threshold {gate} must be a number, or the text inf or -inf.")
    return number


def _busy(why: str) -> Problem:
    return Problem(503, "busy", f"{why} Try again.", headers={"retry-after": "1"})


def _no_answer(error: NoAnswerError) -> Problem:
    spent: dict[str, Any] = {"cost": error.cost, "bought": list(error.bought)}
    cause = error.__cause__
    if isinstance(cause, LimitError):
        detail = "No stage can answer within the spending limits."
        return Problem(503, "limit", detail, headers={"retry-after": "60"}, **spent)
    # A source that works and refuses: the session wraps its error once.
    refused = cause.__cause__ if isinstance(cause, SourceError) else None
    if getattr(refused, "healthy", False):
        return Problem(404, "entity-unknown", "A source does not know this entity.", **spent)
    if isinstance(cause, SourceError) and cause_of(str(cause)) == "client":
        return Problem(409, "no-answer", "No stage has all its columns: buy the items.", **spent)
    detail = "A source failed, and no stage has all its columns."
    return Problem(503, "no-answer", detail, headers={"retry-after": "10"}, **spent)
