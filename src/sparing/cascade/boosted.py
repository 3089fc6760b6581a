"""Boosted trees as stages: LightGBM on numbers, whatever kind of table they come in."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from sparing._lightgbm import lightgbm

_MANY_ROWS = 10_000
"""Rows from which trees may have more leaves."""


class NumericBooster(lightgbm.LGBMClassifier):
    """LightGBM's classifier, which sees numbers only.

    Handed a frame, LightGBM remembers categories that nobody can give it again value by value, and text in a polars
    frame ends the process. Here every table becomes numbers first, and what is none is an error.

    Examples
    --------
    >>> NumericBooster(n_estimators=1).fit([["baker"], ["pilot"]], [0, 1])
    Traceback (most recent call last):
    ValueError: Boosted stages take numbers only: could not convert string to float: 'baker'...
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit on numbers."""
        return super().fit(_numbers(X), y, sample_weight=sample_weight)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Class probabilities."""
        return super().predict_proba(_numbers(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Class labels."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def _numbers(X: Any) -> NDArray[np.float64]:
    try:
        return check_array(X, dtype=np.float64, ensure_all_finite="allow-nan")
    except (TypeError, ValueError) as error:
        raise ValueError(f"Boosted stages take numbers only: {error}") from error


def boosted_trees(n_rows: int) -> NumericBooster:
    """Boosted trees that are fitted in no time; ridge and hessians keep rare classes from running away."""
    return NumericBooster(
        n_estimators=100,
        num_leaves=15 if n_rows < _MANY_ROWS else 63,
        learning_rate=0.1,
        min_child_samples=5,
        min_child_weight=1.0,
        reg_lambda=1.0,
        deterministic=True,
        force_row_wise=True,
        n_jobs=1,
        verbose=-1,
    )
