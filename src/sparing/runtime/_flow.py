"""How an answer comes about: get what a stage needs, ask it, go on or stop; and what happens when something fails.

Buying itself is the till's (``_till``).

Everything here is a generator that says what it waits for; ``_drivers`` does the waiting.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from sparing.runtime._answer import Answer, Exit, NoAnswerError
from sparing.runtime._asking import AskedStage, Said
from sparing.runtime._blame import NonsenseError, blamed
from sparing.runtime._column_kinds import column_kinds
from sparing.runtime._drivers import Compute, Flow
from sparing.runtime._job import Job
from sparing.runtime._plan import Derive, Plan, Round
from sparing.runtime._row import row_makers
from sparing.runtime._source import Source, SourceError
from sparing.runtime._till import Till
from sparing.runtime._values import plain
from sparing.runtime.ledger import Ledger
from sparing.runtime.limits import LimitError, Limits, Policy, Purse
from sparing.system import System

_KEPT_COSTS = 4096


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
        self.plan = Plan(system, sources, derive)
        self._derive = dict(derive)
        self._stages = [
            AskedStage(stage, make)
            for stage, make in zip(system.stages, row_makers(system, like), strict=True)
        ]
        self.till = Till(
            system,
            sources,
            book=book,
            limits=limits,
            policy=policy,
            kinds=column_kinds(system, like),
        )
        self._labels = system.classes.tolist()
        self._calls_up_to = system.call_prices().tolist()
        n = len(system.stages)
        prices = system.costs.call_prices(n if system.has_full else n + 1)
        self._call_prices = prices[:n].tolist()
        self._steps = [(f"buy {k}", f"ask {k}") for k in range(len(self._stages))]
        self._place = {column: j for j, column in enumerate(system.costs.columns)}
        self._item = {item: i for i, item in enumerate(system.costs.items)}
        self._costs: dict[tuple[Hashable, ...], float] = {}

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
            job.know(known, self._place, self.till.kinds)
        rounds = self.plan.rounds(job.known)
        last = len(self._stages) - 1
        for k in range(last + 1):
            buying, asking = self._steps[k]
            threshold = np.inf if k == last else thresholds[k]
            try:
                begin = time.perf_counter()
                if rounds[k].wants or (self._call_prices[k] and self.till.book is not None):
                    yield from self._buy(job, k, rounds[k])
                    bought = time.perf_counter()
                    job.elapsed[buying] = bought - begin
                    begin = bought
                try:
                    self._compute_derived(job, rounds[k].derived)
                except SourceError:  # the stage is not asked
                    yield from self.till.close_asking(job, paid=False)
                    raise
                said = yield from self._ask(job, k, threshold)
                job.elapsed[asking] = time.perf_counter() - begin
            except (SourceError, LimitError) as error:
                return (yield from self._make_do(job, k, error))
            if said.goes_on and said.proba is not None:
                job.probabilities[k] = said.proba
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
            yield from self.till.close_asking(job, paid=paid)
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
            yield from self.till.close_asking(job, paid=True)
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
            and (want.honours_keys or self.till.policy.unknown == "retry")
        ]
        if isinstance(self.till.book, Ledger) and items:
            yield Compute(partial(self.till.book.doubt, job.entity, items, str(nonsense)))

    def _compute_derived(self, job: Job, columns: Sequence[Hashable]) -> None:
        for column in columns:
            row = {c: job.cells[self._place[c]] for c in self.plan.inputs[column]}
            try:
                value = plain(self._derive[column](row))
            except Exception as error:
                raise SourceError(
                    f"Column {column!r} could not be derived from {row}: {type(error).__name__}: {error}",
                    final=True,
                ) from error
            wrong = self.till.kinds.wrong(column, value)
            if wrong:
                raise SourceError(f"Column {column!r} derived from {row} is {wrong}.", final=True)
            job.fill({column: value}, self._place)
            sellers = [job.brought[c] for c in row if c in job.brought and c not in job.known]
            if sellers:
                job.brought[column] = sellers[0]

    def _make_do(self, job: Job, k: int, error: Exception) -> Flow:
        """Answer with the best stage whose columns are all there, or raise."""
        if self.till.policy.on_failure == "degrade":
            for j in reversed(range(len(self._stages))):
                # Asking a later stage may cost something that was not reserved.
                reachable = j != k and (j <= job.asked or not self._call_prices[j])
                columns = self.system.stages[j].predictor.columns.tolist()
                if reachable and self._has(job, columns):
                    # Alone: what failed may be nonsense in a column that this stage has nothing to do with.
                    cells = job.cells_of(columns)
                    text = any(type(cell) is str for cell in cells)
                    try:
                        # What was said before is not asked for, and paid, a second time.
                        before = job.probabilities.get(j)
                        said = yield Compute(partial(self._stages[j].answer, cells, text, before))
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

    def _has(self, job: Job, columns: Sequence[int]) -> bool:
        """Whether columns are there, or can be computed from what is there."""
        for column in self.plan.to_derive(columns, job.there):
            if not job.there.issuperset(self._place[c] for c in self.plan.inputs[column]):
                return False
            try:
                self._compute_derived(job, [column])
            except SourceError:
                return False
        return job.there.issuperset(columns)

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

    def _buy(self, job: Job, k: int, wanted: Round) -> Flow:
        """Get everything a stage needs."""
        price = self._call_prices[k]
        yield from self.till.buy(job, wanted, (self._stages[k].name, price) if price else None)
