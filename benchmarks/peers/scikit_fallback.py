"""The peer: scikit-fallback's ``ThresholdCascadeClassifierCV``, stages on columns ranked by hand and f0 behind them.

It defers to the next model where the largest probability is below a threshold, and chooses the thresholds by
cross-validation with a cost per model. It has no columns of its own: every stage picks them. The
full model stands at the end with the out-of-fold probabilities that everybody has; row numbers travel as one more
column. All combinations of thresholds that no other beats in its cross-validation are systems. It asks every model
again for every combination, of which there are 250 at most: six thresholds for each of three gates. Stages remember
by row number what they said, which changes nothing but the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from lightgbm import LGBMClassifier
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from peers.columns import ColumnsPredictor, before_full, prefix_for
from sparing.frontier import pareto_order
from sparing.system import System

_COMBINATIONS = 250


def scikit_fallback(
    problem: Any, *, stages: Sequence[float], num_leaves: int, trees: float, cuts: int
) -> dict[str, list[System]]:
    """A cascade whose stages may cost shares of the price of everything, each a LightGBM model of default kind."""
    try:
        from skfb.ensemble import ThresholdCascadeClassifierCV
    except ImportError as error:
        raise ImportError(
            "The peer scikit-fallback is not installed: pip install 'sparing[bench]', or leave it out with --methods."
        ) from error
    train, costs, classes = problem.train, problem.costs, problem.full.classes
    chosen = [prefix_for(problem, share) for share in stages]
    paid = np.zeros((len(chosen), len(costs.columns)), dtype=bool)
    for row, columns in zip(paid, chosen, strict=True):
        row[columns] = True
    bought = costs.of(np.logical_or.accumulate(paid, axis=0))
    # What each stage adds; scikit-fallback takes no cost of 0.
    cuts = min(cuts, int(_COMBINATIONS ** (1 / len(chosen))))
    prices = np.maximum(np.diff([0.0, *bought, costs.total]), 1e-9)
    cascade = ThresholdCascadeClassifierCV(
        [
            *(Stage(_model(num_leaves, int(trees * problem.trees)), some) for some in chosen),
            KnownFullModel(problem.full_proba),
        ],
        costs=prices,
        cv_thresholds=np.linspace(1 / len(classes), 1.0, cuts + 1)[1:],
        cv=problem.folds(5),
        return_earray=False,
        n_jobs=1,
    )
    cascade.fit(np.column_stack([train.X, np.arange(len(train.y))]), train.y)
    best = pareto_order(cascade.mean_cv_costs_, cascade.mean_cv_scores_)
    if len(chosen) == 1:
        best = best[:1]  # one gate is cut by the objective as everybody's is
    predictors = [
        ColumnsPredictor(stage.model_, columns, classes)
        for stage, columns in zip(cascade.estimators_, chosen, strict=False)
    ]
    # It answers where the largest probability is at least its threshold; a gate's score is one minus that.
    return {
        "scikit-fallback": [
            before_full(problem, predictors, (1.0 - cascade.all_cv_thresholds_[i]).tolist())
            for i in best
        ]
    }


def _model(num_leaves: int, n_estimators: int) -> LGBMClassifier:
    return LGBMClassifier(
        n_estimators=n_estimators,
        num_leaves=num_leaves,
        random_state=0,
        deterministic=True,
        force_row_wise=True,
        n_jobs=1,
        verbosity=-1,
    )


class Stage(ClassifierMixin, BaseEstimator):
    """A model on some columns, asked once about every row: the last column of X says which row it is."""

    def __init__(self, model: Any, columns: np.ndarray) -> None:
        self.model = model
        self.columns = columns

    def fit(self, X: np.ndarray, y: np.ndarray, sample_weight: Any = None) -> Stage:
        """Fit the model."""
        self.model_ = clone(self.model).fit(X[:, self.columns], y, sample_weight=sample_weight)
        self.classes_ = self.model_.classes_
        self._said = np.empty((0, len(self.classes_)))
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """What it says, or has said before, about these rows."""
        rows = X[:, -1].astype(int)
        if (more := rows.max(initial=-1) + 1 - len(self._said)) > 0:
            self._said = np.pad(self._said, ((0, more), (0, 0)), constant_values=np.nan)
        if (new := np.isnan(self._said[rows, 0])).any():
            self._said[rows[new]] = self.model_.predict_proba(X[new][:, self.columns])
        return self._said[rows]


class KnownFullModel(ClassifierMixin, BaseEstimator):
    """The full model by its out-of-fold probabilities: the last column says which row is asked about."""

    def __init__(self, proba: np.ndarray) -> None:
        self.proba = proba

    def fit(self, X: np.ndarray, y: np.ndarray, sample_weight: Any = None) -> KnownFullModel:  # noqa: ARG002
        """Nothing to learn."""
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """What is known of these rows."""
        return self.proba[X[:, -1].astype(int)]
