"""Money: columns need items, items have prices, and a row pays for each item at most once.

This is the only code of the library that adds money. A column of X needs one or more *items*; the cost of a set of
columns is the sum of the prices of the **union** of the items it needs. That one rule covers plain prices, panels that
share a blood draw, columns derived from others, and items a row already owns.
"""

from __future__ import annotations

import tomllib
from collections.abc import Hashable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparing._price_list import (
    check_derived,
    check_names,
    checked_call_price,
    inputs_first,
    private_prices,
    shared_entry,
    short,
    unknown_names,
)

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

_CHUNK_CELLS = 1 << 22
"""Cells of a boolean matrix turned into floats at a time: bounds memory at 16 MB whatever the number of rows."""


class FeatureCosts:
    """Prices of the columns of X.

    Parameters
    ----------
    prices : array of shape (n_columns,) or mapping of column to price
        Private price of each column: what it costs on top of any shared item.
    shared : mapping of item to (price, columns), optional
        Items that several columns need and that are paid once: a blood draw, a bureau pull, one attribute behind forty
        one-hot columns.
    derived : mapping of column to columns, optional
        Columns computed from others. They need the items of their inputs. A private price of their own is possible
        (the computation), usually there is none and they may be left out of ``prices``.
    call_price : float or sequence of float, default=0.0
        Price of asking the full model (an API, a reviewer), paid by rows routed to it; a sequence gives one price per
        stage, cheapest stage first.

    Attributes
    ----------
    columns : tuple
        The columns, in the order of X; positions when ``prices`` is an array.
    items : tuple
        What can be bought: first the private items, named as their column, then the shared ones. A column whose private
        price is 0 and that needs another item has no item of its own: it comes with the other one.
    item_prices : ndarray of shape (n_items,)
    needs : bool ndarray of shape (n_columns, n_items)

    Examples
    --------
    >>> costs = FeatureCosts(
    ...     {"age": 1, "TSH": 20.68, "TT4": 12.41, "T4U": 9.31},
    ...     shared={"blood draw": (2.10, ["TSH", "TT4", "T4U"])},
    ...     derived={"FTI": ["TT4", "T4U"]},
    ... )
    >>> round(costs.of(["TSH"]), 2), round(costs.of(["TT4", "T4U"]), 2), round(costs.of(["FTI"]), 2)
    (22.78, 23.82, 23.82)
    >>> costs.of([[True, False, False, False, False], [True, True, False, False, True]]).round(2)
    array([ 1. , 45.5])
    >>> costs
    FeatureCosts: 5 columns, 5 items, all together 45.5
      age         1
      TSH         20.68  + blood draw
      TT4         12.41  + blood draw
      T4U         9.31   + blood draw
      FTI         derived from TT4, T4U
      blood draw  2.1    shared
    """

    columns: tuple[Hashable, ...]
    items: tuple[Hashable, ...]
    item_prices: Floats
    needs: Booleans
    call_price: float | tuple[float, ...]

    def __init__(
        self,
        prices: ArrayLike | Mapping[Any, float],
        *,
        shared: Mapping[str, tuple[float, Sequence[Any]]] | None = None,
        derived: Mapping[Any, Sequence[Any]] | None = None,
        call_price: float | Sequence[float] = 0.0,
    ) -> None:
        private = private_prices(prices)
        shared = dict(shared or {})
        computed = {column: tuple(inputs) for column, inputs in (derived or {}).items()}
        by_position = not isinstance(prices, Mapping)
        if not by_position:
            private |= {column: 0.0 for column in computed if column not in private}
        self.columns = tuple(private)
        self._private = private
        self._shared = {
            name: shared_entry(name, entry, self.columns) for name, entry in shared.items()
        }
        self._derived = computed
        self.call_price = checked_call_price(call_price)
        check_derived(computed, self.columns)
        clash = [name for name in self._shared if name in private]
        if clash:
            raise ValueError(
                f"Shared item {clash[0]!r} has the name of a column: give it another name."
            )

        covered = set(computed).union(*(members for _, members in self._shared.values()))
        own = [c for c, price in private.items() if price > 0 or c not in covered]
        self.items = (*own, *self._shared)
        self.item_prices = np.array(
            [private[c] for c in own] + [price for price, _ in self._shared.values()], dtype=float
        )
        self.needs = self._needs()
        for array in (self.item_prices, self.needs):
            array.flags.writeable = False

    def _needs(self) -> Booleans:
        row = {column: i for i, column in enumerate(self.columns)}
        needs = np.zeros((len(self.columns), len(self.items)), dtype=bool)
        for j, item in enumerate(self.items):
            members = self._shared[item][1] if item in self._shared else (item,)
            needs[[row[c] for c in members], j] = True
        for column in inputs_first(self._derived):
            inputs = [row[c] for c in self._derived[column]]
            needs[row[column]] |= needs[inputs].any(axis=0)
        return needs

    # -- what things cost ---------------------------------------------------------------------------------------------

    def of(self, mask: Any, *, owned: Any = None) -> Any:
        """Cost of a set of columns, or of one set per row.

        Parameters
        ----------
        mask : iterable of columns, bool array of shape (n_columns,) or (n_rows, n_columns)
        owned : bool array of shape (n_items,) or (n_rows, n_items), optional
            Items that are already there and cost nothing.

        Returns
        -------
        float, or float ndarray of shape (n_rows,)
        """
        mask = self.mask(mask)
        if owned is not None:
            owned = self._owned(owned, len(mask) if mask.ndim == 2 else None)
        if mask.ndim == 1:
            bought = self.needs[mask].any(axis=0)
            return float(self.item_prices @ (bought if owned is None else bought & ~owned))
        total = np.empty(len(mask))
        for rows in _chunks(len(mask), len(self.columns) + len(self.items)):
            bought = self._items(mask[rows])
            if owned is not None:
                bought &= ~(owned if owned.ndim == 1 else owned[rows])
            total[rows] = bought @ self.item_prices
        return total

    def items_of(self, mask: Any) -> Booleans:
        """Items needed by a set of columns: bool of shape (n_items,) or (n_rows, n_items).

        Examples
        --------
        >>> FeatureCosts([1, 1, 1], shared={"panel": (5, [1, 2])}).items_of([False, False, True])
        array([False, False,  True,  True])
        """
        mask = self.mask(mask)
        if mask.ndim == 1:
            return self.needs[mask].any(axis=0)
        out = np.empty((len(mask), len(self.items)), dtype=bool)
        for rows in _chunks(len(mask), len(self.columns) + len(self.items)):
            out[rows] = self._items(mask[rows])
        return out

    def _items(self, mask: Booleans) -> Booleans:
        if self._plain:
            return mask.copy()
        # A float product goes through BLAS, a boolean one through a slow loop.
        return (mask.astype(np.float32) @ self.needs.astype(np.float32)) > 0.5

    @property
    def _plain(self) -> bool:
        """Every column has exactly its own item, in the order of the columns."""
        return len(self.items) == len(self.columns) and not self._shared and not self._derived

    def marginal(self, owned: ArrayLike) -> Floats:
        """Price of each column for someone who already owns some items.

        Parameters
        ----------
        owned : bool array of shape (n_items,) or (n_rows, n_items)

        Returns
        -------
        float ndarray of shape (n_columns,) or (n_rows, n_columns)

        Examples
        --------
        >>> FeatureCosts([1, 2], shared={"draw": (5, [0, 1])}).marginal([False, False, True])
        array([1., 2.])
        """
        owned = self._owned(owned, None)
        return ((~owned) * self.item_prices) @ self.needs.T.astype(float)

    @property
    def total(self) -> float:
        """Price of all columns together."""
        return float(self.item_prices[self.needs.any(axis=0)].sum())

    def call_prices(self, n_stages: int) -> Floats:
        """Price of asking each stage: zeros and the full model's, or the ones given per stage."""
        if isinstance(self.call_price, tuple):
            if len(self.call_price) != n_stages:
                raise ValueError(
                    f"call_price has {len(self.call_price)} prices for {n_stages} stages: give one number for the full "
                    "model, or one per stage."
                )
            return np.array(self.call_price)
        prices = np.zeros(n_stages)
        prices[-1] = self.call_price
        return prices

    # -- reading masks ------------------------------------------------------------------------------------------------

    def mask(self, columns: Any) -> Booleans:
        """Boolean mask of a set of columns given by name, or a mask or matrix of masks, checked."""
        if isinstance(columns, str):
            raise TypeError(f"Give a list of columns: [{columns!r}].")
        array = columns if isinstance(columns, np.ndarray) else None
        if array is None:
            columns = list(columns)
            if not columns or all(isinstance(c, bool | np.bool_) for c in columns):
                array = np.array(columns, dtype=bool)
                array = array if columns else np.zeros(len(self.columns), dtype=bool)
            elif all(isinstance(c, Hashable) for c in columns):
                unknown = [c for c in columns if c not in self._private]
                if unknown:
                    raise ValueError(unknown_names("Column", unknown, self.columns))
                chosen = set(columns)
                return np.array([c in chosen for c in self.columns], dtype=bool)
            else:
                array = np.asarray(columns)
        if array.dtype != bool:
            raise TypeError(f"A mask of columns is boolean, this one has dtype {array.dtype}.")
        if array.ndim not in (1, 2) or array.shape[-1] != len(self.columns):
            raise ValueError(
                f"A mask has one entry per column, {len(self.columns)} here; this one has shape {array.shape}."
            )
        return array

    def _owned(self, owned: ArrayLike, n_rows: int | None) -> Booleans:
        array = np.asarray(owned)
        if array.dtype != bool:
            raise TypeError(f"owned is boolean, this one has dtype {array.dtype}.")
        rows_fit = array.ndim == 1 or n_rows is None or len(array) == n_rows
        if array.ndim not in (1, 2) or array.shape[-1] != len(self.items) or not rows_fit:
            rows = "n_rows" if n_rows is None else n_rows
            raise ValueError(
                f"owned has shape ({rows}, {len(self.items)}), one column per item in the order of `items` "
                f"({short(self.items)}); this one has shape {array.shape}."
            )
        return array

    # -- fitting to a table, reading and writing ----------------------------------------------------------------------

    def aligned(self, columns: Sequence[Hashable] | int) -> FeatureCosts:
        """The same prices in the order of a table's columns.

        Parameters
        ----------
        columns : sequence of names, or int
            Names of the table's columns; a number for a table without names, whose columns are then taken in the order
            in which they stand here.
        """
        if isinstance(columns, int):
            if columns != len(self.columns):
                raise ValueError(
                    f"feature_costs prices {len(self.columns)} columns, X has {columns}: give one price per column."
                )
            return self
        if tuple(columns) == self.columns:
            return self
        if self._positional and len(columns) == len(self.columns):
            names = dict(zip(self.columns, columns, strict=True))
            return FeatureCosts(
                {names[c]: p for c, p in self._private.items()},
                shared={k: (p, [names[c] for c in m]) for k, (p, m) in self._shared.items()},
                derived={names[c]: [names[i] for i in m] for c, m in self._derived.items()},
                call_price=self.call_price,
            )
        check_names(columns, self.columns)
        return FeatureCosts(
            {c: self._private[c] for c in columns},
            shared=self._shared,
            derived=self._derived,
            call_price=self.call_price,
        )

    @property
    def _positional(self) -> bool:
        return self.columns == tuple(range(len(self.columns)))

    @classmethod
    def from_toml(cls, path: str | PathLike[str]) -> FeatureCosts:
        """Read a price list: tables ``prices``, ``shared``, ``derived`` and the number ``call_price``.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> text = '''
        ... [prices]
        ... TSH = 20.68
        ... T3 = 9.31
        ... [shared."blood draw"]
        ... price = 2.10
        ... columns = ["TSH", "T3"]
        ... '''
        >>> with TemporaryDirectory() as folder:
        ...     file = Path(folder, "costs.toml")
        ...     _ = file.write_text(text)
        ...     round(FeatureCosts.from_toml(file).total, 2)
        32.09
        """
        with open(path, "rb") as file:
            try:
                content = tomllib.load(file)
            except tomllib.TOMLDecodeError as error:
                raise ValueError(f"{path} is not valid TOML: {error}") from error
        try:
            return cls.from_dict(content)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path}: {error}") from error

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> FeatureCosts:
        """Inverse of :meth:`to_dict`."""
        unknown = [k for k in content if k not in ("prices", "shared", "derived", "call_price")]
        if unknown:
            raise ValueError(
                unknown_names("Entry", unknown, ("prices", "shared", "derived", "call_price"))
            )
        if "prices" not in content:
            raise ValueError("A price list needs the table [prices]: one price per column.")
        shared = {}
        for name, entry in dict(content.get("shared", {})).items():
            if not isinstance(entry, Mapping) or set(entry) != {"price", "columns"}:
                raise ValueError(
                    f"Shared item {name!r} needs exactly `price` and `columns`, it has {entry!r}."
                )
            shared[name] = (entry["price"], entry["columns"])
        return cls(
            content["prices"],
            shared=shared,
            derived=content.get("derived", {}),
            call_price=content.get("call_price", 0.0),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as written in a ``costs.toml``; :meth:`from_dict` reads it back.

        Examples
        --------
        >>> FeatureCosts([1, 2]).to_dict()
        {'prices': [1.0, 2.0], 'shared': {}, 'derived': {}, 'call_price': 0.0}
        """
        call = self.call_price
        return {
            "prices": list(self._private.values()) if self._positional else dict(self._private),
            "shared": {n: {"price": p, "columns": list(m)} for n, (p, m) in self._shared.items()},
            "derived": {c: list(inputs) for c, inputs in self._derived.items()},
            "call_price": list(call) if isinstance(call, tuple) else call,
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FeatureCosts) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.columns, self.items, self.item_prices.tobytes(), self.call_price))

    def __repr__(self) -> str:
        head = f"FeatureCosts: {len(self.columns)} columns, {len(self.items)} items, all together {self.total:.10g}"
        lines: list[tuple[str, str, str]] = []
        for column, price in self._private.items():
            parts = [
                f"+ {name}" for name, (_, members) in self._shared.items() if column in members
            ]
            if column in self._derived:
                source = "derived from " + ", ".join(map(str, self._derived[column]))
                lines.append(
                    (str(column), f"{price:g}" if price else source, source if price else "")
                )
            else:
                lines.append((str(column), f"{price:g}", " ".join(parts)))
        lines += [(str(name), f"{price:g}", "shared") for name, (price, _) in self._shared.items()]
        calls = [self.call_price] if isinstance(self.call_price, float) else self.call_price
        if any(calls):
            lines.append(("call", ", ".join(f"{c:g}" for c in calls), "per row routed there"))
        if len(lines) > 24:
            lines = [*lines[:12], ("...", "", ""), *lines[-11:]]
        wide = max(len(name) for name, _, _ in lines)
        number = max((len(price) for _, price, note in lines if note), default=0)
        body = (f"  {n:<{wide}}  {p:<{number}}  {note}".rstrip() for n, p, note in lines)
        return "\n".join([head, *body])


def resolve_costs(feature_costs: Any, columns: Sequence[Hashable] | int) -> FeatureCosts:
    """Prices of a table's columns from whatever a user may pass as ``feature_costs``.

    Parameters
    ----------
    feature_costs : None (every column costs 1), array, mapping by column name, or FeatureCosts
    columns : names of the columns, or their number when the table has no names.

    Examples
    --------
    >>> resolve_costs(None, 3).total
    3.0
    >>> resolve_costs({"b": 2, "a": 1}, ["a", "b"]).item_prices
    array([1., 2.])
    """
    n_columns = columns if isinstance(columns, int) else len(columns)
    if feature_costs is None:
        feature_costs = FeatureCosts(np.ones(n_columns))
    elif isinstance(feature_costs, Mapping):
        if isinstance(columns, int):
            raise ValueError(
                "feature_costs names columns but X has no column names: pass a data frame, or an array of prices."
            )
        check_names(columns, tuple(feature_costs))
        feature_costs = FeatureCosts(feature_costs)
    elif not isinstance(feature_costs, FeatureCosts):
        prices = np.asarray(feature_costs)
        if prices.ndim != 1 or len(prices) != n_columns:
            raise ValueError(
                f"feature_costs has shape {prices.shape}, X has {n_columns} columns: give one price per column."
            )
        feature_costs = FeatureCosts(prices)
    return feature_costs.aligned(columns)


def _chunks(n_rows: int, width: int) -> Iterator[slice]:
    size = max(1, _CHUNK_CELLS // max(1, width))
    for start in range(0, n_rows, size):
        yield slice(start, start + size)
