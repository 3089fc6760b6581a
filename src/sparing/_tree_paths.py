"""Which columns a tree model tests on the way of each row: leaf index → set of columns → union over trees.

A set of columns is packed into 64-bit words, so the union over trees is a gather and a bitwise or. Used for the
"path" accounting of boosters and forests; nothing here knows prices. Rows are taken in chunks: memory stays flat
whatever the number of rows and trees.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from sparing._booster_turns import PrefixTurns
from sparing._rows import row_chunks, take_rows

Booleans = NDArray[np.bool_]
Columns = NDArray[np.intp]
Words = NDArray[np.uint64]

_CHUNK_CELLS = 1 << 20
"""Leaf indices (rows × trees) handled at a time: 8 MB, which the processor's cache still likes."""


# -- scikit-learn -------------------------------------------------------------------------------------


def forest_columns(forest: Any) -> Columns:
    """Columns tested anywhere in a fitted scikit-learn tree or forest, sorted.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> forest_columns(DecisionTreeClassifier().fit([[0, 1], [0, 2]], [0, 1]))
    array([1])
    """
    used = np.zeros(forest.n_features_in_, dtype=bool)
    for tree in _trees(forest):
        used[tree.feature[tree.children_left >= 0]] = True
    return np.flatnonzero(used)


def forest_columns_read(forest: Any, X: Any) -> Booleans:
    """Columns tested for each row by a fitted scikit-learn tree or forest.

    Parameters
    ----------
    forest : fitted decision tree, random forest or extra trees; classifier or regressor
    X : numeric array or frame of shape (n_rows, n_columns)
        Goes through float32 as in scikit-learn; missing values follow the trees' own rule.

    Returns
    -------
    bool ndarray of shape (n_rows, n_columns)

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> tree = DecisionTreeClassifier().fit([[0, 0], [0, 1], [1, 0], [1, 1]], [0, 0, 1, 2])
    >>> forest_columns_read(tree, [[0, 0], [1, 0]])
    array([[ True, False],
           [ True,  True]])
    """
    X = X if hasattr(X, "shape") else np.asarray(X)
    n, n_columns = X.shape[0], int(forest.n_features_in_)
    sets = [_sets_of_forest_tree(tree, n_columns) for tree in _trees(forest)]
    mask = np.empty((n, n_columns), dtype=bool)
    for rows in row_chunks(n, max(1, _CHUNK_CELLS // n_columns)):
        block = check_array(
            take_rows(X, rows), dtype=np.float32, order="C", ensure_all_finite="allow-nan"
        )
        union = np.zeros((len(rows), _n_words(n_columns)), dtype=np.uint64)
        for tree, tree_sets in zip(_trees(forest), sets, strict=True):
            union |= tree_sets[tree.apply(block)]
        mask[rows] = unpack_columns(union, n_columns)
    return mask


def _trees(forest: Any) -> list[Any]:
    """The low-level trees; boosted scikit-learn ensembles keep a matrix of estimators."""
    members = getattr(forest, "estimators_", None)
    return [forest.tree_] if members is None else [tree.tree_ for tree in np.ravel(members)]


def _sets_of_forest_tree(tree: Any, n_columns: int) -> Words:
    """Packed columns on the way to every node of a low-level scikit-learn tree."""
    sets = np.zeros((tree.node_count, _n_words(n_columns)), dtype=np.uint64)
    parents = np.zeros(1, dtype=np.intp)
    while len(parents):
        parents = parents[tree.children_left[parents] >= 0]
        path = _with_column(sets[parents], tree.feature[parents])
        left, right = tree.children_left[parents], tree.children_right[parents]
        sets[left] = sets[right] = path
        parents = np.concatenate([left, right])
    return sets


# -- LightGBM -----------------------------------------------------------------------------------------


class BoosterPaths:
    """Columns tested by the trees of a LightGBM booster, anywhere or per row.

    A booster with K outputs grows K trees per iteration, tree k of an iteration belonging to output k. Both questions
    can be asked of some outputs only and of the first iterations only.

    Parameters
    ----------
    booster : lightgbm.Booster
        Read once; iterations added later are not seen.
    turns : PrefixTurns, optional
        Of this booster, when others ask it for other iterations.

    Examples
    --------
    >>> import lightgbm, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> data = lightgbm.Dataset(X, label=X[:, 1] > 0)
    >>> booster = lightgbm.train({"objective": "binary", "num_leaves": 2, "verbose": -1}, data, 5)
    >>> paths = BoosterPaths(booster)
    >>> paths.columns(), paths.columns(n_iteration=0)
    (array([1]), array([], dtype=int64))
    >>> paths.columns_read(X[:2])
    array([[False,  True, False],
           [False,  True, False]])
    """

    def __init__(self, booster: Any, turns: PrefixTurns | None = None) -> None:
        self.booster = booster
        self._turns = PrefixTurns() if turns is None else turns
        self.n_columns = int(booster.num_feature())
        self.n_outputs = int(booster.num_model_per_iteration())
        # Every tree of the booster: without the number, LightGBM stops at the best iteration.
        trees = _parsed_trees(booster.model_to_string(num_iteration=-1), self.n_columns)
        self.n_iterations = len(trees) // self.n_outputs
        self._sets = np.concatenate([sets for sets, _ in trees] or [_no_sets(self.n_columns)])
        sizes = [0] + [len(sets) for sets, _ in trees]
        self._first_leaf = np.cumsum(sizes)[:-1].astype(np.int32)
        self._used = np.array([used for _, used in trees], dtype=bool).reshape(-1, self.n_columns)

    def columns(
        self, outputs: Sequence[int] | None = None, n_iteration: int | None = None
    ) -> Columns:
        """Columns tested anywhere in the trees of these outputs in the first iterations, sorted."""
        return np.flatnonzero(self._used[self._selected(outputs, n_iteration)].any(axis=0))

    def columns_read(
        self,
        X: Any,
        outputs: Sequence[int] | None = None,
        n_iteration: int | None = None,
        n_jobs: int = 1,
    ) -> Booleans:
        """Columns tested for each row: bool of shape (n_rows, n_columns).

        Parameters
        ----------
        X : rows, as ``booster.predict`` takes them
        outputs : outputs whose trees are asked; None for all.
        n_iteration : the first iterations only; None for all.
        n_jobs : threads of LightGBM.
        """
        n = self._iterations(n_iteration)
        trees = self._selected(outputs, n)
        # A tree of a single leaf tests nothing.
        trees = trees[self._used[trees].any(axis=1)]
        mask = np.zeros((X.shape[0], self.n_columns), dtype=bool)
        if not len(trees):
            return mask
        for rows in row_chunks(X.shape[0], max(1, _CHUNK_CELLS // (n * self.n_outputs))):
            some = take_rows(X, rows)
            # As many iterations as are predicted with, however few have splits: fewer would change the booster for
            # predictions that run at the same time.
            with self._turns.of(n):
                leaves = self.booster.predict(
                    some, pred_leaf=True, num_iteration=n, num_threads=n_jobs
                )
            leaves = np.asarray(leaves, dtype=np.int32).reshape(len(rows), -1)
            if len(trees) < leaves.shape[1]:
                leaves = leaves[:, trees]
            leaves += self._first_leaf[trees]
            mask[rows] = unpack_columns(_union(self._sets, leaves), self.n_columns)
        return mask

    def _iterations(self, n_iteration: int | None) -> int:
        return self.n_iterations if n_iteration is None else min(n_iteration, self.n_iterations)

    def _selected(self, outputs: Sequence[int] | None, n_iteration: int | None) -> Columns:
        n = self._iterations(n_iteration)
        trees = np.arange(n * self.n_outputs).reshape(n, self.n_outputs)
        return trees.ravel() if outputs is None else trees[:, list(outputs)].ravel()


def _parsed_trees(model: str, n_columns: int) -> list[tuple[Words, Booleans]]:
    """Packed columns on the way to every leaf, and columns used at all, of every tree of a text model."""
    trees = []
    for text in model.split("\nTree=")[1:]:
        fields = dict(line.split("=", 1) for line in text.split("\n\n")[0].split("\n")[1:])
        if fields.get("is_linear", "0") != "0":
            raise ValueError("A linear tree reads more columns at its leaves than on its paths.")
        used = np.zeros(n_columns, dtype=bool)
        n_leaves = int(fields["num_leaves"])
        if n_leaves == 1:
            trees.append((_no_sets(n_columns), used))
            continue
        feature, left, right = (
            np.array(fields[name].split(), dtype=np.intp)
            for name in ("split_feature", "left_child", "right_child")
        )
        used[feature] = True
        trees.append((_sets_of_leaves(feature, left, right, n_columns), used))
    return trees


def _sets_of_leaves(feature: Columns, left: Columns, right: Columns, n_columns: int) -> Words:
    """Packed columns on the way to every leaf; a negative child c is the leaf −c − 1."""
    n_leaves, n_words = len(feature) + 1, _n_words(n_columns)
    # Leaves are stored after the inner nodes, so that one array and one index serve both.
    sets = np.zeros((len(feature) + n_leaves, n_words), dtype=np.uint64)
    children = np.stack([left, right])
    children = np.where(children < 0, len(feature) - 1 - children, children)
    parents = np.zeros(1, dtype=np.intp)
    while len(parents):
        path = _with_column(sets[parents], feature[parents])
        sets[children[0][parents]] = sets[children[1][parents]] = path
        parents = children[:, parents].ravel()
        parents = parents[parents < len(feature)]
    return sets[len(feature) :]


# -- packed sets --------------------------------------------------------------------------------------


def unpack_columns(words: Words, n_columns: int) -> Booleans:
    """Boolean form, of shape (n_sets, n_columns), of packed sets of shape (n_sets, n_words)."""
    # Bit j of a word is column j: little-endian bytes and bits, on any machine.
    as_bytes = words.astype("<u8", copy=False).view(np.uint8)
    return np.unpackbits(as_bytes, axis=1, count=n_columns, bitorder="little").view(bool)


def _with_column(sets: Words, column: Columns) -> Words:
    """Each packed set with one more column."""
    out = sets.copy()
    out[np.arange(len(out)), column >> 6] |= np.uint64(1) << (column & 63).astype(np.uint64)
    return out


def _union(sets: Words, index: NDArray[np.int32]) -> Words:
    """Union of ``sets[index[i, :]]`` per row i."""
    out = np.empty((len(index), sets.shape[1]), dtype=np.uint64)
    for word in range(sets.shape[1]):
        # One word at a time: the table then fits the fastest cache and the gather is flat.
        np.bitwise_or.reduce(sets[:, word].take(index), axis=1, out=out[:, word])
    return out


def _no_sets(n_columns: int) -> Words:
    """The sets of a tree that is a single leaf."""
    return np.zeros((1, _n_words(n_columns)), dtype=np.uint64)


def _n_words(n_columns: int) -> int:
    return (n_columns + 63) // 64
