"""Workers that share a ledger and are killed at random moments: ``python nursery.py FOLDER N_KILLS [--ignore-keys]``.

A process of its own, because it forks, and a fork in a process with threads is asking for trouble. The source keeps its
own book of payments in another SQLite file and honours idempotency keys. Prints one JSON object for the test to judge.
"""

import json
import os
import random
import signal
import sqlite3
import sys
import time
import traceback
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from handmade import Margin, Sigmoid
from sparing.costs import FeatureCosts
from sparing.runtime import Ledger, Limits, NoAnswerError, Policy, Session, Source, SourceError
from sparing.system import Stage, System

N_WORKERS = 3
LEASE = 0.25
ENTITY_CAP = (
    6.5  # everything an entity can be sold costs 6: a second payment of anything dear would show
)
WINDOW, WINDOW_CAP = 0.2, 100.0
TOTAL_WINDOW = 3600.0


def system():
    stages = (
        Stage(Sigmoid(0, also=(1,)), Margin(0), -1.0, name="cheap"),
        Stage(Sigmoid(2, also=(3,)), name="full"),
    )
    costs = FeatureCosts({"a": 0.5, "b": 0.5, "c": 2.0, "d": 3.0})
    return System(stages, costs, np.array([0, 1]))


def value(entity, column):
    """What the source knows: the first column is small for most, so that most go on."""
    return random.Random(f"{entity} {column}").gauss(0, 1)


class Bureau(Source):
    """Sells what it is asked for, and writes down every payment under its key."""

    def __init__(self, items, name, book, honours_keys):
        super().__init__(items, name=name, honours_keys=honours_keys)
        self.book = book

    def fetch(self, request):
        time.sleep(random.expovariate(1 / 0.001))
        if random.random() < 0.03:
            raise SourceError("refused", paid=False)
        with closing(sqlite3.connect(self.book, timeout=60, isolation_level=None)) as connection:
            connection.execute("pragma synchronous = off")
            key = request.key if self.honours_keys else os.urandom(8).hex()
            connection.execute(
                "insert or ignore into payments values (?, ?, ?)",
                (key, request.entity, json.dumps(request.items)),
            )
        time.sleep(random.expovariate(1 / 0.001))
        if random.random() < 0.03:
            raise SourceError("lost on the way")
        return {column: value(request.entity, column) for column in request.columns}


def session(folder, total, honours_keys):
    book = folder / "bureau.db"
    sources = [
        Bureau(["a", "b", "c"], "one", book, honours_keys),
        Bureau(["d"], "two", book, honours_keys),
    ]
    ledger = Ledger(folder / "ledger.db", lease=LEASE, busy_timeout=60)
    windows = {WINDOW: WINDOW_CAP, TOTAL_WINDOW: total}
    return Session(
        system(),
        sources,
        ledger=ledger,
        limits=Limits(per_entity=ENTITY_CAP, per_window=windows),
        policy=Policy(
            backoff=0.001, breaker_failures=10**9, unknown="refuse" if honours_keys else "retry"
        ),
    )


def work(folder, total, counter, honours_keys):
    """Answer for entities that others work on at the same moment, until killed."""
    random.seed(os.urandom(8))
    mine = session(folder, total, honours_keys)
    while True:
        # Everybody is near the same place in the queue: they meet at the same entities, and come back to old ones.
        place = int(counter.read_text() or 0)
        entity = random.randrange(max(0, place - 15), place + 15)
        with suppress(NoAnswerError):
            mine.predict(entity)


def start(*arguments):
    pid = os.fork()
    if pid == 0:
        try:
            work(*arguments)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(1)
    return pid


def killed(pid):
    """Kill a worker of ours; False when it had died of something else."""
    os.kill(pid, signal.SIGKILL)  # a zombie until it is waited for: the number is still its own
    _, status = os.waitpid(pid, 0)
    return os.WIFSIGNALED(status)


def main(folder, n_kills, honours_keys):
    folder = Path(folder)
    book = folder / "bureau.db"
    with closing(sqlite3.connect(book)) as connection:
        connection.execute("pragma journal_mode = wal")
        connection.execute(
            "create table payments (key text primary key, entity integer, items text)"
        )
        connection.commit()
    total = 20.0 * n_kills  # may be reached before the end
    counter = folder / "counter"
    counter.write_text("0")
    session(folder, total, honours_keys).ledger.close()
    arguments = (folder, total, counter, honours_keys)
    workers = [start(*arguments) for _ in range(N_WORKERS)]
    begin, crashed = time.monotonic(), 0
    for kill in range(n_kills):
        time.sleep(random.uniform(0.0, 0.06))
        (folder / "next").write_text(str(4 * kill))
        (folder / "next").replace(counter)  # never half a number
        victim = random.randrange(N_WORKERS)
        crashed += not killed(workers[victim])
        workers[victim] = start(*arguments)
    crashed += sum(not killed(pid) for pid in workers)
    seconds = time.monotonic() - begin
    time.sleep(LEASE + 0.05)
    last = session(folder, total, honours_keys)
    recovered = last.recover()
    recovered += last.recover()  # the source may have lost an answer once more
    recovered += last.recover()
    print(
        json.dumps(
            {"seconds": seconds, "crashed": crashed, "recovered": recovered}
            | judge(folder, last.ledger, total)
        )
    )


def judge(folder, ledger, total):
    prices = dict(zip(system().costs.items, system().costs.item_prices.tolist(), strict=True))
    with closing(sqlite3.connect(folder / "bureau.db")) as connection:
        payments = connection.execute("select key, entity, items from payments").fetchall()
    paid = [(entity, item) for _, entity, items in payments for item in json.loads(items)]
    kept = {
        (row["entity"], row["item"]): row["values"]
        for row in ledger.purchases(status="paid", values=True)
    }
    lost = [
        (entity, item)
        for entity, item in set(paid)
        if kept.get((entity, item), {}).get(item) != value(entity, item)
    ]
    per_entity = Counter()
    for entity, item in paid:
        per_entity[entity] += prices[item]
    reserved = [row for row in ledger.purchases() if row["status"] != "failed"]
    opened = np.array([row["opened"] for row in reserved])
    spent = np.concatenate([[0.0], np.cumsum([row["price"] for row in reserved])])
    # In the order of the ledger's transactions: the spend of the window that ends with each purchase.
    order = np.argsort(opened, kind="stable")
    opened, spent = opened[order], np.concatenate([[0.0], np.cumsum(np.diff(spent)[order])])
    first = np.searchsorted(opened, opened - WINDOW, side="right")
    return {
        "payments": len(payments),
        "items": len(paid),
        "entities": len(per_entity),
        "again": sum(row["attempts"] > 1 for row in reserved),
        "paid_twice": len(paid) - len(set(paid)),
        "lost": len(lost),
        "phantom": len(set(kept) - set(paid)),
        "unsettled": len(reserved) - len(kept),
        "ledger_total": ledger.total(),
        "bureau_total": sum(prices[item] for _, item in paid),
        "largest_entity": max(per_entity.values(), default=0.0),
        "entity_cap": ENTITY_CAP,
        "largest_window": float((spent[1:] - spent[first]).max()),
        "window_cap": WINDOW_CAP,
        "total_cap": total,
    }


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), "--ignore-keys" not in sys.argv)
