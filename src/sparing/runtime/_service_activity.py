"""What a service has done since it began, in bounded memory: for its page, its metrics and ``/v1/spend``.

Numbers of answers and money only; no entity and no value of a column ever comes here.
"""

from __future__ import annotations

import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from sparing.runtime._answer import Answer
from sparing.runtime._service_problem import finite

Buyer = Literal["server", "client"]

_MINUTES = 180
"""Minutes for which spend over time is kept."""
_RECENT = 1000
"""Answers that the recent shares and the scores of the gates are taken from."""
_DEGRADED = 20
"""Degraded answers that are remembered."""


class Activity:
    """Counts answers and money.

    Examples
    --------
    >>> from sparing.runtime import MockSource, Session
    >>> from sparing.runtime._examples import lender
    >>> system, people = lender()
    >>> session = Session(system, [MockSource(people, ["income", "bureau"])])
    >>> activity = Activity(clock=lambda: 120.0)
    >>> for person in ("anna", "bert"):
    ...     activity.note(session.predict(person), "server", "r1")
    >>> activity.spent["server"], activity.summary()["over_time"]
    (7.0, [{'minute': 120, 'answers': 2, 'spent': 7.0}])
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self.since = clock()
        self.answers: Counter[tuple[Buyer, int, bool]] = Counter()
        self.spent: dict[Buyer, float] = {"server": 0.0, "client": 0.0}
        self.items: Counter[tuple[Buyer, Any]] = Counter()
        self.without_answer: Counter[Buyer] = Counter()
        self._minutes: OrderedDict[int, list[float]] = OrderedDict()
        self._stages: deque[int] = deque(maxlen=_RECENT)
        self._degraded: deque[dict[str, Any]] = deque(maxlen=_DEGRADED)
        self._scores: dict[int, deque[float]] = {}

    def note(self, answer: Answer, buyer: Buyer, request_id: str) -> None:
        """Take note of an answer."""
        self.answers[buyer, answer.stage, answer.degraded] += 1
        self.items.update((buyer, item) for item in answer.bought)
        self._stages.append(answer.stage)
        for exit in answer.exits:
            if exit.stage not in self._scores:
                self._scores[exit.stage] = deque(maxlen=_RECENT)
            self._scores[exit.stage].append(exit.score)
        if answer.degraded:
            self._degraded.appendleft(
                {
                    "time": round(self._clock(), 3),
                    "request_id": request_id,
                    "answered_by": answer.stage,
                    # One gate more than were passed was to be asked: that stage failed.
                    "failed_at": len(answer.exits),
                    "cause": cause_of(answer.reason),
                    "cost": answer.cost,
                }
            )
        self._pay(answer.cost, buyer, 1)

    def note_failure(self, cost: float, buyer: Buyer, items: Sequence[Any] = ()) -> None:
        """Take note of a request that ended without an answer, and of what it had cost by then."""
        self.without_answer[buyer] += 1
        self.items.update((buyer, item) for item in items)
        self._pay(cost, buyer, 0)

    def _pay(self, cost: float, buyer: Buyer, answers: int) -> None:
        self.spent[buyer] += cost
        minute = int(self._clock() // 60) * 60
        if minute not in self._minutes:
            self._minutes[minute] = [0, 0.0]
            for old in [m for m in self._minutes if m <= minute - 60 * _MINUTES]:
                del self._minutes[old]
        self._minutes[minute][0] += answers
        self._minutes[minute][1] += cost

    def forget_scores(self) -> None:
        """The gates are others from now on."""
        self._scores.clear()
        self._stages.clear()

    def score_quantiles(self, n_gates: int, points: int = 21) -> list[list[float]]:
        """Quantiles of the recent scores of every gate; empty where none was asked."""
        shares = np.linspace(0.0, 1.0, points)
        found = []
        for gate in range(n_gates):
            scores = np.array(self._scores.get(gate, ()), dtype=float)
            scores = scores[np.isfinite(scores)]
            found.append(np.quantile(scores, shares).tolist() if len(scores) else [])
        return found

    def summary(self) -> dict[str, Any]:
        """Everything as plain data."""
        n_answers = sum(self.answers.values())
        spent = sum(self.spent.values())
        by_stage: Counter[int] = Counter()
        for (_, stage, _), count in self.answers.items():
            by_stage[stage] += count
        return {
            "since": round(self.since, 3),
            "answers": n_answers,
            "without_answer": sum(self.without_answer.values()),
            "degraded": sum(n for (_, _, degraded), n in self.answers.items() if degraded),
            "spent": dict(self.spent),
            "mean_cost": finite(spent / n_answers if n_answers else float("nan")),
            "by_stage": [
                {"stage": stage, "answers": count} for stage, count in sorted(by_stage.items())
            ],
            "recent_by_stage": [
                {"stage": stage, "answers": count}
                for stage, count in sorted(Counter(self._stages).items())
            ],
            "by_item": [
                {"item": item, "buyer": buyer, "bought": count}
                for (buyer, item), count in sorted(self.items.items(), key=lambda p: -p[1])
            ],
            "over_time": [
                {"minute": minute, "answers": int(answers), "spent": money}
                for minute, (answers, money) in self._minutes.items()
            ],
            "latest_degraded": list(self._degraded),
        }


def cause_of(reason: str) -> str:
    """Why an answer is degraded, in one word: the reason itself may quote entities, values and addresses.

    Examples
    --------
    >>> cause_of("Entity 'anna' has cost 3; another 5 would go over its limit of 6.")
    'limit'
    >>> cause_of("Source 'bureau' gave no answer in time.")
    'source'
    """
    if " would go over " in reason:
        return "limit"
    return "client" if reason.startswith("The client ") else "source"
