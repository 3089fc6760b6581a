"""Rows at full width from the cells that are there: arrays where a stage takes them, frames where it knows names."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from sparing.runtime._values import Value, is_missing
from sparing.system import System

NAN = float("nan")
"""What stands in a cell that was not bought."""

MakeRow = Callable[[list[Value], bool], Any]


def row_makers(system: System, like: Any) -> list[MakeRow]:
    """For each stage, a function that makes its row from the cells and whether there is text among them.

    Without ``like`` a stage whose model was fitted on column names gets a pandas frame, all others an array: of floats,
    or of objects when there is text. With ``like`` every stage gets a frame with these types.
    """
    columns = system.costs.columns
    if like is not None:
        if isinstance(like, np.ndarray):
            return [array_row] * len(system.stages)
        frame = _like(like, columns)
        return [frame] * len(system.stages)
    named = columns != tuple(range(len(columns)))
    return [
        _plain_frame(columns) if named and _knows_names(stage.predictor) else array_row
        for stage in system.stages
    ]


def _knows_names(predictor: Any) -> bool:
    names = getattr(getattr(predictor, "model", None), "feature_names_in_", None)
    # LightGBM makes names up when it gets none.
    return names is not None and [*names] != [f"Column_{i}" for i in range(len(names))]


def array_row(cells: list[Value], text: bool) -> Any:
    """An array of one row."""
    if not text:
        return np.array([cells], dtype=float)
    row = np.empty((1, len(cells)), dtype=object)
    row[0, :] = cells
    return row


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        raise ImportError(
            "A model of this system was fitted on a data frame, and its rows need pandas: pip install 'sparing[serve]'."
        ) from error
    return pandas


def _plain_frame(columns: Sequence[Hashable]) -> MakeRow:
    pandas = _pandas()
    index = pandas.Index(columns)

    def make(cells: list[Value], text: bool) -> Any:
        if not text and all(type(cell) is float for cell in cells):
            return pandas.DataFrame(np.array([cells]), columns=index)
        return pandas.DataFrame(
            {column: [cell] for column, cell in zip(columns, cells, strict=True)}
        )

    return make


def _like(like: Any, columns: Sequence[Hashable]) -> MakeRow:
    names = [str(name) for name in getattr(like, "columns", ())]
    if names != [str(column) for column in columns]:
        raise ValueError(
            f"`like` has the columns {names}, the system was fitted on {[str(c) for c in columns]}."
        )
    if hasattr(like, "schema") and hasattr(like, "to_dicts"):  # polars
        schema = like.schema
        module = type(like)

        def make_polars(cells: list[Value], text: bool) -> Any:  # noqa: ARG001
            values = {
                name: [None if is_missing(cell) and not dtype.is_float() else cell]
                for (name, dtype), cell in zip(schema.items(), cells, strict=True)
            }
            return module(values, schema=schema, strict=False)

        return make_polars
    pandas = _pandas()
    dtypes = dict(zip(like.columns, like.dtypes, strict=True))

    def make_pandas(cells: list[Value], text: bool) -> Any:  # noqa: ARG001
        # Whole numbers and booleans have no missing cell: such a column is one of floats while it is not bought.
        return pandas.DataFrame(
            {
                name: pandas.Series([cell])
                if getattr(dtype, "kind", "O") in "iub" and is_missing(cell)
                else pandas.Series([cell], dtype=dtype)
                for (name, dtype), cell in zip(dtypes.items(), cells, strict=True)
            }
        )

    return make_pandas
