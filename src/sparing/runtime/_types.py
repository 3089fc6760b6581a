"""Types of the columns of a table as plain data, and an empty table with these types.

Most models take numbers and text however they come. Some look at the types: pandas categories, for one. A served row is
then made after an empty table that a bundle brings along.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from sparing._stored import plain_label, read_label
from sparing.runtime._archive import BundleError

# Closed lists: what stands in a file is matched against them, never handed to a parser of types.
_PANDAS = re.compile(
    r"float(32|64)|u?int(8|16|32|64)|bool|boolean|U?Int(8|16|32|64)|Float(32|64)|object|str|string"
)
_POLARS = re.compile(r"Float(32|64)|U?Int(8|16|32|64)|Boolean|String|Categorical")


def plain_types(like: Any, n_columns: int) -> dict[str, Any] | None:
    """Types of a table's columns; None for an array of numbers, which needs none.

    Parameters
    ----------
    like : array, or pandas or polars frame
        Its rows are not looked at.
    n_columns : number of columns it must have.
    """
    if len(np.shape(like)) != 2 or np.shape(like)[1] != n_columns:
        raise BundleError(f"like has shape {np.shape(like)}, the system has {n_columns} columns.")
    if hasattr(like, "schema") and hasattr(like, "to_dicts"):
        columns = [_plain_polars(name, dtype) for name, dtype in like.schema.items()]
        return {"frame": "polars", "columns": columns}
    if hasattr(like, "dtypes") and hasattr(like, "columns"):
        columns = [_plain_pandas(n, t) for n, t in zip(like.columns, like.dtypes, strict=True)]
        return {"frame": "pandas", "columns": columns}
    return None


def _plain_pandas(name: Any, dtype: Any) -> dict[str, Any]:
    if dtype.name == "category":
        inner = dtype.categories
        return {
            "dtype": "category",
            "categories": [plain_label(v, f"category of column {name!r}") for v in inner.tolist()],
            "of": _known(_PANDAS, str(inner.dtype), name),
            "ordered": bool(dtype.ordered),
        }
    return {"dtype": _known(_PANDAS, str(dtype), name)}


def _plain_polars(name: str, dtype: Any) -> dict[str, Any]:
    kind = type(dtype).__name__ if not isinstance(dtype, type) else dtype.__name__
    if kind == "Enum":
        return {"dtype": "Enum", "categories": [str(v) for v in dtype.categories.to_list()]}
    return {"dtype": _known(_POLARS, kind, name)}


def _known(pattern: re.Pattern[str], dtype: str, name: Any) -> str:
    if not pattern.fullmatch(dtype):
        raise BundleError(
            f"Column {name!r} of like has type {dtype}, which a bundle does not store: use numbers, booleans, text or "
            "categories."
        )
    return dtype


def check_types(types: Any, n_columns: int) -> None:
    """Raise unless these are types as :func:`plain_types` writes them."""
    if types is None:
        return
    frames = {"pandas": _PANDAS, "polars": _POLARS}
    if (
        not isinstance(types, dict)
        or set(types) != {"frame", "columns"}
        or types["frame"] not in ("pandas", "polars")
        or not isinstance(types["columns"], list)
        or len(types["columns"]) != n_columns
    ):
        raise BundleError(f"The types are a frame and one type for each of {n_columns} columns.")
    for number, column in enumerate(types["columns"]):
        if not isinstance(column, dict) or not _is_type(column, frames[types["frame"]]):
            raise BundleError(f"The type of column {number} is not known: {column!r}.")


def _is_type(column: dict[str, Any], pattern: re.Pattern[str]) -> bool:
    dtype = column.get("dtype")
    if not isinstance(dtype, str):
        return False
    extra = {"category": {"categories", "of", "ordered"}, "Enum": {"categories"}}.get(dtype)
    if extra is None:
        return set(column) == {"dtype"} and bool(pattern.fullmatch(dtype))
    if (dtype == "category") != (pattern is _PANDAS) or set(column) != {"dtype"} | extra:
        return False
    inner = column.get("of", "object")
    if not isinstance(inner, str) or not _PANDAS.fullmatch(inner):
        return False
    try:
        values = [read_label(value) for value in column["categories"]]
    except (ValueError, TypeError):
        return False
    texts = dtype == "category" or all(isinstance(value, str) for value in values)
    return (
        texts and len(set(values)) == len(values) and isinstance(column.get("ordered", True), bool)
    )


def empty_table(types: Any, columns: tuple[Any, ...]) -> Any:
    """A table without rows that has these types; None when there are none."""
    if types is None:
        return None
    pairs = list(zip(columns, types["columns"], strict=True))
    if types["frame"] == "polars":
        return _empty_polars(pairs)
    try:
        import pandas
    except ImportError as error:
        raise ImportError(
            "This system was stored with the types of a pandas frame: pip install pandas."
        ) from error
    series = {}
    for name, column in pairs:
        dtype: Any = column["dtype"]
        if dtype == "category":
            values = [read_label(value) for value in column["categories"]]
            inner = pandas.Index(values, dtype=column["of"])
            dtype = pandas.CategoricalDtype(inner, ordered=column["ordered"])
        series[name] = pandas.Series([], dtype=dtype)
    return pandas.DataFrame(series, columns=list(columns))


def _empty_polars(pairs: list[tuple[Any, dict[str, Any]]]) -> Any:
    try:
        import polars
    except ImportError as error:
        raise ImportError(
            "This system was stored with the types of a polars frame: pip install polars."
        ) from error
    schema = {
        str(name): polars.Enum(column["categories"])
        if column["dtype"] == "Enum"
        else getattr(polars, column["dtype"])
        for name, column in pairs
    }
    return polars.DataFrame(schema=schema)
