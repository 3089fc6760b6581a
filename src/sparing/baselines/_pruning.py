"""Which splits of a forest are worth what they make rows pay: the maximum-weight closure behind BudgetPrune.

With e_h the share of pruning rows that reach node h and whose class is not the one the tree predicts there, T trees,
N pruning rows and u_t(k, i) the first node on row i's path in tree t that needs item k, pruning means

    min  (1/T) Σ_t Σ_{h pruned to a leaf} e_h  +  (λ/N) Σ_k price_k Σ_i w_ki

where w_ki = 1 if any tree's kept path needs item k for row i. Let a_h = 1 when inner node h stays a split. Then

    max  Σ_h a_h (e_h − e_left − e_right)/T  −  (λ/N) Σ_ki price_k w_ki
    with a_h ≤ a_parent(h)  and  a_h ≤ w_ki wherever u_t(k, i) = h,

a closure: whoever wants h must take its parent and pay for what h needs first. :class:`ForestPruning` turns a forest
and its pruning rows into a :class:`~sparing.baselines._pruning_closure.Closure`, which is solved there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparing.baselines._pruning_closure import Closure

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Booleans = NDArray[np.bool_]

TIE = 1e-12
"""Differences of error rates below this are rounding: with counted rows they are 0 or at least 1 / (N T)."""


@dataclass(frozen=True, eq=False)
class ForestNodes:
    """Nodes of all trees under one numbering: node h of tree t is ``start[t] + h``.

    Attributes
    ----------
    start : first node of each tree, and the number of all nodes.
    left, right, parent : children and parent, −1 for none.
    column : column tested, meaningless at leaves.
    label : position of the class the tree predicts at the node from its training counts.
    """

    start: Ints
    left: Ints
    right: Ints
    parent: Ints
    column: Ints
    label: Ints

    @classmethod
    def of(cls, trees: list[Any]) -> ForestNodes:
        """Nodes of low-level scikit-learn trees, leaves and all."""
        start = np.cumsum([0, *(tree.node_count for tree in trees)])
        shift = np.repeat(start[:-1], np.diff(start))
        left = np.concatenate([tree.children_left for tree in trees])
        right = np.concatenate([tree.children_right for tree in trees])
        left, right = (np.where(left < 0, -1, side + shift) for side in (left, right))
        parent = np.full(start[-1], -1)
        splits = np.flatnonzero(left >= 0)
        parent[left[splits]] = parent[right[splits]] = splits
        column = np.concatenate([tree.feature for tree in trees])
        label = np.concatenate([tree.value[:, 0, :].argmax(axis=1) for tree in trees])
        return cls(start, left, right, parent, column, label)

    @cached_property
    def levels(self) -> list[Ints]:
        """Splits by depth, over all trees."""
        levels, nodes = [], self.start[:-1]
        while len(nodes := nodes[self.left[nodes] >= 0]):
            levels.append(nodes)
            nodes = np.concatenate([self.left[nodes], self.right[nodes]])
        return levels

    def gains(self, benefit: Floats, allowed: Booleans | None = None) -> Floats:
        """Best total benefit of the subtree below each split, the split included; −inf where it is not allowed."""
        gain = np.full(self.start[-1], -np.inf)
        for splits in reversed(self.levels):
            below = np.maximum(gain[self.left[splits]], 0) + np.maximum(gain[self.right[splits]], 0)
            gain[splits] = benefit[splits] + below
            if allowed is not None:
                gain[splits[~allowed[splits]]] = -np.inf
        return gain

    def climb(self, nodes: Ints, stop: Booleans | None = None) -> Iterator[tuple[Ints, Ints]]:
        """Rows and the nodes where they are, from the nodes given up to the root, or to nodes where to stop."""
        rows = np.arange(len(nodes))
        while True:
            if stop is not None:
                on = ~stop[nodes]
                rows, nodes = rows[on], nodes[on]
            if not len(rows):
                return
            yield rows, nodes
            nodes = self.parent[nodes]
            up = nodes >= 0
            rows, nodes = rows[up], nodes[up]


class ForestPruning:
    """A forest, its pruning rows and the prices: the closure problem, and what its solutions mean for the forest.

    Parameters
    ----------
    trees : list of low-level scikit-learn trees
    leaves : int array of shape (n_rows, n_trees), the leaf of each pruning row in each tree
    y : class of each row, a position in the trees' classes
    needs : bool array of shape (n_columns, n_items), items the columns of the trees need
    prices : price of each item
    weight : weight of each row, None for 1
    counted : int array for each tree, the rows whose errors count there (those out of its bag), None for all. Costs are
        counted over all rows.

    Attributes
    ----------
    nodes : ForestNodes
    error : e_h of each node.
    benefit : (e_h − e_left − e_right)/T of each split, 0 at leaves.
    closure : the problem. Splits that cannot pay even if everything were free have no part in it.
    """

    def __init__(
        self,
        trees: list[Any],
        leaves: Ints,
        y: Ints,
        needs: Booleans,
        prices: Floats,
        *,
        weight: Floats | None = None,
        counted: list[Ints] | None = None,
    ) -> None:
        self.nodes = nodes = ForestNodes.of(trees)
        self.leaves = leaves + nodes.start[:-1]
        self.weight = np.ones(len(y)) if weight is None else weight
        priced = prices > 0
        self.needs, self.prices = needs[:, priced], prices[priced]
        self.error = self._errors(y, counted)
        splits = np.concatenate([*nodes.levels, np.empty(0, dtype=np.intp)])
        self.benefit = np.zeros(nodes.start[-1])
        self.benefit[splits] = self.error[splits]
        self.benefit[splits] -= self.error[nodes.left[splits]] + self.error[nodes.right[splits]]
        self.benefit /= len(trees)
        self._hopeful = self._grown_from_roots(nodes.gains(self.benefit) > TIE)
        self.closure = self._closure()

    def _errors(self, y: Ints, counted: list[Ints] | None) -> Floats:
        """e_h: weight of the rows that reach h and are not of its class, over that of all rows of the tree."""
        error = np.zeros(self.nodes.start[-1])
        for t, first in enumerate(self.nodes.start[:-1]):
            rows = slice(None) if counted is None else counted[t]
            leaves, label, weight = self.leaves[rows, t], y[rows], self.weight[rows]
            size = self.nodes.start[t + 1] - first
            here = np.zeros(size)
            for i, h in self.nodes.climb(leaves):
                wrong = weight[i] * (self.nodes.label[h] != label[i])
                here += np.bincount(h - first, weights=wrong, minlength=size)
            # A tree whose every row is in its bag knows nothing of its errors.
            error[first : first + size] = here / max(weight.sum(), np.finfo(float).tiny)
        return error

    def _grown_from_roots(self, wanted: Booleans, start: Booleans | None = None) -> Booleans:
        """Wanted splits all of whose ancestors are wanted too, or in the closed set ``start``."""
        nodes = self.nodes
        keep = np.zeros(nodes.start[-1] + 1, dtype=bool)
        keep[-1] = True  # above the roots
        if start is not None:
            keep[:-1] = start
        for splits in nodes.levels:
            keep[splits] |= wanted[splits] & keep[nodes.parent[splits]]
        return keep[:-1]

    # -- purchases ------------------------------------------------------------------------------

    def _first_needs(
        self, keep: Booleans, number: NDArray[np.int32]
    ) -> Iterator[tuple[NDArray[np.int32], Ints]]:
        """For each tree u_t(k, i) on kept paths: a table of paths × items, and the path of each row.

        Entries are the ``number`` of the split that needs the item first, −1 if none does.
        """
        nodes = self.nodes
        # Entry −1 of both is for what stands above the roots, and row −1 of a table for the path that needs nothing.
        last = np.full(nodes.start[-1] + 1, -1)  # deepest kept split at or above each split
        place = np.full(nodes.start[-1] + 1, -1)  # of its path in the table
        for splits in nodes.levels:
            last[splits] = np.where(keep[splits], splits, last[nodes.parent[splits]])
        for t, (first, end) in enumerate(zip(nodes.start[:-1], nodes.start[1:], strict=True)):
            table = np.full((int(keep[first:end].sum()) + 1, len(self.prices)), -1, dtype=np.int32)
            size, splits = 0, nodes.start[t : t + 1]
            while len(splits := splits[keep[splits]]):
                place[splits] = here = np.arange(size, size + len(splits))
                size += len(splits)
                path = table[place[nodes.parent[splits]]]
                fresh = self.needs[nodes.column[splits]] & (path < 0)
                table[here] = np.where(fresh, number[splits, None], path)
                splits = np.concatenate([nodes.left[splits], nodes.right[splits]])
            yield table, place[last[nodes.parent[self.leaves[:, t]]]]

    def _closure(self) -> Closure:
        nodes, prices = self.nodes, self.prices
        levels = [splits[self._hopeful[splits]] for splits in nodes.levels]
        self._splits = np.concatenate([*levels, np.empty(0, dtype=np.intp)])
        number = np.full(nodes.start[-1], -1, dtype=np.int32)
        number[self._splits] = np.arange(len(self._splits), dtype=np.int32)
        parent = nodes.parent[self._splits]

        # Rows that need an item at the same splits share one purchase, whatever row and item they are: a sum of random
        # numbers of the splits tells the sets apart (64 bits: a million sets collide once in 40 million forests).
        mark = np.random.default_rng(0).integers(1, 2**64, len(self._splits), dtype=np.uint64)
        mark = np.append(mark, np.uint64(0))  # for −1
        key = np.zeros((len(self.leaves), len(prices)), dtype=np.uint64)
        for table, path in self._first_needs(self._hopeful, number):
            key += mark[table][path]
        rows, items = np.nonzero(key)
        _, some, which = np.unique(key[rows, items], return_index=True, return_inverse=True)
        del key
        price = self.weight[rows] * prices[items] / self.weight.sum()
        cost: Floats = np.zeros(len(some))
        np.add.at(cost, which, price)

        rows, items = rows[some], items[some]
        needing: list[NDArray[np.int32]] = [np.empty(0, dtype=np.int32)]
        needed: list[NDArray[np.int32]] = [np.empty(0, dtype=np.int32)]
        for table, path in self._first_needs(self._hopeful, number):
            split = table[path[rows], items]
            purchase = np.flatnonzero(split >= 0).astype(np.int32)
            needed.append(purchase)
            needing.append(split[purchase])
        purchase = np.concatenate(needed)
        first = np.zeros(len(cost) + 1, dtype=np.intp)
        np.cumsum(np.bincount(purchase, minlength=len(cost)), out=first[1:])
        return Closure(
            self.benefit[self._splits],
            np.where(parent >= 0, number[parent], -1).astype(np.int32),
            np.cumsum([0, *map(len, levels)]),
            cost,
            np.concatenate(needing)[np.argsort(purchase, kind="stable")],
            first,
            float(self.error[nodes.start[:-1]].mean()),
        )

    # -- solutions ------------------------------------------------------------------------------

    def kept(self, keep: Booleans, *, harmful: bool = False) -> Booleans:
        """Nodes of the forest that stay splits.

        Of all solutions with the same objective and the same purchases the largest is taken: a split that needs nothing
        new costs nothing, and though it changes no tree's vote on balance it sharpens the averaged probabilities.

        Parameters
        ----------
        keep : splits of the closure that are kept.
        harmful : also keep splits that need nothing new and raise the error of their own tree.
        """
        nodes = self.nodes
        kept = np.zeros(nodes.start[-1], dtype=bool)
        kept[self._splits[keep]] = True
        asks = self._asking(kept)
        wanted = ~asks if harmful else nodes.gains(self.benefit, ~asks) >= -TIE
        return self._grown_from_roots(wanted & (nodes.left >= 0), kept)

    def _asking(self, kept: Booleans) -> Booleans:
        """Nodes at which some pruning row would have to pay for something its kept paths do not need."""
        unpaid = ~self._paid(kept)
        # Does row i lack an item of column j? A product of floats goes through BLAS, one of booleans does not.
        lacks = unpaid.astype(np.float32) @ self.needs.T.astype(np.float32) > 0.5
        asks = np.zeros(len(kept), dtype=bool)
        for t in range(self.leaves.shape[1]):
            above = self.nodes.parent[self.leaves[:, t]]
            rows = np.flatnonzero((above >= 0) & (self.weight > 0))
            for i, h in self.nodes.climb(above[rows], stop=kept):
                asks[h[lacks[rows[i], self.nodes.column[h]]]] = True
        return asks

    def _paid(self, kept: Booleans) -> Booleans:
        """Priced items each pruning row needs on its kept paths: bool of shape (n_rows, n_items)."""
        number = np.zeros(len(kept), dtype=np.int32)
        paid = np.zeros((len(self.leaves), len(self.prices)), dtype=bool)
        for table, path in self._first_needs(kept, number):
            paid |= (table >= 0)[path]
        return paid

    def mean_error(self, kept: Booleans) -> float:
        """Mean error of the trees on their pruning rows when these nodes stay splits."""
        root = float(self.error[self.nodes.start[:-1]].mean())
        return root - float(self.benefit[kept].sum())

    def mean_cost(self, kept: Booleans) -> float:
        """Mean price of what the pruning rows need when these nodes stay splits."""
        return float(np.average(self._paid(kept) @ self.prices, weights=self.weight))

    def by_tree(self, kept: Booleans) -> list[Booleans]:
        """Nodes of each tree that stay splits."""
        return np.split(kept, self.nodes.start[1:-1])
