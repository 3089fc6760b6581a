"""Which items each stage buys from which source, and which columns come with them; worked out once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparing.runtime._claim import Want
from sparing.runtime._source import Source
from sparing.system import System

Booleans = NDArray[np.bool_]
Derive = Mapping[Any, Callable[[Mapping[Any, Any]], Any]]

_KEPT = 256
"""Plans remembered, one per set of columns that callers know."""


class Group(NamedTuple):
    """Everything bought from one source in one round trip."""

    source: str
    items: tuple[Hashable, ...]
    columns: tuple[tuple[Hashable, ...], ...]


class Round(NamedTuple):
    """What a stage buys: by source, and as the books want to know it; and what can be derived afterwards."""

    groups: tuple[Group, ...]
    wants: tuple[Want, ...]
    columns: tuple[Hashable, ...]
    derived: tuple[Hashable, ...]


class Plan:
    """Rounds of purchases of a system's stages, given the columns that are known beforehand.

    Parameters
    ----------
    system : System
    sources : the session's.
    derive : functions of derived columns.
    """

    def __init__(self, system: System, sources: Sequence[Source], derive: Derive) -> None:
        self._system = system
        self._costs = system.costs
        self._derive = dict(derive)
        self.inputs: dict[Hashable, tuple[Hashable, ...]] = {
            column: tuple(inputs) for column, inputs in self._costs.to_dict()["derived"].items()
        }
        self._place = {column: j for j, column in enumerate(self._costs.columns)}
        self._item = {item: i for i, item in enumerate(self._costs.items)}
        self._seller = self._sellers(sources)
        self._check_derive()
        self._used = self._used_columns()
        sold = np.array([item in self._seller for item in self._costs.items])
        computed = np.array([column in self._derive for column in self._costs.columns])
        unsold = (self._costs.needs & ~sold).any(axis=1) & ~computed
        self.only_known = tuple(self._costs.columns[j] for j in np.flatnonzero(unsold & self._used))
        self._rounds: dict[frozenset[Hashable], tuple[Round, ...]] = {}
        self.rounds(frozenset(self.only_known))  # raises where sources and prices do not fit

    def _sellers(self, sources: Sequence[Source]) -> dict[Hashable, Source]:
        sellers: dict[Hashable, Source] = {}
        names: set[str] = set()
        for source in sources:
            if source.name in names:
                raise ValueError(f"Two sources have the name {source.name!r}: give them names.")
            names.add(source.name)
            for item, columns in source.items.items():
                if item not in self._item:
                    raise ValueError(
                        f"Source {source.name!r} sells item {item!r}, which the system has no price for. Its items are "
                        f"{_short(self._costs.items)}."
                    )
                if item in sellers:
                    raise ValueError(
                        f"Item {item!r} is sold by the sources {sellers[item].name!r} and {source.name!r}."
                    )
                for column in columns or ():
                    if column not in self._place:
                        raise ValueError(
                            f"Item {item!r} of source {source.name!r} brings column {column!r}, which the system does "
                            f"not know. Its columns are {_short(self._costs.columns)}."
                        )
                    if not self._costs.needs[self._place[column], self._item[item]]:
                        raise ValueError(
                            f"Item {item!r} of source {source.name!r} brings column {column!r}, but by the price list "
                            f"this column needs {self._needed(column)}."
                        )
                sellers[item] = source
        return sellers

    def _needed(self, column: Hashable) -> list[Hashable]:
        needs = self._costs.needs[self._place[column]]
        return [self._costs.items[i] for i in np.flatnonzero(needs)]

    def _check_derive(self) -> None:
        for column in self._derive:
            if column not in self.inputs:
                raise ValueError(
                    f"derive has column {column!r}, which the price list does not derive from others: say so there, "
                    "FeatureCosts(..., derived={...})."
                )
            if column in self._item:
                raise ValueError(
                    f"Column {column!r} has a price of its own: let a source sell it instead of deriving it."
                )

    def _used_columns(self) -> Booleans:
        used = self._system.stage_columns()[-1].copy()
        changed = True
        while changed:  # inputs of inputs
            before = used.copy()
            for column in self._derive:
                if used[self._place[column]]:
                    used[[self._place[c] for c in self.inputs[column]]] = True
            changed = bool((used != before).any())
        return used

    # -- rounds -----------------------------------------------------------------------------------

    def rounds(self, known: frozenset[Hashable]) -> tuple[Round, ...]:
        """Purchases of every stage for a row on which some columns are known."""
        found = self._rounds.get(known)
        if found is None:
            found = self._make(known)
            if len(self._rounds) >= _KEPT:
                self._rounds.clear()
            self._rounds[known] = found
        return found

    def _make(self, known: frozenset[Hashable]) -> tuple[Round, ...]:
        there = np.array([column in known for column in self._costs.columns])
        owned = np.zeros(len(self._costs.items), dtype=bool)
        rounds = []
        for stage in self._system.stages:
            missing = np.zeros_like(there)
            missing[stage.columns] = True
            missing &= ~there
            items = self._costs.needs[self._to_buy(missing, there)].any(axis=0) & ~owned
            owned |= items
            rounds.append(self._round(np.flatnonzero(items), stage.columns, there, owned))
        return tuple(rounds)

    def _to_buy(self, missing: Booleans, there: Booleans) -> Booleans:
        """Columns whose items are needed: a derived one may have all or some of its inputs."""
        wanted = missing.copy()
        for column in self._derive:
            if wanted[self._place[column]]:
                wanted[self._place[column]] = False
                inputs = np.zeros_like(missing)
                inputs[[self._place[c] for c in self.inputs[column]]] = True
                wanted |= self._to_buy(inputs & ~there, there)
        return wanted

    def _round(
        self,
        items: NDArray[np.intp],
        read: NDArray[np.intp],
        there: Booleans,
        owned: Booleans,
    ) -> Round:
        """The purchase of some items; marks the columns that come with them, and those derived for the stage."""
        names = [self._costs.items[i] for i in items]
        brings: dict[Hashable, list[Hashable]] = {item: [] for item in names}
        complete = ~(self._costs.needs & ~owned).any(axis=1)
        for j in np.flatnonzero(complete & self._used & ~there):
            column = self._costs.columns[j]
            if column in self._derive:
                continue
            brings[self._bringer(column, names)].append(column)
            there[j] = True
        derived = self.to_derive(read.tolist(), set(np.flatnonzero(there).tolist()))
        there[[self._place[column] for column in derived]] = True
        wants = tuple(self._want(item, tuple(brings[item])) for item in names)
        groups = []
        for source in dict.fromkeys(want.source for want in wants):
            own = [want for want in wants if want.source == source]
            groups.append(Group(source, tuple(w.item for w in own), tuple(w.columns for w in own)))
        columns = tuple(column for item in names for column in brings[item])
        return Round(tuple(groups), wants, columns, tuple(derived))

    def to_derive(self, read: Sequence[int], there: Collection[int]) -> list[Hashable]:
        """What has to be computed before columns at some places can be read, each after what it is computed from.

        Nothing else: a function that fails for a column of a later stage is no reason not to answer now.
        """
        derived: dict[Hashable, None] = {}
        for j in read:
            column = self._costs.columns[j]
            if column in self._derive and j not in there:
                inputs = [self._place[c] for c in self.inputs[column]]
                derived |= dict.fromkeys([*self.to_derive(inputs, there), column])
        return list(derived)

    def _bringer(self, column: Hashable, names: Sequence[Hashable]) -> Hashable:
        """The item among those bought now that a column comes with."""
        needed = [
            item for item in names if self._costs.needs[self._place[column], self._item[item]]
        ]
        listed = {item: self._seller[item].items[item] for item in needed if item in self._seller}
        for item, columns in listed.items():
            if columns is not None and column in columns:
                return item
        by_default = [item for item, columns in listed.items() if columns is None]
        if column in by_default:
            return column
        if by_default:
            return by_default[0]
        unsold = [item for item in needed if item not in self._seller]
        if unsold:
            raise ValueError(
                f"No source sells item {unsold[0]!r}, which column {column!r} needs: add one, or pass the column in "
                "`known`."
            )
        raise ValueError(
            f"No source brings column {column!r}, though its items {self._needed(column)} are sold: list it among the "
            "columns of one of them" + (", or derive it." if column in self.inputs else ".")
        )

    def _want(self, item: Hashable, columns: tuple[Hashable, ...]) -> Want:
        source = self._seller.get(item)
        if source is None:
            raise ValueError(
                f"No source sells item {item!r}: add one, or pass the columns that need it in `known`."
            )
        price = float(self._costs.item_prices[self._item[item]])
        return Want(item, source.name, price, source.time_to_live, source.honours_keys, columns)


def _short(names: Sequence[Hashable], most: int = 12) -> str:
    return ", ".join(map(repr, names[:most])) + (", ..." if len(names) > most else "")
