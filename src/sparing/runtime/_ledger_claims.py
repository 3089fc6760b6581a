"""The transactions in which purchases are claimed and closed: who pays, who waits, who may use what is there.

All items of one request share a key and a status. The states of a purchase::

    open ──► paid        an answer came and is written down
     │ └──► failed      it surely cost nothing; the reservation is given back
     └────► unknown     it may have been paid: the lease ran out (a crash), or the answer never came
    unknown ──► open    asked again under the same key, where the source honours it; elsewhere a retry opens a new one
    paid ──► unknown    what came turned out to be nonsense
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence

from sparing.runtime._claim import Call, Claim, Outcome, Want, new_key
from sparing.runtime._values import Value, from_json, name_to_json, names_to_json, to_json
from sparing.runtime.limits import BUCKETS, Limits

_LIVE = """select item, source, key, status, lease, expires, opened, time_to_live, honours_keys, price, answer
from purchases where entity = ? and live = 1"""


def reusable(
    connection: sqlite3.Connection, entity: str, wants: Sequence[Want], now: float
) -> dict[Hashable, dict[Hashable, Value]] | None:
    """Values of all wants if every one is paid and valid, else None; needs no transaction."""
    rows = {row["item"]: row for row in connection.execute(_LIVE, (entity,))}
    found = {}
    for want in wants:
        row = rows.get(name_to_json(want.item))
        if row is None or row["status"] != "paid" or _expired(row, now):
            return None
        found[want.item] = from_json(row["answer"])
    return found


def claim(
    connection: sqlite3.Connection,
    entity: Hashable,
    wants: Sequence[Want],
    *,
    now: float,
    lease: float,
    limits: Limits,
    asking: tuple[str, float] | None,
    unknown: str,
) -> Claim:
    """Decide about every want, reserve the prices and write the intents, inside a transaction."""
    name = name_to_json(entity)
    rows = {row["item"]: row for row in connection.execute(_LIVE, (name,))}
    reused: dict[Hashable, dict[Hashable, Value]] = {}
    waiting, refused, buying = [], [], []
    again: dict[str, str] = {}  # key → source
    retired: list[
        tuple[str, str]
    ] = []  # keys that stand in nobody's way from now on, and their status
    for want in wants:
        row = rows.get(name_to_json(want.item))
        if row is None:
            buying.append(want)
        elif row["status"] == "paid":
            if _expired(row, now):
                connection.execute(
                    "update purchases set live = 0 where entity = ? and item = ? and live = 1",
                    (name, row["item"]),
                )
                buying.append(want)
            else:
                reused[want.item] = from_json(row["answer"])
        elif row["status"] == "open" and row["lease"] > now:
            waiting.append(want.item)
        elif _forgotten(row, now):
            retired.append((row["key"], "unknown"))
            buying.append(want)
        elif row["honours_keys"] and want.honours_keys and row["source"] == want.source:
            again[row["key"]] = row["source"]
        elif unknown == "retry" or row["price"] == 0:
            retired.append((row["key"], "unknown"))
            buying.append(want)
        else:
            refused.append(want.item)
    if refused:
        # The stage cannot be reached: nothing else is bought for it. What was found out is noted.
        keys = {rows[name_to_json(item)]["key"] for item in refused}
        _set_status(connection, ((key, "unknown") for key in keys), live=1)
        return Claim(refused=tuple(refused))
    price = sum(want.price for want in buying) + (0.0 if asking is None else asking[1])
    limits.check(
        entity,
        price,
        lambda: spent(connection, name),
        lambda seconds: spent_in(connection, seconds, now),
    )
    _set_status(connection, retired, live=0)
    calls = [_again(connection, key, source, now + lease) for key, source in again.items()]
    windows = _windows(connection)
    calls += _open(connection, name, buying, now, lease)
    for want in buying:
        _spend(connection, windows, want.price, now)
    key = None
    if asking is not None and asking[1] > 0:
        key = new_key()
        call = Want(asking[0], "", asking[1], None, False, ())
        _insert(connection, "call", name, call, key, now, lease)
        _spend(connection, windows, asking[1], now)
    for seconds in windows if price else ():
        connection.execute(
            "delete from spending where seconds = ? and bucket < ?",
            (seconds, _bucket(seconds, now) - 2 * BUCKETS),
        )
    return Claim(tuple(calls), reused, tuple(waiting), (), key)


def _expired(row: sqlite3.Row, now: float) -> bool:
    return row["expires"] is not None and row["expires"] <= now


def _forgotten(row: sqlite3.Row, now: float) -> bool:
    """Whether a payment of unknown end is so old that its value would have expired."""
    return row["time_to_live"] is not None and row["opened"] + row["time_to_live"] <= now


def _set_status(
    connection: sqlite3.Connection, keys: Iterable[tuple[str, str]], *, live: int
) -> None:
    for key, status in keys:
        connection.execute(
            "update purchases set status = ?, live = ?, lease = 0 where key = ? and status in ('open', 'unknown')",
            (status, live, key),
        )


def _again(connection: sqlite3.Connection, key: str, source: str, lease: float) -> Call:
    """Take over a request of unknown end: all its items, under its key."""
    connection.execute(
        "update purchases set status = 'open', lease = ?, attempts = attempts + 1 where key = ?",
        (lease, key),
    )
    rows = connection.execute(
        "select item, columns from purchases where key = ? order by id", (key,)
    ).fetchall()
    items = tuple(json.loads(row["item"]) for row in rows)
    columns = tuple(tuple(json.loads(row["columns"])) for row in rows)
    return Call(key, source, items, columns, again=True)


def _open(
    connection: sqlite3.Connection, entity: str, wants: Sequence[Want], now: float, lease: float
) -> list[Call]:
    by_source: defaultdict[str, list[Want]] = defaultdict(list)
    for want in wants:
        by_source[want.source].append(want)
    calls = []
    for source, group in by_source.items():
        key = new_key()
        for want in group:
            _insert(connection, "item", entity, want, key, now, lease)
        items = tuple(want.item for want in group)
        calls.append(Call(key, source, items, tuple(want.columns for want in group)))
    return calls


def _insert(
    connection: sqlite3.Connection,
    kind: str,
    entity: str,
    want: Want,
    key: str,
    now: float,
    lease: float,
) -> None:
    connection.execute(
        "insert into purchases (kind, entity, item, columns, source, key, price, status, live, opened, lease, "
        "time_to_live, honours_keys) values (?, ?, ?, ?, ?, ?, ?, 'open', ?, ?, ?, ?, ?)",
        (
            *(kind, entity, name_to_json(want.item), names_to_json(want.columns), want.source, key),
            *(want.price, int(kind == "item"), now, now + lease),
            *(want.time_to_live, int(want.honours_keys)),
        ),
    )


def close(connection: sqlite3.Connection, outcomes: Iterable[Outcome], now: float) -> None:
    """Write down how calls ended. A result that comes late is still the result of a payment."""
    for outcome in outcomes:
        if outcome.values is not None:
            _settle(connection, outcome, now)
        elif outcome.paid is False:
            give_back(connection, outcome.key, now, outcome.reason)
        else:
            connection.execute(
                "update purchases set status = 'unknown', lease = 0, reason = ? where key = ? and status = 'open'",
                (outcome.reason, outcome.key),
            )


def _settle(connection: sqlite3.Connection, outcome: Outcome, now: float) -> None:
    assert outcome.values is not None
    rows = connection.execute(
        "select id, kind, item, live, keep, time_to_live from purchases where key = ? "
        "and status in ('open', 'unknown')",
        (outcome.key,),
    ).fetchall()
    for row in rows:
        values = outcome.values.get(json.loads(row["item"]), {}) if row["kind"] == "item" else {}
        expires = None if row["time_to_live"] is None else now + row["time_to_live"]
        connection.execute(
            "update purchases set status = 'paid', live = ?, settled = ?, expires = ?, answer = ?, reason = null "
            "where id = ?",
            (
                int(row["live"] and row["keep"]),
                now,
                expires,
                to_json(values) if row["keep"] and row["kind"] == "item" else None,
                row["id"],
            ),
        )


def repeat(
    connection: sqlite3.Connection,
    key: str,
    *,
    now: float,
    lease: float,
    limits: Limits,
    reason: str,
) -> str | None:
    """Open a request once more under a key of its own, and leave the end of the old one unknown.

    None where somebody else has it by now; a LimitError leaves it as it was.
    """
    rows = connection.execute(
        "select entity, price from purchases where key = ? and status = 'open' and live = 1", (key,)
    ).fetchall()
    if not rows:
        return None
    name, price = rows[0]["entity"], sum(row["price"] for row in rows)
    limits.check(
        json.loads(name),
        price,
        lambda: spent(connection, name),
        lambda seconds: spent_in(connection, seconds, now),
    )
    connection.execute(
        "update purchases set status = 'unknown', live = 0, lease = 0, reason = ? where key = ?",
        (reason, key),
    )
    another = new_key()
    connection.execute(
        "insert into purchases (kind, entity, item, columns, source, key, price, status, live, opened, lease, "
        "time_to_live, honours_keys, keep) select kind, entity, item, columns, source, ?, price, 'open', 1, ?, ?, "
        "time_to_live, honours_keys, keep from purchases where key = ? order by id",
        (another, now, now + lease, key),
    )
    _spend(connection, _windows(connection), price, now)
    return another


def doubt(
    connection: sqlite3.Connection, entity: Hashable, items: Iterable[Hashable], reason: str
) -> None:
    """Make the end of requests unknown that brought some items."""
    for item in items:
        connection.execute(
            "update purchases set status = 'unknown', lease = 0, settled = null, expires = null, answer = null, "
            "reason = ? where status = 'paid' and key in (select key from purchases where entity = ? and item = ? "
            "and live = 1 and status = 'paid')",
            (reason, name_to_json(entity), name_to_json(item)),
        )


def give_back(connection: sqlite3.Connection, key: str, now: float, reason: str) -> None:
    """Note that a request cost nothing after all."""
    rows = connection.execute(
        "select id, price, opened from purchases where key = ? and status in ('open', 'unknown')",
        (key,),
    ).fetchall()
    windows = _windows(connection)
    for row in rows:
        connection.execute(
            "update purchases set status = 'failed', live = 0, settled = ?, reason = ? where id = ?",
            (now, reason, row["id"]),
        )
        _spend(connection, windows, -row["price"], row["opened"])


# -- what is spent ----------------------------------------------------------------------------------


def spent(connection: sqlite3.Connection, entity: str) -> float:
    """What an entity has cost, everything that may have been paid included."""
    (total,) = connection.execute(
        "select total(price) from purchases where entity = ? and status != 'failed'", (entity,)
    ).fetchone()
    return float(total)


def spent_in(connection: sqlite3.Connection, seconds: float, now: float) -> float:
    """What was spent in the last so many seconds, and the oldest part of the window before them."""
    (total,) = connection.execute(
        "select total(amount) from spending where seconds = ? and bucket >= ?",
        (seconds, _bucket(seconds, now) - BUCKETS),
    ).fetchone()
    return float(total)


def watch(connection: sqlite3.Connection, seconds: float, now: float) -> None:
    """Keep sums for windows of this length from now on, beginning with what is in the books."""
    known = connection.execute("select 1 from windows where seconds = ?", (seconds,)).fetchone()
    if known:
        return
    connection.execute("insert into windows values (?)", (seconds,))
    recent = connection.execute(
        "select price, opened from purchases where opened > ? and status != 'failed'",
        (now - 2 * seconds,),
    ).fetchall()
    for row in recent:
        _add(connection, seconds, row["opened"], row["price"])


def _windows(connection: sqlite3.Connection) -> list[float]:
    return [seconds for (seconds,) in connection.execute("select seconds from windows")]


def _spend(
    connection: sqlite3.Connection, windows: Iterable[float], price: float, when: float
) -> None:
    for seconds in windows if price else ():
        _add(connection, seconds, when, price)


def _add(connection: sqlite3.Connection, seconds: float, when: float, price: float) -> None:
    connection.execute(
        "insert into spending values (?, ?, ?) on conflict do update set amount = amount + excluded.amount",
        (seconds, _bucket(seconds, when), price),
    )


def _bucket(seconds: float, when: float) -> int:
    return int(when // (seconds / BUCKETS))
