"""How a part of a system says what it is made of, so that a bundle can store it as data and build it again.

A serving part (predictor, gate, or something inside one) that can be stored has two methods::

    def stored(self) -> Stored: ...                          # what I am made of
    @classmethod
    def restored(cls, stored: Stored) -> Self: ...           # the inverse

``Stored`` holds data only: settings (plain JSON), arrays of numbers, LightGBM text models, fitted scikit-learn models,
and other parts by name. The part never touches a file: what becomes of the data (npz, text, skops, checks, hashes) is
decided in ``sparing.runtime``. In ``restored`` the same fields come back, parts already built. ``restored`` checks
what it is given and raises ValueError for nonsense: the file may have been made by someone else.

To add a kind
-------------
1. Give the class ``stored`` and ``restored``. A fitted scikit-learn estimator goes into ``models``; a booster's text
   into ``boosters``; arrays of numbers into ``arrays``; anything else that can be stored itself into ``parts``, where
   sharing is kept: a part that a hundred systems use is stored once.
2. Add one line ``"kind": "module:Class"`` to ``KINDS`` in ``sparing/runtime/_parts.py``. The list is closed, so a file
   can never name code. Kinds outside the library are passed to ``load(path, kinds={"kind": Class})`` instead.
3. Add a system with such a part to ``tests/runtime/test_bundle.py``, and a stored file to ``tests/runtime/bundles``.

Once released a kind keeps its meaning; what it stores may grow only by settings that have a default.

A predictor that wraps an estimator on some of the columns would be::

    def stored(self):
        return Stored("estimator", arrays={"columns": self.columns}, models={"model": self.model})

    @classmethod
    def restored(cls, stored):
        return cls(stored.models["model"], stored.array("columns", kind="i"))
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

_NUMBERS = {"i": "iu", "f": "f", "b": "b"}


@dataclass(frozen=True)
class Stored:
    """What a part is made of.

    Attributes
    ----------
    kind : str
        Name of the kind of part, one per class.
    settings : mapping
        Plain JSON: text, finite numbers, booleans, None, lists and mappings by text of these.
    arrays : mapping of name to array of numbers or booleans
    boosters : mapping of name to LightGBM text model
    models : mapping of name to fitted scikit-learn model
        None stands for a model that stays outside the file and was not given.
    parts : mapping of name to part

    Examples
    --------
    >>> stored = Stored("offset", settings={"by": 2.0}, arrays={"columns": np.array([0, 3])})
    >>> stored.number("by"), stored.array("columns", kind="i")
    (2.0, array([0, 3]))
    >>> stored.number("to")
    Traceback (most recent call last):
    ValueError: A part of kind 'offset' needs the number 'to', it has None.
    """

    kind: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    boosters: Mapping[str, str] = field(default_factory=dict)
    models: Mapping[str, Any] = field(default_factory=dict)
    parts: Mapping[str, Any] = field(default_factory=dict)

    def number(self, name: str) -> float:
        """A finite number of the settings."""
        value = self.settings.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
            raise self._needs("number", name, value)
        return float(value)

    def count(self, name: str) -> int:
        """A whole number of the settings, 0 or more."""
        value = self.settings.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self._needs("count", name, value)
        return value

    def text(self, name: str) -> str:
        """A text of the settings."""
        value = self.settings.get(name)
        if not isinstance(value, str):
            raise self._needs("text", name, value)
        return value

    def array(self, name: str, *, kind: str, ndim: int = 1) -> NDArray[Any]:
        """An array: ``kind`` is "i" (whole numbers, as positions), "f" (finite numbers) or "b" (booleans)."""
        value = self.arrays.get(name)
        if value is None or value.dtype.kind not in _NUMBERS[kind] or value.ndim != ndim:
            found = None if value is None else f"{value.dtype} of shape {value.shape}"
            raise self._needs(f"array of kind {kind!r} with {ndim} dimensions", name, found)
        if kind == "f" and not np.isfinite(value).all():
            raise self._needs("array of finite numbers", name, "NaN or infinity")
        return value.astype(np.intp) if kind == "i" else value

    def positions(self, name: str, n: int) -> NDArray[np.intp]:
        """An array of positions below ``n``."""
        value = self.array(name, kind="i")
        if len(value) and (value.min() < 0 or value.max() >= n):
            raise self._needs(f"array of positions below {n}", name, value.tolist())
        return value

    def part(self, name: str, kind: type) -> Any:
        """A part of the class it has to be."""
        value = self.parts.get(name)
        if not isinstance(value, kind):
            raise self._needs(kind.__name__, name, type(value).__name__)
        return value

    def _needs(self, what: str, name: str, found: Any) -> ValueError:
        return ValueError(
            f"A part of kind {self.kind!r} needs the {what} {name!r}, it has {found!r}."
        )


@runtime_checkable
class Storable(Protocol):
    """A part that can be stored."""

    def stored(self) -> Stored:
        """What it is made of."""

    @classmethod
    def restored(cls, stored: Stored) -> Self:
        """The part again."""


# -- labels and levels --------------------------------------------------------------------------------


def plain_label(value: Any, what: str) -> Any:
    """A class label, level or column name as JSON: text, boolean, whole number or number.

    Examples
    --------
    >>> plain_label(np.int64(-1), "class"), plain_label(np.inf, "level"), plain_label("high", "level")
    (-1, {'float': 'inf'}, 'high')
    """
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and np.isinf(value):
        return {"float": repr(value)}
    if not isinstance(value, str | bool | int | float) or value != value:
        raise ValueError(
            f"A bundle stores a {what} that is text, a boolean or a number; {value!r} is of type "
            f"{type(value).__name__}: turn it into text before fitting."
        )
    # Subclasses (numpy's str_, enumerations) would come back as something else than they were.
    return next(kind(value) for kind in (bool, str, int, float) if isinstance(value, kind))


def read_label(value: Any) -> Any:
    """Inverse of :func:`plain_label`."""
    if isinstance(value, dict):
        if set(value) != {"float"} or value["float"] not in ("inf", "-inf"):
            raise ValueError(f"A label is text, a boolean or a number, not {value!r}.")
        return float(value["float"])
    if not isinstance(value, str | bool | int | float):
        raise ValueError(f"A label is text, a boolean or a number, not {value!r}.")
    return value


def plain_labels(labels: NDArray[Any]) -> dict[str, Any]:
    """An array of labels as JSON, its type included.

    Examples
    --------
    >>> plain_labels(np.array([-1, 1]))
    {'dtype': '<i8', 'labels': [-1, 1]}
    >>> read_labels(plain_labels(np.array([False, True])))
    array([False,  True])
    """
    kind = labels.dtype.kind
    if kind not in "biufUOT":
        raise ValueError(
            f"A bundle stores classes that are text, booleans or numbers, not {labels.dtype}."
        )
    dtype = kind if kind in "OT" else labels.dtype.str
    return {"dtype": dtype, "labels": [plain_label(v, "class") for v in labels.tolist()]}


def read_labels(plain: Any) -> NDArray[Any]:
    """Inverse of :func:`plain_labels`."""
    if not isinstance(plain, dict) or set(plain) != {"dtype", "labels"}:
        raise ValueError(f"Classes are a dtype and labels, not {plain!r}.")
    name, labels = plain["dtype"], plain["labels"]
    if not isinstance(name, str) or not isinstance(labels, list) or not labels:
        raise ValueError(f"Classes are a dtype and a list of labels, not {plain!r}.")
    values = [read_label(label) for label in labels]
    if len(set(map(repr, values))) < len(values):
        raise ValueError(f"A class is named twice: {values!r}.")
    if name in ("O", "T"):
        dtype: Any = object if name == "O" else np.dtypes.StringDType()
    else:
        dtype = _plain_dtype(name)
    out = np.array(values, dtype=dtype)
    if out.tolist() != values:
        raise ValueError(f"The classes {values!r} are not of dtype {name}.")
    return out


def _plain_dtype(name: str) -> np.dtype[Any]:
    # Nothing else reaches numpy, whose own parser of types takes much more.
    if not re.fullmatch(r"\|b1|[<>|][iuf][1248]|[<>]U[1-9]\d{0,3}", name):
        raise ValueError(f"Classes are text, booleans or numbers, not of dtype {name!r}.")
    try:
        return np.dtype(name)
    except TypeError:
        raise ValueError(f"Classes have an unknown dtype {name!r}.") from None


def plain_levels(levels: Mapping[int, Iterable[Any]]) -> list[list[Any]]:
    """Levels by column as JSON."""
    return [
        [int(j), [plain_label(v, f"level of column {j}") for v in values]]
        for j, values in levels.items()
    ]


def read_levels(plain: Any, n_columns: int) -> dict[int, tuple[Any, ...]]:
    """Inverse of :func:`plain_levels`."""
    out: dict[int, tuple[Any, ...]] = {}
    for entry in plain if isinstance(plain, list) else [plain]:
        if not isinstance(entry, list) or len(entry) != 2 or not isinstance(entry[1], list):
            raise ValueError(f"Levels are a column and a list, not {entry!r}.")
        j = entry[0]
        if isinstance(j, bool) or not isinstance(j, int) or not 0 <= j < n_columns or j in out:
            raise ValueError(f"Levels are of a column below {n_columns}, named once; not {j!r}.")
        out[j] = tuple(read_label(v) for v in entry[1])
    return out
