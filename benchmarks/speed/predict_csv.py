"""A large CSV answered by ``sparing predict``: memory and rows per second, beside pandas with LightGBM.

    python benchmarks/speed/predict_csv.py [n_rows]

Rows of 20 numbers, one word and an id; the full model is a LightGBM model of 200 trees. Two systems: Adapt-Gbrt as it
is fitted by default, whose cheap stage has hundreds of trees with 64 leaves and a gate of 120; and the joint gate,
which has 100 small ones for each and is set to send a quarter of the rows on. Each line is a process of its own, with
one thread. ``sparing`` reads chunks, routes, answers and writes every row back with its answers; pandas reads the
whole file and LightGBM answers it with as many trees of 64 leaves as the default's cheap stage and gate have, with
and without writing the same columns. Peak memory is what the kernel counts for the process; "before" is what it had
when everything was imported and loaded. Seconds are the processor's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd

N_NUMBERS = 20
TASKS = (
    "sparing, default",
    "sparing, joint gate",
    "pandas + LightGBM",
    "pandas + LightGBM + to_csv",
)
BUNDLES = {"sparing, default": "default.sparing", "sparing, joint gate": "joint.sparing"}


def table(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Two clear columns for most rows, all others for the rest."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, N_NUMBERS))
    easy = np.abs(Z[:, 0] + Z[:, 1]) > 1
    y = np.where(easy, Z[:, 0] + Z[:, 1] > 0, Z[:, 2:12].sum(axis=1) > 0)
    frame = pd.DataFrame(Z.round(4), columns=[f"x{j}" for j in range(N_NUMBERS)])
    frame["region"] = rng.choice(["north", "south", "east", "west"], n)
    frame.insert(0, "id", [f"row-{i}" for i in range(n)])
    return frame, y.astype(int)


def prepare(folder: Path, n: int) -> None:
    """Fit on 20,000 rows; write the model and the large file, a part at a time."""
    from lightgbm import LGBMClassifier
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    from sparing import AdaptGbrtClassifier
    from sparing.runtime import save

    frame, y = table(20_000, seed=0)
    X = frame.drop(columns="id").astype({"region": object})
    words = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    full = make_pipeline(
        make_column_transformer((words, ["region"]), remainder="passthrough"),
        LGBMClassifier(n_estimators=200, n_jobs=1, verbose=-1),
    )
    prices = dict.fromkeys(X.columns, 1.0)
    default = AdaptGbrtClassifier(full, feature_costs=prices, random_state=0).fit(X, y)
    save(default, folder / BUNDLES["sparing, default"], like=X)
    joint = AdaptGbrtClassifier(
        full, feature_costs=prices, full_rate=0.3, gate="joint", cv=3, random_state=0
    )
    system = joint.fit(X, y).system_
    threshold = float(np.quantile(system.exit_scores(X)[:, 0], 0.75))  # a quarter goes on
    system = system.with_thresholds(threshold)
    save(system, folder / BUNDLES["sparing, joint gate"], like=X)
    numbers = frame.drop(columns=["id", "region"])
    n_trees = trees_of(folder / BUNDLES["sparing, default"])
    alone = LGBMClassifier(n_estimators=n_trees, num_leaves=64, n_jobs=1, verbose=-1)
    alone.fit(numbers, y).booster_.save_model(folder / "booster.txt")
    print(f"cheap stage and gate of the default, and LightGBM alone: {n_trees} trees")
    for part, start in enumerate(range(0, n, 100_000)):
        rows, _ = table(min(100_000, n - start), seed=part + 1)
        rows.to_csv(folder / "rows.csv", mode="a", header=not part, index=False)


def trees_of(bundle: Path) -> int:
    """Trees of the text models in a bundle: those of cheap stages and gates."""
    with zipfile.ZipFile(bundle) as archive:
        models = [archive.read(name) for name in archive.namelist() if name.endswith(".txt")]
    return sum(model.count(b"\nTree=") for model in models)


def run(task: str, folder: Path) -> dict[str, float]:
    """One task in this process."""
    rows, out = folder / "rows.csv", folder / "answers.csv"
    if task in BUNDLES:
        from sparing.runtime import load
        from sparing.tables import predict_table

        system = load(folder / BUNDLES[task])
        before, began = peak_megabytes(), time.process_time()
        done = predict_table(system, rows, out)
        n, shares = done["rows"], done["stages"]
    else:
        import lightgbm

        booster = lightgbm.Booster(model_file=folder / "booster.txt")
        before, began = peak_megabytes(), time.process_time()
        frame = pd.read_csv(rows)
        answers = booster.predict(frame.drop(columns=["id", "region"]), num_threads=1)
        if "to_csv" in task:
            frame.assign(prediction=(answers > 0.5).astype(int)).to_csv(out, index=False)
        n, shares = len(frame), []
    seconds = time.process_time() - began
    return {
        "seconds": seconds,
        "rows_per_second": n / seconds,
        "before": before,
        "peak": peak_megabytes(),
        "shares": shares,
    }


def peak_megabytes() -> float:
    """Most memory this process ever had, as the kernel counts it."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def main(n: int) -> None:
    """Every task in a process of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder, n)
        size = (folder / "rows.csv").stat().st_size / 2**20
        load = ", ".join(f"{mean:.1f}" for mean in os.getloadavg())
        print(f"{n:,} rows, {size:,.0f} MB of CSV; load of the machine {load}\n")
        print(f"{'':<28}{'seconds':>9}{'rows/s':>10}{'before MB':>11}{'peak MB':>9}")
        threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        for task in TASKS:
            command = [sys.executable, __file__, "--task", task, str(folder)]
            done = subprocess.run(
                command, env=os.environ | threads, check=True, stdout=subprocess.PIPE
            )
            found = json.loads(done.stdout)
            print(
                f"{task:<28}{found['seconds']:>9.1f}{found['rows_per_second']:>10,.0f}{found['before']:>11.0f}"
                f"{found['peak']:>9.0f}"
                + (f"  answered per stage {found['shares']}" if found["shares"] else "")
            )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--task"]:
        print(json.dumps(run(sys.argv[2], Path(sys.argv[3]))))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
