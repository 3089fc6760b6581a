"""How much a fit of the cascade varies by chance: other seeds on the same rows, nothing else changed.

    python benchmarks/paper/spread.py [NAME ...] [--seeds N]

Intervals elsewhere are over test rows or over splits. Networks add numbers in the order that suits the processor, so
that another machine is another draw, as another seed is. Validation rows choose and test rows report, as everywhere.
Rows go to ``results/spread.csv``, which RESULTS.md shows (``run.py report``); a row that is there is measured again.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

# One thread: read when numpy is imported.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

HERE = Path(__file__).parents[1]
sys.path.insert(0, str(HERE))

import pandas as pd  # noqa: E402
from threadpoolctl import threadpool_info  # noqa: E402

from paper.comparison import compare  # noqa: E402
from paper.datasets import DATASETS  # noqa: E402
from paper.objective import Objective  # noqa: E402
from paper.problem import prepare  # noqa: E402
from paper.store import Store, cache_folder  # noqa: E402
from paper.tables import keep_row  # noqa: E402
from sparing import CascadeClassifier  # noqa: E402

NAMES = ("digits", "thyroid", "miniboone-rf40")
TABLE = "spread.csv"
WISHES = {0.01: "within 1 point", 0.0: "within 0 points"}


def fits(name: str, seeds: Sequence[int]) -> Iterator[dict[str, Any]]:
    """What validation chooses of a cascade on the own split, seed by seed."""
    objective = Objective(prepare(name, DATASETS[name], 0, Store(cache_folder())))
    problem = objective.problem
    for seed in seeds:
        cascade = CascadeClassifier(
            problem.full_model,
            feature_costs=problem.costs,
            cv=problem.folds(5),
            random_state=seed,
        )
        cascade.fit(problem.train.X, problem.train.y, full_proba=problem.full_proba)
        kept = objective.judge("cascade", cascade.staged_systems(), {})
        found = compare(kept, objective.full, len(problem.test.y), objective.n_units).choices
        row: dict[str, Any] = {"data": name, "kernels": kernels(), "seed": seed}
        for choice in found:
            if choice["accounting"] == "stage" and choice.get("tolerance") in WISHES:
                wish = WISHES[choice["tolerance"]]
                row |= {f"cut {wish}": choice["cut"], f"difference {wish}": choice["difference"]}
        objective.forget()
        yield row


def kernels() -> str:
    """Kernels that numpy's products of matrices run on, which differ from processor to processor."""
    return ", ".join(
        sorted(
            {str(library.get("architecture", "")) for library in threadpool_info()} - {"", "None"}
        )
    )


def section(folder: Path) -> list[tuple[str, str, pd.DataFrame]]:
    """Heading, text and table for the report, if the table is there."""
    if not (folder / TABLE).is_file():
        return []
    rows = []
    for (name, processor), some in pd.read_csv(folder / TABLE).groupby(["data", "kernels"]):
        row = {"data": name, "kernels": processor, "seeds": len(some)}
        for wish in WISHES.values():
            cut, points = 100 * some[f"cut {wish}"], 100 * some[f"difference {wish}"]
            row[wish] = (
                f"{cut.mean():.1f}% ± {cut.std():.1f}, {points.mean():+.2f} ± {points.std():.2f} "
                f"[{points.min():+.2f} to {points.max():+.2f}]"
            )
        rows.append(row)
    text = (
        "The cascade on the own split with other seeds and nothing else changed: mean and standard deviation of the "
        "cut and of the difference in points, and the range of the latter. No interval elsewhere contains this. "
        "Another processor is another draw, too: what numpy's products of matrices run on (*kernels*) decides their "
        "last digits. Written by `python benchmarks/paper/spread.py`."
    )
    return [("## How much a fit varies by chance", text, pd.DataFrame(rows))]


def main(arguments: Sequence[str] | None = None, folder: Path = HERE / "results") -> None:
    """Measure, and keep every row as soon as it is there."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"default: {' '.join(NAMES)}")
    parser.add_argument("--seeds", type=int, default=5, help="from 0 on")
    args = parser.parse_args(arguments)
    if unknown := sorted(set(args.names) - set(DATASETS)):
        parser.error(f"names are {', '.join(DATASETS)}; not {', '.join(unknown)}")
    for name in args.names or NAMES:
        for row in fits(name, range(args.seeds)):
            keep_row(folder / TABLE, row, ["data", "kernels", "seed"])
            print(pd.Series(row).to_string(), "\n", flush=True)


if __name__ == "__main__":
    main()
