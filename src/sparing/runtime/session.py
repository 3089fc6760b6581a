"""A served system: buys for each entity what the next stage needs, and nothing that no stage asks for.

How an answer comes about is written once, as a generator (``_flow``), and run with threads or in an event loop
(``_drivers``). What each stage buys is worked out beforehand (``_plan``), the money is kept by the ledger or by a purse
in memory, and a stage is asked exactly as a batch would ask it (``_asking``).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, Literal, Self

from sparing.runtime._answer import Answer, NoAnswerError
from sparing.runtime._drivers import Flow, Loop, Threads
from sparing.runtime._flow import Desk
from sparing.runtime._plan import Derive
from sparing.runtime._source import Source, SourceError, source_list
from sparing.runtime._till import outcome_of
from sparing.runtime.ledger import Ledger
from sparing.runtime.limits import Limits, Policy, Purse
from sparing.runtime.pacing import Pacer
from sparing.system import System

__all__ = ["Answer", "NoAnswerError", "Session"]

_MAX_THREADS = 256
_SAVE_EVERY = 100
"""Answers after which the state of a pacer is written to the ledger."""


class Session:
    """Answers for entities, buying items from sources stage by stage.

    Parameters
    ----------
    system : System or fitted classifier
    sources : Source or sequence of Source
        Who sells which items. Columns whose items nobody sells must be passed in ``known``.
    ledger : Ledger, optional
        Books: nothing is bought twice within its time to live, whatever crashes.
    limits : Limits, optional
        Hard caps. Without a ledger they hold in this session.
    pacer : Pacer, optional
        Moves the thresholds so that the average spend follows a target. With a ledger its state is kept there; each
        process paces its own traffic, and the state written last is the one a new session begins with.
    policy : Policy, optional
        What happens when something fails.
    derive : mapping of column to function, optional
        How to compute derived columns: ``{"FTI": lambda row: row["TT4"] / row["T4U"]}``. A derived column that is not
        here comes from the source of its inputs.
    like : array or data frame, optional
        Some rows as the models were fitted on, for their column types; needed where these matter, such as pandas
        categories. By default models that were fitted on column names get a pandas frame and all others arrays.

    Notes
    -----
    A row is bought by stage, all columns of every stage entered, whatever the system's own accounting:
    ``answer.cost`` is ``system.acquisition_cost(X, accounting="stage", owned=…)`` of the row.

    A text where a number belongs, or a number where text belongs, is no answer of a source: the policy says what
    happens then. Where neither ``like`` nor the system knows what a column holds, its model finds out: a TypeError or
    ValueError about a row with bought values is taken for nonsense of their sources, and is not asked for again in the
    same answer. In ``known`` nonsense is the caller's, a ValueError.

    A session may be shared by threads. A model behind an endpoint that raises :class:`SourceError` is treated like a
    source that fails; any other error of a model is the caller's.

    Examples
    --------
    >>> from sparing.runtime import MockSource, Session
    >>> from sparing.runtime._examples import lender
    >>> system, people = lender()
    >>> bureau = MockSource(people, ["income", "bureau"], faults=[None, None, "refused"])
    >>> session = Session(system, [bureau])
    >>> session.predict("anna")  # income is enough
    Answer(entity='anna', prediction='pays', stage=0, cost=1, bought=['income'], reused=[])
    >>> session.predict("bert", known={"income": 0.5})
    Answer(entity='bert', prediction='defaults', stage=1, cost=5, bought=['bureau'], reused=[])
    >>> [answer.cost for answer in session.predict_many(["anna", "bert"], concurrency=2)]
    [1.0, 6.0]
    """

    def __init__(
        self,
        system: System | Any,
        sources: Source | Sequence[Source],
        *,
        ledger: Ledger | None = None,
        limits: Limits | None = None,
        pacer: Pacer | None = None,
        policy: Policy | None = None,
        derive: Derive | None = None,
        like: Any = None,
    ) -> None:
        system = getattr(system, "system_", system)
        if not hasattr(system, "stages"):
            raise TypeError(
                f"A session serves a system, a bundle or a fitted classifier, not a {type(system).__name__}; a file is "
                "read with load(path)."
            )
        if isinstance(ledger, str | os.PathLike):
            raise TypeError(
                f"ledger is the path {str(ledger)!r}: open it, Ledger({str(ledger)!r}), and close it when all is done."
            )
        for stage in system.stages:
            if not getattr(stage.predictor, "available", True):
                raise ValueError(
                    f"Stage {stage.name!r} is known only by stored probabilities and cannot be asked: fit with the "
                    "model itself."
                )
        if pacer is not None and len(pacer.thresholds) != len(system.stages) - 1:
            raise ValueError(
                f"The pacer moves {len(pacer.thresholds)} thresholds, the system has {len(system.stages) - 1}."
            )
        self.system = system
        self.ledger = ledger
        self.pacer = pacer
        self.policy = Policy() if policy is None else policy
        self.limits = Limits() if limits is None else limits
        self._desk = Desk(
            system,
            source_list(sources),
            book=Purse() if ledger is None and limits is not None else ledger,
            limits=self.limits,
            policy=self.policy,
            derive=derive or {},
            like=like,
        )
        self._thresholds = system.thresholds
        self._threads = Threads(self.policy.timeout, _MAX_THREADS)
        self._loop = Loop(self.policy.timeout)
        self._unsaved = 0
        if ledger is not None:
            self._open_books(ledger)

    def _open_books(self, ledger: Ledger) -> None:
        for source in self.sources.values():
            longest = getattr(source, "longest", None)
            if longest is not None and longest >= ledger.lease:
                raise ValueError(
                    f"Source {source.name!r} may take {longest:.10g} s, and the ledger's lease is {ledger.lease:.10g} "
                    "s: a purchase under way would be taken for dead. Use a longer lease or a shorter timeout."
                )
        ledger.watch(self.limits)
        if self.pacer is not None:
            state = ledger.load_state(self.pacer.name)
            if state is not None:
                self.pacer.resume(state)

    @property
    def sources(self) -> dict[str, Source]:
        """The sources by name."""
        return self._desk.till.sources

    @property
    def only_known(self) -> tuple[Hashable, ...]:
        """Columns that no source sells: pass them in ``known``."""
        return self._desk.plan.only_known

    @property
    def breakers(self) -> dict[str, str]:
        """State of the circuit breaker of every source: closed, open or half-open."""
        return {name: breaker.state for name, breaker in self._desk.till.breakers.items()}

    # -- answers ----------------------------------------------------------------------------------

    def predict(self, entity: Hashable, known: Mapping[Any, Any] | None = None) -> Answer:
        """Answer for one entity.

        Parameters
        ----------
        entity : hashable
            Whom it is about, as the sources call it; text or a whole number where there is a ledger.
        known : mapping of column to value, optional
            Columns that are there already. Their items are not bought.

        Raises
        ------
        NoAnswerError
            No stage could answer, or the policy does not allow to make do with an earlier one.
        ValueError
            ``known`` has a column the system does not know, or a value it cannot use.
        """
        try:
            answer: Answer = self._threads.run(self._flow(entity, known))
        except NoAnswerError as error:
            if self._pace(error.cost):
                self._save()
            raise
        if self._pace(answer.cost):
            self._save()
        return answer

    async def apredict(self, entity: Hashable, known: Mapping[Any, Any] | None = None) -> Answer:
        """:meth:`predict` in an event loop."""
        try:
            answer: Answer = await self._loop.run(self._flow(entity, known))
        except NoAnswerError as error:
            if self._pace(error.cost):
                await asyncio.to_thread(self._save)
            raise
        if self._pace(answer.cost):
            await asyncio.to_thread(self._save)
        return answer

    def predict_many(
        self,
        entities: Iterable[Hashable],
        known: Iterable[Mapping[Any, Any] | None] | None = None,
        *,
        concurrency: int = 16,
        errors: Literal["raise", "return"] = "raise",
    ) -> list[Any]:
        """Answers in the order of the entities.

        Parameters
        ----------
        entities : iterable
        known : iterable of mappings, optional
            One per entity.
        concurrency : int, default=16
            Entities under way at the same time.
        errors : {"raise", "return"}, default="raise"
            ``"raise"`` stops at the first error: nothing more is bought for entities that have not been begun.
            ``"return"`` puts the error in the place of the answer.
        """
        work = _work(entities, known, concurrency, errors)
        answers: list[Any] = [None] * len(work)
        places = iter(range(len(work)))  # taking the next one is a single step of the interpreter

        def worker() -> None:
            for place in places:
                try:
                    answers[place] = self.predict(*work[place])
                except Exception as error:
                    if errors == "raise":
                        raise
                    answers[place] = error

        n_workers = max(1, min(concurrency, len(work)))
        with ThreadPoolExecutor(n_workers, thread_name_prefix="sparing-row") as pool:
            workers = [pool.submit(worker) for _ in range(n_workers)]
            try:
                for done in as_completed(workers):
                    done.result()
            finally:
                for _ in (
                    places
                ):  # after an error, or a key of the keyboard, nobody begins anything any more
                    pass
        return answers

    async def apredict_many(
        self,
        entities: Iterable[Hashable],
        known: Iterable[Mapping[Any, Any] | None] | None = None,
        *,
        concurrency: int = 16,
        errors: Literal["raise", "return"] = "raise",
    ) -> list[Any]:
        """:meth:`predict_many` in an event loop."""
        work = _work(entities, known, concurrency, errors)
        answers: list[Any] = [None] * len(work)
        places = iter(range(len(work)))

        async def worker() -> None:
            for place in places:
                try:
                    answers[place] = await self.apredict(*work[place])
                except Exception as error:
                    if errors == "raise":
                        for _ in places:  # what is under way ends well: it may have been paid
                            pass
                        raise
                    answers[place] = error

        n_workers = max(1, min(concurrency, len(work)))
        ends = await asyncio.gather(*(worker() for _ in range(n_workers)), return_exceptions=True)
        for end in ends:
            if end is not None:
                raise end
        return answers

    def _flow(self, entity: Hashable, known: Mapping[Any, Any] | None) -> Flow:
        thresholds = self._thresholds if self.pacer is None else self.pacer.thresholds
        return self._desk.flow(entity, known, thresholds)

    def _pace(self, cost: float) -> bool:
        """Tell the pacer what an answer cost; whether its state ought to be saved."""
        if self.pacer is None:
            return False
        self.pacer.update(cost)
        self._unsaved += 1
        return self._unsaved >= _SAVE_EVERY

    def _save(self) -> None:
        self._unsaved = 0
        if self.pacer is not None and self.ledger is not None:
            self.ledger.save_state(self.pacer.name, self.pacer.state())

    # -- after a crash, and at the end --------------------------------------------------------------

    def recover(self) -> int:
        """Ask again for purchases whose end is unknown, where the source honours idempotency keys.

        Sessions do this by themselves when they need such an item; after a crash this does it for all of them. Returns
        the number of requests whose values are now in the ledger.
        """
        if self.ledger is None:
            return 0
        names = [name for name, source in self.sources.items() if source.honours_keys]
        after, done = 0, 0
        while (found := self.ledger.take_over(names, after)) is not None:
            after, entity, call = found
            end = self._threads.run(self._desk.till.purchase(entity, call))
            done += not isinstance(end.result, SourceError)
            self.ledger.close_calls([outcome_of(end)])
        return done

    def close(self) -> None:
        """Keep the pacer's state, close the sources and the threads; the ledger stays open."""
        self._save()
        self._threads.close()
        for source in self.sources.values():
            source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    async def aclose(self) -> None:
        """:meth:`close`, and the connections of this event loop."""
        for source in self.sources.values():
            await source.aclose()
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        books = "no ledger" if self.ledger is None else repr(self.ledger)
        return f"Session of {len(self.system.stages)} stages, sources {list(self.sources)}, {books}"


def _work(
    entities: Iterable[Hashable],
    known: Iterable[Mapping[Any, Any] | None] | None,
    concurrency: int,
    errors: str,
) -> list[tuple[Hashable, Mapping[Any, Any] | None]]:
    """Entities with what is known about them, after a look at the other parameters."""
    everybody = list(entities)
    facts = [None] * len(everybody) if known is None else list(known)
    if len(facts) != len(everybody):
        raise ValueError(f"known has {len(facts)} entries for {len(everybody)} entities.")
    if not concurrency >= 1:
        raise ValueError(f"concurrency is {concurrency!r}, must be at least 1.")
    if errors not in ("raise", "return"):
        raise ValueError(f"errors is 'raise' or 'return', not {errors!r}.")
    return list(zip(everybody, facts, strict=True))
