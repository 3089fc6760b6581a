"""Rows of arrays and frames, and rows whose scores are remembered across systems."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing


class ScoredRows:
    """Rows whose scores are remembered, so that many systems with parts in common are evaluated once.

    Pass it wherever a :class:`~sparing.system.System` takes X. The last few results are kept; systems that share a part
    should therefore be evaluated one after the other.

    Examples
    --------
    >>> import numpy as np
    >>> rows = ScoredRows(np.zeros((3, 2)))
    >>> n_rows(rows)
    3
    """

    def __init__(self, X: Any, size: int = 12) -> None:
        self.X = X
        self._size = size
        self._kept: OrderedDict[tuple[str, int], tuple[object, Any]] = OrderedDict()

    def remember(self, what: str, part: object, compute: Callable[[], Any]) -> Any:
        """Result of ``compute``, computed the first time only."""
        key = (what, id(part))
        if key not in self._kept:
            # Holding on to the part keeps its id from being used again by another object.
            self._kept[key] = (part, compute())
            if len(self._kept) > self._size:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key][1]


def n_rows(X: Any) -> int:
    """Number of rows of an array, a frame or :class:`ScoredRows`."""
    return int((X.X if isinstance(X, ScoredRows) else X).shape[0])


def take_rows(X: Any, rows: NDArray[np.intp]) -> Any:
    """Rows of an array or frame; X itself when they are all of them."""
    return X if len(rows) == X.shape[0] else _safe_indexing(X, rows, axis=0)


def row_chunks(n: int, size: int) -> Iterator[NDArray[np.intp]]:
    """Consecutive row numbers, at most ``size`` at a time."""
    for start in range(0, n, size):
        yield np.arange(start, min(n, start + size))
