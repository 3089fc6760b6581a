"""Folds of the training rows, so that models are judged by rows they have not seen."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import BaseCrossValidator, KFold, StratifiedKFold, check_cv
from sklearn.model_selection._split import GroupsConsumerMixin

from sparing._price_list import short

Codes = NDArray[np.intp]


def folds_of(cv: Any, y: NDArray[Any], random_state: int | None) -> BaseCrossValidator:
    """A splitter; a number gives stratified, shuffled folds whatever the rarest class."""
    if hasattr(cv, "__next__"):
        raise TypeError(
            "cv is an iterator, which can be read once only, and folds are needed several times: give list(cv)."
        )
    if isinstance(cv, GroupsConsumerMixin):
        name = type(cv).__name__
        raise ValueError(
            f"cv={name}(...) splits by groups, which are not known here: give its folds, "
            f"cv=list({name}(...).split(X, y, groups)). BudgetedClassifier takes them: fit(X, y, groups=groups)."
        )
    if not isinstance(cv, int | np.integer):
        return check_cv(cv, y, classifier=True)
    if cv < 2:
        raise ValueError(f"cv is {cv}: out-of-fold probabilities need at least 2 folds.")
    largest = int(np.unique(y, return_counts=True)[1].max())
    if largest < 2:
        return KFold(min(int(cv), len(y)), shuffle=True, random_state=random_state)
    return _StratifiedFolds(min(int(cv), largest), shuffle=True, random_state=random_state)


_FOLDS = (
    "Folds are pairs (train, test) of positions of the rows given to fit, or of booleans, such as those of KFold, "
    "StratifiedKFold and GroupKFold."
)


def _positions(rows: Any, n: int) -> Codes:
    """Positions of rows from positions or booleans; IndexError when there are no such rows."""
    return np.arange(n)[np.asarray(rows) if len(rows) else np.zeros(0, dtype=np.intp)]


def checked_folds(cv: Any, y: NDArray[Any], random_state: int | None) -> list[tuple[Codes, Codes]]:
    """Folds that test every row once, on models that have not seen it."""
    try:
        given = list(folds_of(cv, y, random_state).split(np.zeros(len(y)), y))
        folds = [(_positions(train, len(y)), _positions(test, len(y))) for train, test in given]
    except (IndexError, TypeError) as error:
        if isinstance(cv, int | np.integer) or hasattr(cv, "split") or hasattr(cv, "__next__"):
            raise
        raise ValueError(f"cv is no list of folds: {error}. {_FOLDS}") from None
    rows = np.concatenate([np.zeros(0, dtype=np.intp), *(test for _, test in folds)])
    n_tested = np.bincount(rows, minlength=len(y))
    if len(odd := np.flatnonzero(n_tested != 1)):
        often = "no fold" if n_tested[odd[0]] == 0 else f"{n_tested[odd[0]]} folds"
        raise ValueError(
            f"cv must put every row into a test fold once, and row {odd[0]} is in {often}, {len(odd)} such rows of "
            f"{len(y)} in all. {_FOLDS}"
        )
    for number, (train, test) in enumerate(folds):
        if len(both := np.intersect1d(train, test)):
            raise ValueError(
                f"Fold {number} of cv tests row {both[0]} and learns from it too, {len(both)} such rows in all: what a "
                "model says about rows it has seen is too good. Take them out of the training part."
            )
        lacking = np.setdiff1d(y[test], y[train])
        # A number asks for folds that share out the classes as well as they can.
        if len(lacking) and not isinstance(cv, int | np.integer):
            warnings.warn(
                f"Fold {number} of cv learns from no row of class {short(lacking.tolist())} and tests such rows: "
                "whatever it says of them is wrong. Shuffle the rows, or let the folds share out the classes.",
                UserWarning,
                stacklevel=2,
            )
    return folds


class _StratifiedFolds(StratifiedKFold):
    """Stratified folds in which a class may be rarer than the folds: some training parts do without it then."""

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Codes, Codes]]:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The least populated class")
            return iter(list(super().split(X, y, groups)))
