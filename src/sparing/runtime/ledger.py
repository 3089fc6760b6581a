"""The books: every purchase is written down before it is paid, its values when they come, in one SQLite file.

At most one valid purchase per entity and item within its time to live, however many sessions and processes share the
file. The values in it are personal data: keep the file as you keep those, and see :meth:`Ledger.purge`.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

from sparing.runtime import _ledger_claims as claims
from sparing.runtime._claim import Call, Claim, Outcome, Want
from sparing.runtime._ledger_export import export
from sparing.runtime._ledger_store import Store
from sparing.runtime._values import from_json, name_to_json, plain
from sparing.runtime.limits import Limits

__all__ = ["Ledger"]

_PUBLIC = (
    *("entity", "kind", "item", "source", "key", "price", "status", "opened", "settled"),
    *("expires", "attempts", "reason"),
)


class Ledger:
    """Books of purchases in a SQLite file, shared by threads and processes.

    Parameters
    ----------
    path : str or path
        The file; made when it is not there. Not on a network drive: SQLite's locks do not hold there.
    lease : float, default=60.0
        Seconds a session has to finish a purchase. Then it is taken for dead, and what it may have paid for is asked
        again under the same key, or decided by the session's policy. Longer than any source takes.
    busy_timeout : float, default=30.0
        Seconds to wait for another process that writes.
    synchronous : {"normal", "full"}, default="normal"
        ``"normal"`` survives every crash of a process. ``"full"`` also survives a power cut without losing the last
        moments, at the price of waiting for the disk twice per purchase.
    clock : callable, default=time.time

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sparing.runtime import MockSource, Session
    >>> from sparing.runtime._examples import lender
    >>> system, people = lender()
    >>> bureau = MockSource(people, ["income", "bureau"])
    >>> with TemporaryDirectory() as folder, Ledger(Path(folder, "books.db")) as ledger:
    ...     session = Session(system, [bureau], ledger=ledger)
    ...     first, second = session.predict("bert"), session.predict("bert")
    ...     print(first.cost, second.cost, ledger.total())
    ...     print(ledger.by_item())
    6.0 0.0 6.0
    [{'item': 'income', 'purchases': 1, 'spent': 1.0}, {'item': 'bureau', 'purchases': 1, 'spent': 5.0}]
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        lease: float = 60.0,
        busy_timeout: float = 30.0,
        synchronous: Literal["normal", "full"] = "normal",
        clock: Callable[[], float] = time.time,
    ) -> None:
        if synchronous not in ("normal", "full"):
            raise ValueError(f"synchronous is 'normal' or 'full', not {synchronous!r}.")
        if not lease > 0:
            raise ValueError(f"lease is {lease!r}, must be > 0 seconds.")
        self.lease = lease
        self._clock = clock
        self._store = Store(path, busy_timeout, synchronous)

    @property
    def path(self) -> Path:
        """The file."""
        return self._store.path

    # -- what sessions call -----------------------------------------------------------------------

    def claim(
        self,
        entity: Hashable,
        wants: Sequence[Want],
        *,
        limits: Limits,
        asking: tuple[str, float] | None = None,
        unknown: str = "refuse",
    ) -> Claim:
        """Say what is there already, and write down the intent to buy the rest.

        Parameters
        ----------
        entity : text or whole number
        wants : items that are needed
        limits : caps under which the prices are reserved; :class:`LimitError` leaves the books as they were.
        asking : name and price of the stage that is about to be asked, where that costs something.
        unknown : see :class:`Policy`.
        """
        now = self._clock()
        if asking is None or not asking[1]:
            with self._store.reading() as connection:
                found = claims.reusable(connection, name_to_json(entity), wants, now)
            if found is not None:
                return Claim(reused=found)
        with self._store.transaction() as connection:
            return claims.claim(
                connection,
                entity,
                wants,
                now=self._clock(),
                lease=self.lease,
                limits=limits,
                asking=asking,
                unknown=unknown,
            )

    def close_calls(self, outcomes: Sequence[Outcome]) -> None:
        """Write down how calls ended."""
        with self._store.transaction() as connection:
            claims.close(connection, outcomes, self._clock())

    def repeat(self, key: str, *, limits: Limits, reason: str) -> str | None:
        """Write down that a request under way may have been paid and is made once more, as a purchase of its own.

        Returns its key, or None where somebody else has taken the request over by now.

        Parameters
        ----------
        key : of the request.
        limits : caps under which its price is reserved again; :class:`LimitError` leaves the books as they were.
        reason : what happened.
        """
        with self._store.transaction() as connection:
            return claims.repeat(
                connection,
                key,
                now=self._clock(),
                lease=self.lease,
                limits=limits,
                reason=reason,
            )

    def doubt(self, entity: Hashable, items: Sequence[Hashable], reason: str) -> None:
        """Note that what came for some items is nonsense: whether a request went well is unknown again.

        Its values are forgotten and its price stays spent. A request is one thing: all its items are doubted.
        """
        with self._store.transaction() as connection:
            claims.doubt(connection, entity, items, reason)

    def watch(self, limits: Limits) -> None:
        """Keep running sums for the time windows of some limits."""
        if limits.per_window:
            with self._store.transaction() as connection:
                for seconds in limits.per_window:
                    claims.watch(connection, seconds, self._clock())

    def take_over(
        self, sources: Sequence[str], after: int = 0
    ) -> tuple[int, Hashable, Call] | None:
        """A purchase of unknown end that one of these sources can be asked for again; its lease is renewed.

        Returns its number, entity and call, or None; ``after`` is the number of the last one looked at.
        """
        marks = ", ".join("?" * len(sources))
        with self._store.transaction() as connection:
            row = connection.execute(
                "select min(id) as id, entity, key, source from purchases where kind = 'item' and honours_keys = 1 "
                "and (status = 'unknown' or status = 'open' and lease <= ?) and live = 1 "
                f"and source in ({marks}) group by key having min(id) > ? order by 1 limit 1",
                (self._clock(), *sources, after),
            ).fetchone()
            if row is None:
                return None
            call = claims._again(connection, row["key"], row["source"], self._clock() + self.lease)
            return row["id"], json.loads(row["entity"]), call

    # -- reading ----------------------------------------------------------------------------------

    def total(self, entity: Hashable = None) -> float:
        """What was paid, by everybody or for one entity, calls of stages included."""
        return self._sum("status = 'paid'", entity)

    def at_risk(self, entity: Hashable = None) -> float:
        """What may have been paid: purchases that are open or whose end is unknown. Limits count it as spent."""
        return self._sum("status in ('open', 'unknown')", entity)

    def _sum(self, condition: str, entity: Hashable) -> float:
        query = f"select price, count(*) from purchases where {condition}"
        values: tuple[str, ...] = ()
        if entity is not None:
            query, values = query + " and entity = ?", (name_to_json(entity),)
        with self._store.reading() as connection:
            rows = connection.execute(query + " group by price", values).fetchall()
        return math.fsum(price * count for price, count in rows)

    def purchases(
        self, entity: Hashable = None, *, status: str | None = None, values: bool = False
    ) -> list[dict[str, Any]]:
        """Purchases in the order in which they were opened, as plain data.

        Parameters
        ----------
        entity : only hers.
        status : only ``"open"``, ``"paid"``, ``"unknown"`` or ``"failed"`` ones.
        values : bool, default=False
            Whether to add what was bought, a mapping of column to value (None when there is none).
        """
        conditions = {"entity": None if entity is None else name_to_json(entity), "status": status}
        given = {name: value for name, value in conditions.items() if value is not None}
        where = " and ".join(f"{name} = ?" for name in given) or "1"
        with self._store.reading() as connection:
            rows = connection.execute(
                f"select {', '.join(_PUBLIC)}, answer from purchases where {where} order by id",
                tuple(given.values()),
            ).fetchall()
        out = []
        for row in rows:
            purchase = {name: row[name] for name in _PUBLIC}
            purchase |= {name: json.loads(row[name]) for name in ("entity", "item")}
            if values:
                purchase["values"] = None if row["answer"] is None else from_json(row["answer"])
            out.append(purchase)
        return out

    def by_day(self) -> list[dict[str, Any]]:
        """Purchases and money paid per day (UTC)."""
        return self._summary("date(settled, 'unixepoch')", "day")

    def by_item(self) -> list[dict[str, Any]]:
        """Purchases and money paid per item, in the order of the first purchase."""
        rows = self._summary("item", "item")
        return [row | {"item": json.loads(row["item"])} for row in rows]

    def _summary(self, group: str, name: str) -> list[dict[str, Any]]:
        query = (
            f"select {group} as name, price, count(*) as purchases from purchases where status = 'paid' "
            "group by 1, 2 order by min(id)"
        )
        with self._store.reading() as connection:
            rows = connection.execute(query).fetchall()
        # Added up here, price by price: a sum of many small floats in SQLite would show in the last digits.
        prices: dict[str, list[tuple[float, int]]] = {}
        for row in rows:
            prices.setdefault(row["name"], []).append((row["price"], row["purchases"]))
        return [
            {
                name: group,
                "purchases": sum(count for _, count in pairs),
                "spent": math.fsum(price * count for price, count in pairs),
            }
            for group, pairs in prices.items()
        ]

    def export(self, path: str | os.PathLike[str], *, values: bool = False) -> None:
        """Write all purchases to a ``.csv`` or ``.parquet`` file, times in UTC.

        ``values`` adds what was bought, as JSON: personal data.
        """
        export(self.purchases(values=values), path, [*_PUBLIC, *(["values"] if values else [])])

    # -- what people decide -----------------------------------------------------------------------

    def resolve(
        self, key: str, *, paid: bool, values: Mapping[Any, Mapping[Any, Any]] | None = None
    ) -> None:
        """Say how a payment of unknown end ended, from the source's invoice.

        Parameters
        ----------
        key : of the request, see :meth:`purchases`.
        paid : bool
            False gives its price back to the limits.
        values : mapping of item to mapping of column to value, optional
            What was bought, if it is known. Paid and lost, without values, the item may be bought again.
        """
        now = self._clock()
        with self._store.transaction() as connection:
            rows = connection.execute(
                "select item, lease from purchases where key = ? and status in ('open', 'unknown')",
                (key,),
            ).fetchall()
            if not rows or any(row["lease"] > now for row in rows):
                raise ValueError(f"No purchase with key {key!r} has an unknown end.")
            if not paid:
                claims.give_back(connection, key, now, "resolved: not paid")
                return
            given = {
                item: {column: plain(value) for column, value in pairs.items()}
                for item, pairs in (values or {}).items()
            }
            claims.close(connection, [Outcome(key, given)], now)
            for row in rows:
                if json.loads(row["item"]) not in given:
                    connection.execute(
                        "update purchases set live = 0, answer = null where key = ? and item = ?",
                        (key, row["item"]),
                    )

    def purge(self, entity: Hashable) -> int:
        """Forget the values of an entity, also those of purchases under way; what was paid stays in the books.

        Returns the number of purchases whose values are gone.
        """
        name = name_to_json(entity)
        with self._store.transaction() as connection:
            gone = connection.execute(
                "update purchases set answer = null, live = 0 where entity = ? and answer is not null",
                (name,),
            ).rowcount
            connection.execute(
                "update purchases set keep = 0 where entity = ? and status in ('open', 'unknown')",
                (name,),
            )
        with self._store.reading() as connection:
            # Values must not live on in the write-ahead log either.
            connection.execute("pragma wal_checkpoint(truncate)").fetchall()
        return int(gone)

    # -- states of pacers ---------------------------------------------------------------------------

    def load_state(self, name: str) -> dict[str, Any] | None:
        """State kept under a name, None when there is none."""
        with self._store.reading() as connection:
            row = connection.execute(
                "select content from states where name = ?", (name,)
            ).fetchone()
        return None if row is None else json.loads(row["content"])

    def save_state(self, name: str, state: Mapping[str, Any]) -> None:
        """Keep a state of plain data under a name."""
        with self._store.transaction() as connection:
            connection.execute(
                "insert or replace into states values (?, ?)", (name, json.dumps(dict(state)))
            )

    def close(self) -> None:
        """Close the file."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r}): {self.total():.10g} paid"
