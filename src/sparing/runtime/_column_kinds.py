"""Which columns hold numbers and which hold text, as far as anybody can tell before a model is asked.

Told by the types of a table (``like``), and by the parts of the stages: a linear design and a column encoder remember
what they were fitted on. About the other columns nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from sparing._stored import Storable, Stored, read_levels
from sparing.runtime._values import ColumnKinds
from sparing.system import System


def column_kinds(system: System, like: Any) -> ColumnKinds:
    """Kinds of a system's columns.

    Parameters
    ----------
    system : System
    like : array or frame, or None
        A table with the columns' types; what it says goes before what the parts say.
    """
    columns = system.costs.columns
    if like is None:
        like = _stored_types(system)
    if like is None and columns == tuple(range(len(columns))):
        return ColumnKinds(frozenset(columns))
    kinds = _by_parts(system)
    kinds.update(_by_table(like))
    numbers = frozenset(columns[j] for j, kind in kinds.items() if kind is float)
    return ColumnKinds(numbers, frozenset(columns[j] for j, kind in kinds.items() if kind is str))


def _stored_types(system: System) -> Any:
    """The empty table that a bundle brings along, if it does."""
    try:
        return getattr(system, "like", None)
    except ImportError:  # nobody asked for rows of that package: it may be missing here
        return None


def _by_table(like: Any) -> dict[int, type | None]:
    """Kind by position: float, str, or None where the type of the column allows both."""
    if like is None:
        return {}
    if isinstance(like, np.ndarray):
        return dict.fromkeys(range(like.shape[1]), float) if like.dtype.kind in "biuf" else {}
    if hasattr(like, "schema") and hasattr(like, "to_dicts"):  # polars
        polars = {"String": str, "Categorical": str, "Enum": str, "Boolean": float}
        return {
            j: float if dtype.is_numeric() else polars.get(str(dtype.base_type()))
            for j, dtype in enumerate(like.schema.values())
        }
    return {j: _by_dtype(dtype) for j, dtype in enumerate(like.dtypes)}


def _by_dtype(dtype: Any) -> type | None:
    if dtype.name == "category":
        return _by_levels(dtype.categories)
    if getattr(dtype, "kind", "O") in "iufb":
        return float
    return str if dtype.name in ("str", "string") else None


def _by_levels(levels: Iterable[Any]) -> type | None:
    """Text, unless some level is a number or looks like one: a source may sell codes either way."""
    known = list(levels)
    return str if known and all(isinstance(v, str) and not _is_number(v) for v in known) else None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _by_parts(system: System) -> dict[int, type | None]:
    n_columns = len(system.costs.columns)
    kinds: dict[int, type | None] = {}
    for stored in _parts(system):
        if stored.settings.get("n_columns") != n_columns:
            continue  # it reads something made of the columns
        if stored.kind == "design":
            told: dict[int, type | None] = dict.fromkeys(stored.arrays["numbers"].tolist(), float)
            told |= {level[0]: _by_levels(level[1]) for level in stored.settings["levels"]}
        elif stored.kind == "column encoder":
            levels = read_levels(stored.settings["levels"], n_columns)
            told = {j: _by_levels(levels[j]) if j in levels else float for j in range(n_columns)}
        else:
            continue
        for j, kind in told.items():
            kinds[j] = kind if kinds.get(j, kind) is kind else None
    return kinds


def _parts(system: System) -> Iterable[Stored]:
    """What the predictors and gates are made of, and what these are made of, each once."""
    waiting: list[Any] = [part for stage in system.stages for part in (stage.predictor, stage.gate)]
    seen: set[int] = set()
    while waiting:
        part = waiting.pop()
        if id(part) in seen or not isinstance(part, Storable):
            continue
        seen.add(id(part))
        try:
            stored = part.stored()
        except (TypeError, ValueError):  # it cannot be written down, and so tells nothing
            continue
        yield stored
        waiting.extend(stored.parts.values())
