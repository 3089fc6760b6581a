"""What a session gives back."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Exit(NamedTuple):
    """A gate that was asked: its score and the threshold above which a row goes on."""

    stage: int
    score: float
    threshold: float


@dataclass(frozen=True, eq=False)
class Answer:
    """A prediction and what it took.

    Attributes
    ----------
    entity : whom it is about.
    prediction : class label.
    probabilities : ndarray of shape (n_classes,), in the order of the system's classes.
    stage : int
        The stage that answered, 0 = cheapest.
    cost : float
        Price of the items bought for this answer and of the stages asked.
    bought : tuple of items paid for by this answer.
    reused : tuple of items that were paid for before and are still valid.
    exits : tuple of (stage, score, threshold)
        The gates asked on the way.
    elapsed : mapping of step to seconds
        ``"buy 0"``: the round trip for stage 0; ``"ask 0"``: its gate and predictor.
    degraded : bool
        Whether an earlier stage answered than should have, or another one.
    reason : str
        Why; empty when nothing went wrong.

    Examples
    --------
    >>> from sparing.runtime import MockSource, Session
    >>> from sparing.runtime._examples import lender
    >>> system, people = lender()
    >>> answer = Session(system, [MockSource(people, ["income", "bureau"])]).predict("anna")
    >>> answer
    Answer(entity='anna', prediction='pays', stage=0, cost=1, bought=['income'], reused=[])
    """

    entity: Hashable
    prediction: Any
    probabilities: Floats
    stage: int
    cost: float
    bought: tuple[Hashable, ...]
    reused: tuple[Hashable, ...]
    exits: tuple[Exit, ...]
    elapsed: Mapping[str, float]
    degraded: bool = False
    reason: str = ""

    def __repr__(self) -> str:
        text = (
            f"Answer(entity={self.entity!r}, prediction={self.prediction!r}, stage={self.stage}, "
            f"cost={self.cost:.10g}, bought={list(self.bought)}, reused={list(self.reused)}"
        )
        return text + (f", degraded, reason={self.reason!r})" if self.degraded else ")")


class NoAnswerError(RuntimeError):
    """No stage could answer, or the policy says not to make do with an earlier one.

    Attributes
    ----------
    entity : whom it was about.
    cost : float
        What was spent before it failed.
    bought : tuple of items that were paid for; a ledger keeps them for the next time.

    Examples
    --------
    >>> error = NoAnswerError("the bureau is down", entity="anna", cost=1.0, bought=("income",))
    >>> error.cost
    1.0
    """

    def __init__(
        self, message: str, *, entity: Hashable, cost: float, bought: tuple[Hashable, ...]
    ) -> None:
        super().__init__(message)
        self.entity = entity
        self.cost = cost
        self.bought = bought
