"""The price of a linear model: Σ over items of price × ‖rows of W that need the item‖_F.

The relaxed cost term of (OPT2), with prices put back in and with items that several columns share. A row of W is a
column of the design; it is zero when the column is not bought. Groups that are nested or disjoint (private items inside
a shared one) have a proximal operator in closed form, inside out. Columns derived from others make groups overlap: then
the dual is solved by block-coordinate ascent to a duality gap.

Called by ``linear``. Nothing here knows data or losses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csc_array, csr_array

from sparing.costs import FeatureCosts

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]
Booleans = NDArray[np.bool_]

_TINY = float(np.finfo(float).tiny)
_MAX_SWEEPS = 2000


class _Level(NamedTuple):
    """Groups that share no row: everything about them is one vectorised pass.

    ``label[row]`` is the group of a row; the last label means "in no group here" and has weight 0.
    """

    label: Integers
    weights: Floats

    def norms(self, W: Floats) -> Floats:
        squares = np.einsum("ij,ij->i", W, W)
        return np.sqrt(np.bincount(self.label, squares, minlength=len(self.weights)))

    def shrinkage(self, W: Floats, weights: Floats) -> Floats:
        """Factor of each row under the proximal operator of these groups alone."""
        shrunk = 1.0 - weights / np.maximum(np.maximum(self.norms(W), weights), _TINY)
        return shrunk[self.label]


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

    groups: tuple[Integers, ...]
    weights: Floats
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
        self.groups = tuple(np.array(rows, dtype=np.intp) for rows in ordered)
        self.weights = np.array([merged[rows] for rows in ordered])
        self.n_rows = n_rows
        height, self.laminar = _heights(self.groups, n_rows)
        self._levels = tuple(
            _level(np.flatnonzero(height == h), self.groups, self.weights, n_rows)
            for h in range(int(height.max(initial=-1)) + 1)
        )

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
        return self._like(
            self.groups,
            self.weights * gamma,
            self.n_rows,
            tuple(_Level(level.label, level.weights * gamma) for level in self._levels),
        )

    def restricted(self, rows: Integers) -> GroupPenalty:
        """Penalty of a matrix that holds only these rows, the others being zero."""
        # Labels of emptied groups stay: they have norm 0 and touch nothing.
        levels = tuple(_Level(level.label[rows], level.weights) for level in self._levels)
        position = np.full(self.n_rows, -1, dtype=np.intp)
        position[rows] = np.arange(len(rows))
        groups = tuple(position[group][position[group] >= 0] for group in self.groups)
        return self._like(groups, self.weights, len(rows), levels)

    def with_free_rows(self, n: int) -> GroupPenalty:
        """Penalty of a matrix with ``n`` more rows at the end, free of charge: the intercepts."""
        levels = tuple(
            _Level(np.append(level.label, np.full(n, len(level.weights) - 1)), level.weights)
            for level in self._levels
        )
        return self._like(self.groups, self.weights, self.n_rows + n, levels)

    def _like(
        self,
        groups: tuple[Integers, ...],
        weights: Floats,
        n_rows: int,
        levels: tuple[_Level, ...],
    ) -> GroupPenalty:
        other = object.__new__(GroupPenalty)
        other.groups, other.weights, other.n_rows = groups, weights, n_rows
        other.laminar, other._levels = self.laminar, levels
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
        return float(sum(level.norms(W) @ level.weights for level in self._levels))

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
        return self._prox(W, [level.weights * step for level in self._levels], dual, tol)

    def _prox(
        self, W: Floats, weights: list[Floats], dual: list[Floats] | None, tol: float
    ) -> Floats:
        X = W
        if self.laminar:
            for level, limit in zip(self._levels, weights, strict=True):
                X = X * level.shrinkage(X, limit)[:, None]
            return X if X is not W else W.copy()

        if dual is None:
            dual = []
        if not dual:
            dual.extend(np.zeros_like(W) for _ in self._levels)
        # The primal point is W − ΣY, with Y one matrix per level inside the balls. Strong convexity turns the duality
        # gap into a distance: ‖X − X*‖² ≤ 2 gap.
        X = W - sum(dual)
        goal = 0.5 * (tol * np.linalg.norm(W)) ** 2
        for _ in range(_MAX_SWEEPS):
            factors = []
            for position, level in enumerate(self._levels):
                residual = X + dual[position]
                factors.append(level.shrinkage(residual, weights[position])[:, None])
                X = residual * factors[-1]
                dual[position] = residual - X
            gap = sum(map(_gap, self._levels, weights, dual, [X] * len(dual)))
            if gap <= goal:
                break
        # A group strictly inside its ball is zero at the optimum, and only in the limit here.
        for factor in factors:
            X = np.where(factor == 0, 0.0, X)
        return X

    def gradient(self, W: Floats) -> Floats:
        """Sum of the gradients of the norms that are not zero."""
        total = np.zeros_like(W)
        for level in self._levels:
            total += _ratio(level.weights, level.norms(W))[level.label, None] * W
        return total

    def hessian(self, W: Floats) -> Floats:
        """Second derivative where no row of W is zero, its columns stacked one after the other.

        Returns
        -------
        array of shape (n_rows × n_columns, n_rows × n_columns)
        """
        n_rows, n_columns = W.shape
        total = np.zeros((n_rows * n_columns,) * 2)
        diagonal = np.zeros(n_rows)
        for level in self._levels:
            norms = level.norms(W)
            ratio = _ratio(level.weights, norms)
            diagonal += ratio[level.label]
            kept = np.flatnonzero(ratio)
            if not len(kept):
                continue
            one_hot = (level.label == kept[:, None]).astype(float)
            unit = one_hot[:, None, :] * (W.T / np.maximum(norms[level.label], _TINY))
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
        rest = -gradient - self.gradient(W)
        free = [np.where(level.norms(W) > 0, 0.0, level.weights) for level in self._levels]
        return self._prox(rest, free, None, 1e-12)

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
        if not np.any(G):
            return 0.0
        high = float(np.linalg.norm(G) / self.weights.min())
        if len(self._levels) == 1:
            (level,) = self._levels
            return float(_ratio(level.norms(G)[:-1], level.weights[:-1]).max())
        low, noise = 0.0, 0.0 if self.laminar else 1e-9 * float(np.linalg.norm(G))
        while high - low > 1e-10 * high:
            middle = 0.5 * (low + high)
            if np.linalg.norm(self.prox(G, middle)) <= noise:
                high = middle
            else:
                low = middle
        return high


def _ratio(above: Floats, below: Floats) -> Floats:
    """Quotient, 0 where the denominator is 0."""
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)


def _heights(groups: tuple[Integers, ...], n_rows: int) -> tuple[Integers, bool]:
    """Level of each group, above all smaller groups that it meets, and whether all are nested or disjoint."""
    height = np.zeros(len(groups), dtype=np.intp)
    sizes = np.array([len(group) for group in groups], dtype=np.intp)
    rows = np.concatenate([*groups, np.empty(0, dtype=np.intp)])
    if not len(groups) or np.bincount(rows).max() == 1:
        return height, True
    pointers = np.concatenate([[0], np.cumsum(sizes)])
    incidence = csr_array((np.ones(len(rows)), rows, pointers), shape=(len(groups), n_rows))
    common = csr_array(incidence @ incidence.T)
    laminar = True
    for g in range(len(groups)):
        meets = slice(common.indptr[g], common.indptr[g + 1])
        others, counts = common.indices[meets], common.data[meets]
        earlier = others < g
        height[g] = height[others[earlier]].max(initial=-1) + 1
        laminar &= bool(np.all(counts == np.minimum(sizes[others], sizes[g])))
    return height, laminar


def _level(members: Integers, groups: tuple[Integers, ...], weights: Floats, n_rows: int) -> _Level:
    label = np.full(n_rows, len(members), dtype=np.intp)
    for position, g in enumerate(members):
        label[groups[g]] = position
    return _Level(label, np.append(weights[members], 0.0))


def _gap(level: _Level, weights: Floats, dual: Floats, X: Floats) -> float:
    """Σ of weight‖X_g‖ − ⟨X_g, Y_g⟩, written without the cancellation that would hide gaps below 1e-16."""
    size, length = level.norms(X), level.norms(dual)
    turn = (_ratio(np.ones_like(size), size)[level.label, None] * X) - (
        _ratio(np.ones_like(length), length)[level.label, None] * dual
    )
    angle = 0.5 * level.norms(turn) ** 2
    gap = size * (np.maximum(weights - length, 0.0) + length * angle)
    return float(gap[:-1].sum())
