"""What a data set counts: one value per unit, a row or a query, whose mean is the score.

Both scores are asked in two steps, because thresholds only choose which stage answers a row: ``answer`` is what one
predictor says about every row, ``values`` is what the answers of a whole system are worth, unit by unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from sparing.metrics import average_precision_at_k, ndcg_at_k, run_precision_at_k
from sparing.system import Decides


class Asked(Protocol):
    """Rows that can be asked what a predictor says about them."""

    y: np.ndarray
    classes: np.ndarray
    query: np.ndarray | None
    grade: np.ndarray | None
    X: np.ndarray

    def proba(self, predictor: Any) -> np.ndarray:
        """Class probabilities, asked once."""


class Score(Protocol):
    """How the systems of a data set are judged.

    Attributes
    ----------
    name : for people.
    unit : what a value belongs to, for people.
    selection : name of the scikit-learn scorer that is nearest, for learners that choose by themselves.
    """

    name: str
    unit: str
    selection: str

    def answer(self, predictor: Any, rows: Asked) -> np.ndarray:
        """One number per row, enough to know what the answer is worth."""

    def values(self, answer: np.ndarray, rows: Asked) -> np.ndarray:
        """One value per unit."""

    def more(self, answer: np.ndarray, rows: Asked) -> dict[str, float]:
        """Other scores that are reported beside this one, and choose nothing."""


@dataclass(frozen=True)
class Accuracy:
    """Right or wrong, row by row.

    Attributes
    ----------
    watched : rare classes; which part of their rows is found is reported beside the accuracy.
    """

    watched: tuple[Any, ...] = ()
    name = "accuracy"
    unit = "rows"
    selection = "accuracy"

    def answer(self, predictor: Any, rows: Asked) -> np.ndarray:
        """Whether the predictor is right on each row."""
        decides = isinstance(predictor, Decides)
        code = predictor.decide(rows.X) if decides else rows.proba(predictor).argmax(axis=1)
        return rows.classes[code] == rows.y

    def values(self, answer: np.ndarray, rows: Asked) -> np.ndarray:  # noqa: ARG002
        """The answers themselves."""
        return answer

    def more(self, answer: np.ndarray, rows: Asked) -> dict[str, float]:
        """Recalls of the classes that are watched."""
        return {f"recall of class {c}": float(answer[rows.y == c].mean()) for c in self.watched}


@dataclass(frozen=True)
class RunPrecision:
    """The authors' "AP@5": documents of a query ranked by the probability of being relevant.

    Per query, the length of the unbroken run of relevant documents from rank 1, at most k, over k.
    """

    k: int = 5
    name = "run precision at 5"
    unit = "queries"
    selection = "average_precision"

    def answer(self, predictor: Any, rows: Asked) -> np.ndarray:
        """Probability that a document is relevant."""
        return rows.proba(predictor)[:, 1]

    def values(self, answer: np.ndarray, rows: Asked) -> np.ndarray:
        """The measure of each query."""
        return run_precision_at_k(rows.y, answer, rows.query, self.k, per_query=True).astype(
            np.float32
        )

    def more(self, answer: np.ndarray, rows: Asked) -> dict[str, float]:
        """Average precision at 5, and the gain of the grades at 10."""
        return {
            "AP@5": average_precision_at_k(rows.y, answer, rows.query, 5),
            "NDCG@10": ndcg_at_k(rows.grade, answer, rows.query, 10),
        }
