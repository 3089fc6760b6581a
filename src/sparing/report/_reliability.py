"""Whether the answers of a stage are as sure as they say: stated confidence against the share that was right."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

Floats = NDArray[np.float64]

_BINS = 10
"""Bins of a stage, of about the same number of rows each."""
_BIN_ROWS = 20
"""Rows a bin needs before it says anything."""


def reliability(confidence: Floats, right: NDArray[np.bool_], level: float) -> dict[str, Any]:
    """Bins of equal size, from the least sure answers to the surest.

    Parameters
    ----------
    confidence : array of shape (n_rows,)
        Probability the stage gave to its own answer.
    right : bool array of shape (n_rows,)
    level : float
        Of the intervals of the shares (Wilson's).

    Returns
    -------
    dict with ``n``, ``said`` and ``right`` (means), ``error`` (mean distance between the two, over the bins, weighed by
    rows) and ``bins``.

    Examples
    --------
    >>> import numpy as np
    >>> said, right = np.repeat([0.6, 0.9], 50), np.tile([True, True, True, False, True], 20)
    >>> [(round(b["said"], 3), b["right"]) for b in reliability(said, right, 0.95)["bins"]]
    [(0.6, 0.8), (0.9, 0.8)]
    """
    n = len(confidence)
    if not n:
        return {"n": 0, "said": None, "right": None, "error": None, "bins": []}
    n_bins = int(np.clip(n // _BIN_ROWS, 1, _BINS))
    edges = np.unique(np.quantile(confidence, np.arange(1, n_bins) / n_bins))
    # Rows that say the same are never torn apart: ties may make fewer bins.
    _, code, counts = np.unique(
        np.searchsorted(edges, confidence, side="left"), return_inverse=True, return_counts=True
    )
    said = np.bincount(code, weights=confidence) / counts
    share = np.bincount(code, weights=right) / counts
    low, high = wilson(share, counts, level)
    return {
        "n": n,
        "said": float(confidence.mean()),
        "right": float(right.mean()),
        "error": float(np.average(np.abs(said - share), weights=counts)),
        "bins": [
            {"n": int(c), "said": float(s), "right": float(r), "low": float(a), "high": float(b)}
            for c, s, r, a, b in zip(counts, said, share, low, high, strict=True)
        ],
    }


def wilson(share: Floats, n: Any, level: float) -> tuple[Floats, Floats]:
    """Wilson's interval of a share: it stays between 0 and 1 and has a width even when the share is 0 or 1.

    Examples
    --------
    >>> low, high = wilson(np.array([1.0]), np.array([20]), 0.95)
    >>> low.round(3), high.round(3)
    (array([0.839]), array([1.]))
    """
    z = norm.ppf((1 + level) / 2)
    centre = share + z**2 / (2 * n)
    half = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    scale = 1 + z**2 / n
    return np.clip((centre - half) / scale, 0, 1), np.clip((centre + half) / scale, 0, 1)
