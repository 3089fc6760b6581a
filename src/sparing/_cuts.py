"""Where a gate's threshold may stand: strictly between distinct scores, at even shares of rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def threshold_cuts(scores: Floats, n: int) -> Floats:
    """At most ``n`` thresholds, in falling order: the first sends no row on, the last every row.

    Between them they send on evenly spaced shares of the rows, as closely as ties allow. A threshold never equals a
    score unless two scores are neighbouring floats, so that rounding cannot move a row.

    Examples
    --------
    >>> import numpy as np
    >>> threshold_cuts(np.array([0.0, 1.0, 1.0, 3.0]), 3)
    array([ inf,   2., -inf])
    """
    distinct, counts = np.unique(scores[np.isfinite(scores)], return_counts=True)
    if not len(distinct):
        return np.array([np.inf, -np.inf])
    lower, upper = distinct[:-1], distinct[1:]
    middle = lower / 2 + upper / 2  # their difference may be too large for a float
    # Neighbouring floats have nothing between them; the lower one separates just as well.
    cuts = np.concatenate([[-np.inf], np.where(middle < upper, middle, lower), [np.inf]])
    stays = np.concatenate([[0], counts.cumsum()])
    wanted = np.linspace(0, stays[-1], n)
    right = np.searchsorted(stays, wanted).clip(1)
    nearest = right - (wanted - stays[right - 1] < stays[right] - wanted)
    return cuts[np.unique(nearest)][::-1]


def cut_above(values: Floats, n_stops: int) -> float:
    """The threshold at which the lowest ``n_stops`` of some sorted scores stop, the last of them below the next one.

    Examples
    --------
    >>> import numpy as np
    >>> [cut_above(np.array([0.0, 1.0, 3.0]), n) for n in (0, 2, 3)]
    [-inf, 2.0, inf]
    """
    if n_stops == 0:
        return -np.inf
    if n_stops == len(values):
        return np.inf
    low, high = values[n_stops - 1], values[n_stops]
    middle = low / 2 + high / 2
    return float(middle if middle < high else low)
