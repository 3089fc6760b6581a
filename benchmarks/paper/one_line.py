"""``BudgetedClassifier(tolerance=0.01)`` with nothing else set, beside the best single method tuned by hand.

    python benchmarks/paper/one_line.py [NAME ...] [--splits N]

It gets the rows that the others learn and choose from, splits them as it likes, and is judged on the same test rows.
By hand: of all methods run on the split, each with its sweep, the one whose system within a point of the full model
costs least on validation rows, from the tables that ``run.py`` wrote. Rows go to ``results/one-line.csv``, which
RESULTS.md shows (``run.py report``); a row that is there is computed again.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# One thread: read when numpy is imported.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

HERE = Path(__file__).parents[1]
sys.path.insert(0, str(HERE))

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from sklearn.base import clone  # noqa: E402
from sklearn.model_selection import cross_val_predict  # noqa: E402

from paper.datasets import DATASETS, DataSet  # noqa: E402
from paper.problem import parts_of  # noqa: E402
from paper.tables import keep_row  # noqa: E402
from sparing import BudgetedClassifier  # noqa: E402
from sparing.metrics import mean_acquisition_cost  # noqa: E402

NAMES = ("letters-svm", "forest-rf40", "thyroid", "miniboone-rf40")
TOLERANCE = 0.01
TABLE = "one-line.csv"


def one_line(data: DataSet, split: int) -> dict[str, Any]:
    """Fit with defaults and judge on test rows; seconds are the processor's, also of cross-fitting f0 alone."""
    bunch = data.load()
    train, validation, test = parts_of(bunch, split)
    X, y = np.concatenate([train.X, validation.X]), np.concatenate([train.y, validation.y])
    f0 = clone(data.full_model)
    if getattr(f0, "bootstrap", False):
        f0.set_params(oob_score=True)
    start = time.process_time()
    clf = BudgetedClassifier(
        f0, feature_costs=bunch.costs, tolerance=TOLERANCE, random_state=0
    ).fit(X, y)
    seconds = time.process_time() - start
    start = time.process_time()
    cross_val_predict(clone(data.full_model), X, y, cv=5)
    cost = mean_acquisition_cost(clf, test.X)
    return {
        "cut": 1 - cost / clf.frontier_.full.cost,
        "difference": clf.score(test.X, test.y) - clf.estimator_.score(test.X, test.y),
        "rows that chose": clf.frontier_.n_rows,
        "seconds": seconds,
        "seconds of cross-fitting": time.process_time() - start,
    }


def by_hand(choices: pd.DataFrame, split: int) -> pd.Series:
    """The single method that validation rows prefer on a split, and its cut and difference on test rows."""
    of_split = choices[
        (choices.split == split)
        & (choices.accounting == "stage")
        & (choices.tolerance == TOLERANCE)
        & (choices.method != "budgeted")
    ]
    return of_split.loc[of_split.validation_cost.idxmin()]


def section(folder: Path) -> list[tuple[str, str, pd.DataFrame]]:
    """Heading, text and table for the report, if the table is there."""
    if not (folder / TABLE).is_file():
        return []
    rows = []
    for name, some in pd.read_csv(folder / TABLE).groupby("data"):
        choices = pd.read_csv(folder / f"{name}.csv")
        hand = pd.DataFrame([by_hand(choices, split) for split in some.split])
        times = some["seconds"] / some["seconds of cross-fitting"]
        rows.append(
            {
                "data": name,
                "splits": len(some),
                "cut": f"{some.cut.mean():.1%}",
                "difference": f"{100 * some.difference.mean():+.2f}",
                "cuts by split": ", ".join(f"{cut:.1%}" for cut in some.cut),
                "differences by split": ", ".join(f"{100 * d:+.2f}" for d in some.difference),
                "by hand": ", ".join(dict.fromkeys(hand.method)),
                "cut by hand": f"{hand.cut.mean():.1%}",
                "difference by hand": f"{100 * hand.difference.mean():+.2f}",
                "times cross-fitting f0": f"{times.median():.1f}",
            }
        )
    text = (
        f"`BudgetedClassifier(tolerance={TOLERANCE})` with nothing else set, on the rows that the others learn and "
        "choose from; beside it, on the same splits, the single method that costs least within a point on validation "
        "rows. Differences are those of the test score to the full model's, in points; time is the median of "
        "processor seconds over those of cross-fitting f0 in five folds. Written by "
        "`python benchmarks/paper/one_line.py`."
    )
    return [("## One line of code", text, pd.DataFrame(rows))]


def main(arguments: Sequence[str] | None = None, folder: Path = HERE / "results") -> None:
    """Run, and keep every row as soon as it is there."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"default: {' '.join(NAMES)}")
    parser.add_argument("--splits", type=int, help="only the first so many splits")
    args = parser.parse_args(arguments)
    if unknown := sorted(set(args.names) - set(DATASETS)):
        parser.error(f"names are {', '.join(DATASETS)}; not {', '.join(unknown)}")
    path = folder / TABLE
    for name in args.names or NAMES:
        for split in DATASETS[name].splits[: args.splits]:
            row = {"data": name, "split": split, **one_line(DATASETS[name], split)}
            keep_row(path, row, ["data", "split"])
            print(pd.Series(row).to_string(), "\n", flush=True)


if __name__ == "__main__":
    main()
