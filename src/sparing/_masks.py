"""Masks of columns and of items: by name, as booleans, for one row or for many; each error naming the culprit.

Called by ``costs``.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparing._price_list import short, unknown_names

Booleans = NDArray[np.bool_]


def column_mask(columns: Any, known: Sequence[Hashable]) -> Booleans:
    """Mask of a set of columns given by name, or a mask or matrix of masks, checked.

    Parameters
    ----------
    columns : iterable of names, bool array of shape (n_columns,) or (n_rows, n_columns)
    known : all columns, in their order.

    Examples
    --------
    >>> column_mask(["b"], ("a", "b"))
    array([False,  True])
    """
    if isinstance(columns, str):
        raise TypeError(f"Give a list of columns: [{columns!r}].")
    columns = columns if hasattr(columns, "__array__") else list(columns)
    if isinstance(columns, list) and all(map(_is_name, columns)):
        return _mask_of_names("Column", columns, known)
    array = np.asarray(columns)
    if array.ndim == 1 and array.dtype.kind in "OUT":  # an array or index of names
        return _mask_of_names("Column", array.tolist(), known)
    if array.dtype != bool:
        raise TypeError(f"A mask of columns is boolean, this one has dtype {array.dtype}.")
    if array.ndim not in (1, 2) or array.shape[-1] != len(known):
        raise ValueError(
            f"A mask has one entry per column, {len(known)} here; this one has shape {array.shape}."
        )
    return array


def item_mask(owned: Any, items: Sequence[Hashable], n_rows: int | None) -> Booleans:
    """Mask of the items that rows own: by name, or booleans in the order of the items.

    Parameters
    ----------
    owned : names of items that all rows own; mapping or data frame of item to bool, or to one bool per row, items not
        mentioned are not owned; or bool array of shape (n_items,) or (n_rows, n_items).
    items : all items, in their order.
    n_rows : rows there are, None if any number will do.

    Examples
    --------
    >>> item_mask({"draw": [True, False]}, ("TSH", "draw"), n_rows=2)
    array([[False,  True],
           [False, False]])
    """
    if isinstance(owned, str):
        raise TypeError(f"Give a list of items: owned=[{owned!r}].")
    if isinstance(owned, Mapping) or hasattr(owned, "columns"):
        owned = _by_item(owned, items)
    elif isinstance(owned, set | frozenset):
        owned = list(owned)
    array = np.asarray(owned)
    if array.ndim == 1 and array.dtype.kind in "OUT":
        return _mask_of_names("owned: item", array.tolist(), items)
    rows = "n_rows" if n_rows is None else n_rows
    wanted = (
        f"one column per item in the order of `items` ({short(items)}); or give names of items, a mapping or a data "
        "frame by item"
    )
    if array.dtype != bool:
        raise TypeError(f"owned is boolean, this one has dtype {array.dtype}: give {wanted}.")
    rows_fit = array.ndim == 1 or n_rows is None or len(array) == n_rows
    if array.ndim not in (1, 2) or array.shape[-1] != len(items) or not rows_fit:
        raise ValueError(
            f"owned has shape ({rows}, {len(items)}), {wanted}. This one has shape {array.shape}."
        )
    return array


def _by_item(owned: Any, items: Sequence[Hashable]) -> Booleans:
    """Booleans of a mapping or frame, in the order of the items."""
    names = list(owned.columns if hasattr(owned, "columns") else owned)
    unknown = [name for name in names if name not in items]
    if unknown:
        raise ValueError(unknown_names("owned: item", unknown, items))
    if len(set(names)) < len(names):
        twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        raise ValueError(f"owned names item {short(twice)} more than once.")
    cells = {name: np.asarray(owned[name]) for name in names}
    for name, values in cells.items():
        if values.dtype != bool or values.ndim > 1:
            raise TypeError(
                f"owned[{name!r}] is True or False, or one of them per row; this one has dtype {values.dtype} and "
                f"shape {values.shape}."
            )
    lengths = {len(values) for values in cells.values() if values.ndim}
    if len(lengths) > 1:
        raise ValueError(f"owned has items for different numbers of rows: {sorted(lengths)}.")
    out = np.zeros((*lengths, len(items)), dtype=bool)
    for name, values in cells.items():
        out[..., list(items).index(name)] = values
    return out


def _mask_of_names(what: str, names: list[Any], known: Sequence[Hashable]) -> Booleans:
    chosen, every = set(names), set(known)
    unknown = [name for name in names if name not in every]
    if unknown:
        raise ValueError(unknown_names(what, unknown, known))
    return np.array([name in chosen for name in known])


def _is_name(column: Any) -> bool:
    return isinstance(column, Hashable) and not isinstance(column, bool | np.bool_)
