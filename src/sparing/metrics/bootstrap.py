"""Bootstrap intervals of means and of paired differences, by row or by query."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

_CHUNK_CELLS = 1 << 22
"""Rows drawn at a time, over all resamples of a chunk: bounds memory at about 100 MB."""


class Interval(NamedTuple):
    """An estimate and the interval around it.

    Examples
    --------
    >>> from sparing.metrics import Interval
    >>> print(Interval(0.66, 0.64, 0.68))
    0.66 [0.64, 0.68]
    """

    estimate: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.estimate:.4g} [{self.low:.4g}, {self.high:.4g}]"


def bootstrap_interval(
    values: ArrayLike,
    *,
    other: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    level: float = 0.95,
    n_resamples: int = 2000,
    random_state: int | np.random.Generator | None = None,
) -> Interval:
    """Percentile bootstrap interval of a mean, or of the mean difference of two systems on the same rows.

    Parameters
    ----------
    values : array of shape (n_rows,)
        One number per row: right or wrong, cost, the metric of a query.
    other : array of shape (n_rows,), optional
        The same of another system on the same rows. The interval is then that of the mean of ``values − other``: rows
        are drawn in pairs, so what is hard for both does not widen it.
    groups : array of shape (n_rows,), optional
        Rows of one group (a query, a patient) are drawn together. Without it rows are taken as independent.
    sample_weight : array of shape (n_rows,), optional
    level : float, default=0.95
    n_resamples : int, default=2000
    random_state : int, Generator or None

    Returns
    -------
    Interval
        ``estimate``, ``low``, ``high``.

    Examples
    --------
    >>> import numpy as np
    >>> from sparing.metrics import bootstrap_interval
    >>> right = np.repeat([1, 0], [90, 10])
    >>> print(bootstrap_interval(right, random_state=0))
    0.9 [0.84, 0.96]
    >>> also = np.repeat([1, 0], [89, 11])
    >>> print(bootstrap_interval(right, other=also, random_state=0))
    0.01 [0, 0.03]
    """
    x = _vector(values, "values")
    if other is not None:
        x = x - _vector(other, "other", len(x))
    weight = np.ones(len(x)) if sample_weight is None else _vector(sample_weight, "sample_weight")
    if len(weight) != len(x) or (weight < 0).any() or not weight.sum() > 0:
        raise ValueError("sample_weight has one entry per row, none negative and not all 0.")
    if not 0 < level < 1:
        raise ValueError(f"level is between 0 and 1, not {level!r}.")
    if n_resamples < 1:
        raise ValueError(f"n_resamples is at least 1, not {n_resamples!r}.")
    # A weighted mean is a ratio of two sums; so is a mean over rows when whole groups are drawn.
    sums = np.column_stack([weight * x, weight])
    if groups is not None:
        _, code = np.unique(np.asarray(groups), return_inverse=True)
        if len(code) != len(x):
            raise ValueError(f"groups has {len(code)} entries for {len(x)} rows.")
        sums = np.column_stack([np.bincount(code, weights=column) for column in sums.T])
    rng = np.random.default_rng(random_state)
    drawn = _resampled_sums(sums, n_resamples, rng)
    drawn = drawn[drawn[:, 1] > 0]  # a resample of rows without weight says nothing
    tail = (1 - level) / 2
    low, high = np.quantile(drawn[:, 0] / drawn[:, 1], [tail, 1 - tail])
    total = sums.sum(axis=0)
    return Interval(float(total[0] / total[1]), float(low), float(high))


def _resampled_sums(units: Floats, n_resamples: int, rng: np.random.Generator) -> Floats:
    """Sums over n units drawn with replacement, once per resample: shape (n_resamples, 2)."""
    n = len(units)
    kinds, counts = np.unique(units, axis=0, return_counts=True)
    if len(kinds) * 16 <= n:
        # Units that are equal need not be told apart: how many of each kind is multinomial.
        return rng.multinomial(n, counts / n, size=n_resamples) @ kinds
    out = np.empty((n_resamples, units.shape[1]))
    out[:] = n * units[0]
    uneven = np.flatnonzero((units != units[0]).any(axis=0))  # without weights every row counts 1
    size = max(1, _CHUNK_CELLS // n)
    for start in range(0, n_resamples, size):
        block = slice(start, min(start + size, n_resamples))
        rows = rng.integers(n, size=(block.stop - start, n), dtype=np.int32)
        for column in uneven:
            out[block, column] = units[:, column][rows].sum(axis=1)
    return out


def _vector(values: ArrayLike, name: str, length: int | None = None) -> Floats:
    array = np.asarray(values, dtype=float)
    if array.ndim != 1 or not len(array):
        raise ValueError(f"{name} has one entry per row; its shape is {array.shape}.")
    if length is not None and len(array) != length:
        raise ValueError(f"{name} has {len(array)} entries for {length} rows.")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} has entries that are not finite numbers.")
    return array
