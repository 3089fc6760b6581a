"""LightGBM text models, read before LightGBM reads them.

LightGBM parses them in C++ and follows child and column numbers without looking whether they exist. Here the trees are
read first: every list has its length, every split sends a row to a later node or to a leaf of its own, every column
exists. What remains to be trusted is LightGBM's parser on text of this form.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from sparing.runtime._archive import BundleError

_FLOAT, _INT = r"-?\d+(\.\d+)?(e[-+]?\d+)?", r"-?\d{1,10}"


def _list_of(number: str) -> re.Pattern[str]:
    return re.compile(rf"({number}( {number})*)?")


# Every line of a model is one of these and written so: LightGBM aborts the process over others.
_FLOATS, _INTS, _COUNT = _list_of(_FLOAT), _list_of(_INT), re.compile(r"\d{1,9}")
_HEAD = {
    "num_class": _COUNT,
    "num_tree_per_iteration": _COUNT,
    "label_index": _COUNT,
    "max_feature_idx": _COUNT,
    "objective": re.compile(r"[\w .:+-]*"),
    "feature_names": re.compile(r"\S+( \S+)*"),
    "feature_infos": re.compile(r"(none|\[?[-+.:\de]+\]?)( (none|\[?[-+.:\de]+\]?))*"),
    "monotone_constraints": _INTS,
    "tree_sizes": _INTS,
}
_ONE = {
    "num_leaves": _COUNT,
    "num_cat": _COUNT,
    "is_linear": _COUNT,
    "shrinkage": re.compile(_FLOAT),
}
_PER_LEAF = {"leaf_value": _FLOATS, "leaf_weight": _FLOATS, "leaf_count": _INTS}
_PER_SPLIT = {
    "split_feature": _INTS,
    "split_gain": _FLOATS,
    # A split between missing and present values alone has an infinite threshold.
    "threshold": _list_of(rf"({_FLOAT}|-?inf)"),
    "decision_type": _INTS,
    "left_child": _INTS,
    "right_child": _INTS,
    "internal_value": _FLOATS,
    "internal_weight": _FLOATS,
    "internal_count": _INTS,
}
_TREE = {**_ONE, **_PER_LEAF, **_PER_SPLIT, "cat_boundaries": _INTS, "cat_threshold": _INTS}
_MOST_LEAVES = 1 << 20
_SETTING = re.compile(
    r"feature_importances:|\S+=\d+|parameters:|\[\w+: [^\[\]]*\]|end of parameters|pandas_categorical:.*"
)


def check_booster(text: str, what: str, *, settings: bool = False) -> None:
    r"""Raise unless a text is a whole and consistent LightGBM model.

    Parameters
    ----------
    text : the model.
    what : name of the member it comes from, for errors.
    settings : whether the settings of its training may follow the trees. The library's own boosters have none, and
        LightGBM's reader of them falls over what is not written as it would write it.

    Examples
    --------
    >>> check_booster("tree\nversion=v9\n", "trees.txt")
    Traceback (most recent call last):
    sparing.runtime._archive.BundleError: trees.txt is not a sound LightGBM model: it does not begin with tree and ...
    """
    try:
        _check(text, settings)
    except (ValueError, KeyError, IndexError, OverflowError) as error:
        raise BundleError(f"{what} is not a sound LightGBM model: {error}") from error


def _check(text: str, settings: bool) -> None:
    if "\0" in text or "\r" in text:
        raise ValueError("it holds characters that do not belong there.")
    head, *blocks = text.split("\nTree=")
    lines = head.split("\n")
    if lines[:2] not in (["tree", "version=v4"], ["tree", "version=v3"]):
        raise ValueError("it does not begin with tree and version=v4.")
    # The one line that is a word alone, said by forests.
    fields = _fields([line for line in lines[2:] if line not in ("", "average_output")], _HEAD)
    if "objective" in fields and not settings:
        raise ValueError("it says what it was trained for, which is not needed here.")
    n_class, n_outputs, last = (
        int(fields[name]) for name in ("num_class", "num_tree_per_iteration", "max_feature_idx")
    )
    n_columns = last + 1
    if n_class < 1 or n_outputs < 1 or n_columns < 1:
        raise ValueError("it says that it has no columns or no outputs.")
    for name in ("feature_names", "feature_infos"):
        if len(fields[name].split(" ")) != n_columns:
            raise ValueError(f"{name} is not about {n_columns} columns.")
    if not blocks or len(blocks) % n_outputs:
        raise ValueError(f"{len(blocks)} trees cannot be dealt out to {n_outputs} outputs.")
    if text.count("\nend of trees\n") != 1 or "\nend of trees\n" not in blocks[-1]:
        raise ValueError("its end is missing.")
    for line in blocks[-1].split("\nend of trees\n")[1].split("\n"):
        if line and not (settings and _SETTING.fullmatch(line)):
            raise ValueError(f"after its trees it says {line[:80]!r}.")
    if "tree_sizes" in fields:
        _check_sizes(text, fields["tree_sizes"], len(blocks))
    for number, block in enumerate(blocks):
        first, *rest = block.split("\n\n")[0].split("\n")
        if first != str(number):
            raise ValueError(f"tree {number} calls itself {first!r}.")
        if "is_linear=1" in rest:
            raise ValueError(
                "it has linear leaves, which a bundle does not store: leave the model outside."
            )
        try:
            _check_tree(_fields(rest, _TREE), n_columns)
        except (ValueError, KeyError) as error:
            raise ValueError(f"tree {number}: {error}") from error


def _check_sizes(text: str, sizes: str, n_trees: int) -> None:
    """LightGBM jumps from tree to tree by these sizes: they must lead to the trees that were checked."""
    raw = text.encode()
    place = raw.index(b"\nTree=") + 1
    given = _numbers(sizes, np.int64)
    if len(given) != n_trees or (given <= 0).any():
        raise ValueError("tree_sizes does not give one size per tree.")
    for number, size in enumerate(given.tolist()):
        if not raw.startswith(f"Tree={number}\n".encode(), place):
            raise ValueError(f"tree_sizes does not lead to tree {number}.")
        place += size
    if not raw.startswith(b"end of trees", place):
        raise ValueError("tree_sizes does not lead to the end of the trees.")


def _check_tree(fields: dict[str, str], n_columns: int) -> None:
    n_leaves, n_cat = int(fields["num_leaves"]), int(fields["num_cat"])
    inner = n_leaves - 1
    if not 1 <= n_leaves <= _MOST_LEAVES:
        raise ValueError(f"num_leaves is {n_leaves}.")
    if fields.get("is_linear", "0") != "0":
        raise ValueError("it has linear leaves, which a bundle does not store.")
    for names, length in ((_PER_LEAF, n_leaves), (_PER_SPLIT, inner)):
        for name in names:
            found = len(fields[name].split(" ")) if fields.get(name) else 0
            # Of a tree that is a single leaf LightGBM writes its value alone.
            alone = n_leaves == 1 and found == 0 and name != "leaf_value"
            if name in fields and found != length and not alone:
                raise ValueError(f"{name} has {found} entries, not {length}.")
    if not np.isfinite(_numbers(fields["leaf_value"], np.float64)).all():
        raise ValueError("leaf_value is not finite.")
    if n_leaves == 1:
        return
    feature, left, right, decision = (
        _numbers(fields[name], np.int64)
        for name in ("split_feature", "left_child", "right_child", "decision_type")
    )
    threshold = _numbers(fields["threshold"], np.float64)
    if feature.min() < 0 or feature.max() >= n_columns:
        raise ValueError(f"it splits by a column outside the {n_columns} of the model.")
    if decision.min() < 0 or decision.max() > 15 or np.isnan(threshold).any():
        raise ValueError("it splits in an unknown way.")
    children = np.concatenate([left, right])
    # Every leaf and every split but the first has one parent, and splits come after theirs: a tree, without circles.
    if not np.array_equal(np.sort(children), np.r_[np.arange(-n_leaves, 0), np.arange(1, inner)]):
        raise ValueError("its splits do not form a tree.")
    own = np.tile(np.arange(inner), 2)
    if ((children >= 0) & (children <= own)).any():
        raise ValueError("its splits go round in a circle.")
    _check_categories(fields, n_cat, decision, threshold)


def _check_categories(fields: dict[str, str], n_cat: int, decision: Any, threshold: Any) -> None:
    """Splits by category point at sets of categories: they must be there."""
    by_category = (decision & 1) == 1
    if int(by_category.sum()) != n_cat:
        raise ValueError(f"num_cat is {n_cat}, {int(by_category.sum())} splits are by category.")
    if not n_cat:
        return
    bounds = _numbers(fields["cat_boundaries"], np.int64)
    sets = _numbers(fields["cat_threshold"], np.int64)
    chosen = threshold[by_category]
    if len(bounds) != n_cat + 1 or bounds[0] != 0 or (np.diff(bounds) <= 0).any():
        raise ValueError("cat_boundaries does not lead through cat_threshold.")
    if bounds[-1] != len(sets) or sets.min() < 0 or sets.max() >= 1 << 32:
        raise ValueError("cat_threshold does not fit cat_boundaries.")
    if (chosen < 0).any() or (chosen >= n_cat).any() or (chosen != np.floor(chosen)).any():
        raise ValueError("a split by category points at no set of categories.")


def _fields(lines: list[str], known: Mapping[str, re.Pattern[str]]) -> dict[str, str]:
    """Lines of the form name=value, each name known, there once, and its value well written."""
    fields: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition("=")
        if name in fields:
            raise ValueError(f"{name} is there twice.")
        if name not in known or not known[name].fullmatch(value):
            raise ValueError(f"it says {line[:80]!r}.")
        fields[name] = value
    return fields


def _numbers(value: str, dtype: Any) -> Any:
    return np.array(value.split(" "), dtype=dtype)
