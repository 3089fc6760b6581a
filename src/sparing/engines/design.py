"""From raw columns to the standardised matrix that linear models are fitted on.

A column of X becomes one design column (numbers, booleans), one more if it had missing values at fit (their flag), or
one per level (text, categories). ``Design.owner`` remembers which column of X is behind which design column: prices
are paid per column of X.

A restricted design reads its own columns of X and no others: the rest has not been bought and may hold anything.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.utils import _safe_indexing

from sparing._stored import Stored

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]

_NUMBERS = (Real, np.bool_, Decimal)


class _Levels(NamedTuple):
    """One-hot coding of a text column: its names, then a column for the rest, then one for missing values."""

    column: int
    names: tuple[str, ...]
    rest: bool
    missing: bool

    @property
    def width(self) -> int:
        return len(self.names) + self.rest + self.missing

    def codes(self, texts: list[str | None]) -> Integers:
        """Position of each row's 1; the width where there is none."""
        nowhere = self.width
        lookup: dict[str | None, int] = dict(zip(self.names, range(len(self.names)), strict=True))
        lookup[None] = self.width - 1 if self.missing else nowhere
        unknown = len(self.names) if self.rest else nowhere
        return np.array([lookup.get(text, unknown) for text in texts], dtype=np.intp)


@dataclass(frozen=True, eq=False)
class Design:
    """Standardised design matrix of the columns of X. Made by ``fit``, never changed afterwards.

    Numbers and booleans get mean 0 and standard deviation 1 on the rows they were fitted on; a missing one becomes the
    mean, that is 0. Constant columns become all zero. Flags of missing values and levels of text columns stay 0 and 1:
    standardising would turn a rare level into the largest entry of the matrix.

    Attributes
    ----------
    n_columns : int
        Columns of X.
    owner : int ndarray of shape (n_design_columns,)
        Column of X behind each design column: numbers, then flags, then levels.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 5.0], [3.0, np.nan], [5.0, 7.0]])
    >>> design = Design.fit(X)
    >>> design.owner
    array([0, 1, 1])
    >>> design.transform(X).round(2)
    array([[-1.22, -1.22,  0.  ],
           [ 0.  ,  0.  ,  1.  ],
           [ 1.22,  1.22,  0.  ]])
    >>> design.restricted([0]).transform(np.array([[1.0, np.inf]])).round(2)
    array([[-1.22]])
    """

    n_columns: int
    _numbers: Integers
    _center: Floats
    _inverse_scale: Floats
    _flagged: Integers  # positions in _numbers
    _levels: tuple[_Levels, ...]

    @classmethod
    def fit(
        cls,
        X: Any,
        sample_weight: ArrayLike | None = None,
        *,
        standardize: bool = True,
        max_levels: int = 20,
    ) -> Design:
        """Learn means, scales and levels.

        Parameters
        ----------
        X : array or data frame of shape (n, n_columns)
            Numbers, booleans, text, categories; missing values are fine.
        sample_weight : array of shape (n,), optional
            Weights of the rows in means, scales and the ranking of levels.
        standardize : bool
            Centre and scale numbers; False leaves them in their own units, as the paper does.
        max_levels : int
            Levels of a text column with a design column of their own, the most frequent ones. The rest share one.
        """
        X = _table(X)
        n, n_columns = X.shape
        weight = (
            np.full(n, 1.0) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        )
        if n == 0 or weight.shape != (n,) or not (weight >= 0).all() or not weight.any():
            raise ValueError(f"A design needs rows with positive weight, got {n} rows.")
        weight = weight / weight.sum()
        numbers, levels = np.arange(n_columns), []
        if _is_plain(X):
            values = X.astype(float)
        else:
            columns, kept = [], []
            for j in range(n_columns):
                column = _read(X, j)
                if isinstance(column, list):
                    levels.append(_count_levels(j, column, weight, max_levels))
                else:
                    kept.append(j)
                    columns.append(column)
            numbers = np.array(kept, dtype=np.intp)
            values = np.column_stack(columns) if columns else np.empty((n, 0))
        _refuse_infinite(X, values, numbers)
        center, inverse_scale, flagged = _moments(values, weight)
        if not standardize:
            inverse_scale = (inverse_scale > 0).astype(float)
        return cls(n_columns, numbers, center, inverse_scale, flagged, tuple(levels))

    @property
    def owner(self) -> Integers:  # noqa: D102
        levels = [np.full(level.width, level.column, dtype=np.intp) for level in self._levels]
        return np.concatenate([self._numbers, self._numbers[self._flagged], *levels])

    def restricted(self, columns: ArrayLike) -> Design:
        """Design of some columns of X; X keeps its width, its other columns are not read.

        Parameters
        ----------
        columns : int array, or bool array of shape (n_columns,)
            Columns of X to keep. The order of the design columns does not change, so its columns are those of this
            design where ``np.isin(owner, columns)``.
        """
        chosen = np.asarray(columns)
        keep = np.zeros(self.n_columns, dtype=bool)
        keep[chosen if chosen.dtype == bool else chosen.astype(np.intp)] = True
        kept = np.flatnonzero(keep[self._numbers])
        flagged = np.flatnonzero(np.isin(kept, self._flagged))
        return Design(
            self.n_columns,
            self._numbers[kept],
            self._center[kept],
            self._inverse_scale[kept],
            flagged,
            tuple(level for level in self._levels if keep[level.column]),
        )

    def transform(self, X: Any) -> Floats:
        """Design matrix of X, float64 of shape (n, n_design_columns)."""
        X = _table(X)
        n, n_columns = X.shape
        if n_columns != self.n_columns:
            raise ValueError(
                f"X has {n_columns} columns, the design was fitted on {self.n_columns}."
            )
        first, last = len(self._numbers), len(self._numbers) + len(self._flagged)
        Z = np.zeros((n, last + sum(level.width for level in self._levels)))
        values = Z[:, :first]
        values[...] = self._values(X)
        # One sum over the matrix tells whether anything is missing or infinite; the rest is for those who have it.
        with np.errstate(all="ignore"):
            clean = np.isfinite(values.sum())
        if not clean:
            _refuse_infinite(X, values, self._numbers)
            missing = np.isnan(values)
            Z[:, first:last] = missing[:, self._flagged]
        values -= self._center
        values *= self._inverse_scale
        if not clean:
            values[missing] = 0.0
        for level in self._levels:
            texts = _read(X, level.column, text=True)
            codes = level.codes(texts)
            rows = np.flatnonzero(codes < level.width)
            Z[rows, last + codes[rows]] = 1.0
            last += level.width
        return Z

    def _values(self, X: Any) -> Any:
        if _is_plain(X):
            return X if len(self._numbers) == self.n_columns else X[:, self._numbers]
        if not len(self._numbers):
            return 0.0
        if hasattr(X, "iloc"):
            # One block is faster than a column at a time. Not with polars, which would turn dates into numbers here.
            block = np.asarray(_safe_indexing(X, self._numbers.tolist(), axis=1))
            if block.dtype.kind in "biuf":
                return block
        return np.column_stack([_read(X, j, text=False) for j in self._numbers])

    def stored(self) -> Stored:
        """Means, scales and levels."""
        levels = [[v.column, list(v.names), v.rest, v.missing] for v in self._levels]
        return Stored(
            "design",
            settings={"n_columns": self.n_columns, "levels": levels},
            arrays={
                "numbers": self._numbers,
                "center": self._center,
                "inverse_scale": self._inverse_scale,
                "flagged": self._flagged,
            },
        )

    @classmethod
    def restored(cls, stored: Stored) -> Self:
        """The design again."""
        n_columns = stored.count("n_columns")
        numbers = stored.positions("numbers", n_columns)
        center, scale = (stored.array(name, kind="f") for name in ("center", "inverse_scale"))
        if not len(numbers) == len(center) == len(scale):
            raise ValueError("A design needs one mean and one scale per column of numbers.")
        given = stored.settings.get("levels")
        if not isinstance(given, list):
            raise ValueError(f"The levels of a design are a list, not {given!r}.")
        levels = tuple(_read_levels(entry, n_columns) for entry in given)
        flagged = stored.positions("flagged", len(numbers))
        return cls(n_columns, numbers, center, scale, flagged, levels)


def _read_levels(entry: Any, n_columns: int) -> _Levels:
    if isinstance(entry, list) and [type(v) for v in entry] == [int, list, bool, bool]:
        column, names, rest, missing = entry
        if 0 <= column < n_columns and all(isinstance(name, str) for name in names):
            return _Levels(column, tuple(names), rest, missing)
    raise ValueError(f"Levels are [column, names, rest, missing], not {entry!r}.")


def _table(X: Any) -> Any:
    if issparse(X):
        raise TypeError("A design needs dense columns: pass X.toarray().")
    if not hasattr(X, "shape"):
        X = np.asarray(X)
    if len(X.shape) != 2:
        raise ValueError(f"X must have rows and columns, got an array of shape {X.shape}.")
    return X


def _is_plain(X: Any) -> bool:
    return isinstance(X, np.ndarray) and X.dtype.kind in "biuf"


def _name(X: Any, j: int) -> str:
    return repr(X.columns[j]) if hasattr(X, "columns") else str(j)


def _read(X: Any, j: int, text: bool | None = None) -> Any:
    """Column of X as a float array with NaN, or as a list of strings with None.

    ``text`` says what the column was at fit; None finds out.
    """
    column = _safe_indexing(X, int(j), axis=1)
    category = getattr(getattr(column, "dtype", None), "name", "") == "category"
    values = np.asarray(column.astype(object) if category else column)
    if values.dtype.kind in "biuf" and not text:
        return values.astype(float)
    if values.dtype.kind not in "biufOU":
        raise TypeError(
            f"Column {_name(X, j)} holds {values.dtype}: turn it into numbers (of days, say) or text first."
        )
    objects = values.tolist()
    missing = [v is None or type(v).__name__ == "NAType" or _is_nan(v) for v in objects]
    types = {type(v) for v, gone in zip(objects, missing, strict=True) if not gone}
    if text is None:
        text = category or (bool(types) and all(issubclass(t, str) for t in types))
    wanted = (str, *_NUMBERS) if category else (str,) if text else _NUMBERS
    wrong = sorted(t.__name__ for t in types if not issubclass(t, wanted))
    if wrong:
        raise TypeError(
            f"Column {_name(X, j)} holds values of type {', '.join(wrong)} where {'text' if text else 'numbers'} "
            "were expected: make the column all numbers or all text."
        )
    pairs = zip(objects, missing, strict=True)
    if text:
        return [None if gone else str(v) for v, gone in pairs]
    return np.array([np.nan if gone else float(v) for v, gone in pairs], dtype=float)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float | np.floating) and bool(value != value)


def _count_levels(j: int, texts: list[str | None], weight: Floats, max_levels: int) -> _Levels:
    counts: defaultdict[str | None, float] = defaultdict(float)
    for text, w in zip(texts, weight, strict=True):
        if w > 0:
            counts[text] += w
    missing = counts.pop(None, None) is not None
    names = sorted(counts, key=lambda name: (-counts[name], str(name)))
    return _Levels(
        j, tuple(str(name) for name in names[:max_levels]), len(names) > max_levels, missing
    )


def _refuse_infinite(X: Any, values: Floats, columns: Integers) -> None:
    infinite = np.isinf(values).any(axis=0)
    if infinite.any():
        names = ", ".join(_name(X, int(j)) for j in columns[infinite][:5])
        raise ValueError(
            f"Column {names} holds infinite values: clip them, or replace them by NaN to have them treated as missing."
        )


def _moments(values: Floats, weight: Floats) -> tuple[Floats, Floats, Integers]:
    """Weighted mean and 1/sd of each column after mean imputation, and the columns that need a flag."""
    if not weight.all():
        values, weight = values[weight > 0], weight[weight > 0]
    missing = np.isnan(values)
    seen = weight @ ~missing
    present = ~missing.all(axis=0)
    center = (weight @ np.where(missing, 0.0, values)) / np.where(present, seen, 1.0)
    deviation = np.where(missing, 0.0, values - center)
    # Compared by value, not by a small sd: a mean of equal numbers is not always that number.
    low, high = np.fmin.reduce(values, axis=0), np.fmax.reduce(values, axis=0)
    varies = present & (low < high)
    spread = np.where(varies, np.abs(deviation).max(axis=0), 1.0)
    scale = spread * np.sqrt(weight @ (deviation / spread) ** 2)
    inverse_scale = np.where(varies, 1.0 / np.where(varies, scale, 1.0), 0.0)
    return center, inverse_scale, np.flatnonzero(missing.any(axis=0) & present)
