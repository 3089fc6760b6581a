"""Compare methods on a data set: ``python benchmarks/run.py NAME [--quick | --full] [--methods a,b]``.

NAME is a data set of ``paper/datasets.py`` or ``all``. Every fit is kept in ``benchmarks/cache/``: a run that is broken
off goes on where it stopped, and ``--fresh`` starts anew, which is needed after a change of the code. Tables and plots
go to ``benchmarks/results/`` and ``benchmarks/RESULTS.md`` is written from these tables alone; quick runs go to
``benchmarks/results/quick/``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from paper.datasets import DATASETS, DataSet, prepare  # noqa: E402
from paper.methods import LEVELS, METHODS, Method  # noqa: E402
from paper.objective import Kept, Objective, compare  # noqa: E402
from paper.report import Results, write_plot, write_report  # noqa: E402
from paper.store import Store  # noqa: E402


def main(arguments: Sequence[str] | None = None) -> None:
    args = parse(arguments)
    level = "quick" if args.quick else "full" if args.full else "standard"
    names = list(DATASETS) if args.name == "all" else [args.name]
    folder = HERE / "results" / ("quick" if level == "quick" else "")
    store = Store(HERE / "cache", fresh=args.fresh)
    for name in names:
        run(name, DATASETS[name], args.methods, level, store, folder)
    write_report(folder, folder / "RESULTS.md" if level == "quick" else HERE / "RESULTS.md")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("name", choices=[*DATASETS, "all"])
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="thin sweeps, small models")
    size.add_argument("--full", action="store_true", help="wide sweeps")
    parser.add_argument("--methods", default=",".join(METHODS), help="some of them, with commas")
    parser.add_argument("--fresh", action="store_true", help="forget what the cache holds")
    args = parser.parse_args(arguments)
    known = {given: name for name, method in METHODS.items() for given in method.gives}
    wanted = args.methods.split(",")
    if unknown := sorted(set(wanted) - set(known)):
        parser.error(f"methods are {', '.join(known)}; not {', '.join(unknown)}")
    args.methods = {known[given] for given in wanted}
    return args


def run(
    name: str,
    data: DataSet,
    methods: Collection[str],
    level: str,
    store: Store,
    folder: Path,
    table: Mapping[str, Method] = METHODS,
) -> Results | None:
    """Run methods on all splits of a data set; write the tables when no method is missing."""
    results = Results(name)
    missing = set()
    progress = Progress(list(_work(data, methods, level, table)))
    for split in data.splits:
        problem = prepare(name, data, split, store)
        objective = Objective(problem)
        kept: list[Kept] = []
        for method_name, method in table.items():
            for setting in method.settings(level_of(data, method_name, level)):
                key = (name, f"split{split}", method_name)
                if method_name not in methods and not store.has(key, setting):
                    missing.add(method_name)
                    break
                found, seconds = store.get(
                    key,
                    setting,
                    lambda: timed(objective, method, setting),  # noqa: B023
                )
                kept += found
                results.spent(method_name, seconds)
                if method_name in methods:
                    progress.done(f"{name} {split}", method_name, seconds)
        choices, curves = compare(kept, objective.full, len(problem.test.y))
        results.add(split, problem.about, objective.full, choices, curves)
    if missing:
        print(
            f"{name}: nothing written, these methods were not run yet: {', '.join(sorted(missing))}"
        )
        print(results.text())
        return None
    results.write(folder, level)
    write_plot(folder, name)
    print(results.text())
    return results


def level_of(data: DataSet, method: str, level: str) -> str:
    """The level of a method on a data set: thinner than asked for where it takes too long."""
    return LEVELS[min(LEVELS.index(level), LEVELS.index(data.thinned.get(method, "full")))]


def timed(objective: Objective, method: Method, setting: Mapping) -> tuple[list[Kept], float]:
    """Learn and judge one setting; seconds are those of the processor, which a busy machine does not change."""
    start = time.process_time()
    systems = method.learn(objective.problem, **setting)
    found = [k for m, some in systems.items() for k in objective.judge(m, some, setting)]
    objective.forget()
    return found, time.process_time() - start


def _work(
    data: DataSet, methods: Collection[str], level: str, table: Mapping[str, Method]
) -> Iterator[str]:
    for _ in data.splits:
        for name, method in table.items():
            if name in methods:
                yield from [name] * len(list(method.settings(level_of(data, name, level))))


class Progress:
    """A line per fit, with the time that is left if the methods go on as fast as they have been."""

    def __init__(self, work: list[str]) -> None:
        self.left = work
        self.total = len(work)
        self.times: dict[str, list[float]] = {}
        self.last = time.monotonic()

    def done(self, where: str, method: str, seconds: float) -> None:
        now = time.monotonic()
        elapsed, self.last = now - self.last, now
        self.left.remove(method)
        if elapsed < 0.5 * seconds:
            return  # it came from the cache
        self.times.setdefault(method, []).append(elapsed)
        every = [t for times in self.times.values() for t in times]
        left = sum(_mean(self.times.get(m, every)) for m in self.left)
        count = self.total - len(self.left)
        print(
            f"{where} {method}: {count} of {self.total}, {elapsed:.0f} s, about {left / 60:.0f} min left",
            flush=True,
        )


def _mean(times: Sequence[float]) -> float:
    return sum(times) / len(times)


if __name__ == "__main__":
    main()
