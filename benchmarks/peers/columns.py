"""What peers share: a model on some columns as a stage, stages before the full model, columns ranked by hand.

Nothing of sparing learns here; its ``System`` is used to count cost and answers as for everybody else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.inspection import permutation_importance
from sklearn.model_selection import GroupShuffleSplit, StratifiedShuffleSplit

from sparing.system import ConfidenceGate, Stage, System

RANKED_ROWS = 4000
"""Rows that rank the columns, at most: half of them learn, half of them are shuffled."""


class ColumnsPredictor:
    """A model that was fitted on some columns only, as the predictor of a stage.

    Parameters
    ----------
    model : fitted classifier, which sees ``columns`` of X alone.
    columns : positions in X.
    classes : labels of the system.
    """

    def __init__(self, model: Any, columns: Sequence[int], classes: np.ndarray) -> None:
        self.model = model
        self.columns = np.asarray(columns, dtype=np.intp)
        self._place = np.searchsorted(classes, model.classes_)
        self._n_classes = len(classes)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Class probabilities; of a model without them, its decision values on the scale from 0 to 1."""
        some = X[:, self.columns]
        if hasattr(self.model, "predict_proba"):
            own = self.model.predict_proba(some)
        else:
            values = self.model.decision_function(some)
            own = softmax(
                np.column_stack([-values, values]) if values.ndim == 1 else values, axis=1
            )
        proba = np.zeros((len(X), self._n_classes))
        proba[:, self._place] = own
        return proba

    def decide(self, X: np.ndarray) -> np.ndarray:
        """The model's own decision."""
        codes = np.searchsorted(self.model.classes_, self.model.predict(X[:, self.columns]))
        return self._place[codes]


def alone(problem: Any, predictor: Any) -> System:
    """A predictor that answers everything."""
    return System(
        (Stage(predictor, name="alone"),), problem.costs, problem.full.classes, has_full=False
    )


def before_full(
    problem: Any, predictors: Sequence[Any], thresholds: Sequence[float] | None = None
) -> System:
    """Predictors one after the other, each answering where it is sure, and the full model behind them."""
    thresholds = [0.0] * len(predictors) if thresholds is None else thresholds
    stages = [
        Stage(predictor, ConfidenceGate(), threshold, name=f"stage {number}")
        for number, (predictor, threshold) in enumerate(
            zip(predictors, thresholds, strict=True), start=1
        )
    ]
    return System((*stages, problem.full.stages[-1]), problem.costs, problem.full.classes)


def columns_by_worth(problem: Any, ranking: str = "shuffled") -> np.ndarray:
    """Columns, best first, by what they are worth per price.

    ``"shuffled"``: the loss of accuracy of a model like f0 when a column is shuffled; ``"trees"``: the importance that
    extra trees find for it. Where columns are many and say the same, a single shuffled one is hardly missed.
    """
    worths = {"shuffled": _missed, "trees": _used}
    return problem.once(f"columns by worth, {ranking}", lambda: _ranked(problem, worths[ranking]))


def _ranked(problem: Any, worth_of: Callable[[Any], np.ndarray]) -> np.ndarray:
    worth, prices = worth_of(problem), problem.prices()
    # Columns of the same items are bought together, such as all codes of a word.
    items = problem.costs.items_of(np.eye(len(worth), dtype=bool))
    bought = np.unique(items, axis=0, return_inverse=True)[1].ravel()
    worth = np.bincount(bought, worth)[bought]
    # A free column is worth having whatever it brings; ties go by price.
    per_price = np.divide(worth, prices, out=np.full(len(worth), np.inf), where=prices > 0)
    return np.lexsort((prices, -per_price))


def _used(problem: Any) -> np.ndarray:
    trees = ExtraTreesClassifier(200, random_state=0)
    return trees.fit(problem.train.X, problem.train.y).feature_importances_


def _missed(problem: Any) -> np.ndarray:
    train = problem.train
    half = min(RANKED_ROWS, len(train.y)) // 2
    if train.query is None:
        splitter = StratifiedShuffleSplit(1, train_size=half, test_size=half, random_state=0)
    else:
        splitter = GroupShuffleSplit(1, train_size=0.5, random_state=0)
    learn, shuffle = next(splitter.split(train.X, train.y, train.query))
    model = clone(problem.full_model.estimator).fit(train.X[learn], train.y[learn])
    repeats = max(1, 100 // train.X.shape[1])
    return permutation_importance(
        model, train.X[shuffle], train.y[shuffle], n_repeats=repeats, random_state=0
    ).importances_mean


def prefix_for(problem: Any, share: float, ranking: str = "shuffled") -> np.ndarray:
    """The first columns of a ranking, as many as a share of the price of everything pays for; at least one."""
    order = columns_by_worth(problem, ranking)
    taken = np.tri(len(order), dtype=bool)[:, np.argsort(order)]
    prices = problem.costs.of(taken)
    return np.sort(order[: max(1, np.searchsorted(prices, share * prices[-1], side="right"))])
