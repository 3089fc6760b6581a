"""The peer: a model like f0 on the best columns a budget pays for, and nothing adaptive about it.

What a practitioner does by hand: rank the columns by what they are worth per price, in two ways, and fit again on as
many as can be paid.
"""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from peers.columns import ColumnsPredictor, alone, prefix_for
from sparing.system import System


def static_subset(problem: Any, *, share: float, ranking: str) -> dict[str, list[System]]:
    """f0's kind on the columns that a share of the price of everything pays for."""
    columns, train = prefix_for(problem, share, ranking), problem.train
    model = clone(problem.full_model.estimator).fit(train.X[:, columns], train.y)
    predictor = ColumnsPredictor(model, columns, problem.full.classes)
    return {"static-subset": [alone(problem, predictor)]}
