"""Which columns a full model uses: by its coefficients, by the paths of its trees, or all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin
from sklearn.ensemble._forest import BaseForest
from sklearn.pipeline import Pipeline
from sklearn.tree import BaseDecisionTree
from sklearn.utils import _safe_indexing

from sparing._tree_paths import forest_columns, forest_columns_read

Columns = NDArray[np.intp]


@dataclass(frozen=True)
class ColumnUse:
    """Columns of X a model uses, overall and per row.

    Attributes
    ----------
    n_columns : width of X.
    columns : positions in X of all columns used on any row.
    inputs : positions handed to the model, None for all: a legacy model may know only some of the columns.
    trees : the model or last pipeline step whose paths tell the columns of a row, or None.
    before : transformers in front of it that keep columns in their places, or None.
    """

    n_columns: int
    columns: Columns
    inputs: Columns | None = None
    trees: Any = None
    before: Any = None

    def inputs_of(self, X: Any) -> Any:
        """The part of X the model is given."""
        return X if self.inputs is None else _safe_indexing(X, self.inputs, axis=1)

    def read(self, X: Any) -> NDArray[np.bool_]:
        """Columns tested on each row: bool of shape (n_rows, n_columns)."""
        mask = np.zeros((X.shape[0], self.n_columns), dtype=bool)
        if self.trees is None:
            mask[:, self.columns] = True
            return mask
        given = self.inputs_of(X)
        given = given if self.before is None else self.before.transform(given)
        places = np.arange(self.n_columns) if self.inputs is None else self.inputs
        mask[:, places] = forest_columns_read(self.trees, given)
        return mask


def column_use(model: Any, X: Any) -> ColumnUse:
    """Columns of X a fitted model uses."""
    inputs = _inputs(model, X)
    n_inputs = X.shape[1] if inputs is None else len(inputs)
    places = np.arange(n_inputs) if inputs is None else inputs
    last, before = model, None
    if isinstance(model, Pipeline) and all(
        step == "passthrough" or isinstance(step, OneToOneFeatureMixin)
        for _, step in model.steps[:-1]
    ):
        last, before = model.steps[-1][1], model[:-1] if len(model.steps) > 1 else None
    if isinstance(last, BaseForest | BaseDecisionTree):
        used = forest_columns(last)
        return ColumnUse(X.shape[1], places[used], inputs, last, before)
    coefficients = getattr(last, "coef_", None)
    # A kernel machine has coef_ only when its kernel is linear; sparse ones are left to "all".
    if isinstance(coefficients, np.ndarray) and coefficients.shape[-1] == n_inputs:
        used = np.flatnonzero(np.atleast_2d(coefficients).any(axis=0))
        return ColumnUse(X.shape[1], places[used], inputs)
    return ColumnUse(X.shape[1], places, inputs)


def _inputs(model: Any, X: Any) -> Columns | None:
    """Positions of the model's own inputs among the columns of X, None when they are the same."""
    wanted = getattr(model, "feature_names_in_", None)
    given = getattr(X, "columns", None)
    if wanted is not None and given is not None:
        place = {str(name): i for i, name in enumerate(given)}
        missing = [name for name in wanted if str(name) not in place]
        if missing:
            raise ValueError(
                f"The full model was fitted on columns that X does not have: {missing}. Add them to X, in any place."
            )
        positions = np.array([place[str(name)] for name in wanted], dtype=np.intp)
        return None if np.array_equal(positions, np.arange(X.shape[1])) else positions
    n_in = getattr(model, "n_features_in_", None)
    if n_in is not None and n_in != X.shape[1]:
        raise ValueError(
            f"The full model was fitted on {n_in} columns, X has {X.shape[1]}: give it the columns it knows, or a data "
            "frame with the names it was fitted with."
        )
    return None
