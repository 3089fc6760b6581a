"""Figures of the runtime: time of an answer, throughput with slow sources, pacing under drift.

    python benchmarks/speed/runtime.py [--quick]

Answers are timed in one process, one after the other, in turns with ``Booster.predict`` of the same rows: f1 and the
gate have 200 trees each with ``gate="joint"``; with ``gate="refit"`` f1 has its own number and the gate 120. Rows are
those that the cheap stage answers; a row that goes on costs the full model's own time on top. ``SPARING_SCRATCH`` names
a folder for the ledgers: waiting for its disk is part of their figures.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from sparing import AdaptGbrtClassifier
from sparing.runtime import Ledger, MappingSource, MockSource, Pacer, Session
from sparing.system import System

N_COLUMNS = 20


def data(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Ten cheap and ten dear columns, all of some use."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, N_COLUMNS))
    signal = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] + 0.3 * X[:, 10] * X[:, 11]
    return X, (signal + 0.3 * rng.normal(size=n) > 0).astype(int)


def learnt(gate: str, n: int) -> AdaptGbrtClassifier:
    X, y = data(n)
    return AdaptGbrtClassifier(
        RandomForestClassifier(20, random_state=0),
        feature_costs=np.repeat([1.0, 5.0], N_COLUMNS // 2),
        gate=gate,
        n_estimators=200,
        full_rate=0.3,
        random_state=0,
    ).fit(X, y)


# -- time of one answer ---------------------------------------------------------------------------------


def times(ways: dict[str, Callable[[int], object]], n: int) -> dict[str, np.ndarray]:
    """Seconds of each way for every row, taking turns every hundred rows."""
    out = {name: np.empty(n) for name in ways}
    for first in range(0, n, 100):
        for name, way in ways.items():
            for i in range(first, min(n, first + 100)):
                begin = time.perf_counter()
                way(i)
                out[name][i] = time.perf_counter() - begin
    return out


def answers(clf: AdaptGbrtClassifier, n: int, folder: Path) -> Iterator[str]:
    """Lines of the table; ways that wait for a disk are timed apart, they would cool the others' caches."""
    system = clf.system_
    X, _ = data(4 * n, seed=1)
    X = X[system.route(X) == 0][:n]
    n = len(X)
    trees = system.stages[0].predictor.pair.cheap.booster
    source = MappingSource(X, range(N_COLUMNS))
    session = Session(system, [source])
    ways: dict[str, Callable[[int], object]] = {
        "Booster.predict": lambda i: trees.predict(X[i : i + 1]),
        "System.predict": lambda i: system.predict(X[i : i + 1]),
        "Session, no ledger": session.predict,
    }
    times(ways, 50)  # warm
    found = times(ways, n)
    for synchronous in ("normal", "full"):
        with Ledger(folder / f"{synchronous}.db", synchronous=synchronous) as ledger:
            booked = Session(system, [source], ledger=ledger)
            name = f"Session, ledger ({synchronous}), buys"
            found |= times({name: booked.predict}, n if synchronous == "normal" else n // 10)
            if synchronous == "normal":
                found |= times({"Session, ledger, reuses": booked.predict}, n)
    base = np.median(found["Booster.predict"])
    for name, seconds in found.items():
        p50, p99 = 1e6 * np.percentile(seconds, [50, 99])
        yield f"| {clf.gate} | {name} | {p50:,.0f} | {p99:,.0f} | {1e-6 * p50 / base:.2f} |"


# -- throughput ---------------------------------------------------------------------------------------


def throughput(system: System, n: int) -> Iterator[str]:
    """Rows per second with sources that take 20 ms; the ideal does nothing but wait for them."""
    latency = 0.02
    X, _ = data(n, seed=2)
    for concurrency in (1, 16, 128):
        some = range(min(n, 40 * concurrency))
        sources = [
            MockSource(X, range(10), name="cheap", latency=latency),
            MockSource(X, range(10, N_COLUMNS), name="dear", latency=latency),
        ]
        ideal = concurrency / (latency * (1 + system.route(X[: len(some)]).mean()))
        with Session(system, sources) as session:
            ways: dict[str, Callable[..., object]] = {
                "threads": session.predict_many,
                "event loop": lambda *a, **k: asyncio.run(session.apredict_many(*a, **k)),
            }
            for name, run in ways.items():
                begin, spent = time.perf_counter(), time.process_time()
                run(some, concurrency=concurrency)
                rate = len(some) / (time.perf_counter() - begin)
                busy = (time.process_time() - spent) / len(some)
                yield (
                    f"| {concurrency} | {name} | {rate:,.0f} | {ideal:,.0f} | {rate / ideal:.0%} | "
                    f"{1e3 * busy:.2f} |"
                )


# -- pacing -------------------------------------------------------------------------------------------


def stream(system: System, n: int) -> np.ndarray:
    """Rows of which twice as many need the full model in the second half."""
    X, _ = data(3 * n, seed=3)
    hard = system.route(X) > 0
    share = hard.mean()
    rng = np.random.default_rng(4)
    needs = np.concatenate([rng.random(n // 2) < share, rng.random(n - n // 2) < 2 * share])
    rows = np.where(
        needs, rng.choice(np.flatnonzero(hard), n), rng.choice(np.flatnonzero(~hard), n)
    )
    return X[rows]


def pacing(system: System, n: int) -> Iterator[str]:
    """The stream served with and without a pacer whose target is what a row costs before the drift."""
    before, _ = data(4000, seed=5)
    X = stream(system, n)
    target = float(system.acquisition_cost(before).mean())
    pacer = Pacer.for_gate(system, target, scores=system.exit_scores(before)[:, 0])
    with Session(system, [MappingSource(X, range(N_COLUMNS))], pacer=pacer) as session:
        paced = np.array([session.predict(i).cost for i in range(n)])
    for name, costs in (("without pacer", system.acquisition_cost(X)), ("with pacer", paced)):
        parts = (costs[: n // 2], costs[n // 2 :], costs[-(n // 4) :], costs)
        cells = [f"{part.mean():.3f} ({part.mean() / target - 1:+.1%})" for part in parts]
        yield f"| {name} | {target:.3f} | " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rows")
    quick = parser.parse_args().quick
    n_rows, n_answers, n_many, n_stream = (
        (1500, 500, 1000, 4000) if quick else (4000, 3000, 5000, 20_000)
    )
    systems = {gate: learnt(gate, n_rows) for gate in ("joint", "refit")}
    print(
        "\n| gate | one answer | p50, µs | p99, µs | p50 over Booster.predict |\n|---|---|---|---|---|"
    )
    with tempfile.TemporaryDirectory(dir=os.environ.get("SPARING_SCRATCH")) as folder:
        for gate, clf in systems.items():
            part = Path(folder, gate)
            part.mkdir()
            for line in answers(clf, n_answers, part):
                print(line, flush=True)
    print(
        "\n| concurrency | predict_many, 20 ms sources | rows/s | ideal | reached | processor, ms per row |\n"
        "|---|---|---|---|---|---|"
    )
    for line in throughput(systems["joint"].system_, n_many):
        print(line, flush=True)
    print(f"\n| stream of {n_stream:,} | target | before | after | last {n_stream // 4:,} | all |")
    print("|---|---|---|---|---|---|")
    for line in pacing(systems["refit"].system_, n_stream):
        print(line, flush=True)


if __name__ == "__main__":
    main()
