"""Rows of arrays and frames, and rows whose scores are remembered across systems."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing


class ScoredRows:
    """Rows whose scores are remembered, so that many systems with parts in common are evaluated once.

    Pass it wherever a :class:`~sparing.system.System` takes X. Every part is then asked for all rows, once. The results
    used last are kept: systems that share a part should be evaluated one after the other.

    Parameters
    ----------
    X : array or frame
    size : int, default=32
        Results kept. Those of one system should fit, up to five per stage, or they are computed again and again.

    Examples
    --------
    >>> import numpy as np
    >>> rows = ScoredRows(np.zeros((3, 2)))
    >>> n_rows(rows)
    3
    """

    def __init__(self, X: Any, size: int = 32) -> None:
        self.X = X
        self._size = size
        self._kept: OrderedDict[tuple[Any, ...], tuple[object, Any]] = OrderedDict()

    def remember(self, what: str, part: object, compute: Callable[[], Any]) -> Any:
        """Result of ``compute``, computed the first time only; ``part`` may be several parts in a tuple."""
        parts = part if isinstance(part, tuple) else (part,)
        key = (what, *map(id, parts))
        if key not in self._kept:
            # Holding on to the parts keeps their ids from being used again by other objects.
            self._kept[key] = (parts, compute())
            if len(self._kept) > self._size:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key][1]


def n_rows(X: Any) -> int:
    """Number of rows of an array, a frame or :class:`ScoredRows`."""
    return int((X.X if isinstance(X, ScoredRows) else X).shape[0])


def take_rows(X: Any, rows: NDArray[np.intp]) -> Any:
    """Rows of an array or frame; X itself, uncopied, when they are all of them in their order."""
    n = X.shape[0]
    if len(rows) == n and np.array_equal(rows, np.arange(n)):
        return X
    return _safe_indexing(X, rows, axis=0)


def row_chunks(n: int, size: int) -> Iterator[NDArray[np.intp]]:
    """Consecutive row numbers, at most ``size`` at a time."""
    for start in range(0, n, size):
        yield np.arange(start, min(n, start + size))


def check_columns(X: Any, columns: tuple[Hashable, ...]) -> None:
    """Raise when a table does not have the columns a system was fitted on, in their order.

    A table without names is taken by position.

    Parameters
    ----------
    X : array, frame or :class:`ScoredRows`
    columns : names, or positions when the system was fitted without names.
    """
    X = X.X if isinstance(X, ScoredRows) else X
    if X.shape[1] != len(columns) and not hasattr(X, "columns"):
        raise ValueError(f"X has {X.shape[1]} columns, the system was fitted on {len(columns)}.")
    if not hasattr(X, "columns") or columns == tuple(range(len(columns))):
        return
    given, known = [str(c) for c in X.columns], [str(c) for c in columns]
    if given == known:
        return
    missing = [c for c in known if c not in set(given)]
    unknown = [c for c in given if c not in set(known)]
    parts = [f"missing are {missing}"] * bool(missing) + [f"not known are {unknown}"] * bool(
        unknown
    )
    detail = "; ".join(parts) or "they are the same in another order"
    raise ValueError(
        f"X does not have the columns the system was fitted on: {detail}. Use X[list(system.costs.columns)]."
    )
