"""How long the fit of a cascade takes, as a multiple of cross-fitting its full model alone, and what takes the time.

    python benchmarks/paper/fit_time.py [NAME ...]

The training rows of a data set's own split, everything else by default; processor seconds of one thread. Parts are
functions of the fit that do not call each other, with all that they call; a clock is put around each of them, since a
profiler would slow down what makes many small calls. Rows go to ``results/fit-time.csv``, which
RESULTS.md shows (``run.py report``); a row that is there is measured again.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

# One thread: read when numpy is imported.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

HERE = Path(__file__).parents[1]
sys.path.insert(0, str(HERE))

import pandas as pd  # noqa: E402
from sklearn.base import clone  # noqa: E402
from sklearn.model_selection import cross_val_predict  # noqa: E402

from paper.datasets import DATASETS, DataSet  # noqa: E402
from paper.problem import parts_of  # noqa: E402
from paper.tables import keep_row  # noqa: E402
from sparing import CascadeClassifier  # noqa: E402

NAMES = ("letters-svm", "forest-et")
TABLE = "fit-time.csv"
PARTS = {
    "judges": ("learning", "judge_for"),
    "search": ("learning", "judged_paths"),
    "kernel machine": ("learning", "kernel_paths"),
    "kinds compared": ("learning", "best_kinds"),
    "stages": ("learning", "CascadeLearner._chains"),
    "thresholds": ("points", "trace"),
}
"""Parts of a fit: a function, and the room of the cascade that calls it. What is left is the full model, and what is
tried out before the search."""
REST = "full model and the rest"


def fit_time(data: DataSet) -> dict[str, float]:
    """Seconds of cross-fitting the full model alone, of the whole fit, and of its parts."""
    bunch = data.load()
    train = parts_of(bunch, 0)[0]
    start = time.process_time()
    cross_val_predict(clone(data.full_model), train.X, train.y, cv=5)
    alone = time.process_time() - start
    cascade = CascadeClassifier(clone(data.full_model), feature_costs=bunch.costs, random_state=0)
    parts = dict.fromkeys(PARTS, 0.0)
    with ExitStack() as clocks:
        for part in PARTS:
            clocks.enter_context(_clock(part, parts))
        start = time.process_time()
        cascade.fit(train.X, train.y)
        whole = time.process_time() - start
    return {
        "cross-fitting": alone,
        "fit": whole,
        **parts,
        REST: whole - sum(parts.values()),
    }


@contextmanager
def _clock(part: str, seconds: dict[str, float]) -> Iterator[None]:
    """Add up the time that a part takes, with all that it calls."""
    room, path = PARTS[part]
    owner: Any = importlib.import_module(f"sparing.cascade.{room}")
    *holders, name = path.split(".")
    for holder in holders:
        owner = getattr(owner, holder)
    function: Callable[..., Any] = getattr(owner, name)

    def timed(*args: Any, **kwargs: Any) -> Any:
        start = time.process_time()
        try:
            return function(*args, **kwargs)
        finally:
            seconds[part] += time.process_time() - start

    with patch.object(owner, name, timed):
        yield


def section(folder: Path) -> list[tuple[str, str, pd.DataFrame]]:
    """Heading, text and table for the report, if the table is there."""
    if not (folder / TABLE).is_file():
        return []
    rows: list[dict[str, Any]] = []
    for row in pd.read_csv(folder / TABLE).to_dict("records"):
        shares = {part: f"{row[part] / row['fit']:.0%}" for part in (*PARTS, REST)}
        times = f"{row['fit'] / row['cross-fitting']:.1f}"
        rows.append({"data": row["data"], "times cross-fitting f0": times, **shares})
    text = (
        "`CascadeClassifier` with nothing else set, on the training rows of the own split: processor time of the whole "
        "fit, as a multiple of cross-fitting the full model in five folds, and the shares of its parts. *Judges* are "
        "trained to say what a stage on any set of columns would be worth, the *search* asks them. Written by "
        "`python benchmarks/paper/fit_time.py`."
    )
    return [("## Time of a fit", text, pd.DataFrame(rows))]


def main(arguments: Sequence[str] | None = None, folder: Path = HERE / "results") -> None:
    """Measure, and keep every row as soon as it is there."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"default: {' '.join(NAMES)}")
    args = parser.parse_args(arguments)
    if unknown := sorted(set(args.names) - set(DATASETS)):
        parser.error(f"names are {', '.join(DATASETS)}; not {', '.join(unknown)}")
    path = folder / TABLE
    for name in args.names or NAMES:
        row = {"data": name, **fit_time(DATASETS[name])}
        keep_row(path, row, ["data"])
        print(pd.Series(row).to_string(), "\n", flush=True)


if __name__ == "__main__":
    main()
