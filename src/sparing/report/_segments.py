"""For whom a system buys what: rows grouped by a column, and what the groups cost.

A group of very few rows would speak about persons, so small groups are put together; see ``_SMALLEST``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from sparing._price_list import short
from sparing._rows import n_rows, take_rows
from sparing.system import System

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

_SMALLEST = 5
"""Rows a category needs to be named."""
_CATEGORIES = 8
"""Categories shown; rarer ones are one group."""
_DISTINCT = 6
"""Numbers of a column that are shown as they are; with more of them, quartiles."""
_CHOSEN = 3
"""Columns shown when none are named: those whose groups differ most in cost."""
_TELLING = 0.01
"""Share of the variance of the cost that a column must explain to be shown unasked."""
_SAMPLE = 20_000
"""Rows by which these columns are found."""
_MISSING = ("nan", "None", "<NA>", "NaT", "")


@dataclass(frozen=True, eq=False)
class Groups:
    """Rows by group: names of the groups and the group of each row."""

    names: list[str]
    codes: Codes
    kind: str


def segments(
    X: Any,
    y: NDArray[Any],
    wanted: Any,
    system: System,
    answering: Codes,
    right: NDArray[np.bool_],
    costs: Floats,
) -> list[dict[str, Any]]:
    """One dict per way of grouping the rows: the true class first, then the columns.

    Parameters
    ----------
    X : array or frame
    y : array of shape (n_rows,)
    wanted : None, column, list of columns, or mapping of name to one value per row
        None finds the columns whose groups differ most in cost.
    system : System
        Knows the names of the columns.
    answering, right, costs : arrays of shape (n_rows,)
        Stage that answers, whether it is right, what was paid.
    """
    columns = _wanted(X, wanted, list(system.costs.columns), costs)
    out = []
    for name, values in [("true class", y), *columns.items()]:
        # Classes are few, and a rare one is what a reader looks for: they are never put together.
        groups = _by_class(values) if values is y else grouped(values)
        out.append(
            {
                "column": str(name),
                "kind": groups.kind,
                "groups": _statistics(groups, answering, right, costs, len(system.stages)),
            }
        )
    return out


def grouped(values: Any) -> Groups:
    """Categories of a column, or its quartiles when it has many numbers.

    Examples
    --------
    >>> grouped(np.array(["b"] * 6 + ["a"] * 9 + ["x", "y"])).names
    ['a', 'b', 'others (2 values)']
    >>> grouped(np.arange(100.0)).names
    ['up to 24.75', 'above 24.75, up to 49.5', 'above 49.5, up to 74.25', 'above 74.25']
    """
    array = np.asarray(values)
    if array.dtype == object and _all_numbers(array):
        array = np.where(_missing(array.astype(str)), np.nan, array).astype(float)
    if array.dtype.kind == "b" or array.dtype.kind not in "iuf":
        return _by_text(array.astype(str))
    numbers = array.astype(float)
    known = numbers[~np.isnan(numbers)]
    distinct = np.unique(known)
    if len(distinct) <= _DISTINCT:
        text = np.array([f"{value:g}" for value in distinct] + ["nan"])
        place = np.searchsorted(distinct, numbers)
        return _by_text(text[np.where(np.isnan(numbers), len(distinct), place)])
    edges = np.unique(np.quantile(known, [0.25, 0.5, 0.75]))
    edges = edges[edges < distinct[-1]]
    codes = np.where(np.isnan(numbers), len(edges) + 1, np.searchsorted(edges, numbers))
    shown = [f"{edge:.6g}" for edge in edges]
    between = [f"above {a}, up to {b}" for a, b in pairwise(shown)]
    names = [f"up to {shown[0]}", *between, f"above {shown[-1]}", "missing"]
    return _without_empty(names, codes, "quartiles")


def _by_text(text: NDArray[np.str_]) -> Groups:
    """The most frequent categories, then the others together, then rows without a value."""
    missing = _missing(text)
    found, inverse, counts = np.unique(text[~missing], return_inverse=True, return_counts=True)
    order = np.lexsort((found, -counts))
    named = [i for i in order[:_CATEGORIES] if counts[i] >= _SMALLEST]
    place = np.full(len(found), len(named))
    place[named] = np.arange(len(named))
    codes = np.full(len(text), len(named) + 1)
    codes[~missing] = place[inverse]
    rest = len(found) - len(named)
    others = f"others ({rest} value{'s' if rest > 1 else ''})"
    return _without_empty([*found[named].tolist(), others, "missing"], codes, "categories")


def _by_class(y: NDArray[Any]) -> Groups:
    found, codes = np.unique(y, return_inverse=True)
    return Groups([str(label) for label in found.tolist()], codes, "classes")


def _without_empty(names: list[str], codes: Codes, kind: str) -> Groups:
    used, again = np.unique(codes, return_inverse=True)
    return Groups([names[i] for i in used.tolist()], again, kind)


def _missing(text: NDArray[np.str_]) -> NDArray[np.bool_]:
    return np.isin(text, _MISSING)


def _all_numbers(array: NDArray[np.object_]) -> bool:
    """Whether objects are numbers or missing, as columns with gaps are in some frames."""
    is_number = np.frompyfunc(lambda value: isinstance(value, Real), 1, 1)(array).astype(bool)
    return bool((is_number | _missing(array.astype(str))).all() and is_number.any())


def _statistics(
    groups: Groups, answering: Codes, right: Any, costs: Floats, n_stages: int
) -> list[dict[str, Any]]:
    n_groups, codes = len(groups.names), groups.codes
    counts = np.bincount(codes, minlength=n_groups)
    stage = np.bincount(codes * n_stages + answering, minlength=n_groups * n_stages)
    rates = stage.reshape(n_groups, n_stages) / counts[:, None]
    cost = np.bincount(codes, weights=costs, minlength=n_groups) / counts
    hits = np.bincount(codes, weights=right, minlength=n_groups) / counts
    return [
        {
            "name": name,
            "n": int(counts[i]),
            "stage_rates": rates[i].tolist(),
            "mean_cost": float(cost[i]),
            "right": float(hits[i]),
        }
        for i, name in enumerate(groups.names)
    ]


# -- which columns ------------------------------------------------------------------------------------


def _wanted(X: Any, wanted: Any, names: list[Hashable], costs: Floats) -> Mapping[Hashable, Any]:
    if isinstance(wanted, Mapping):
        for name, values in wanted.items():
            if len(values) != n_rows(X):
                raise ValueError(
                    f"segments[{name!r}] has {len(values)} values for {n_rows(X)} rows: give one per row."
                )
        return wanted
    if wanted is None:
        chosen: Iterable[Hashable] = _telling(X, names, costs)
    else:
        chosen = [wanted] if isinstance(wanted, str | int) else list(wanted)
    unknown = [name for name in chosen if name not in names]
    if unknown:
        raise ValueError(
            f"segments names columns that X has not: {short(unknown)}; it has {short(names)}. Values that are no "
            "column of X are given as a mapping: segments={'region': values}."
        )
    return {name: column_values(X, names.index(name)) for name in chosen}


def column_values(X: Any, position: int) -> NDArray[Any]:
    """One column as an array."""
    return np.asarray(_safe_indexing(X, position, axis=1))


def _telling(X: Any, names: list[Hashable], costs: Floats) -> list[Hashable]:
    """The columns whose groups explain most of the variance of the cost, by some of the rows."""
    if not costs.std() > 0:
        return []
    n = len(costs)
    rows = np.unique(np.linspace(0, n - 1, min(n, _SAMPLE)).astype(np.intp))
    sample, cost = take_rows(X, rows), costs[rows]
    explained = np.zeros(len(names))
    for position in range(len(names)):
        codes = grouped(column_values(sample, position)).codes
        counts = np.bincount(codes)
        means = np.bincount(codes, weights=cost) / counts
        explained[position] = np.average((means - cost.mean()) ** 2, weights=counts)
    order = np.argsort(-explained, kind="stable")[:_CHOSEN]
    return [names[i] for i in order if explained[i] > _TELLING * cost.var()]
