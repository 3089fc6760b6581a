"""Buying: from the books, from the sources, or from whoever is buying the same already; retries and breakers.

Everything here is a generator that says what it waits for; ``_drivers`` does the waiting.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from sparing.runtime._breaker import Breaker
from sparing.runtime._claim import Call, Claim, Outcome, Want, new_key
from sparing.runtime._drivers import Ask, Compute, Flow, Pause, Together
from sparing.runtime._job import Job
from sparing.runtime._plan import Round
from sparing.runtime._source import Request, Source, SourceError
from sparing.runtime._values import ColumnKinds, Value, checked_answer
from sparing.runtime.ledger import Ledger
from sparing.runtime.limits import Limits, Policy, Purse
from sparing.system import System

_LONGEST_PAUSE = 0.05
"""Seconds between two looks whether somebody else's purchase has come."""
_NOTHING: frozenset[Hashable] = frozenset()


class Till:
    """Where purchases are made: sources, books, limits, the rules for failures, and a breaker per source.

    Several may share books and breakers, and with them what was spent and which source is ill.

    Parameters
    ----------
    system : whose columns and items they are.
    sources : who sells.
    book : where purchases are written down; None buys without.
    limits, policy : as for a session.
    kinds : what the columns hold.
    """

    def __init__(
        self,
        system: System,
        sources: Sequence[Source],
        *,
        book: Ledger | Purse | None,
        limits: Limits,
        policy: Policy,
        kinds: ColumnKinds,
    ) -> None:
        self.sources = {source.name: source for source in sources}
        self.book = book
        self.limits = limits
        self.policy = policy
        self.kinds = kinds
        self._place = {column: j for j, column in enumerate(system.costs.columns)}
        self._items = frozenset(system.costs.items)
        self.complete = self._refused_missing(policy)
        self.breakers = {
            name: Breaker(name, policy.breaker_failures, policy.breaker_pause)
            for name in self.sources
        }

    def _refused_missing(self, policy: Policy) -> frozenset[Hashable]:
        if isinstance(policy.refuse_missing, bool):
            return frozenset(self._place) if policy.refuse_missing else _NOTHING
        unknown = [column for column in policy.refuse_missing if column not in self._place]
        if unknown:
            raise ValueError(
                f"refuse_missing names column {unknown[0]!r}, which the system has not."
            )
        return frozenset(policy.refuse_missing)

    def close_asking(self, job: Job, *, paid: bool | None) -> Flow:
        """Write down whether asking a stage was paid, if it costs anything."""
        if job.asking is not None and self.book is not None:
            outcome = Outcome(job.asking, {} if paid else None, paid)
            job.asking = None
            yield Compute(partial(self.book.close_calls, [outcome]))

    def buy(self, job: Job, wanted: Round, asking: tuple[str, float] | None) -> Flow:
        """Get everything a stage needs: from the books, from the sources, or from who is buying it already.

        Parameters
        ----------
        job : whom for, and what is there.
        wanted : items and columns.
        asking : name and price of the stage, where asking it costs something.
        """
        if self.book is None:
            calls = [Call(new_key(), *group) for group in wanted.groups]
            yield from self._pay(job, calls)
            return
        wants: Sequence[Want] = wanted.wants
        pause = 0.001
        try:
            while wants or asking:
                claim: Claim = yield Compute(
                    partial(
                        self.book.claim,
                        job.entity,
                        wants,
                        limits=self.limits,
                        asking=asking,
                        unknown=self.policy.unknown,
                    )
                )
                if claim.refused:
                    raise SourceError(
                        f"A payment for item {claim.refused[0]!r} has an unknown end and its source does not honour "
                        "idempotency keys: see Ledger.resolve, or allow paying again with Policy(unknown='retry').",
                        paid=False,
                    )
                if asking is not None:
                    job.asking, asking = claim.asking, None
                self._reuse(job, claim, wanted)
                yield from self._pay(job, claim.calls)
                wants = [want for want in wants if want.item in claim.waiting]
                if wants and not claim.calls:
                    yield Pause(pause)
                    pause = min(2 * pause, _LONGEST_PAUSE)
            lacking = [c for c in wanted.columns if self._place[c] not in job.there]
            if lacking:
                raise SourceError(
                    f"The ledger has what column {lacking[0]!r} of entity {job.entity!r} comes with, but not the "
                    "column: it was bought for another system. Ledger.purge lets it be bought again.",
                    paid=False,
                )
        except Exception:
            yield from self.close_asking(job, paid=False)
            raise

    def _reuse(self, job: Job, claim: Claim, wanted: Round) -> None:
        sellers = {want.item: want.source for want in wanted.wants}
        for item, values in claim.reused.items():
            for column, value in values.items():
                wrong = self.kinds.wrong(column, value)
                if wrong and column in self._place and column not in job.known:
                    raise SourceError(
                        f"Column {column!r} that the ledger has from source {sellers[item]!r} for entity "
                        f"{job.entity!r} is {wrong}. Ledger.purge lets it be bought again.",
                        paid=False,
                    )
            job.fill(values, self._place)
            job.brought.update(dict.fromkeys(values, sellers[item]))
            if item not in job.bought:
                job.reused.append(item)

    def _pay(self, job: Job, calls: Sequence[Call]) -> Flow:
        """Make the calls together, write down how they ended, and raise if one of them failed."""
        if not calls:
            return
        ends: list[Ended] = yield Together(
            [self.purchase(job.entity, call) for call in calls],
            [self.sources[call.source].local for call in calls],
        )
        if self.book is not None:
            yield Compute(partial(self.book.close_calls, [outcome_of(end) for end in ends]))
        failed = None
        for call, result in ends:
            if isinstance(result, SourceError):
                failed = failed or result
            else:
                job.bought.extend(item for item in call.items if item in self._items)
                job.fill(result, self._place)
                job.brought.update(dict.fromkeys(result, call.source))
        if failed is not None:
            raise failed

    def purchase(self, entity: Hashable, call: Call) -> Flow:
        """One call with its retries; how it :class:`Ended`.

        A retry that may be paid a second time is a purchase of its own, and the limits are asked first.
        """
        source, breaker = self.sources[call.source], self.breakers[call.source]
        columns = tuple(column for some in call.columns for column in some)
        unpaid = not call.again
        policy = self.policy
        text = ""
        failure: Exception
        for attempt in range(policy.retries + 1):
            try:
                if attempt and not (unpaid or source.honours_keys or self.book is None):
                    key = yield Compute(
                        partial(self.book.repeat, call.key, limits=self.limits, reason=text)
                    )
                    if key is None:
                        break
                    call, unpaid = replace(call, key=key), True
                breaker.check()
            except SourceError as refusal:  # its own, and no failure of the source
                text, failure = str(refusal), refusal
                break
            except Exception as error:  # a limit, or books that cannot be written
                text = f"{text.rstrip('.')}. It is not asked again: {error}"
                break
            try:
                answer = yield Ask(source, Request(entity, call.items, columns, call.key))
                values = checked_answer(
                    answer,
                    columns,
                    source=source.name,
                    entity=entity,
                    kinds=self.kinds,
                    complete=self.complete,
                )
                breaker.worked()
                return Ended(call, values)
            except Exception as error:
                failure = error
                paid = final = None
                text = f"Source {source.name!r} raised {type(error).__name__}: {error}"
                if isinstance(error, SourceError):
                    paid, final, text = error.paid, error.final, str(error)
                if getattr(error, "healthy", False):
                    breaker.worked()
                else:
                    breaker.failed()
                unpaid = unpaid and paid is False
                safe = unpaid or source.honours_keys or policy.unknown == "retry"
                if final or not safe or attempt == policy.retries:
                    break
                yield Pause(random.uniform(0.0, 2.0 * policy.backoff * 2**attempt))
        failed = SourceError(text, paid=False if unpaid else None, final=True)
        failed.__cause__ = failure
        return Ended(call, failed)


class Ended(NamedTuple):
    """A call as it is in the books, and its values by column, or an error that says whether it was paid."""

    call: Call
    result: dict[Hashable, Value] | SourceError


def outcome_of(end: Ended) -> Outcome:
    """How a call ended, for the books."""
    call, result = end
    if isinstance(result, SourceError):
        return Outcome(call.key, None, result.paid, str(result))
    values = {
        item: {column: result[column] for column in columns}
        for item, columns in zip(call.items, call.columns, strict=True)
    }
    return Outcome(call.key, values)
