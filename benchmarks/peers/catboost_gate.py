"""The peer: CatBoost with its own prices of columns, alone and with the rows it is unsure of sent to the full model.

CatBoost subtracts ``first_feature_use_penalties`` from the score of the first split on a column, or
``per_object_feature_penalties`` for every row that meets a column for the first time. Its scores grow with the root of
the number of rows, so the penalty is given as a share of that for all columns together.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from peers.columns import alone, before_full
from sparing.system import System


def catboost_gate(
    problem: Any, *, share: float, depth: int, per_object: bool, trees: float
) -> dict[str, list[System]]:
    """Systems of one fit: the model, or a first part of its trees; alone, and before the full model."""
    model = fit_catboost(
        problem.train.X,
        problem.train.y,
        problem.prices() / problem.costs.total,
        share=share,
        depth=depth,
        per_object=per_object,
        n_estimators=int(trees * problem.trees),
    )
    sizes = sorted({max(1, model.tree_count_ // part) for part in (8, 4, 2, 1)})
    predictors = [CatBoostPredictor(model, n, len(problem.costs.columns)) for n in sizes]
    return {
        "catboost-confidence": [before_full(problem, [p]) for p in predictors],
        "catboost-alone": [alone(problem, p) for p in predictors],
    }


def fit_catboost(
    X: np.ndarray,
    y: np.ndarray,
    prices: np.ndarray,
    *,
    share: float,
    depth: int,
    per_object: bool,
    n_estimators: int,
) -> Any:
    """CatBoost whose splits pay for a column at its first use, in the model or for a row."""
    try:
        from catboost import CatBoostClassifier
    except ImportError as error:
        raise ImportError(
            "The peer CatBoost is not installed: pip install 'sparing[bench]', or leave it out with --methods."
        ) from error
    scale = share * np.sqrt(len(y)) / (len(y) if per_object else 1)
    name = "per_object_feature_penalties" if per_object else "first_feature_use_penalties"
    return CatBoostClassifier(
        iterations=n_estimators,
        depth=depth,
        learning_rate=0.1,
        random_seed=0,
        thread_count=1,
        allow_writing_files=False,
        verbose=False,
        penalties_coefficient=1.0,
        **{name: (scale * prices).tolist()},
    ).fit(X, y)


class CatBoostPredictor:
    """The first trees of a fitted model: its trees test the same columns on every row, so paths save nothing."""

    def __init__(self, model: Any, n_trees: int, n_columns: int) -> None:
        self.model = model
        self.n_trees = n_trees
        self.columns = np.flatnonzero(np.any(_used(model, n_columns)[:n_trees], axis=0))

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Class probabilities."""
        return self.model.predict_proba(X, ntree_end=self.n_trees, thread_count=1)


def _used(model: Any, n_columns: int) -> np.ndarray:
    """Columns each tree tests: bool of shape (n_trees, n_columns)."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        trees = json.loads(path.read_text())["oblivious_trees"]
    used = np.zeros((len(trees), n_columns), dtype=bool)
    for row, tree in zip(used, trees, strict=True):
        row[[split["float_feature_index"] for split in tree["splits"] or []]] = True
    return used
