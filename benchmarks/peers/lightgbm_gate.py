"""The peer: LightGBM with its own price per column, alone and with the rows it is unsure of sent to the full model.

Features that LightGBM users have at hand: ``cegb_penalty_feature_coupled`` makes the first use of a column cost its
price, ``cegb_penalty_feature_lazy`` the first use of a column on each row, and ``predict_proba`` says how sure the
model is. Nothing of sparing learns here; its ``System`` is used to count the cost as for everybody else.
"""

from __future__ import annotations

from typing import Any

import lightgbm
import numpy as np

from peers.columns import alone, before_full
from sparing.system import System


def lightgbm_coupled(problem: Any, **setting: float) -> dict[str, list[System]]:
    """Paid at first use in the model, with the full model behind it and without."""
    predictors = _predictors(problem, **setting)
    return {
        "lightgbm-confidence": [before_full(problem, [p]) for p in predictors],
        "lightgbm-alone": [alone(problem, p) for p in predictors],
    }


def lightgbm_lazy(problem: Any, **setting: float) -> dict[str, list[System]]:
    """Paid at first use on each row, with the full model behind it and without."""
    predictors = _predictors(problem, lazy=True, **setting)
    return {
        "lightgbm-lazy-confidence": [before_full(problem, [p]) for p in predictors],
        "lightgbm-lazy-alone": [alone(problem, p) for p in predictors],
    }


def _predictors(
    problem: Any,
    *,
    share: float,
    num_leaves: int,
    learning_rate: float,
    trees: float,
    lazy: bool = False,
) -> list[LightGbmPredictor]:
    model = fit_lightgbm(
        problem.train.X,
        problem.train.y,
        problem.prices(),
        penalty=share / problem.costs.total,
        num_leaves=num_leaves,
        learning_rate=learning_rate,
        n_estimators=int(trees * problem.trees),
        lazy=lazy,
    )
    sizes = sorted({max(1, model.n_estimators // part) for part in (8, 4, 2, 1)})
    return [LightGbmPredictor(model, n) for n in sizes]


def fit_lightgbm(
    X: np.ndarray,
    y: np.ndarray,
    prices: np.ndarray,
    *,
    penalty: float,
    num_leaves: int,
    learning_rate: float,
    n_estimators: int,
    lazy: bool = False,
) -> lightgbm.LGBMClassifier:
    """LightGBM whose splits pay for a column at its first use, in the model or on each row.

    Parameters
    ----------
    penalty : price of one unit of cost in units of mean loss; LightGBM's gains are sums over rows, twice the loss.
    """
    name = "cegb_penalty_feature_lazy" if lazy else "cegb_penalty_feature_coupled"
    per_row = 2 * penalty * prices
    return lightgbm.LGBMClassifier(
        n_estimators=n_estimators,
        learning_rate=learning_rate,
        num_leaves=num_leaves,
        random_state=0,
        deterministic=True,
        force_row_wise=True,
        n_jobs=1,
        verbosity=-1,
        **{name: list(per_row if lazy else len(y) * per_row)},
    ).fit(X, y)


class LightGbmPredictor:
    """The first trees of a fitted model as the predictor of a stage: what it says, and which columns it needs."""

    def __init__(self, model: lightgbm.LGBMClassifier, n_trees: int) -> None:
        self.model = model.booster_
        self.n_trees = n_trees
        self._paths = _paths(self.model, n_trees)
        self._n_columns = self.model.num_feature()
        used = [path for tree in self._paths for path in tree]
        self.columns = np.flatnonzero(np.any(used, axis=0))

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Class probabilities."""
        proba = self.model.predict(X, num_iteration=self.n_trees, num_threads=1)
        return np.column_stack([1 - proba, proba]) if proba.ndim == 1 else proba

    def columns_read(self, X: np.ndarray) -> np.ndarray:
        """Columns on the paths of each row."""
        leaves = self.model.predict(X, pred_leaf=True, num_iteration=self.n_trees, num_threads=1)
        read = np.zeros((len(X), self._n_columns), dtype=bool)
        for tree, leaf in zip(self._paths, leaves.reshape(len(X), -1).T, strict=True):
            read |= tree[leaf.astype(int)]
        return read


def _paths(booster: lightgbm.Booster, n_trees: int) -> list[np.ndarray]:
    """Columns on the way to every leaf, a table of shape (n_leaves, n_columns) per tree."""
    n_columns = booster.num_feature()
    tables = []
    for tree in booster.dump_model(num_iteration=n_trees)["tree_info"]:
        table = np.zeros((max(1, tree["num_leaves"]), n_columns), dtype=bool)
        _fill(tree["tree_structure"], [], table)
        tables.append(table)
    return tables


def _fill(node: dict[str, Any], above: list[int], table: np.ndarray) -> None:
    if "split_feature" not in node:
        table[node.get("leaf_index", 0), above] = True
        return
    here = [*above, node["split_feature"]]
    _fill(node["left_child"], here, table)
    _fill(node["right_child"], here, table)
