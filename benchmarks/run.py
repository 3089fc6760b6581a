"""Compare methods on a data set: ``python benchmarks/run.py NAME [--quick | --full] [--methods a,b] [--splits N]``.

NAME is a data set of ``paper/datasets.py``, ``synthetic-1``, ``synthetic-2``, ``all``, or ``report``, which runs
nothing and writes the report again. Every fit is kept in ``benchmarks/cache/``, or the folder in ``SPARING_CACHE``: a
run that is broken off goes on where it stopped, and ``--fresh`` starts anew, which is needed after a change of the
code. ``--splits`` takes the first few of them. ``--estimate`` runs a sample and says how long the rest would take.
Tables and plots go to the folder ``benchmarks/results/``, where methods and splits that were not run stay as they are,
and ``benchmarks/RESULTS.md`` is written from these tables alone; quick runs go to ``benchmarks/results/quick/``.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

# One thread each, processes side by side: read when numpy is imported.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from joblib import cpu_count  # noqa: E402
from paper.comparison import compare  # noqa: E402
from paper.datasets import DATASETS, DataSet  # noqa: E402
from paper.methods import METHODS, Method  # noqa: E402
from paper.objective import Kept  # noqa: E402
from paper.plots import write_plot  # noqa: E402
from paper.report import text_of, write_report  # noqa: E402
from paper.running import (  # noqa: E402
    Done,
    Progress,
    estimate,
    objective_of,
    reason_against,
    run_tasks,
    splits_of,
    tasks_of,
)
from paper.store import Store, cache_folder  # noqa: E402
from paper.summary import write_summary  # noqa: E402
from paper.synthetic import SYNTHETIC  # noqa: E402
from paper.tables import Results, Tables, names_in  # noqa: E402

ABSENT = FileNotFoundError, ConnectionError
"""What data raise that are neither in the folder nor to be had from their public home."""


def main(arguments: Sequence[str] | None = None) -> None:
    args = parse(arguments)
    level = "quick" if args.quick else "full" if args.full else "standard"
    names = {"all": [*SYNTHETIC, *DATASETS], "report": []}.get(args.name, [args.name])
    folder = HERE / "results" / ("quick" if level == "quick" else "")
    store = Store(cache_folder(), fresh=args.fresh)
    if args.estimate:
        chosen = [n for n in names if n in DATASETS]
        tell_estimate(chosen, args.methods, level, store, args.jobs, args.splits)
        return
    failed: list[Done] = []
    for name in names:
        if name in SYNTHETIC:
            SYNTHETIC[name](folder)
            continue
        try:
            failed += run(
                name,
                DATASETS[name],
                args.methods,
                level,
                store,
                folder,
                jobs=args.jobs,
                most_splits=args.splits,
            )
        except ABSENT as error:
            if args.name != "all":
                sys.exit(f"{name}: its data are not here. {error}")
            print(f"{name}: left out, its data are not here. {error}", flush=True)
    write_summary(
        {name: Tables.read(folder, name) for name in names_in(folder)}, folder / "summary.csv"
    )
    report = folder / "RESULTS.md" if level == "quick" else HERE / "RESULTS.md"
    write_report(folder, report)
    print(f"tables and plots in {folder}, report in {report}", flush=True)
    if failed:
        sys.exit("failed: " + "; ".join(str(done.task) for done in failed))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("name", choices=[*SYNTHETIC, *DATASETS, "all", "report"])
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="few rows, thin sweeps, small models")
    size.add_argument("--full", action="store_true", help="the sweeps of the paper's appendix")
    parser.add_argument(
        "--methods", default=",".join(METHODS), help=f"with commas, of {', '.join(METHODS)}"
    )
    parser.add_argument("--splits", type=number, help="only the first so many splits")
    parser.add_argument("--jobs", type=number, default=cpu_count(), help="processes, all cores")
    parser.add_argument("--fresh", action="store_true", help="forget what the cache holds")
    parser.add_argument(
        "--estimate",
        action="store_true",
        help="say how long it would take, from one fit of each method that has none yet",
    )
    args = parser.parse_args(arguments)
    known = {given: name for name, method in METHODS.items() for given in (name, *method.gives)}
    wanted = [name for name in args.methods.split(",") if name]
    if unknown := sorted(set(wanted) - set(known)):
        parser.error(f"methods are {', '.join(known)}; not {', '.join(unknown)}")
    args.methods = {known[given] for given in wanted}
    if not args.methods:
        parser.error(f"--methods names none; they are {', '.join(known)}")
    return args


def number(text: str) -> int:
    """A whole number from 1 on."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text} is no whole number from 1 on")
    return int(text)


def run(
    name: str,
    data: DataSet,
    methods: Collection[str],
    level: str,
    store: Store,
    folder: Path,
    table: Mapping[str, Method] = METHODS,
    jobs: int = 1,
    most_splits: int | None = None,
) -> list[Done]:
    """Run methods on splits of a data set and merge what they find with the tables; give what failed."""
    splits = splits_of(data, level)
    every = {split: list(tasks_of(name, data, split, level, table)) for split in splits}
    work = {
        split: [
            task
            for task in tasks
            if task.method in methods and (store.fresh or not store.has(task.key, task.setting))
        ]
        for split, tasks in every.items()
        if split in splits[:most_splits]
    }
    progress = Progress([task for tasks in work.values() for task in tasks], jobs)
    asked = sum(task.method in methods for s, tasks in every.items() if s in work for task in tasks)
    if kept_before := asked - progress.total:
        print(f"{name}: {kept_before} of {asked} fits are kept, {progress.total} to go", flush=True)
    results, failed = Results(name, table), list[Done]()
    for method_name, method in table.items():
        if reason := reason_against(data, method_name, method):
            results.left_out(method_name, reason)
    for split, tasks in every.items():
        todo = work.get(split, [])
        if not todo and not any(store.has(task.key, task.setting) for task in tasks):
            continue
        # f0 is fitted here, once, before the workers ask for it.
        objective = objective_of(name, data, split, level, store)
        now = run_tasks(todo, data, table, store, jobs, progress)
        for done in now:
            results.failed(done.task.method, f"{done.task}, {done.error.strip().splitlines()[-1]}")
        failed += now
        lost = {(done.task.key, str(done.task)) for done in now}
        kept: list[Kept] = []
        for task in tasks:
            results.expected(split, task.method)
            if store.has(task.key, task.setting) and (task.key, str(task)) not in lost:
                found, seconds = store.load(task.key, task.setting)
                kept += found
                results.spent(split, task.method, seconds)
        rows = len(objective.problem.test.y)
        comparison = compare(kept, objective.full, rows, objective.n_units)
        results.add(split, objective.problem.about, objective.full, comparison)
    if len(results):
        results.write(folder, level)
        write_plot(folder, name)
        print(text_of(Tables.read(folder, name)), flush=True)
    else:
        print(f"{name}: no method was run, nothing written", flush=True)
    return failed


def tell_estimate(
    names: Sequence[str],
    methods: Collection[str],
    level: str,
    store: Store,
    jobs: int,
    most_splits: int | None,
) -> None:
    """Say how long a level would take, from a sample."""
    left, whole = 0.0, 0.0
    for name in names:
        try:
            for row in estimate(name, DATASETS[name], methods, level, store, METHODS, most_splits):
                print(
                    f"{row['data']} {row['method']}: {row['fits']} fits, {row['kept']} kept, "
                    f"{row['seconds each']:.1f} s each, {row['hours left']:.2f} h left",
                    flush=True,
                )
                left += row["hours left"]
                whole += row["fits"] * row["seconds each"] / 3600
        except ABSENT as error:
            print(f"{name}: left out, its data are not here. {error}", flush=True)
    print(
        f"{left:.2f} processor hours left of {whole:.2f}, about {left / jobs:.2f} h with {jobs} processes; full models "
        "not counted"
    )


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(
            "interrupted: fits that are done are kept, the same command goes on from there (without --fresh, which "
            "forgets them)"
        )
