"""Cells of a table that no model inside could take: named by column, with what to do about them.

Called by ``_routed`` before anything is learnt or answered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from sparing._price_list import short

Booleans = NDArray[np.bool_]


def columns_of(X: Any) -> Iterator[tuple[Any, NDArray[Any]]]:
    """Name or number of each column, and its values."""
    if isinstance(X, np.ndarray):
        yield from enumerate(X.T)
        return
    for j, name in enumerate(X.columns):
        yield name, np.asarray(_safe_indexing(X, j, axis=1))


def missing(values: NDArray[Any]) -> Booleans:
    """Cells without a value: NaN, None, and the NA of data frames.

    Examples
    --------
    >>> import numpy as np
    >>> missing(np.array(["a", None, np.nan], dtype=object))
    array([False,  True,  True])
    """
    if values.dtype.kind == "O":
        # Nothing that is missing equals itself, except None; pandas' NA does not even say so.
        return np.array(
            [v is None or type(v).__name__ == "NAType" or v != v for v in values.tolist()],
            dtype=bool,
        )
    return np.isnan(values) if values.dtype.kind in "fmM" else np.zeros(len(values), dtype=bool)


def refuse_twins(X: Any) -> None:
    """Raise when two columns of a frame have the same name."""
    names = list(X.columns)
    if len(set(names)) < len(names):
        twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        raise ValueError(
            f"X has more than one column named {short(twice)}: prices and models know columns by name, so rename or "
            "drop all but one."
        )


def refuse_complex(columns: Iterable[tuple[Any, NDArray[Any]]]) -> None:
    """Raise when a cell is a complex number."""
    found = [name for name, values in columns if _is_complex(values)]
    if found:
        raise ValueError(
            f"Complex data not supported: column {short(found)} holds complex numbers. Take their real part, or real "
            "and imaginary part as two columns."
        )


def refuse_dates(columns: Iterable[tuple[Any, NDArray[Any]]]) -> None:
    """Raise when a column holds dates or durations, which no model inside reads."""
    found = [name for name, values in columns if values.dtype.kind in "mM"]
    if found:
        raise ValueError(
            f"Column {short(found)} holds dates or durations: give numbers instead, such as the days since some date, "
            "the month or the hour."
        )


def refuse_infinite(columns: Iterable[tuple[Any, NDArray[Any]]]) -> None:
    """Raise when a cell is infinite."""
    found = [
        name for name, values in columns if values.dtype.kind == "f" and np.isinf(values).any()
    ]
    if found:
        raise ValueError(
            f"X contains infinity in column {short(found)}: clip such values, or replace them by NaN if they stand for "
            "missing ones."
        )


def refuse_missing(columns: Iterable[tuple[Any, NDArray[Any]]], model: Any) -> None:
    """Raise when a cell is missing that a full model would read and does not take."""
    read = getattr(model, "feature_names_in_", None)
    counts = {
        name: (int(missing(values).sum()), len(values))
        for name, values in columns
        if read is None or not isinstance(name, str) or name in read
    }
    found = [f"{name!r} ({count} of {n} rows)" for name, (count, n) in counts.items() if count]
    if found:
        raise ValueError(
            f"X contains NaN in column {', '.join(found[:8])}{', ...' * (len(found) > 8)}, and the full model "
            f"{type(model).__name__} takes no missing values: put an imputer before it in a Pipeline, or use a full "
            "model that takes them, such as HistGradientBoostingClassifier."
        )


def _is_complex(values: NDArray[Any]) -> bool:
    if values.dtype.kind == "O":
        return any(isinstance(v, complex | np.complexfloating) for v in values.tolist())
    return values.dtype.kind == "c"
