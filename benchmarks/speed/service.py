"""Figures of the service: requests per second and times at 64 connections on loopback, errors, memory.

    python benchmarks/speed/service.py [--seconds 60] [--connections 64] [--ledger]

One worker in a process of its own serves a bundle with two hundred trees; the load comes from this process on the same
machine, each connection asking again as soon as it is answered, so on two processors the load takes one of them. Three
kinds of request in turns: the server buys from memory, the client sends all columns, the client begins and continues a
conversation. ``SPARING_SCRATCH`` names a folder for the bundle and the ledger.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import httpx
import numpy as np

KEY = "a-key-for-the-benchmark"
N_ROWS = 2000
N_COLUMNS = 20


def data(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Ten cheap and ten dear columns, all of some use."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, N_COLUMNS))
    signal = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] + 0.3 * X[:, 10] * X[:, 11]
    return X, (signal + 0.3 * rng.normal(size=n) > 0).astype(int)


# -- the server -----------------------------------------------------------------------------------------


def make(path: Path) -> None:
    from sklearn.linear_model import LogisticRegression

    from sparing import AdaptGbrtClassifier
    from sparing.runtime import save

    X, y = data(N_ROWS)
    clf = AdaptGbrtClassifier(
        LogisticRegression(),
        feature_costs=np.repeat([1.0, 5.0], N_COLUMNS // 2),
        gate="joint",
        n_estimators=200,
        full_rate=0.3,
        random_state=0,
    ).fit(X, y)
    save(clf, path)


def run_server(path: Path, port: int, ledger: Path | None) -> None:
    from sparing.runtime import MappingSource
    from sparing.runtime.service import serve

    source = MappingSource(data(N_ROWS, seed=1)[0], range(N_COLUMNS))
    serve(path, port=port, sources=[source], keys=[KEY], rate=None, ledger=ledger)


def memory(pid: int) -> float:
    """Resident MB of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 2**20


def processor_seconds(pid: int) -> float:
    """Processor time a process has had."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# -- the load -------------------------------------------------------------------------------------------


class Connection:
    """A connection that asks one thing after the other; plain sockets, so that the server is what is measured."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter | None = None

    async def post(self, body: dict) -> tuple[int, bytes]:
        if self._writer is None:
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        content = json.dumps(body).encode()
        head = (
            f"POST /v1/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {KEY}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        )
        self._writer.write(head.encode() + content)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        length = int(answer.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        return int(answer[9:12]), await self._reader.readexactly(length)

    async def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            await self._writer.wait_closed()
            self._writer = None


class Load:
    """Many connections, each asking as soon as it is answered."""

    def __init__(self, port: int, connections: int) -> None:
        self._port, self._connections = port, connections
        self._rows = [
            {str(j): value for j, value in enumerate(row)}
            for row in data(N_ROWS, seed=1)[0].tolist()
        ]
        self.seconds: list[float] = []
        self.statuses: Counter[str] = Counter()

    async def run(self, kinds: list[str], seconds: float) -> float:
        """Ask for some time; the seconds it really took."""
        begin = time.perf_counter()
        workers = (self._worker(kinds, n, begin + seconds) for n in range(self._connections))
        await asyncio.gather(*workers)
        return time.perf_counter() - begin

    async def _worker(self, kinds: list[str], number: int, end: float) -> None:
        connection, turn = Connection(self._port), number
        while time.perf_counter() < end:
            kind = kinds[turn % len(kinds)]
            entity = (turn * 7919) % N_ROWS
            turn += 1
            if kind == "entity":
                await self._ask(connection, {"entity": entity})
            elif kind == "columns":
                await self._ask(connection, {"columns": self._rows[entity]})
            else:
                await self._converse(connection, self._rows[entity])
        await connection.close()

    async def _converse(self, connection: Connection, row: dict[str, float]) -> None:
        columns: dict[str, float] = {}
        content = await self._ask(connection, {"columns": columns})
        while content.get("status") == "items_needed":
            columns = columns | {name: row[name] for name in content["columns"]}
            content = await self._ask(connection, {"columns": columns, "token": content["token"]})

    async def _ask(self, connection: Connection, body: dict) -> dict:
        begin = time.perf_counter()
        try:
            status, content = await connection.post(body)
        except (OSError, EOFError) as error:
            self.statuses[type(error).__name__] += 1
            await connection.close()
            return {}
        self.seconds.append(time.perf_counter() - begin)
        self.statuses[str(status)] += 1
        return json.loads(content)


def figures(load: Load, name: str, took: float, busy: float, own: float) -> str:
    times = 1e3 * np.array(load.seconds)
    p50, p99, most = np.percentile(times, [50, 99, 100])
    errors = sum(n for status, n in load.statuses.items() if status != "200")
    n = len(times)
    return (
        f"| {name} | {n / took:,.0f} | {p50:.1f} | {p99:.1f} | {most:.0f} | {errors} | {1e3 * busy / n:.2f} | "
        f"{1e3 * own / n:.2f} |"
    )


def wait_for(url: str, process: subprocess.Popen) -> None:
    for _ in range(600):
        try:
            if httpx.get(f"{url}/healthz").status_code == 200:
                return
        except httpx.ConnectError:
            time.sleep(0.1)
        if process.poll() is not None:
            raise RuntimeError("The server did not start.")
    raise RuntimeError("The server does not answer.")


def measure(port: int, pid: int, seconds: float, connections: int) -> None:
    parts = {
        "entity": ["entity"],
        "columns": ["columns"],
        "conversation": ["conversation"],
        "all in turns": ["entity", "columns", "conversation"],
    }
    warm = Load(port, connections)
    asyncio.run(warm.run(parts["all in turns"], 3.0))
    print(
        "| requests | per second | p50, ms | p99, ms | longest, ms | errors | server's processor, ms each | load's |\n"
        "|---|---|---|---|---|---|---|---|"
    )
    sizes = []
    for name, kinds in parts.items():
        # The last one is held for the time asked for, in pieces between which memory is looked at.
        pieces = 6 if name == "all in turns" else 1
        share = seconds / pieces if pieces > 1 else max(2.0, seconds / 6)
        load, took = Load(port, connections), 0.0
        busy, own = processor_seconds(pid), time.process_time()
        for _ in range(pieces):
            took += asyncio.run(load.run(kinds, share))
            if pieces > 1:
                sizes.append(memory(pid))
        busy, own = processor_seconds(pid) - busy, time.process_time() - own
        print(figures(load, f"{name}, {took:.0f} s", took, busy, own), flush=True)
    print(f"\nResident memory during the last one, MB: {', '.join(f'{s:.1f}' for s in sizes)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--port", type=int, default=8765)
    parser.add_argument("--ledger", action="store_true", help="keep books in a file")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.serve is not None:
        books = chosen.serve.with_name("books.db") if chosen.ledger else None
        run_server(chosen.serve, chosen.port, books)
        return
    with tempfile.TemporaryDirectory(dir=os.environ.get("SPARING_SCRATCH")) as folder:
        path = Path(folder, "model.sparing")
        make(path)
        command = [sys.executable, __file__, "--serve", str(path), "--port", str(chosen.port)]
        command += ["--ledger"] if chosen.ledger else []
        with Path(folder, "log").open("w") as log:
            process = subprocess.Popen(command, stderr=log)
        try:
            url = f"http://127.0.0.1:{chosen.port}"
            wait_for(url, process)
            measure(chosen.port, process.pid, chosen.seconds, chosen.connections)
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main()
