"""The trees of a LightGBM text model as tables of bits: many rows are answered several times faster, to the last bit.

LightGBM walks one tree after the other for each row, and where a model is larger than the processor's cache it waits
for memory at every step. Here a tree is a set of leaves, one bit each, and a column of X is the number of its values
between two thresholds. A table per tree and column says which leaves are left once the column is known; the bitwise and
over the columns leaves one, whichever way round they are taken (the idea of QuickScorer: Lucchese et al., SIGIR 2015).
All rows take the same few steps, each of them one call of numpy.

Leaf values are added in LightGBM's order, so the sums are equal to the last bit and not only about the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparing._rows import row_chunks

Floats = NDArray[np.float64]
Positions = NDArray[np.intp]
Booleans = NDArray[np.bool_]

_MOST_LEAVES = 64
"""Bits of the longest word."""
_MOST_BYTES = 1 << 25
"""Of all tables of a model; beyond it they would fall out of the cache like the trees do."""
_MOST_CATEGORIES = 1 << 12
_KEPT = 16
"""Models whose tables are kept: those asked last."""
_ROWS = 1 << 15
"""Rows answered at a time."""
_ZERO = float(np.float32(1e-35))
"""Up to here LightGBM takes a number for 0."""
_CATEGORICAL, _DEFAULT_LEFT = 1, 2
_MISSING_ZERO, _MISSING_NAN = 1, 2


@lru_cache(maxsize=_KEPT)
def tree_tables(model: str) -> TreeTables | None:
    """Tables of a text model, made once; None for trees that they do not suit.

    These are trees with more than 64 leaves, linear trees, zeros taken for missing values, and models whose tables
    would be large.

    Parameters
    ----------
    model : LightGBM's text format.

    Examples
    --------
    >>> import lightgbm, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> data = lightgbm.Dataset(X, label=X[:, 1] > 0)
    >>> booster = lightgbm.train({"objective": "binary", "num_threads": 1, "verbose": -1}, data, 5)
    >>> tables = tree_tables(booster.model_to_string())
    >>> bool((tables.scores(X)[:, 0] == booster.predict(X, raw_score=True)).all())
    True
    """
    head = _fields(model[: model.find("\nTree=")])
    nodes = _Nodes.read(model)
    if nodes is None:
        return None
    columns = [_column(nodes, j) for j in np.unique(nodes.column).tolist()]
    if any(column is None for column in columns):
        return None
    known = [column for column in columns if column is not None]
    word = next(w for w in (8, 16, 32, 64) if w >= nodes.most_leaves)
    size = sum(c.n_bins * len(np.unique(nodes.tree[nodes.column == c.column])) for c in known)
    if size * word // 8 > _MOST_BYTES:
        return None
    left, right = nodes.leaves_below(np.dtype(f"u{word // 8}"))
    every = np.array([(1 << len(values)) - 1 for values in nodes.values], dtype=left.dtype)
    tests: list[list[tuple[int, NDArray[Any]]]] = [[] for _ in nodes.values]
    for place, column in enumerate(known):
        mine = np.flatnonzero(nodes.column == column.column)  # sorted by tree, as all nodes are
        trees, starts = np.unique(nodes.tree[mine], return_index=True)
        gone = np.where(column.goes_left, right[mine, None], left[mine, None])
        kept = every[nodes.tree[mine], None] & ~gone
        tables = np.bitwise_and.reduceat(kept, starts, axis=0)
        for tree, table in zip(trees.tolist(), tables, strict=True):
            tests[tree].append((place, table))
    return TreeTables(known, tests, nodes.values, int(head["num_tree_per_iteration"]))


class TreeTables:
    """What :func:`tree_tables` makes of a model.

    Parameters
    ----------
    columns : how values of each column that is tested become bins.
    tests : for every tree the columns it tests, by their place among ``columns``, and a word of leaves per bin.
    values : of the leaves of every tree.
    n_outputs : trees per iteration, one after the other.
    """

    def __init__(
        self,
        columns: list[_Column],
        tests: list[list[tuple[int, NDArray[Any]]]],
        values: list[Floats],
        n_outputs: int,
    ) -> None:
        self._columns = columns
        self._tests, self._values = tests, values
        self._n_outputs = n_outputs

    def scores(self, rows: NDArray[np.floating], n_iteration: int | None = None) -> Floats:
        """Raw scores of shape (n_rows, n_outputs) after the first iterations; None for all."""
        n_trees = len(self._tests)
        if n_iteration is not None:
            n_trees = min(n_trees, n_iteration * self._n_outputs)
        # A column per output, so that every tree adds to neighbouring numbers.
        out = np.zeros((self._n_outputs, len(rows)))
        for some in row_chunks(len(rows), _ROWS):
            block = rows[some[0] : some[-1] + 1]
            bins = [column.bins(block[:, column.column]) for column in self._columns]
            scores = out[:, some[0] : some[-1] + 1]
            for tree in range(n_trees):
                self._add(tree, bins, scores[tree % self._n_outputs])
        return out.T

    def _add(self, tree: int, bins: list[Positions], score: Floats) -> None:
        tests, values = self._tests[tree], self._values[tree]
        if not tests:  # a single leaf
            score += values[0]
            return
        place, table = tests[0]
        left = table.take(bins[place], mode="clip")
        if len(tests) > 1:
            some = np.empty_like(left)
            for place, table in tests[1:]:
                table.take(bins[place], mode="clip", out=some)
                np.bitwise_and(left, some, out=left)
        # One bit is left: a power of two, whose exponent stands in the upper bits of a float.
        leaf = (left.astype(float).view(np.int64) >> 52) - 1023
        score += values.take(leaf, mode="clip")


@dataclass(frozen=True, eq=False)
class _Column:
    """A column that trees test.

    Attributes
    ----------
    column : its position in X.
    cuts : thresholds, sorted; None for categories.
    n_bins : between the cuts, or categories; the last bin is for what is missing or unknown.
    goes_left : whether the values of each bin go left, of shape (n_nodes that test the column, n_bins).
    """

    column: int
    cuts: Floats | None
    n_bins: int
    goes_left: Booleans

    def bins(self, values: NDArray[np.floating]) -> Positions:
        """Bin of each value."""
        values = np.ascontiguousarray(values, dtype=float)
        unknown = np.isnan(values)
        if self.cuts is None:
            # Truncated like LightGBM's cast, which makes a category of -0.5.
            unknown |= (values <= -1.0) | (values >= self.n_bins - 1)
            return np.where(unknown, self.n_bins - 1, values).astype(np.intp)
        values = np.where(np.abs(values) <= _ZERO, 0.0, values)
        found = np.searchsorted(self.cuts, values)
        found[unknown] = self.n_bins - 1
        return found


def _column(nodes: _Nodes, column: int) -> _Column | None:
    """How a column is tested; None where LightGBM's rules for it are not known here."""
    mine = nodes.column == column
    thresholds, decision = nodes.threshold[mine], nodes.decision[mine]
    missing = decision >> 2 & 3
    categorical = (decision & _CATEGORICAL) != 0
    if categorical.any():
        if not categorical.all():
            return None
        sets = [nodes.categories[i] for i in np.flatnonzero(mine).tolist()]
        n_bins = max(len(some) for some in sets) + 1
        if n_bins > _MOST_CATEGORIES:
            return None
        goes_left = np.zeros((len(sets), n_bins), dtype=bool)  # unknown and missing ones go right
        for row, some in zip(goes_left, sets, strict=True):
            row[: len(some)] = some
        return _Column(column, None, n_bins, goes_left)
    if (missing == _MISSING_ZERO).any():
        return None
    cuts = np.unique(thresholds)
    n_bins = len(cuts) + 2
    goes_left = np.arange(n_bins) <= np.searchsorted(cuts, thresholds)[:, None]
    # Where training saw no missing value, one counts as 0.
    goes_left[:, -1] = np.where(
        missing == _MISSING_NAN, (decision & _DEFAULT_LEFT) != 0, thresholds >= 0.0
    )
    return _Column(column, cuts, n_bins, goes_left)


@dataclass(frozen=True, eq=False)
class _Nodes:
    """Inner nodes of all trees of a model, one tree after the other, and the values of their leaves.

    Children are numbers of inner nodes, or, below 0, −1 − the leaf of the tree.
    """

    tree: Positions
    column: Positions
    threshold: Floats
    decision: Positions
    left: Positions
    right: Positions
    categories: dict[int, Booleans]
    values: list[Floats]

    @classmethod
    def read(cls, model: str) -> _Nodes | None:
        """From the text; None for trees that tables do not suit."""
        names = ("split_feature", "threshold", "decision_type", "left_child", "right_child")
        parts: dict[str, list[NDArray[Any]]] = {name: [] for name in ("tree", *names)}
        categories: dict[int, Booleans] = {}
        values = list[Floats]()
        first = 0
        for index, text in enumerate(model.split("\nTree=")[1:]):
            fields = _fields(text.split("\n\n")[0])
            if fields.get("is_linear", "0") != "0" or int(fields["num_leaves"]) > _MOST_LEAVES:
                return None
            values.append(np.array(fields["leaf_value"].split(), dtype=float))
            if len(values[-1]) == 1:
                continue
            for name in names:
                kind = float if name == "threshold" else np.intp
                found = np.array(fields[name].split(), dtype=kind)
                if name.endswith("child"):
                    found = np.where(found >= 0, found + first, found)
                parts[name].append(found)
            n = len(found)
            parts["tree"].append(np.full(n, index))
            if int(fields.get("num_cat", "0")):
                decision, threshold = parts["decision_type"][-1], parts["threshold"][-1]
                for node in np.flatnonzero(decision & _CATEGORICAL).tolist():
                    categories[first + node] = _categories(fields, int(threshold[node]))
            first += n
        if not first:
            return None
        tree, column, threshold, decision, left, right = map(np.concatenate, parts.values())
        return cls(tree, column, threshold, decision, left, right, categories, values)

    @property
    def most_leaves(self) -> int:
        """Of any tree."""
        return max(map(len, self.values))

    def leaves_below(self, word: np.dtype[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Leaves below the left and the right child of every node, a bit per leaf."""
        below = np.zeros((2, len(self.tree)), dtype=word)
        children = np.stack([self.left, self.right])
        roots = np.flatnonzero(np.diff(self.tree, prepend=-1))
        levels = []
        while len(roots):
            levels.append(roots)
            inner = children[:, roots]
            roots = inner[inner >= 0]
        one = np.ones((), dtype=word)
        for level in reversed(levels):
            for side, child in enumerate(children[:, level]):
                leaf = np.left_shift(one, np.where(child < 0, -1 - child, 0).astype(word))
                node = np.maximum(child, 0)  # what a leaf finds there is not taken
                inside = below[0][node] | below[1][node]
                below[side, level] = np.where(child < 0, leaf, inside)
        return below[0], below[1]


def _categories(fields: dict[str, str], number: int) -> Booleans:
    """Categories that go left: a bit each, in words of 32."""
    bounds = [int(word) for word in fields["cat_boundaries"].split()]
    words = fields["cat_threshold"].split()[bounds[number] : bounds[number + 1]]
    packed = np.array(words, dtype="<u4").view(np.uint8)
    return np.unpackbits(packed, bitorder="little").astype(bool)


def _fields(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.split("\n") if "=" in line)
