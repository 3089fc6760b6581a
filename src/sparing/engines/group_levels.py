"""Groups of rows sorted into levels, so that everything about a level is one vectorised pass.

The groups of a level share no row, and stand above all smaller groups they meet. Called by ``penalty``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]
Booleans = NDArray[np.bool_]

TINY = float(np.finfo(float).tiny)


class Level(NamedTuple):
    """Groups that share no row: everything about them is one vectorised pass.

    ``label[row]`` is the group of a row; the last label means "in no group here" and has weight 0.
    """

    label: Integers
    weights: Floats

    def norms(self, lengths: Floats) -> Floats:
        """Norm of each group, from the lengths of the rows."""
        return np.sqrt(np.bincount(self.label, lengths * lengths, minlength=len(self.weights)))

    def taken(self, lengths: Floats) -> Floats:
        """Share of each row that the proximal operator of these groups alone takes away: 1 makes it zero."""
        share = self.weights / np.maximum(np.maximum(self.norms(lengths), self.weights), TINY)
        return share[self.label]

    def times(self, factor: float) -> Level:
        """The same groups, dearer."""
        return Level(self.label, self.weights * factor)

    def at(self, rows: Integers) -> Level:
        """The groups among some rows."""
        # Labels of emptied groups stay: they have norm 0 and touch nothing.
        return Level(self.label[rows], self.weights)

    def with_free_rows(self, n: int) -> Level:
        """The same groups, and ``n`` more rows in none of them."""
        nowhere = len(self.weights) - 1
        return Level(np.append(self.label, np.full(n, nowhere)), self.weights)


def levels_of(
    groups: tuple[Integers, ...], weights: Floats, n_rows: int
) -> tuple[tuple[Level, ...], Booleans]:
    """Levels of groups given the smallest first, and the rows tied up in overlaps."""
    height, tangled = _heights(groups, n_rows)
    levels = tuple(
        _level(np.flatnonzero(height == h), groups, weights, n_rows)
        for h in range(int(height.max(initial=-1)) + 1)
    )
    return levels, tangled


def _heights(groups: tuple[Integers, ...], n_rows: int) -> tuple[Integers, Booleans]:
    """Level of each group, above all smaller groups that it meets, and the rows tied up in overlaps."""
    height = np.zeros(len(groups), dtype=np.intp)
    tangled = np.zeros(n_rows, dtype=bool)
    sizes = np.array([len(group) for group in groups], dtype=np.intp)
    rows = np.concatenate([*groups, np.empty(0, dtype=np.intp)])
    if not len(groups) or np.bincount(rows).max() == 1:
        return height, tangled
    pointers = np.concatenate([[0], np.cumsum(sizes)])
    incidence = csr_array((np.ones(len(rows)), rows, pointers), shape=(len(groups), n_rows))
    common = csr_array(incidence @ incidence.T)
    crossing = np.zeros(len(groups), dtype=bool)
    for g in range(len(groups)):
        meets = slice(common.indptr[g], common.indptr[g + 1])
        others, counts = common.indices[meets], common.data[meets]
        height[g] = height[others[others < g]].max(initial=-1) + 1
        crossing[g] = np.any(counts < np.minimum(sizes[others], sizes[g]))
    # One crossing pair ties up every group connected to it through common rows.
    component = connected_components(common, directed=False)[1]
    tied = np.isin(component, component[crossing])
    tangled[rows[np.repeat(tied, sizes)]] = True
    return height, tangled


def _level(members: Integers, groups: tuple[Integers, ...], weights: Floats, n_rows: int) -> Level:
    label = np.full(n_rows, len(members), dtype=np.intp)
    for position, g in enumerate(members):
        label[groups[g]] = position
    return Level(label, np.append(weights[members], 0.0))


def lengths_of(W: Floats) -> Floats:
    """Length of each row of W."""
    return np.sqrt(np.vecdot(W, W))


def quotient(above: Floats, below: Floats) -> Floats:
    """Quotient, 0 where the denominator is 0."""
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)
