"""Columns of X as a network likes them: standardised, and long tails spread out evenly.

A blood value that is 1 for nearly everybody and 500 for some has a standard deviation that tells nothing: after
standardising, all that matters happens between −0.1 and 0.1. Such columns are mapped to the quantiles of a normal
distribution by their ranks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sparing._stored import Stored
from sparing.engines.design import Design

Singles = NDArray[np.float32]
Booleans = NDArray[np.bool_]

_FAR = 6.0
"""Standard deviations from the mean beyond which a value makes its column one with a long tail."""
_KNOTS = 65


@dataclass(frozen=True, eq=False)
class NetworkInputs:
    """How rows of X become inputs of a network.

    Attributes
    ----------
    design : standardises numbers, codes text.
    spread : positions of the inputs with long tails.
    knots, heights : arrays of shape (n_spread, n_knots), maps from standardised value to normal quantile.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.column_stack([np.arange(100.0), 10.0 ** np.linspace(0, 6, 100)])
    >>> inputs = NetworkInputs.fit(np.repeat(X, [1] * 99 + [1], axis=0))
    >>> inputs.spread
    array([], dtype=int64)
    >>> inputs.transform(X).shape
    (100, 2)
    """

    design: Design
    spread: NDArray[np.intp]
    knots: NDArray[np.float64]
    heights: NDArray[np.float64]

    @classmethod
    def fit(cls, X: Any, weight: Any = None) -> NetworkInputs:
        """Learn means, scales, levels and, where tails are long, quantiles."""
        design = Design.fit(X, weight)
        Z = design.transform(X)
        spread = np.flatnonzero(np.abs(Z).max(axis=0) > _FAR)
        shares = np.linspace(0, 1, _KNOTS)
        knots, heights = np.empty((len(spread), _KNOTS)), np.empty((len(spread), _KNOTS))
        for i, values in enumerate(np.sort(Z[:, spread].T, axis=1)):
            knots[i] = np.quantile(values, shares)
            # Equal knots stand for one value: it goes to the middle of its ranks.
            low = np.searchsorted(values, knots[i], side="left")
            high = np.searchsorted(values, knots[i], side="right")
            heights[i] = ndtri(np.clip((low + high) / (2 * len(values)), 0.002, 0.998))
        return cls(design, spread, knots, heights)

    @property
    def owner(self) -> NDArray[np.intp]:
        """Column of X behind each input."""
        return self.design.owner

    @property
    def n_columns(self) -> int:
        """Columns of X."""
        return self.design.n_columns

    def transform(self, X: Any, mask: Booleans | None = None) -> Singles:
        """Inputs of rows of X; only the columns of ``mask`` are read, inputs of the others are 0."""
        there = np.ones(len(self.owner), dtype=bool) if mask is None else mask[self.owner]
        design = self.design if mask is None else self.design.restricted(mask)
        Z = np.zeros((X.shape[0], len(there)), dtype=np.float32)
        Z[:, there] = design.transform(X)
        for position, knots, heights in zip(self.spread, self.knots, self.heights, strict=True):
            if there[position]:
                Z[:, position] = np.interp(Z[:, position], knots, heights)
        return Z

    def stored(self) -> Stored:
        """Design and maps."""
        arrays = {"spread": self.spread, "knots": self.knots, "heights": self.heights}
        return Stored("network inputs", arrays=arrays, parts={"design": self.design})

    @classmethod
    def restored(cls, stored: Stored) -> NetworkInputs:
        """The inputs again."""
        design = stored.part("design", Design)
        spread = stored.positions("spread", len(design.owner))
        knots, heights = (stored.array(name, kind="f", ndim=2) for name in ("knots", "heights"))
        fits = knots.shape == heights.shape and len(knots) == len(spread)
        if not fits or (np.diff(knots, axis=1) < 0).any():
            raise ValueError("The maps of long-tailed columns need rising knots, one height each.")
        return cls(design, spread, knots, heights)
