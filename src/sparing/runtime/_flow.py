"""How an answer comes about: buy what a stage needs, ask it, go on or stop; and what happens when something fails.

Everything here is a generator that says what it waits for; ``_drivers`` does the waiting.
"""

from __future__ import annotations

import random
import time
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from sparing.runtime._answer import Answer, Exit, NoAnswerError
from sparing.runtime._asking import AskedStage, Said
from sparing.runtime._blame import NonsenseError, blamed
from sparing.runtime._breaker import Breaker
from sparing.runtime._claim import Call, Claim, Outcome, Want, new_key
from sparing.runtime._column_kinds import column_kinds
from sparing.runtime._drivers import Ask, Compute, Flow, Pause, Together
from sparing.runtime._job import Job
from sparing.runtime._plan import Derive, Plan, Round
from sparing.runtime._row import row_makers
from sparing.runtime._source import Request, Source, SourceError
from sparing.runtime._values import Value, checked_answer, plain
from sparing.runtime.ledger import Ledger
from sparing.runtime.limits import LimitError, Limits, Policy, Purse
from sparing.system import System

_LONGEST_PAUSE = 0.05
"""Seconds between two looks whether somebody else's purchase has come."""
_KEPT_COSTS = 4096
_NOTHING: frozenset[Hashable] = frozenset()


class Desk:
    """Works on answers: a system, its sources, the books and the rules, with all that is the same for every entity."""

    def __init__(
        self,
        system: System,
        sources: Sequence[Source],
        *,
        book: Ledger | Purse | None,
        limits: Limits,
        policy: Policy,
        derive: Derive,
        like: Any,
    ) -> None:
        self.system = system
        self.sources = {source.name: source for source in sources}
        self.book = book
        self.limits = limits
        self.policy = policy
        self.plan = Plan(system, sources, derive)
        self._derive = dict(derive)
        self._stages = [
            AskedStage(stage, make)
            for stage, make in zip(system.stages, row_makers(system, like), strict=True)
        ]
        self._labels = system.classes.tolist()
        self._calls_up_to = system.call_prices().tolist()
        n = len(system.stages)
        prices = system.costs.call_prices(n if system.has_full else n + 1)
        self._call_prices = prices[:n].tolist()
        self._steps = [(f"buy {k}", f"ask {k}") for k in range(len(self._stages))]
        self._place = {column: j for j, column in enumerate(system.costs.columns)}
        self._item = {item: i for i, item in enumerate(system.costs.items)}
        self._kinds = column_kinds(system, like)
        self._complete = self._refused_missing(policy)
        self._costs: dict[tuple[Hashable, ...], float] = {}
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

    # -- an answer --------------------------------------------------------------------------------

    def flow(
        self,
        entity: Hashable,
        known: Mapping[Any, Any] | None,
        thresholds: Sequence[float],
    ) -> Flow:
        """The answer for an entity; ``thresholds`` has one entry per gate."""
        job = Job(entity, len(self._place))
        if known:
            job.know(known, self._place, self._kinds)
        rounds = self.plan.rounds(job.known)
        last = len(self._stages) - 1
        for k in range(last + 1):
            buying, asking = self._steps[k]
            threshold = np.inf if k == last else thresholds[k]
            try:
                begin = time.perf_counter()
                if rounds[k].wants or (self._call_prices[k] and self.book is not None):
                    yield from self._buy(job, k, rounds[k])
                    bought = time.perf_counter()
                    job.elapsed[buying] = bought - begin
                    begin = bought
                self._compute_derived(job, rounds[k])
                said = yield from self._ask(job, k, threshold)
                job.elapsed[asking] = time.perf_counter() - begin
            except (SourceError, LimitError) as error:
                return (yield from self._make_do(job, k, error))
            if k != last:
                job.exits.append(Exit(k, said.score, threshold))
            if not said.goes_on:
                return self._answer(job, k, said)
        raise AssertionError("The last stage always answers.")

    def _ask(self, job: Job, k: int, threshold: float) -> Flow:
        """Ask a stage, and note in the books that its price was paid."""
        stage = self._stages[k]
        try:
            said: Said = yield Compute(
                partial(stage.ask, job.cells, job.text, threshold), stage.quick
            )
        except Exception as error:
            # A model behind an endpoint may have been paid, and nobody knows what happened in any other.
            paid = error.paid if isinstance(error, SourceError) else None
            yield from self._close_asking(job, paid=paid)
            if not isinstance(error, TypeError | ValueError):
                raise
            to_raise = self._blamed(job, k, error)
            if to_raise is error:
                raise
            if isinstance(to_raise, NonsenseError):
                yield from self._doubt(job, to_raise)
            raise to_raise from error
        job.asked = max(job.asked, k)
        if job.asking is not None:
            yield from self._close_asking(job, paid=True)
        return said

    def _blamed(self, job: Job, k: int, error: Exception) -> Exception:
        """The error to raise when a stage could not use its row."""
        columns = self.system.costs.columns
        own = {columns[j]: j for j in self.system.stages[k].columns.tolist()}
        return blamed(job, f"Stage {k} ({self._stages[k].name})", own, error)

    def _doubt(self, job: Job, nonsense: NonsenseError) -> Flow:
        """Take nonsense out of the books where asking again is allowed; elsewhere it stays there, paid as it is."""
        wants = [want for wanted in self.plan.rounds(job.known) for want in wanted.wants]
        items = [
            want.item
            for want in wants
            if not set(nonsense.columns).isdisjoint(want.columns)
            and (want.honours_keys or self.policy.unknown == "retry")
        ]
        if isinstance(self.book, Ledger) and items:
            yield Compute(partial(self.book.doubt, job.entity, items, str(nonsense)))

    def _close_asking(self, job: Job, *, paid: bool | None) -> Flow:
        if job.asking is not None and self.book is not None:
            outcome = Outcome(job.asking, {} if paid else None, paid)
            job.asking = None
            yield Compute(partial(self.book.close_calls, [outcome]))

    def _compute_derived(self, job: Job, wanted: Round) -> None:
        for column in wanted.derived:
            row = {c: job.cells[self._place[c]] for c in self.plan.inputs[column]}
            try:
                value = plain(self._derive[column](row))
            except Exception as error:
                raise SourceError(
                    f"Column {column!r} could not be derived from {row}: {type(error).__name__}: {error}",
                    final=True,
                ) from error
            wrong = self._kinds.wrong(column, value)
            if wrong:
                raise SourceError(f"Column {column!r} derived from {row} is {wrong}.", final=True)
            job.fill({column: value}, self._place)
            sellers = [job.brought[c] for c in row if c in job.brought and c not in job.known]
            if sellers:
                job.brought[column] = sellers[0]

    def _make_do(self, job: Job, k: int, error: Exception) -> Flow:
        """Answer with the best stage whose columns are all there, or raise."""
        if self.policy.on_failure == "degrade":
            for j in reversed(range(len(self._stages))):
                # Asking a later stage may cost something that was not reserved.
                reachable = j != k and (j <= job.asked or not self._call_prices[j])
                columns = self.system.stages[j].predictor.columns.tolist()
                if reachable and job.there.issuperset(columns):
                    # Alone: what failed may be nonsense in a column that this stage has nothing to do with.
                    cells = job.cells_of(columns)
                    text = any(type(cell) is str for cell in cells)
                    try:
                        said = yield Compute(partial(self._stages[j].answer, cells, text))
                    except SourceError:  # a model behind an endpoint: the next best
                        continue
                    except (TypeError, ValueError) as other:
                        if isinstance(self._blamed(job, j, other), SourceError):
                            continue  # it reads the same nonsense
                        raise
                    return self._answer(job, j, said, str(error))
        raise NoAnswerError(
            f"No answer for entity {job.entity!r} at stage {k} ({self._stages[k].name}): {error}",
            entity=job.entity,
            cost=self._cost(job),
            bought=tuple(job.bought),
        ) from error

    def _answer(self, job: Job, k: int, said: Said, reason: str = "") -> Answer:
        assert said.proba is not None
        return Answer(
            job.entity,
            self._labels[said.code],
            said.proba,
            k,
            self._cost(job),
            tuple(job.bought),
            tuple(job.reused),
            tuple(job.exits),
            job.elapsed,
            bool(reason),
            reason,
        )

    def _cost(self, job: Job) -> float:
        """What was bought and which stages were asked, added by the price list."""
        bought = tuple(job.bought)
        price = self._costs.get(bought)
        if price is None:
            costs = self.system.costs
            owned = np.ones((1, len(costs.items)), dtype=bool)
            owned[0, [self._item[item] for item in bought]] = False
            everything = np.ones((1, len(costs.columns)), dtype=bool)
            price = float(costs.of(everything, owned=owned)[0])
            if len(self._costs) >= _KEPT_COSTS:
                self._costs.clear()
            self._costs[bought] = price
        if job.asked < 0:
            return price
        return price + self._calls_up_to[job.asked]

    # -- buying -----------------------------------------------------------------------------------

    def _buy(self, job: Job, k: int, wanted: Round) -> Flow:
        """Get everything a stage needs: from the books, from the sources, or from who is buying it already."""
        if self.book is None:
            calls = [Call(new_key(), *group) for group in wanted.groups]
            yield from self._pay(job, calls)
            return
        price = self._call_prices[k]
        asking = (self._stages[k].name, price) if price else None
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
        except Exception:
            yield from self._close_asking(job, paid=False)
            raise
        lacking = [c for c in wanted.columns if self._place[c] not in job.there]
        if lacking:
            raise SourceError(
                f"The ledger has what column {lacking[0]!r} of entity {job.entity!r} comes with, but not the column: "
                "it was bought for another system. Ledger.purge lets it be bought again.",
                paid=False,
            )

    def _reuse(self, job: Job, claim: Claim, wanted: Round) -> None:
        sellers = {want.item: want.source for want in wanted.wants}
        for item, values in claim.reused.items():
            for column, value in values.items():
                wrong = self._kinds.wrong(column, value)
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
        results = yield Together(
            [self.purchase(job.entity, call) for call in calls],
            [self.sources[call.source].local for call in calls],
        )
        if self.book is not None:
            outcomes = [
                outcome_of(call, result) for call, result in zip(calls, results, strict=True)
            ]
            yield Compute(partial(self.book.close_calls, outcomes))
        failed = None
        for call, result in zip(calls, results, strict=True):
            if isinstance(result, SourceError):
                failed = failed or result
            else:
                job.bought.extend(item for item in call.items if item in self._item)
                job.fill(result, self._place)
                job.brought.update(dict.fromkeys(result, call.source))
        if failed is not None:
            raise failed

    def purchase(self, entity: Hashable, call: Call) -> Flow:
        """One call with its retries; values by column, or a :class:`SourceError` that says whether it was paid."""
        source, breaker = self.sources[call.source], self.breakers[call.source]
        columns = tuple(column for some in call.columns for column in some)
        request = Request(entity, call.items, columns, call.key)
        unpaid = not call.again
        policy = self.policy
        for attempt in range(policy.retries + 1):
            try:
                breaker.check()
                answer = yield Ask(source, request)
                values = checked_answer(
                    answer,
                    columns,
                    source=source.name,
                    entity=entity,
                    kinds=self._kinds,
                    complete=self._complete,
                )
                breaker.worked()
                return values
            except Exception as error:
                failure = error
                paid = final = None
                if isinstance(error, SourceError):
                    paid, final = error.paid, error.final
                if not getattr(error, "healthy", False):
                    breaker.failed()
                unpaid = unpaid and paid is False
                safe = unpaid or source.honours_keys or policy.unknown == "retry"
                if final or not safe or attempt == policy.retries:
                    break
                yield Pause(random.uniform(0.0, 2.0 * policy.backoff * 2**attempt))
        text = str(failure)
        if not isinstance(failure, SourceError):
            text = f"Source {source.name!r} raised {type(failure).__name__}: {failure}"
        raise SourceError(text, paid=False if unpaid else None, final=True) from failure


def outcome_of(call: Call, result: dict[Hashable, Value] | SourceError) -> Outcome:
    """How a call ended, for the books."""
    if isinstance(result, SourceError):
        return Outcome(call.key, None, result.paid, str(result))
    values = {
        item: {column: result[column] for column in columns}
        for item, columns in zip(call.items, call.columns, strict=True)
    }
    return Outcome(call.key, values)
