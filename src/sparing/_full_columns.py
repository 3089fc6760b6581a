"""Which columns a full model uses: by its coefficients, by the paths of its trees, or all of them.

A column is left out only where the model provably does not look at it; whatever is not known here counts as using
everything it is given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.ensemble._forest import BaseForest
from sklearn.feature_selection import SelectorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    Binarizer,
    MaxAbsScaler,
    MinMaxScaler,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.tree import BaseDecisionTree
from sklearn.utils import _safe_indexing

from sparing._tree_paths import BoosterPaths, forest_columns, forest_columns_read

Booleans = NDArray[np.bool_]
Columns = NDArray[np.intp]
Paths = Callable[[Any], Booleans]

# Not every transformer that keeps the columns in place keeps them apart: Normalizer divides by the norm of the row.
_COLUMN_BY_COLUMN = (
    Binarizer,
    MaxAbsScaler,
    MinMaxScaler,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)


@dataclass(frozen=True, eq=False)
class ColumnUse:
    """Columns of X a model uses, overall and per row.

    Attributes
    ----------
    n_columns : width of X.
    columns : positions in X of all columns used on any row.
    inputs : positions handed to the model, None for all: a legacy model may know only some of the columns.
    paths : columns tested by the model's trees on each row of what they are given, or None for all of ``columns``.
    before : transformers in front of the trees, or None.
    given : positions in X of the columns that reach the trees.
    """

    n_columns: int
    columns: Columns
    inputs: Columns | None = None
    paths: Paths | None = None
    before: Any = None
    given: Columns | None = None

    def inputs_of(self, X: Any) -> Any:
        """The part of X the model is given."""
        return X if self.inputs is None else _safe_indexing(X, self.inputs, axis=1)

    def read(self, X: Any) -> Booleans:
        """Columns tested on each row: bool of shape (n_rows, n_columns)."""
        mask = np.zeros((X.shape[0], self.n_columns), dtype=bool)
        if self.paths is None:
            mask[:, self.columns] = True
            return mask
        rows = self.inputs_of(X)
        mask[:, self.given] = self.paths(
            rows if self.before is None else self.before.transform(rows)
        )
        return mask


def column_use(model: Any, X: Any) -> ColumnUse:
    """Columns of X a fitted model uses."""
    inputs = _inputs(model, X)
    given = np.arange(X.shape[1]) if inputs is None else inputs
    last, before, apart = unwrapped(model), None, True
    if isinstance(last, Pipeline):
        before = last[:-1] if len(last.steps) > 1 else None
        given, apart = _passed_on((step for _, step in last.steps[:-1]), given)
        last = unwrapped(last.steps[-1][1])
    if apart:
        used, paths = _tree_use(last)
        if used is None:
            used = _linear_use(last, len(given))
        if used is not None:
            return ColumnUse(X.shape[1], given[used], inputs, paths, before, given)
    return ColumnUse(X.shape[1], given, inputs)


def column_use_again(
    model: Any, n_columns: int, columns: Columns, inputs: Columns | None, given: Columns | None
) -> ColumnUse:
    """What :func:`column_use` said of a model, from its arrays and the model itself.

    Parameters
    ----------
    model : the fitted model; a model that uses other columns than those stored is refused.
    n_columns, columns, inputs, given : as in :class:`ColumnUse`.
    """
    last, before = unwrapped(model), None
    if isinstance(last, Pipeline):
        before = last[:-1] if len(last.steps) > 1 else None
        last = unwrapped(last.steps[-1][1])
    if given is None:
        return ColumnUse(n_columns, columns, inputs)
    used, paths = _tree_use(last)
    if used is not None and (
        (len(used) and used.max() >= len(given)) or not np.array_equal(given[used], columns)
    ):
        raise ValueError(
            f"The model tests other columns than the {len(columns)} that were stored with it: it is another model."
        )
    return ColumnUse(n_columns, columns, inputs, paths, before, given)


def unwrapped(model: Any) -> Any:
    """The model inside wrappers that change nothing about its answers."""
    while isinstance(model, FrozenEstimator | BaseSearchCV):
        model = model.estimator if isinstance(model, FrozenEstimator) else model.best_estimator_
    return model


def _passed_on(steps: Iterable[Any], given: Columns) -> tuple[Columns, bool]:
    """Columns that get through the steps of a pipeline, and whether they still stand side by side behind them."""
    for step in steps:
        if step in (None, "passthrough") or isinstance(step, _COLUMN_BY_COLUMN):
            continue
        if isinstance(step, SelectorMixin):
            given = given[step.get_support()]
        elif isinstance(step, ColumnTransformer):
            return given[_chosen(step, len(given))], False
        elif not isinstance(step, SimpleImputer) or not _keeps_columns(step, len(given)):
            return given, False
    return given, True


def _keeps_columns(imputer: SimpleImputer, n_inputs: int) -> bool:
    return not imputer.add_indicator and len(imputer.get_feature_names_out()) == n_inputs


def _chosen(transformer: ColumnTransformer, n_inputs: int) -> Booleans:
    """Columns some transformer is given."""
    places = getattr(transformer, "_transformer_to_input_indices", None)
    chosen = np.full(n_inputs, places is None)
    for name, step, _ in transformer.transformers_:
        if places is not None and not (isinstance(step, str) and step == "drop"):
            chosen[np.asarray(places[name], dtype=np.intp)] = True
    return chosen


def _tree_use(model: Any) -> tuple[Columns | None, Paths | None]:
    """Columns tested by any tree and by row, if it is a model of trees whose paths are known."""
    boosted = isinstance(model, GradientBoostingClassifier) and model.init in (None, "zero")
    if isinstance(model, BaseForest | BaseDecisionTree) or boosted:
        return forest_columns(model), partial(forest_columns_read, model)
    booster: Any = getattr(model, "booster_", None)
    if hasattr(booster, "num_model_per_iteration"):  # LightGBM
        try:
            paths = BoosterPaths(booster)
        except ValueError:  # linear trees: their leaves read more than their paths
            return None, None
        # Predictions stop at the best iteration of an early stopping.
        n_iteration = booster.best_iteration if booster.best_iteration > 0 else None
        return paths.columns(n_iteration=n_iteration), partial(
            paths.columns_read, n_iteration=n_iteration
        )
    return None, None


def _linear_use(model: Any, n_inputs: int) -> Columns | None:
    """Columns with a coefficient other than 0; a kernel machine has coefficients only if its kernel is linear."""
    coefficients = getattr(model, "coef_", None)
    if not isinstance(coefficients, np.ndarray) or coefficients.shape[-1] != n_inputs:
        return None
    return np.flatnonzero(np.atleast_2d(coefficients).any(axis=0))


def _inputs(model: Any, X: Any) -> Columns | None:
    """Positions of the model's own inputs among the columns of X, None when they are the same."""
    wanted, names = _names_of(model), getattr(X, "columns", None)
    if wanted is not None and names is not None:
        # LightGBM writes "blood draw" as "blood_draw".
        place = {re.sub(r"\s", "_", str(name)): i for i, name in enumerate(names)}
        place |= {str(name): i for i, name in enumerate(names)}
        missing = [name for name in wanted if name not in place]
        if missing:
            raise ValueError(
                f"The full model was fitted on columns that X does not have: {missing}. Add them to X, in any place."
            )
        positions = np.array([place[name] for name in wanted], dtype=np.intp)
        return None if np.array_equal(positions, np.arange(X.shape[1])) else positions
    n_in = getattr(model, "n_features_in_", None)
    if n_in is not None and n_in != X.shape[1]:
        raise ValueError(
            f"The full model was fitted on {n_in} columns, X has {X.shape[1]}: give it the columns it knows, or a data "
            "frame with the names it was fitted with."
        )
    return None


def _names_of(model: Any) -> list[str] | None:
    """Names of the columns a model was fitted on, if it was fitted on names."""
    names = getattr(model, "feature_names_in_", None)
    if names is None or [*names] == [f"Column_{i}" for i in range(len(names))]:  # LightGBM's own
        return None
    return [str(name) for name in names]
