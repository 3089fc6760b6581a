"""Answers for clients that buy for themselves: the session's own flow, with the client in the place of the sources."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from sparing.runtime._asking import Said
from sparing.runtime._drivers import Flow
from sparing.runtime._flow import Desk
from sparing.runtime._job import Job
from sparing.runtime._plan import Derive, Round
from sparing.runtime._source import Request, Source, SourceError
from sparing.runtime._values import Value, is_missing
from sparing.runtime.ledger import Ledger
from sparing.runtime.limits import Limits, Policy, Purse
from sparing.system import System


class ItemsNeeded(Exception):  # noqa: N818
    """The answer waits for the client.

    Attributes
    ----------
    stage : the stage that needs them.
    round : what it buys.
    lacking : columns that are not there yet.
    scores : of the gates passed.
    """

    def __init__(
        self, stage: int, round: Round, lacking: Sequence[Hashable], scores: tuple[float, ...]
    ) -> None:
        super().__init__("items needed")
        self.stage = stage
        self.round = round
        self.lacking = tuple(lacking)
        self.scores = scores


class _Client(Source):
    """Sells everything, in the plan; it is never asked."""

    def fetch(self, request: Request) -> Mapping[Any, Any]:
        raise AssertionError(f"The client is not called: {request.items}.")


class ClientDesk(Desk):
    """A desk whose purchases are the client's: it says what is needed and waits.

    Money is counted as in a session: ``answer.bought`` are the items the client was asked for and brought. The books
    know only what asking a stage costs, which is paid here.

    Parameters
    ----------
    system, book, limits, policy, derive, like
        As for a session's desk.
    """

    def __init__(
        self,
        system: System,
        *,
        book: Ledger | Purse | None,
        limits: Limits,
        policy: Policy,
        derive: Derive,
        like: Any,
    ) -> None:
        super().__init__(
            system,
            [_Client(system.costs.items, name="client")],
            book=book,
            limits=limits,
            policy=policy,
            derive=derive,
            like=like,
        )
        self._columns: Mapping[Hashable, Value] = {}
        self._scores: tuple[float, ...] = ()
        self._now = False

    @property
    def numbers(self) -> frozenset[Hashable]:
        """Columns that hold numbers for sure."""
        return self.till.kinds.numbers

    @property
    def complete(self) -> frozenset[Hashable]:
        """Columns in which a missing value is refused."""
        return self.till.complete

    def visit(
        self,
        name: str,
        columns: Mapping[Hashable, Value],
        first: frozenset[Hashable],
        thresholds: Sequence[float],
        *,
        scores: tuple[float, ...] = (),
        answer_now: bool = False,
    ) -> Flow:
        """The answer for a client, or :class:`ItemsNeeded`.

        Parameters
        ----------
        name : under which the books keep what asking costs.
        columns : everything the client has by now.
        first : the columns it had at first; the others were bought.
        thresholds : of the gates.
        scores : of the gates passed before; they are not asked, and not paid, again.
        answer_now : whether to make do with what is there.
        """
        # The same desk in all else: what belongs to one client lives on a copy.
        desk = copy.copy(self)
        desk._columns, desk._scores, desk._now = columns, scores, answer_now
        return desk.flow(name, {c: columns[c] for c in first}, thresholds)

    def _buy(self, job: Job, k: int, wanted: Round) -> Flow:
        lacking = [c for c in wanted.columns if c not in self._columns]
        if lacking and self._now:
            raise SourceError("The client asked for an answer now.", paid=False, final=True)
        if lacking:
            raise ItemsNeeded(k, wanted, lacking, tuple(exit.score for exit in job.exits))
        for column in wanted.columns:
            if column in self.till.complete and is_missing(self._columns[column]):
                raise SourceError(f"Column {column!r} is missing, which is refused there.")
        job.bought.extend(want.item for want in wanted.wants)
        job.fill({c: self._columns[c] for c in wanted.columns}, self._place)
        if k >= len(self._scores) and self._call_prices[k] and self.till.book is not None:
            # Nothing is left to buy but the call of the stage.
            yield from super()._buy(job, k, wanted._replace(groups=(), wants=(), columns=()))

    def _blamed(self, job: Job, k: int, error: Exception) -> Exception:  # noqa: ARG002
        """Every value is the client's own: the service says so in its own words."""
        return error

    def _ask(self, job: Job, k: int, threshold: float) -> Flow:
        if k < len(self._scores):
            job.asked = k
            return Said(self._scores[k], True)
        return (yield from super()._ask(job, k, threshold))
