"""BudgetPrune over a path of ten penalties: seconds, peak memory, gaps between the ways to solve it, and what it gives.

    SPARING_DATA=folder python benchmarks/speed/budget_prune.py [--quick]

The folder holds ``covtype.npz`` (Forest, 7 classes: 36,603 rows train 40 trees, 15,688 prune them, 58,101 test) and
``miniboone_tiny.npz`` (a subset of MiniBooNE: 2,000, 1,000 and 2,000 rows). Every way runs in a process of its own, so
that its peak memory is its own; ``--quick`` leaves Forest out. Processor time is given beside that on the wall, for
machines with other work.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from sparing import FeatureCosts
from sparing._tree_paths import forest_columns_read
from sparing.baselines.budget_prune import BudgetPruneClassifier

WAYS: dict[str, dict[str, Any]] = {
    "cut, OR-tools": {"method": "cut"},
    "cut, SciPy": {"method": "cut"},
    "primal-dual": {"method": "primal-dual"},
    "cut, keep_free": {"method": "cut", "keep_free": True},
}
PATHS = {
    "MiniBooNE subset, unit prices": [0.05, 0.03, 0.02, 0.01, 0.007, 0.005, 0.003, 0.002, 0.001, 0.0003],
    "Forest, unit prices": [0.01, 0.008, 0.0075, 0.007, 0.006, 0.005, 0.004, 0.003, 0.001, 0.0003],
    "Forest, 12 attributes": [0.05, 0.04, 0.03, 0.025, 0.02, 0.015, 0.01, 0.005, 0.002, 0.001],
}  # fmt: skip


def problem(name: str) -> tuple[list[np.ndarray], FeatureCosts]:
    """Rows and classes to train, prune and test; prices."""
    folder = Path(os.environ["SPARING_DATA"])
    if name.startswith("MiniBooNE"):
        rows = np.load(folder / "miniboone_tiny.npz")
        parts = [rows[f"{what}_{part}"] for part in ("train", "val", "test") for what in "Xy"]
        return parts, FeatureCosts(np.ones(50))
    rows = np.load(folder / "covtype.npz")
    ends = np.cumsum([36603, 15688, 58101])
    order = np.random.default_rng(0).permutation(len(rows["y"]))[: ends[-1]]
    X, y = rows["X"][order].astype(np.float32), rows["y"][order]
    pairs = zip(np.split(X, ends[:2]), np.split(y, ends[:2]), strict=True)
    parts = [part for pair in pairs for part in pair]
    if name.endswith("unit prices"):
        return parts, FeatureCosts(np.ones(54))
    prices = np.repeat([1.0, 0.0], [10, 44])
    shared = {"wilderness": (1.0, range(10, 14)), "soil": (1.0, range(14, 54))}
    return parts, FeatureCosts(prices, shared=shared)


def run(name: str, way: str) -> dict[str, Any]:
    """Time, memory and the path of one way on one problem."""
    if way.endswith("SciPy"):
        sys.modules["ortools"] = None  # type: ignore[assignment]
    (X, y, X_prune, y_prune, X_test, y_test), costs = problem(name)
    forest = RandomForestClassifier(40, random_state=0, n_jobs=2).fit(X, y)
    model = BudgetPruneClassifier(
        forest, feature_costs=costs, cost_penalty=PATHS[name], **WAYS[way]
    )
    wall, processor = time.perf_counter(), time.process_time()
    model.fit(X_prune, y_prune)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    systems = model.staged_systems()
    whole = costs.of(forest_columns_read(forest, X_test)).mean()
    return {
        "seconds": wall,
        "processor": processor,
        "peak": peak,
        "history": {key: values.tolist() for key, values in model.history_.items()},
        "accuracy": [float(np.mean(s.predict(X_test) == y_test)) for s in systems],
        "cost": [float(s.acquisition_cost(X_test).mean()) for s in systems],
        "forest": (forest.score(X_test, y_test), float(whole)),
    }


def report(name: str) -> None:
    found = {}
    for way in WAYS:
        command = [sys.executable, __file__, name, way]
        answer = subprocess.run(command, capture_output=True, text=True, check=True)
        found[way] = json.loads(answer.stdout.splitlines()[-1])
    exact, near, free = (found[way] for way in ("cut, OR-tools", "primal-dual", "cut, keep_free"))
    accuracy, cost = exact["forest"]
    print(f"\n{name}: forest of 40 trees, test accuracy {accuracy:.4f}, path cost {cost:.2f}")
    print(
        f"  {'ten penalties':<16}{'seconds':>8}{'processor':>11}{'GiB':>6}{'largest gap to bound':>22}"
    )
    for way, result in found.items():
        history = result["history"]
        gap = np.max(np.subtract(history["objective"], history["bound"]))
        print(
            f"  {way:<16}{result['seconds']:>8.1f}{result['processor']:>11.1f}{result['peak']:>6.2f}{gap:>22.1e}"
        )
    print(
        f"  {'penalty':>8}{'splits':>9}{'objective':>11}{'primal-dual':>13}{'its bound':>11}"
        f"{'test cost':>11}{'accuracy':>10}{'keep_free':>11}"
    )
    for i, penalty in enumerate(exact["history"]["cost_penalty"]):
        history = exact["history"]
        print(
            f"  {penalty:>8g}{history['n_splits'][i]:>9,}{history['objective'][i]:>11.6f}"
            f"{near['history']['objective'][i] - history['objective'][i]:>+13.6f}"
            f"{near['history']['bound'][i] - history['objective'][i]:>+11.6f}"
            f"{exact['cost'][i]:>11.2f}{exact['accuracy'][i]:>10.4f}{free['accuracy'][i]:>11.4f}"
        )


def main() -> None:
    if len(sys.argv) == 3:
        print(json.dumps(run(*sys.argv[1:])))
        return
    if "SPARING_DATA" not in os.environ:
        sys.exit("Set SPARING_DATA to the folder with covtype.npz and miniboone_tiny.npz.")
    for name in PATHS:
        if "--quick" not in sys.argv or not name.startswith("Forest"):
            report(name)


if __name__ == "__main__":
    main()
