"""What is to be promised, and the promises that it is made of.

Called by ``guarantees``, which tests them on calibration rows, and before anything is fitted by ``selection``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparing._evaluation import is_accuracy, loss_matrix
from sparing._promises import (
    BoundedTolerance,
    Budget,
    MissedRows,
    PairedTolerance,
    Promise,
    WrongRows,
)
from sparing.metrics.scoring import scoring_name

Floats = NDArray[np.float64]


class PromiseError(ValueError):
    """No system can be promised to do what was asked; the message says which number of rows might.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> from sparing import AdaptLinClassifier, Frontier, Guarantee, certify
    >>> from sparing.datasets import make_synthetic1
    >>> X, y = make_synthetic1()
    >>> clf = AdaptLinClassifier(SVC(), random_state=0).fit(X[::2], y[::2])
    >>> frontier = Frontier.evaluate(clf, X[1::4], y[1::4])
    >>> certify(frontier, X[3:60:4], y[3:60:4], Guarantee(tolerance=0.01))
    Traceback (most recent call last):
    sparing._guarantee.PromiseError: No system can be promised to keep this with confidence 0.95 from 15 ...
    """


@dataclass(frozen=True)
class Guarantee:
    """What is to be promised about a system, and how surely.

    Parameters
    ----------
    tolerance : float, optional
        The score is at most this much below the full model's: accuracy, or minus a misclassification cost.
    budget : float, optional
        The average cost per row is at most this.
    max_error : float, optional
        Of the rows that are **not** sent to the full model, at most this share is answered wrongly.
    min_recall : mapping of label to float, optional
        Of the rows of a class, at least this share is found.
    confidence : float, default=0.95
        Probability, over the draw of the calibration rows, that everything promised holds.

    Examples
    --------
    >>> from sparing import Guarantee
    >>> Guarantee(tolerance=0.01, budget=5)
    Guarantee(tolerance=0.01, budget=5, max_error=None, min_recall=None, confidence=0.95)
    """

    tolerance: float | None = None
    budget: float | None = None
    max_error: float | None = None
    min_recall: Mapping[Any, float] | None = None
    confidence: float = 0.95

    def __post_init__(self) -> None:
        if self.min_recall is not None and not isinstance(self.min_recall, Mapping):
            raise ValueError(
                f"min_recall names classes, {{1: 0.9}} for example; got {self.min_recall!r}."
            )
        recalls = dict(self.min_recall or {})
        if all(p is None for p in (self.tolerance, self.budget, self.max_error)) and not recalls:
            raise ValueError(
                "A guarantee promises something: give tolerance, budget, max_error or min_recall."
            )
        _check("tolerance", self.tolerance, 0.0, np.inf)
        _check("budget", self.budget, 0.0, np.inf)
        _check("max_error", self.max_error, 0.0, 1.0)
        for label, recall in recalls.items():
            _check(f"min_recall of {label!r}", recall, 0.0, 1.0)
        _check("confidence", self.confidence, 0.5, 1.0)
        if self.confidence == 1:
            raise ValueError("confidence is below 1: no finite number of rows proves anything.")

    @property
    def wish(self) -> str:
        """What is to be promised, as it was written."""
        named = {
            "tolerance": self.tolerance,
            "budget": self.budget,
            "max_error": self.max_error,
            "min_recall": self.min_recall,
        }
        return " and ".join(f"{name}={wish}" for name, wish in named.items() if wish is not None)


def _check(name: str, value: Any, low: float, high: float) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, Real) or not low <= float(value) <= high:
        between = f"{low:g} or more" if high == np.inf else f"from {low:g} to {high:g}"
        raise ValueError(f"{name} is a number, {between}; got {value!r}.")


def check_promisable(guarantee: Guarantee, scoring: Any) -> None:
    """Raise when a tolerance is to be promised of a score that is no mean over rows."""
    if guarantee.tolerance is not None:
        _matrix(scoring)


def promises_of(guarantee: Guarantee, scoring: Any, classes: NDArray[Any]) -> list[Promise]:
    """The promises of a guarantee about systems with these classes; raise on those that cannot be made.

    A tolerance can be promised of accuracy and of misclassification costs, which are means over rows.
    """
    promises: list[Promise] = []
    if guarantee.tolerance is not None:
        matrix = _matrix(scoring)
        if matrix is None:
            promises.append(PairedTolerance(guarantee.tolerance))
        else:
            reach = float(np.max(matrix.max(axis=1) - matrix.min(axis=1)))
            promises.append(BoundedTolerance(guarantee.tolerance, reach))
    if guarantee.budget is not None:
        promises.append(Budget(guarantee.budget))
    if guarantee.max_error is not None:
        promises.append(WrongRows(guarantee.max_error))
    for label, recall in (guarantee.min_recall or {}).items():
        if label not in classes.tolist():
            raise ValueError(
                f"min_recall names the class {label!r}; the classes are {classes.tolist()}."
            )
        promises.append(MissedRows(1.0 - recall, label))
    return promises


def _matrix(scoring: Any) -> Floats | None:
    """The misclassification costs, None for accuracy; other scores are no mean over rows."""
    matrix = loss_matrix(scoring)
    if matrix is None and not is_accuracy(scoring):
        raise ValueError(
            f"A tolerance can be promised of accuracy or of a misclassification cost matrix, not of "
            f"scoring={scoring_name(scoring)}: it is no mean over rows. Promise min_recall or max_error instead, or "
            "write the cost of every mistake as a matrix."
        )
    return matrix


def check_calibration_rows(guarantee: Guarantee, promises: list[Promise], y: NDArray[Any]) -> None:
    """Raise when there are too few calibration rows for a promise about any system, before one is learnt.

    Parameters
    ----------
    guarantee : Guarantee
    promises : its promises.
    y : labels of the calibration rows.

    Examples
    --------
    >>> wish = Guarantee(max_error=0.01)
    >>> check_calibration_rows(wish, promises_of(wish, "accuracy", np.array([0, 1])), np.zeros(100))
    Traceback (most recent call last):
    sparing._guarantee.PromiseError: 100 calibration rows are too few to promise max_error=0.01 with ...
    """
    delta = 1.0 - guarantee.confidence
    for promise in promises:
        there, least = promise.rows_among(y), promise.least_rows(delta)
        if least is not None and there >= least:
            continue
        what = f"{there} calibration rows{promise.of_what}"
        if least is None:
            raise PromiseError(
                f"No number of calibration rows proves {promise.wish}: ask for a little less than everything."
            )
        raise PromiseError(
            f"{what} are too few to promise {promise.wish} with confidence {guarantee.confidence:g}, even of "
            f"{promise.ideal}: at least {least} are needed. Give a larger share, calibration=(X, y), or ask for less."
        )
