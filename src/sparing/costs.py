"""Money: columns need items, items have prices, and a row pays for each item at most once.

This is the only code of the library that adds money. A column of X needs one or more *items*; the cost of a set of
columns is the sum of the prices of the **union** of the items it needs. That one rule covers plain prices, panels that
share a blood draw, columns derived from others, and items a row already owns.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparing import _price_list as price_list
from sparing._masks import column_mask, item_mask

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

_CHUNK_CELLS = 1 << 22
"""Cells of a boolean matrix handled at a time: bounds memory whatever the number of rows."""


class FeatureCosts:
    """Prices of the columns of X.

    Parameters
    ----------
    prices : array of shape (n_columns,), mapping of column to price, or pandas Series
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
      FTI         -      derived from TT4, T4U
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
        self._private = price_list.private_prices(prices, derived)
        self._shared = price_list.shared_items(shared, self._private)
        self._derived = price_list.derived_columns(derived, self._private)
        self.call_price = price_list.checked_call_price(call_price)
        self.columns = tuple(self._private)
        named = prices if isinstance(prices, Mapping) else self._private
        self._unplaced = [column for column in self._derived if column not in named]

        covered = set(self._derived).union(*(members for _, members in self._shared.values()))
        own = {c: price for c, price in self._private.items() if price > 0 or c not in covered}
        prices_of = own | {name: price for name, (price, _) in self._shared.items()}
        self.items = tuple(prices_of)
        self.item_prices = np.array(list(prices_of.values()))
        self.needs = self._needs()
        for array in (self.item_prices, self.needs):
            array.flags.writeable = False

    def _needs(self) -> Booleans:
        row = {column: i for i, column in enumerate(self.columns)}
        needs = np.zeros((len(self.columns), len(self.items)), dtype=bool)
        for j, item in enumerate(self.items):
            members = self._shared[item][1] if item in self._shared else (item,)
            needs[[row[c] for c in members], j] = True
        for column in price_list.inputs_first(self._derived):
            inputs = [row[c] for c in self._derived[column]]
            needs[row[column]] |= needs[inputs].any(axis=0)
        return needs

    # -- what things cost ---------------------------------------------------------------------------------------------

    def of(self, mask: Any, *, owned: Any = None) -> Any:
        """Cost of a set of columns, or of one set per row.

        Parameters
        ----------
        mask : iterable of columns, bool array of shape (n_columns,) or (n_rows, n_columns)
        owned : names of items; mapping or data frame of item to bool; or bool array, optional
            Items that are already there and cost nothing. By name for all rows, or with one bool per row for each item
            that is named; or booleans of shape (n_items,) or (n_rows, n_items) in the order of ``items``.

        Returns
        -------
        float, or float ndarray of shape (n_rows,) when ``mask`` or ``owned`` has rows
        """
        mask = self.mask(mask)
        if owned is not None:
            owned = item_mask(owned, self.items, len(mask) if mask.ndim == 2 else None)
        if mask.ndim == 1:
            bought = self.items_of(mask)
            cost = self._sum(bought if owned is None else bought & ~owned)
            return cost if cost.ndim else float(cost)
        total = np.empty(len(mask))
        for rows in _chunks(len(mask), len(self.columns) + len(self.items)):
            bought = self._items(mask[rows])
            if owned is not None:
                bought &= ~(owned if owned.ndim == 1 else owned[rows])
            total[rows] = self._sum(bought)
        return total

    def _sum(self, bought: Booleans) -> Floats:
        # Not `@`, which would first write the booleans out as floats and wake the threads of BLAS.
        return np.asarray(np.einsum("...j,j->...", bought, self.item_prices))

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
        """A fresh matrix of the items needed by each row of a mask."""
        if self._plain:
            return mask.copy()
        bought = np.empty((len(mask), len(self.items)), dtype=bool)
        alone = self.needs.sum(axis=0) == 1
        bought[:, alone] = mask[:, self.needs[:, alone].argmax(axis=0)]
        for item in np.flatnonzero(~alone):
            mask[:, self.needs[:, item]].any(axis=1, out=bought[:, item])
        return bought

    @property
    def _plain(self) -> bool:
        """Every column has exactly its own item, in the order of the columns."""
        return len(self.items) == len(self.columns) and not self._shared and not self._derived

    def marginal(self, owned: Any) -> Floats:
        """Price of each column for someone who already owns some items.

        Parameters
        ----------
        owned : names of items; mapping or data frame of item to bool; or bool array
            As in :meth:`of`.

        Returns
        -------
        float ndarray of shape (n_columns,) or (n_rows, n_columns)

        Examples
        --------
        >>> FeatureCosts([1, 2], shared={"draw": (5, [0, 1])}).marginal([False, False, True])
        array([1., 2.])
        """
        bought = ~item_mask(owned, self.items, None)
        return (bought * self.item_prices) @ self.needs.T.astype(float)

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

    def with_call_price(self, price: float | Sequence[float]) -> FeatureCosts:
        """The same prices of items with another price per call.

        Examples
        --------
        >>> FeatureCosts([1, 2]).with_call_price(5).call_price
        5.0
        """
        return FeatureCosts.from_dict(self.to_dict() | {"call_price": price})

    def of_last(self, n_stages: int) -> FeatureCosts:
        """The same prices for the last so many of the stages, where every stage has a price per call.

        Examples
        --------
        >>> FeatureCosts([1, 2], call_price=[0, 3, 30]).of_last(1).call_price
        30.0
        """
        if not isinstance(self.call_price, tuple) or len(self.call_price) <= n_stages:
            return self
        own = self.call_price[-n_stages:]
        return self.with_call_price(own if len(own) > 1 else own[0])

    # -- reading masks ------------------------------------------------------------------------------------------------

    def mask(self, columns: Any) -> Booleans:
        """Boolean mask of a set of columns given by name, or a mask or matrix of masks, checked."""
        return column_mask(columns, self.columns)

    # -- fitting to a table, reading and writing ----------------------------------------------------------------------

    def aligned(self, columns: Sequence[Hashable] | int) -> FeatureCosts:
        """The same prices in the order of a table's columns.

        Parameters
        ----------
        columns : sequence of names, or int
            Names of the table's columns; a number for a table without names. Its columns are found by their numbers
            where the prices are of the columns 0 to n - 1, and else taken in the order in which they stand here.

        Examples
        --------
        >>> FeatureCosts({1: 10, 0: 1}).aligned(2).item_prices
        array([ 1., 10.])
        """
        n_columns = columns if isinstance(columns, int) else len(columns)
        if (isinstance(columns, int) or self._positional) and n_columns != len(self.columns):
            raise ValueError(
                f"feature_costs prices {len(self.columns)} columns, X has {n_columns}: give one price per column."
            )
        if isinstance(columns, int) and self._unplaced and not self._numbered:
            warnings.warn(
                f"X has no column names, and feature_costs names {price_list.short(self._unplaced)} in derived alone, "
                "which is taken for the last of X. Pass a data frame, or give a price of 0 in the place of the column.",
                UserWarning,
                stacklevel=2,
            )
        if self._numbered and (isinstance(columns, int) or not set(columns) & set(self.columns)):
            in_order = self._renamed({c: c for c in self.columns}, sorted(self._private))
            return in_order.aligned(columns)
        if isinstance(columns, int) or tuple(columns) == self.columns:
            return self
        if self._positional:
            names = dict(zip(self.columns, columns, strict=True))
        else:
            names = {c: c for c in self.columns}
        price_list.check_names(columns, names.values())
        return self._renamed(names, columns)

    def _renamed(
        self, names: Mapping[Hashable, Hashable], columns: Sequence[Hashable]
    ) -> FeatureCosts:
        """The same prices with other names for the columns, in the order of ``columns``."""
        private = {names[c]: price for c, price in self._private.items()}
        return FeatureCosts(
            {c: private[c] for c in columns},
            shared={i: (p, [names[c] for c in m]) for i, (p, m) in self._shared.items()},
            derived={names[c]: [names[i] for i in m] for c, m in self._derived.items()},
            call_price=self.call_price,
        )

    @property
    def _positional(self) -> bool:
        """The columns are numbered, not named."""
        return self.columns == tuple(range(len(self.columns)))

    @property
    def _numbered(self) -> bool:
        """The columns are numbered from 0 without a gap, but in another order."""
        return not self._positional and set(self.columns) == set(range(len(self.columns)))

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
        content = price_list.read_toml(path)
        try:
            return cls.from_dict(content)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path}: {error}") from error

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> FeatureCosts:
        """Inverse of :meth:`to_dict`."""
        return cls(**price_list.read_entries(content))

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
        # The order of the columns counts: a mask means something else in another order.
        return (
            isinstance(other, FeatureCosts)
            and (self.columns, self.items) == (other.columns, other.items)
            and self.to_dict() == other.to_dict()
        )

    def __hash__(self) -> int:
        return hash((self.columns, self.items, self.item_prices.tobytes(), self.call_price))

    def __repr__(self) -> str:
        columns, items = (
            price_list.counted(len(every), noun)
            for every, noun in ((self.columns, "column"), (self.items, "item"))
        )
        head = f"FeatureCosts: {columns}, {items}, all together {self.total:.10g}"
        calls = self.call_price if isinstance(self.call_price, tuple) else (self.call_price,)
        table = price_list.price_table(self._private, self._shared, self._derived, calls)
        return "\n".join([head, *table])


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
    if isinstance(feature_costs, str):
        raise TypeError(f"feature_costs is {feature_costs!r}: read it with FeatureCosts.from_toml.")
    if not isinstance(feature_costs, FeatureCosts):
        n_columns = columns if isinstance(columns, int) else len(columns)
        feature_costs = FeatureCosts(np.ones(n_columns) if feature_costs is None else feature_costs)
        by_number = feature_costs._positional or feature_costs._numbered
        if isinstance(columns, int) and not by_number:
            raise ValueError(
                "feature_costs names columns but X has no column names: pass a data frame, or an array of prices."
            )
    return feature_costs.aligned(columns)


def _chunks(n_rows: int, width: int) -> Iterator[slice]:
    size = max(1, _CHUNK_CELLS // max(1, width))
    for start in range(0, n_rows, size):
        yield slice(start, start + size)
