"""The ledger's file: SQLite in WAL mode, its tables, and transactions that several threads and processes share."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FORMAT = 1

_TABLES = """
create table if not exists purchases (
    id integer primary key,
    kind text not null,             -- 'item', or 'call' for the price of asking a stage
    entity text not null,           -- JSON, as item: 1 and "1" are two
    item text not null,
    columns text not null,          -- JSON list of what comes with the item
    source text not null,
    key text not null,              -- idempotency key, the same for all items of one request
    price real not null,
    status text not null,           -- open, paid, unknown, failed
    live integer not null,          -- whether it stands in the way of buying the item again
    opened real not null,
    lease real not null,            -- until then whoever opened it is believed to be at work
    settled real,
    expires real,                   -- end of the time to live, null for never
    time_to_live real,
    honours_keys integer not null,
    attempts integer not null default 1,
    keep integer not null default 1,    -- 0 after a purge: whatever comes is not written down
    answer text,                    -- JSON pairs of column and value
    reason text
);
create unique index if not exists one_live_purchase on purchases (entity, item) where live = 1;
create index if not exists purchases_by_key on purchases (key);
create index if not exists purchases_by_entity on purchases (entity, status, price);
create index if not exists purchases_unsettled on purchases (lease) where status in ('open', 'unknown');
create table if not exists windows (seconds real primary key);
create table if not exists spending (
    seconds real not null, bucket integer not null, amount real not null, primary key (seconds, bucket)
) without rowid;
create table if not exists states (name text primary key, content text not null);
"""


_STORES: weakref.WeakSet[Store] = weakref.WeakSet()


class Store:
    """One connection per process, one transaction at a time in it.

    Threads queue at a lock, which is fair and fast; processes meet at SQLite's own lock, up to ``busy_timeout``.
    """

    def __init__(self, path: str | os.PathLike[str], busy_timeout: float, synchronous: str) -> None:
        self.path = Path(path)
        self._busy_timeout = busy_timeout
        self._synchronous = synchronous
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._process = os.getpid()
        self._inherited: list[sqlite3.Connection | None] = []
        _STORES.add(self)
        try:
            with _errors_naming(self.path):
                self._make()
        except BaseException:
            self.close()
            raise

    def _make(self) -> None:
        """Tables, where there are none yet."""
        with self.transaction() as connection:
            (found,) = connection.execute("pragma user_version").fetchone()
            if not found and connection.execute("select 1 from sqlite_master limit 1").fetchone():
                raise ValueError(
                    f"{self.path} is a database with other tables in it, not a ledger: give the ledger a file of its "
                    "own."
                )
            # One statement at a time: executescript would commit the transaction.
            for statement in _TABLES.split(";\n"):
                if statement.strip():
                    connection.execute(statement)
            if found not in (0, FORMAT):
                raise ValueError(
                    f"{self.path} is a ledger of format {found}, this version of sparing reads {FORMAT}."
                )
            connection.execute(f"pragma user_version = {FORMAT}")

    def _open(self) -> sqlite3.Connection:
        if self._process != os.getpid():
            # A connection must not be used, nor even closed, on the other side of a fork.
            self._inherited.append(self._connection)
            self._connection, self._process = None, os.getpid()
        if self._connection is None:
            connection = sqlite3.connect(
                self.path,
                timeout=self._busy_timeout,
                isolation_level=None,
                check_same_thread=False,
            )
            try:
                connection.row_factory = sqlite3.Row
                _switch_to_wal(connection, self._busy_timeout)
                connection.execute(f"pragma synchronous = {self._synchronous}")
                connection.execute("pragma secure_delete = on")
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing, and nobody else writes meanwhile."""
        with self._lock:
            connection = self._open()
            connection.execute("begin immediate")
            try:
                yield connection
                connection.execute("commit")
            except BaseException:
                # A disk that is full may have ended the transaction, or have left it open after a failed commit.
                if connection.in_transaction:
                    connection.execute("rollback")
                raise

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """For single statements that only look."""
        with self._lock:
            yield self._open()

    def close(self) -> None:
        """Close the file; it opens again by itself."""
        with self._lock:
            if self._connection is not None and self._process == os.getpid():
                self._connection.close()
            self._connection = None


def _unlock() -> None:
    """New locks in a process that was forked: who held the old ones is not in it, and would never give them back."""
    for store in _STORES:
        store._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock)


@contextmanager
def _errors_naming(path: Path) -> Iterator[None]:
    """Say which file cannot be opened, and what to do about it."""
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"The ledger {path} cannot be made: there is no folder {path.parent}. Make it first."
        )
    if path.is_dir():
        raise IsADirectoryError(
            f"The ledger {path} is a folder: give a file in it, {path / 'books.db'}."
        )
    try:
        yield
    except sqlite3.OperationalError as error:
        raise OSError(
            f"The ledger {path} cannot be opened: {error}. Look whether this process may write there, and whether "
            "another one holds it."
        ) from error
    except sqlite3.DatabaseError as error:
        raise ValueError(
            f"{path} is not a ledger, and it stays as it is: {error}. Give a new file, which is then made, or one that "
            "a ledger wrote."
        ) from error


def _switch_to_wal(connection: sqlite3.Connection, patience: float) -> None:
    # The first switch of a new file does not wait for others who do the same: SQLite's timeout is not asked.
    until = time.monotonic() + patience
    while True:
        try:
            connection.execute("pragma journal_mode = wal")
            return
        except sqlite3.OperationalError as error:
            for_ever = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_READONLY
            if for_ever or time.monotonic() > until:
                raise
            time.sleep(0.01)
