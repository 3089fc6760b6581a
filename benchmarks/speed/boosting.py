"""Time per tree of the boosting engine over time per tree of plain LightGBM with the same depth and bins.

Both run in one process and take turns; the best of a few repetitions counts. One thread is timed by its own processor
time, which other processes hardly disturb; several threads by the clock on the wall, so leave them the machine. Data:
synthetic, or real where ``SPARING_DATA`` names a folder with ``letter.npz`` and ``covtype.npz``.

    python benchmarks/speed/boosting.py [--quick] [--threads 1 2]
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import lightgbm
import numpy as np

from sparing._allocation import allocate
from sparing._losses import cheap_loss
from sparing.costs import FeatureCosts
from sparing.engines.binning import BinnedData
from sparing.engines.boosting import BoostingEngine

Problem = tuple[str, np.ndarray, np.ndarray, int]


def problems() -> Iterator[Problem]:
    folder = os.environ.get("SPARING_DATA")
    yield ("synthetic 45,523 x 50", *synthetic(45523, 50, 2))
    if folder is None:
        yield ("synthetic 20,000 x 16", *synthetic(20000, 16, 2))
        yield ("synthetic 36,603 x 54", *synthetic(36603, 54, 7))
        return
    letter = np.load(Path(folder, "letter.npz"))
    yield "Letters 20,000 x 16", letter["X"].astype(float), (letter["y"] >= 13).astype(int), 2
    forest = np.load(Path(folder, "covtype.npz"))
    rows = np.random.default_rng(0).permutation(len(forest["y"]))[:36603]
    yield "Forest 36,603 x 54", forest["X"][rows].astype(float), forest["y"][rows] - 1, 7


def synthetic(n: int, n_columns: int, n_classes: int) -> tuple[np.ndarray, np.ndarray, int]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, n_columns))
    scores = X[:, :n_classes] + X[:, 8 : 8 + n_classes] * X[:, 1 : 1 + n_classes]
    return X, (scores + rng.normal(size=scores.shape)).argmax(axis=1), n_classes


def best_times(
    ways: dict[str, Callable[[], int]], repeats: int, clock: Callable[[], float]
) -> dict[str, float]:
    """Best time per tree of every way, taking turns; a way says how many trees it grew."""
    best = dict.fromkeys(ways, np.inf)
    for _ in range(repeats):
        for name, grow in ways.items():
            start = clock()
            n_trees = grow()
            best[name] = min(best[name], (clock() - start) / n_trees)
    return best


def measure(
    problem: Problem, threads: int, rounds: int, alternations: int, repeats: int
) -> dict[str, float]:
    """Milliseconds per tree of LightGBM, of the one-pass fit and of the alternation."""
    _, X, y, n_classes = problem
    data = BinnedData(X, n_jobs=threads)
    costs = FeatureCosts(np.ones(X.shape[1]))
    engine = BoostingEngine(data, y, n_classes, costs, n_estimators=rounds, n_jobs=threads)
    full_loss = np.random.default_rng(1).exponential(0.2, size=len(y))
    n_outputs = 1 if n_classes == 2 else n_classes

    labelled = lightgbm.Dataset(
        X, y, params={"verbosity": -1, "min_data_in_bin": 1, "feature_pre_filter": False}
    ).construct()
    params = engine._params | {"metric": "None", "num_class": n_outputs, "num_threads": threads}
    params["objective"] = "binary" if n_classes == 2 else "multiclass"

    def plain() -> int:
        booster = lightgbm.Booster(params, labelled)
        for _ in range(rounds):
            booster.update()
        return rounds * n_outputs

    def one_pass() -> int:
        grown = engine.grow_one_pass(full_loss, 0.3)
        return grown.n_iterations * (n_outputs + 1)

    def alternate() -> int:
        grown = engine.grow(np.zeros(len(y)))
        gate, trees = np.zeros(len(y)), grown.n_iterations * n_outputs
        for _ in range(alternations):
            q = allocate(cheap_loss(grown.cheap, y), full_loss, gate, 0.3).q
            grown = engine.grow(q, full_loss=full_loss)
            gate = grown.gate
            trees += grown.n_iterations * (n_outputs + 1)
        return trees

    clock = time.thread_time if threads == 1 else time.perf_counter
    times = best_times({"plain": plain, "one pass": one_pass}, repeats, clock)
    rest = best_times({"plain": plain, "alternate": alternate, "again": plain}, 1, clock)
    times["alternate"] = rest["alternate"]
    times["plain"] = min(times["plain"], rest["plain"], rest["again"])
    return {name: 1e3 * seconds for name, seconds in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds and alternations")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    options = parser.parse_args()
    rounds, alternations, repeats = (40, 2, 2) if options.quick else (100, 10, 3)
    print("| data | threads | LightGBM, ms per tree | one pass, ratio | alternation, ratio |")
    print("|---|---|---|---|---|")
    for problem in problems():
        for threads in options.threads:
            times = measure(problem, threads, rounds, alternations, repeats)
            ratios = (times[how] / times["plain"] for how in ("one pass", "alternate"))
            cells = [
                problem[0],
                str(threads),
                f"{times['plain']:.2f}",
                *(f"{r:.2f}" for r in ratios),
            ]
            print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
