"""Rows for learning, choosing and promising, and everything that can be refused before anything is fitted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GroupKFold
from sklearn.utils import check_consistent_length, column_or_1d

from sparing._guarantee import Guarantee, check_calibration_rows, promises_of
from sparing._parts import Positions, Rows, check_enough, split_rows
from sparing._price_list import short
from sparing._rows import take_rows
from sparing._wishes import Wishes
from sparing.costs import FeatureCosts
from sparing.metrics.scoring import scoring_name
from sparing.metrics.trial import TrialRows, try_scoring

HELD_OUT = 0.25
"""Share of the rows that choose when ``validation`` is None."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """What learns, what chooses, what promises.

    Attributes
    ----------
    train : positions of the rows that learn.
    folds : splitter, or (train, test) pairs, of these rows.
    validation : rows that choose.
    calibration : rows that promise, None when nothing is promised.
    """

    train: Positions
    folds: Any
    validation: Rows
    calibration: Rows | None


@dataclass(frozen=True, eq=False)
class Preparation:
    """Rows as they were given, and how they are to be divided.

    Attributes
    ----------
    rows : all rows, checked.
    validation, calibration, cv : as given to ``BudgetedClassifier``; ``calibration`` None when nothing is promised.
    seed : of the split.
    check_rows : checks rows that come on their own, as those of training were.
    """

    rows: Rows
    validation: Any
    calibration: Any
    cv: Any
    seed: int | None
    check_rows: Callable[[Any], Any]

    def divided(self) -> Prepared:
        """Divide the rows; raise when there are too few of them."""
        y, groups = self.rows.y, self.rows.groups
        shares = _share(self.validation), _share(self.calibration)
        check_enough(y, *shares)
        parts = split_rows(y, *shares, groups=groups, random_state=self.seed)
        return Prepared(
            parts.train,
            self._folds(parts.train),
            self._part("validation", parts.validation),
            None if self.calibration is None else self._part("calibration", parts.calibration),
        )

    def _folds(self, train: Positions) -> Any:
        is_number = isinstance(self.cv, int | np.integer)
        if self.rows.groups is None or not (is_number or hasattr(self.cv, "split")):
            return self.cv
        groups, y = self.rows.groups[train], self.rows.y[train]
        splitter = self.cv
        if is_number:
            splitter = GroupKFold(min(int(self.cv), len(np.unique(groups))))
        return list(splitter.split(np.zeros(len(train)), y, groups))

    def _part(self, name: str, positions: Positions) -> Rows:
        """Rows for one purpose: those set aside, or those given, whose labels must be known."""
        given = getattr(self, name)
        if isinstance(given, Real):
            rows = self.rows
            return Rows(
                take_rows(rows.X, positions),
                rows.y[positions],
                None if rows.weight is None else rows.weight[positions],
                None if rows.groups is None else rows.groups[positions],
            )
        X, y = self.check_rows(given[0]), column_or_1d(np.asarray(given[1]))
        check_consistent_length(X, y)
        known = set(self.rows.y.tolist())
        unknown = [label for label in dict.fromkeys(y.tolist()) if label not in known]
        if unknown:
            raise ValueError(
                f"The {name} rows have labels that y has not: {short(unknown)}; it has {short(sorted(known))}."
            )
        return Rows(X, y)


def check_share_or_rows(name: str, given: Any) -> None:
    """Raise for what is neither a share of the rows nor a pair of rows and labels.

    Examples
    --------
    >>> check_share_or_rows("validation", 25)
    Traceback (most recent call last):
    ValueError: validation=25: the share of the rows that are set aside is a number between 0 and 1.
    """
    if isinstance(given, Real):
        if isinstance(given, bool) or not 0 < float(given) < 1:
            raise ValueError(
                f"{name}={given!r}: the share of the rows that are set aside is a number between 0 and 1."
            )
    elif not (given is None and name == "validation"):
        if not isinstance(given, tuple | list):
            raise ValueError(
                f"{name} is a share of the rows or a pair (X, y), not a {type(given).__name__}."
            )
        if len(given) != 2:
            raise ValueError(
                f"{name} is a share of the rows or a pair (X, y); got {len(given)} things."
            )


def _share(given: Any) -> float:
    """Share of the rows to set aside; 0 when rows of their own are given, or none needed."""
    return float(given) if isinstance(given, Real) else 0.0


def refuse_the_impossible(
    prepared: Prepared,
    wishes: Wishes,
    guarantee: Guarantee | None,
    scoring: Any,
    costs: FeatureCosts,
    classes: NDArray[Any],
) -> None:
    """Raise for whatever no system can do, or no scorer say, about these rows."""
    promised = Wishes() if guarantee is None else _wishes_of(guarantee)
    rows = prepared.validation
    trial = TrialRows(rows.X, rows.y, costs, classes, rows.weight, rows.groups)
    for wish in (wishes, promised):
        wish.check_labels(classes)
        wish.check_prices(costs)
    span = try_scoring(scoring, trial)
    for wish in (wishes, promised):
        wish.check_tolerance(span, scoring_name(scoring))
    if guarantee is not None and prepared.calibration is not None:
        promises = promises_of(guarantee, scoring, classes)
        check_calibration_rows(guarantee, promises, prepared.calibration.y)


def _wishes_of(guarantee: Guarantee) -> Wishes:
    return Wishes(guarantee.budget, guarantee.tolerance, guarantee.min_recall)
