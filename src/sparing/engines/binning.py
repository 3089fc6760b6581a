"""Tables as LightGBM wants them: categories as codes, missing as NaN, columns binned once.

``ColumnEncoder`` is the part that serving needs as well: it remembers the levels of the categorical columns and nothing
of the data. ``BinnedData`` holds the binned training rows; every refit and every setting of a sweep reuses it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from functools import cached_property
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from sparing._lightgbm import lightgbm
from sparing._stored import Stored, plain_levels, read_levels

Floats = NDArray[np.float64]


class ColumnEncoder:
    """Turns rows into numbers: categories into codes, whatever is missing or unknown into NaN.

    Parameters
    ----------
    n_columns : number of columns of X.
    levels : mapping of the position of a categorical column to its levels, in the order of their codes.

    Examples
    --------
    >>> import numpy as np
    >>> encoder = ColumnEncoder(2, {1: ("a", "b")})
    >>> encoder.encode(np.array([[1, "b"], [None, "a"], [3, "new"]], dtype=object))
    array([[ 1.,  1.],
           [nan,  0.],
           [ 3., nan]])
    """

    def __init__(self, n_columns: int, levels: Mapping[int, Iterable[Hashable]] | None = None):
        self.n_columns = n_columns
        self.levels = {column: tuple(values) for column, values in (levels or {}).items()}

    @classmethod
    def learn(cls, X: Any) -> ColumnEncoder:
        """Find the categorical columns of a table, those that do not hold numbers, and their levels."""
        levels: dict[int, tuple[Hashable, ...]] = {}
        if not _is_numeric_array(X):
            for j in range(X.shape[1]):
                values = _column(X, j)
                if _is_category(X, j) or values.dtype.kind not in "biuf":
                    levels[j] = _levels(values, _name(X, j))
        return cls(X.shape[1], levels)

    @cached_property
    def _codes(self) -> dict[int, dict[Hashable, int]]:
        return {j: {v: code for code, v in enumerate(known)} for j, known in self.levels.items()}

    def encode(self, X: Any, columns: Iterable[int] | None = None) -> NDArray[np.floating]:
        """Rows as floats of shape (n_rows, n_columns).

        Parameters
        ----------
        X : array or frame
        columns : positions that will be read; None for all.
            The others may hold anything: they are placeholders in a served row.
        """
        if X.shape[1] != self.n_columns:
            raise ValueError(
                f"X has {X.shape[1]} columns, the model was fitted on {self.n_columns}."
            )
        if _is_numeric_array(X) and not self.levels:
            return X if X.dtype.kind == "f" and X.dtype.itemsize in (4, 8) else X.astype(float)
        out = np.full(X.shape, np.nan)
        # Plain integers: polars takes no others.
        for j in map(int, range(self.n_columns) if columns is None else columns):
            values = _column(X, j)
            if j in self.levels:
                code = self._codes[j]
                out[:, j] = [code.get(_level(v), np.nan) for v in values.tolist()]
            else:
                try:
                    out[:, j] = values.astype(float)
                except (TypeError, ValueError) as error:
                    raise ValueError(
                        f"Column {_name(X, j)!r} held numbers when the model was fitted, now: {error}."
                    ) from None
        return out

    def stored(self) -> Stored:
        """The levels."""
        return Stored(
            "column encoder",
            settings={"n_columns": self.n_columns, "levels": plain_levels(self.levels)},
        )

    @classmethod
    def restored(cls, stored: Stored) -> Self:
        """The encoder again."""
        n_columns = stored.count("n_columns")
        return cls(n_columns, read_levels(stored.settings.get("levels"), n_columns))


class BinnedData:
    """Training rows, binned once by LightGBM and shared by every booster grown on them.

    Parameters
    ----------
    X : float array, or pandas or polars frame of shape (n_rows, n_columns)
        Numbers, booleans and categories (category or text columns). NaN and None are missing, infinite values are
        ordinary large numbers.
    max_bin : int, default=255
    random_state : int, default=0
        Seed of the sample of 200,000 rows from which LightGBM finds the bins.
    n_jobs : int, default=None

    Attributes
    ----------
    dataset : lightgbm.Dataset
    encoder : ColumnEncoder
    usable : bool ndarray of shape (n_columns,)
        Columns that LightGBM keeps; it drops those that are 0 everywhere, and grows nothing when none is left.

    Examples
    --------
    >>> import numpy as np
    >>> data = BinnedData(np.array([[1.0, 0.0], [np.nan, 0.0], [2.0, 0.0]]))
    >>> data.n_rows, data.usable
    (3, array([ True, False]))
    """

    def __init__(
        self, X: Any, *, max_bin: int = 255, random_state: int = 0, n_jobs: int | None = None
    ) -> None:
        self.n_rows, self.n_columns = X.shape
        self.encoder = ColumnEncoder.learn(X)
        params = {
            "max_bin": max_bin,
            # LightGBM's three rows per bin would leave nothing of a table with ten rows, and
            # would make the bins of a table with every row twice differ from its own.
            "min_data_in_bin": 1,
            # The filter would freeze one setting's min_data_in_leaf into the data of all settings.
            "feature_pre_filter": False,
            "data_random_seed": random_state,
            "num_threads": effective_n_jobs(n_jobs),
            "verbosity": -1,
        }
        self.dataset = lightgbm.Dataset(
            self.encoder.encode(X),
            # The objective is ours, LightGBM only insists that there be labels.
            label=np.zeros(self.n_rows, dtype=np.float32),
            categorical_feature=sorted(self.encoder.levels),
            params=params,
        ).construct()
        bins = [self.dataset.feature_num_bin(j) for j in range(self.n_columns)]
        self.usable = np.array(bins) > 0


def _is_numeric_array(X: Any) -> bool:
    return isinstance(X, np.ndarray) and X.dtype.kind in "biuf"


def _name(X: Any, j: int) -> Hashable:
    names = getattr(X, "columns", None)
    return j if names is None else names[j]


def _series(X: Any, j: int) -> Any:
    return X.iloc[:, j] if hasattr(X, "iloc") else X[:, j]


def _is_category(X: Any, j: int) -> bool:
    """Whether a frame says so; pandas' categories may be numbers."""
    return str(getattr(_series(X, j), "dtype", "")).lower().startswith(("categor", "enum"))


def _column(X: Any, j: int) -> NDArray[Any]:
    """One column of an array or frame: a number type, or objects."""
    values = np.asarray(_series(X, j))
    if values.dtype.kind in "biuf":
        return values
    if values.dtype.kind in "mM":
        raise ValueError(
            f"Column {_name(X, j)!r} holds dates: turn them into numbers (days since …) first."
        )
    values = values.astype(object)
    known = [v for v in values.tolist() if not _is_missing(v)]
    if all(isinstance(v, int | float | np.number) for v in known):
        # Numbers with holes: nullable integers, booleans with None, an array of objects.
        return np.array([np.nan if _is_missing(v) else v for v in values.tolist()], dtype=float)
    return values


def _is_missing(value: Any) -> bool:
    # NaN and NaT differ from themselves; pandas' NA is not even a truth value.
    if value is None or type(value).__name__ == "NAType":
        return True
    return bool(isinstance(value, float | np.floating) and value != value)


def _level(value: Any) -> Any:
    """A hashable level; missing stays missing because it is never among the levels."""
    return None if _is_missing(value) else value


def _levels(values: NDArray[Any], name: Hashable) -> tuple[Hashable, ...]:
    """Distinct values in an order that does not depend on the order of the rows."""
    try:
        found = {v for v in values.tolist() if not _is_missing(v)}
    except TypeError as error:
        raise ValueError(
            f"Column {name!r} holds neither numbers nor categories: {error}."
        ) from None
    return tuple(
        sorted(found, key=lambda v: (type(v).__name__, v if isinstance(v, str) else str(v)))
    )
