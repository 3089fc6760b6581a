"""The price of a linear model: Σ over items of price × ‖rows of W that need the item‖_F.

The relaxed cost term of (OPT2), with prices put back in and with items that several columns share. A row of W is a
column of the design; it is zero when the column is not bought. Groups that are nested or disjoint (private items inside
a shared one) have a proximal operator in closed form, inside out. Columns derived from others make groups overlap: then
the dual is solved by block-coordinate ascent to a duality gap, and by Newton steps where that is slow.

The proximal operator only shortens rows, so all of it happens on the vector of their lengths.

Called by ``linear``. Nothing here knows data or losses.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csc_array, csr_array

from sparing.costs import FeatureCosts
from sparing.engines.group_levels import (
    TINY,
    Booleans,
    Floats,
    Integers,
    Level,
    lengths_of,
    levels_of,
    quotient,
)
from sparing.engines.group_overlaps import minimise_smoothed, prox_overlapping

__all__ = ["Booleans", "Floats", "GroupPenalty", "Integers"]


class GroupPenalty:
    """Weighted sum of Frobenius norms of groups of rows of a matrix.

    Parameters
    ----------
    groups : sequence of int arrays
        Rows of each group. Empty groups are dropped and equal ones merged, their weights added.
    weights : array of shape (n_groups,)
        Non-negative; groups of weight 0 are dropped.
    n_rows : int
        Rows of the matrix. Rows in no group are free of charge.

    Attributes
    ----------
    groups : tuple of int ndarrays
        What is left, the smallest first.
    weights : ndarray of shape (n_groups,)
    laminar : bool
        Whether any two groups are nested or disjoint.

    Examples
    --------
    Two columns at 1 each, in a panel that costs 2 once:

    >>> import numpy as np
    >>> penalty = GroupPenalty([[0], [1], [0, 1]], [1.0, 1.0, 2.0], n_rows=3)
    >>> W = np.array([[3.0, 0.0], [0.0, 4.0], [1.0, 1.0]])
    >>> penalty.value(W)
    17.0
    >>> penalty.prox(W, 0.5).round(2)
    array([[1.92, 0.  ],
           [0.  , 2.69],
           [1.  , 1.  ]])
    >>> penalty.support(penalty.prox(W, 2.0))
    array([False, False,  True])
    """

    n_rows: int
    laminar: bool

    def __init__(
        self, groups: Sequence[ArrayLike] | Sequence[Sequence[int]], weights: ArrayLike, n_rows: int
    ) -> None:
        prices = np.asarray(weights, dtype=float)
        if len(prices) != len(groups):
            raise ValueError(f"{len(groups)} groups but {len(prices)} weights: give one per group.")
        if not np.all(np.isfinite(prices) & (prices >= 0)):
            raise ValueError("Weights of groups must be finite and not negative.")
        merged: dict[tuple[int, ...], float] = {}
        for group, price in zip(groups, prices, strict=True):
            rows = tuple(np.unique(np.asarray(group, dtype=np.intp)).tolist())
            if rows and price > 0:
                merged[rows] = merged.get(rows, 0.0) + float(price)
        if any(rows[0] < 0 or rows[-1] >= n_rows for rows in merged):
            raise ValueError(f"A group names a row outside 0..{n_rows - 1}.")
        # Smaller groups first: that order is what makes one pass exact for nested groups.
        ordered = sorted(merged, key=lambda rows: (len(rows), rows))
        kept = tuple(np.array(rows, dtype=np.intp) for rows in ordered)
        left = np.array([merged[rows] for rows in ordered])
        self._set(*levels_of(kept, left, n_rows))

    def _set(self, levels: tuple[Level, ...], tangled: Booleans) -> None:
        self._levels, self._tangled = levels, tangled
        self.n_rows, self.laminar = len(tangled), not tangled.any()

    @property
    def _members(self) -> list[tuple[Integers, float]]:
        """Groups with their weights; only for people, the levels are what is computed with."""
        pairs = [
            (np.flatnonzero(level.label == g), float(weight))
            for level in self._levels
            for g, weight in enumerate(level.weights[:-1])
        ]
        pairs = [(rows, weight) for rows, weight in pairs if len(rows)]
        return sorted(pairs, key=lambda pair: (len(pair[0]), pair[0].tolist()))

    @property
    def groups(self) -> tuple[Integers, ...]:  # noqa: D102
        return tuple(rows for rows, _ in self._members)

    @property
    def weights(self) -> Floats:  # noqa: D102
        return np.array([weight for _, weight in self._members])

    @classmethod
    def from_costs(cls, costs: FeatureCosts, owner: ArrayLike) -> GroupPenalty:
        """Penalty of a design: one group per item, its rows those whose column needs the item.

        Parameters
        ----------
        costs : FeatureCosts
        owner : int array of shape (n_rows,)
            Column of X behind each row, as in ``Design.owner``.

        Examples
        --------
        >>> from sparing.costs import FeatureCosts
        >>> GroupPenalty.from_costs(FeatureCosts([1, 0, 3]), owner=[0, 1, 2, 2]).groups
        (array([0]), array([2, 3]))
        """
        owner = np.asarray(owner, dtype=np.intp)
        needs = csc_array(csr_array(costs.needs)[owner])
        groups = np.split(needs.indices, needs.indptr[1:-1])
        return cls(groups, costs.item_prices, len(owner))

    def scaled(self, gamma: float) -> GroupPenalty:
        """Return the penalty times ``gamma``."""
        if gamma == 0:
            return GroupPenalty([], [], self.n_rows)
        return self._like(tuple(level.times(gamma) for level in self._levels), self._tangled)

    def restricted(self, rows: Integers) -> GroupPenalty:
        """Penalty of a matrix that holds only these rows, the others being zero."""
        return self._like(tuple(level.at(rows) for level in self._levels), self._tangled[rows])

    def with_free_rows(self, n: int) -> GroupPenalty:
        """Penalty of a matrix with ``n`` more rows at the end, free of charge: the intercepts."""
        levels = tuple(level.with_free_rows(n) for level in self._levels)
        return self._like(levels, np.append(self._tangled, np.zeros(n, dtype=bool)))

    @staticmethod
    def _like(levels: tuple[Level, ...], tangled: Booleans) -> GroupPenalty:
        other = object.__new__(GroupPenalty)
        other._set(levels, tangled)
        return other

    @property
    def covered(self) -> Booleans:
        """Rows that cost something."""
        covered = np.zeros(self.n_rows, dtype=bool)
        for label, weights in self._levels:
            covered |= weights[label] > 0
        return covered

    def value(self, W: Floats) -> float:
        """Penalty of W."""
        lengths = lengths_of(W)
        return float(sum(level.norms(lengths) @ level.weights for level in self._levels))

    def support(self, W: Floats) -> Booleans:
        """Rows of W that are not exactly zero."""
        return np.any(W != 0, axis=1)

    def prox(
        self, W: Floats, step: float = 1.0, *, dual: list[Floats] | None = None, tol: float = 1e-12
    ) -> Floats:
        """Minimiser over V of ½‖V − W‖² + step × value(V).

        Parameters
        ----------
        W : array of shape (n_rows, n_columns)
        step : float
        dual : list of arrays, optional
            Start of the dual for overlapping groups, as left there by an earlier call; changed in place. Pass an empty
            list the first time. Ignored when the groups are laminar.
        tol : float
            For overlapping groups: bound on the distance to the exact answer, relative to ‖W‖.
        """
        levels = tuple(level.times(step) for level in self._levels)
        return self._prox(W, levels, [] if dual is None else dual, tol)

    def _prox(self, W: Floats, levels: tuple[Level, ...], dual: list[Floats], tol: float) -> Floats:
        lengths = lengths_of(W)
        kept = np.ones_like(lengths)
        for level in levels:
            kept *= 1.0 - level.taken(lengths * kept)
        if not self.laminar:
            rows = np.flatnonzero(self._tangled)
            left = prox_overlapping(lengths[rows], [level.at(rows) for level in levels], dual, tol)
            kept[rows] = quotient(left, lengths[rows])
        return W * kept[:, None]

    def minimise_quadratic(self, H: Floats, B: Floats) -> Floats:
        """Minimiser over V of ½⟨V, HV⟩ − ⟨B, V⟩ + value(V), with H dense on the stacked columns of V.

        One linear system of that size per step, some thirty steps, whatever the groups and the condition of H.
        """
        levels = [Level(np.tile(level.label, B.shape[1]), level.weights) for level in self._levels]
        b = B.T.ravel()
        return minimise_smoothed(H, b, None, levels, []).reshape(B.T.shape).T

    def gradient(self, W: Floats) -> Floats:
        """Sum of the gradients of the norms that are not zero."""
        lengths = lengths_of(W)
        factor = np.zeros_like(lengths)
        for level in self._levels:
            factor += quotient(level.weights, level.norms(lengths))[level.label]
        return W * factor[:, None]

    def hessian(self, W: Floats) -> Floats:
        """Second derivative where no row of W is zero, its columns stacked one after the other.

        Returns
        -------
        array of shape (n_rows × n_columns, n_rows × n_columns)
        """
        n_rows, n_columns = W.shape
        lengths = lengths_of(W)
        total = np.zeros((n_rows * n_columns,) * 2)
        diagonal = np.zeros(n_rows)
        for level in self._levels:
            norms = level.norms(lengths)
            ratio = quotient(level.weights, norms)
            diagonal += ratio[level.label]
            kept = np.flatnonzero(ratio)
            if not len(kept):
                continue
            one_hot = (level.label == kept[:, None]).astype(float)
            unit = one_hot[:, None, :] * (W.T / np.maximum(norms[level.label], TINY))
            unit = unit.reshape(len(kept), -1) * np.sqrt(ratio[kept])[:, None]
            total -= unit.T @ unit
        total[np.diag_indices_from(total)] += np.tile(diagonal, n_columns)
        return total

    def subgradient_gap(self, W: Floats, gradient: Floats) -> Floats:
        """Smallest matrix of −gradient minus the subdifferential at W.

        The norms of groups that are not zero have a gradient, the subdifferentials of the others are balls. What is
        left of −gradient after the nearest point of a sum of balls is, by Moreau, the proximal operator of those
        groups.
        """
        lengths = lengths_of(W)
        zero = tuple(
            Level(level.label, np.where(level.norms(lengths) > 0, 0.0, level.weights))
            for level in self._levels
        )
        return self._prox(-gradient - self.gradient(W), zero, [], 1e-12)

    def violation(self, W: Floats, gradient: Floats) -> float:
        """Distance from −gradient to the subdifferential at W, in the Frobenius norm over all entries.

        Zero exactly when W minimises (smooth function with that gradient) + penalty.

        Examples
        --------
        >>> import numpy as np
        >>> penalty = GroupPenalty([[0], [1]], [1.0, 1.0], n_rows=2)
        >>> round(penalty.violation(np.zeros((2, 1)), np.array([[0.5], [1.25]])), 12)
        0.25
        """
        return float(np.linalg.norm(self.subgradient_gap(W, gradient)))

    def dual_norm(self, G: Floats) -> float:
        """Smallest t at which the proximal operator with step t sends the rows of G that cost something to zero."""
        G = np.where(self.covered[:, None], G, 0.0)
        X, t, dual = G, 0.0, list[Floats]()
        # ⟨G, X⟩ / value(X) bounds t from below for every X. With X the proximal point at the last bound this is
        # Newton's method on ‖X‖², whose root is double: the bound never overshoots and converges quadratically.
        while np.linalg.norm(X) > 1e-8 * np.linalg.norm(G):
            previous, t = t, float(np.vdot(G, X)) / self.value(X)
            if t <= previous * (1.0 + 1e-10):
                break
            X = self.prox(G, t, dual=dual, tol=1e-9)
        return t * (1.0 + 1e-9)
