"""Forests before and after pruning: rows a forest may be pruned by, and the forest cut down to some of its splits.

What is left is again a scikit-learn forest. A node that is no split any more answers with its own class distribution,
the one of the training counts. Votes, paths and persistence are then scikit-learn's; rows stop where the pruned tree
stops and read nothing below.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble._forest import ForestClassifier
from sklearn.utils import check_random_state

from sparing._full_columns import column_use
from sparing._full_predictor import FullPredictor

Booleans = NDArray[np.bool_]
Ints = NDArray[np.intp]

_STALE = ("oob_score_", "oob_decision_function_", "_sample_weight")
"""What a forest knows of its training and does not hold for a pruned one."""


# -- rows to prune by -------------------------------------------------------------------------------


def out_of_bag(forest: ForestClassifier, n: int) -> list[Ints]:
    """Rows out of each tree's bag."""
    if not forest.bootstrap:
        raise ValueError(
            f"pruning='oob' needs a forest with bootstrap=True, this {type(forest).__name__} has none and so no rows "
            "out of a tree's bag: hold rows out instead, pruning=0.3."
        )
    everyone = np.arange(n)
    return [np.setdiff1d(everyone, inside) for inside in forest.estimators_samples_]


def has_seen(forest: ForestClassifier, X: Any, y: Ints) -> bool:
    """Whether these look like the rows a forest was trained on.

    Either the forest makes no mistakes on them, or its trees make less than half as many on the rows that would be in
    their bags as on the others.
    """
    leaves = forest.apply(X)
    proba = np.zeros((len(y), forest.n_classes_))
    wrong = np.empty(leaves.shape, dtype=bool)
    for t, tree in enumerate(forest.estimators_):
        value = tree.tree_.value[leaves[:, t], 0]
        wrong[:, t] = value.argmax(axis=1) != y
        proba += value
    if np.mean(proba.argmax(axis=1) == y) >= 0.999:
        return True
    if not forest.bootstrap or getattr(forest, "_n_samples", 0) != len(y):
        return False
    outside = np.zeros(wrong.shape, dtype=bool)
    for t, rows in enumerate(out_of_bag(forest, len(y))):
        outside[rows, t] = True
    return bool(outside.any() and wrong[~outside].mean() < 0.5 * wrong[outside].mean())


def held_out(y: NDArray[Any], share: float, seed: int | None) -> NDArray[np.bool_]:
    """Random rows, the same share of every class, never all of one."""
    codes = np.unique(y, return_inverse=True)[1].ravel()
    order = np.lexsort([check_random_state(seed).uniform(size=len(y)), codes])
    count = np.bincount(codes)
    rank = np.arange(len(y)) - np.repeat(np.cumsum(count) - count, count)
    held = np.empty(len(y), dtype=bool)
    held[order] = rank < np.repeat(np.floor(share * count), count)
    if not held.any():
        raise ValueError(
            f"pruning={share:g} of {len(y)} rows holds out none of any class: use a larger share, or pruning='oob'."
        )
    return held


# -- the forest that is left ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PrunedForest(FullPredictor):
    """A pruned forest as a stage's predictor: the mean of its trees' class distributions."""

    _kind: ClassVar[str] = "pruned forest"

    @classmethod
    def of(cls, forest: Any, kept: Sequence[Booleans], X: Any) -> PrunedForest:
        """Keep some nodes of each tree as splits; X has the columns of the rows to come."""
        pruned = pruned_forest(forest, kept)
        return cls(pruned, "predict_proba", pruned.classes_, column_use(pruned, X))

    @property
    def sizes(self) -> NDArray[np.intp]:
        """Number of splits of each tree."""
        return np.array([tree.tree_.node_count // 2 for tree in self.model.estimators_])


def pruned_forest(forest: Any, kept: Sequence[Booleans]) -> Any:
    """A copy of a fitted forest in which some nodes stay splits and all others are leaves or gone.

    Parameters
    ----------
    forest : fitted random forest or extra trees
    kept : bool per node of each tree: whether it stays a split. What hangs below a node that does not is gone.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> forest = RandomForestClassifier(1, bootstrap=False).fit([[0], [1], [2], [3]], [0, 1, 1, 1])
    >>> forest.predict_proba([[0]]), pruned_forest(forest, [np.zeros(3, dtype=bool)]).predict_proba([[0]])
    (array([[1., 0.]]), array([[0.25, 0.75]]))
    """
    out = copy(forest)
    for name in _STALE:
        out.__dict__.pop(name, None)
    out.estimators_ = []
    for member, splits in zip(forest.estimators_, kept, strict=True):
        member = copy(member)
        member.tree_ = _pruned_tree(member.tree_, splits)
        out.estimators_.append(member)
    return out


def _pruned_tree(tree: Any, kept: Booleans) -> Any:
    state = tree.__getstate__()
    nodes, first = state["nodes"], np.zeros(1, dtype=np.intp)
    splits = kept & (nodes["left_child"] >= 0)
    levels = [first]
    while len(inner := levels[-1][splits[levels[-1]]]):
        levels.append(np.concatenate([nodes["left_child"][inner], nodes["right_child"][inner]]))
    # In the old order: scikit-learn wants parents before children.
    stay = np.sort(np.concatenate(levels))
    number = np.full(len(nodes), -1)
    number[stay] = np.arange(len(stay))
    nodes, leaf = nodes[stay], ~splits[stay]
    for side in ("left_child", "right_child"):
        nodes[side] = np.where(leaf, -1, number[nodes[side]])
    # As scikit-learn marks its own leaves.
    nodes["feature"][leaf] = nodes["threshold"][leaf] = -2
    kind, arguments, _ = tree.__reduce__()
    out = kind(*arguments)
    out.__setstate__(
        state
        | {
            "max_depth": len(levels) - 1,
            "node_count": len(stay),
            "nodes": nodes,
            "values": np.ascontiguousarray(state["values"][stay]),
        }
    )
    return out
