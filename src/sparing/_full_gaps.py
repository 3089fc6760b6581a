"""Columns that a full model is given and does not use, and what stands in their missing cells.

Most models look over all of a row before they answer, and refuse a missing cell wherever it is. A row that was bought
column by column has nothing in columns that nobody reads; what stands there changes no answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OrdinalEncoder
from sklearn.utils import _safe_indexing

from sparing._cells import missing
from sparing._full_columns import ColumnUse, unwrapped
from sparing._full_input import takes_missing

_ANYTHING = 1.0
"""Above zero: a Box-Cox transformation refuses all else."""


@dataclass(frozen=True, eq=False)
class Gaps:
    """Places of columns that a model is given and does not use, and a value for each that it takes.

    Examples
    --------
    >>> import numpy as np
    >>> Gaps((1, 2), (1.0, 1.0)).filled(np.array([[0.5, np.nan, 7.0]]))
    array([[0.5, 1. , 7. ]])
    """

    places: tuple[int, ...]
    values: tuple[Any, ...]

    def filled(self, X: Any) -> Any:
        """X with values in the missing cells of these columns; X itself where none is missing."""
        if isinstance(X, np.ndarray):
            return self._filled_array(X)
        if hasattr(X, "iloc"):
            dtypes = set(X.dtypes)
            if len(dtypes) == 1 and isinstance(only := dtypes.pop(), np.dtype) and only.kind == "f":
                before = X.to_numpy()
                after = self._filled_array(before)
                return X if after is before else type(X)(after, index=X.index, columns=X.columns)
            columns = {
                j: X.iloc[:, j].astype(object).where(~gaps, value) for j, gaps, value in self._in(X)
            }
            if not columns:
                return X
            all_columns = [columns.get(j, X.iloc[:, j]) for j in range(X.shape[1])]
            return type(X)(dict(zip(X.columns, all_columns, strict=True)), index=X.index)
        for j, gaps, value in self._in(X):  # polars
            name = X.columns[j]
            cells = [value if gap else cell for cell, gap in zip(X[name], gaps, strict=True)]
            X = X.with_columns(type(X[name])(name, cells))
        return X

    def _filled_array(self, X: NDArray[Any]) -> NDArray[Any]:
        found = list(self._in(X))
        if not found:
            return X
        text = X.dtype.kind != "O" and any(isinstance(value, str) for _, _, value in found)
        out = X.astype(object) if text else X.copy()
        for j, gaps, value in found:
            out[gaps, j] = value
        return out

    def _in(self, X: Any) -> Iterator[tuple[int, NDArray[np.bool_], Any]]:
        """The columns of X in which something is missing: place, where, and what to put there."""
        for j, value in zip(self.places, self.values, strict=True):
            gaps = missing(np.asarray(_safe_indexing(X, j, axis=1)))
            if gaps.any():
                yield j, gaps, value


def gaps_of(model: Any, use: ColumnUse) -> Gaps | None:
    """What has to be filled before a model is asked; None when it takes missing cells, or uses all it is given."""
    given = np.arange(use.n_columns) if use.inputs is None else use.inputs
    unused = np.flatnonzero(~np.isin(given, use.columns))
    if not len(unused) or takes_missing(model):
        return None
    known = _categories(model)
    values = tuple(_ANYTHING if known is None else known[j] for j in unused)
    return Gaps(tuple(given[unused].tolist()), values)


def _categories(model: Any) -> list[Any] | None:
    """A category of every input, where the model begins with an encoder that refuses all others."""
    model = unwrapped(model)
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    first = next(step for step in steps if step not in (None, "passthrough"))
    if not isinstance(first, OrdinalEncoder):
        return None
    return [next(iter(c[~missing(c)].tolist()), np.nan) for c in first.categories_]
