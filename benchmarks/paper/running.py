"""Running settings: in parallel, each kept when it is done, one that fails named while the others go on.

A worker process prepares a problem once and learns one setting after the other on it, with one thread.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from joblib import Parallel, delayed, parallel_config

from paper.datasets import DataSet
from paper.methods import LEVELS, Method
from paper.objective import Kept, Objective
from paper.problem import folder_of, prepare
from paper.store import Store


@dataclass(frozen=True)
class Task:
    """One setting of one method on one split."""

    name: str
    split: int
    level: str
    method: str
    setting: Mapping[str, Any]

    @property
    def key(self) -> tuple[str, ...]:
        """Where it is kept."""
        return self.name, folder_of(self.split, self.level), self.method

    def __str__(self) -> str:
        setting = ", ".join(f"{k}={v}" for k, v in self.setting.items())
        return f"{self.name} split {self.split} {self.method} ({setting})"


@dataclass(frozen=True)
class Done:
    """A task that was run: processor seconds, or what went wrong."""

    task: Task
    seconds: float
    error: str = ""


def level_of(data: DataSet, method: str, level: str) -> str:
    """The level of a method on a data set: thinner than asked for where it takes too long."""
    return LEVELS[min(LEVELS.index(level), LEVELS.index(data.thinned.get(method, "full")))]


def reason_against(data: DataSet, name: str, method: Method) -> str:
    """Why a method is left out on a data set; empty when it is not."""
    return data.without.get(name, "") or method.reason_against(data)


def tasks_of(
    name: str, data: DataSet, split: int, level: str, table: Mapping[str, Method]
) -> Iterator[Task]:
    """All settings of a split, method by method; methods that do not apply have none."""
    for method_name, method in table.items():
        if not reason_against(data, method_name, method):
            own = data.sweeps.get(method_name)
            for setting in method.settings(level_of(data, method_name, level), data.family, own):
                yield Task(name, split, level, method_name, setting)


def splits_of(data: DataSet, level: str) -> tuple[int, ...]:
    """Splits of a level: quick runs look at one."""
    return data.splits[:1] if level == "quick" else data.splits


def run_tasks(
    tasks: Sequence[Task],
    data: DataSet,
    table: Mapping[str, Method],
    store: Store,
    jobs: int,
    progress: Progress,
) -> list[Done]:
    """Run tasks of one split and keep what they find; the failed ones, which leave nothing behind, are given back."""
    if not tasks:
        return []
    calls = (delayed(perform)(task, data, table[task.method], store.folder) for task in tasks)
    failed = []
    one_thread = parallel_config("loky", inner_max_num_threads=1) if jobs > 1 else nullcontext()
    with one_thread:
        for done in Parallel(n_jobs=jobs, return_as="generator_unordered")(calls):
            progress.done(done)
            if done.error:
                failed.append(done)
    return failed


def perform(task: Task, data: DataSet, method: Method, folder: Any) -> Done:
    """Learn, judge and keep one setting; seconds are those of the processor, which a busy machine does not change."""
    store = Store(folder)
    objective = objective_of(task.name, data, task.split, task.level, store)
    start = time.process_time()
    try:
        found = learn(objective, method, task.setting)
    except Exception:
        return Done(task, time.process_time() - start, traceback.format_exc())
    finally:
        objective.forget()
    seconds = time.process_time() - start
    store.put(task.key, task.setting, (found, seconds))
    return Done(task, seconds)


def learn(objective: Objective, method: Method, setting: Mapping[str, Any]) -> list[Kept]:
    """Systems of one setting that may be chosen."""
    systems = method.learn(objective.problem, **setting)
    return [k for m, some in systems.items() for k in objective.judge(m, some, setting)]


_LAST: dict[tuple[Any, ...], Objective] = {}
"""The problem this process worked on last: the next task is most often on the same one."""


def objective_of(name: str, data: DataSet, split: int, level: str, store: Store) -> Objective:
    """The objective of a split, prepared once per process."""
    key = name, split, level, store.folder
    if key not in _LAST:
        _LAST.clear()
        _LAST[key] = Objective(prepare(name, data, split, store, level))
    return _LAST[key]


class Progress:
    """A line per fit, with the time that is left if the methods go on as fast as they have been."""

    def __init__(self, work: Sequence[Task], jobs: int) -> None:
        self.left = [(task.name, task.method) for task in work]
        self.total = len(self.left)
        self.jobs = jobs
        self.seconds: dict[tuple[str, str], list[float]] = {}
        self.began = time.monotonic()

    def done(self, done: Done) -> None:
        """Note one fit."""
        key = done.task.name, done.task.method
        self.left.remove(key)
        self.seconds.setdefault(key, []).append(done.seconds)
        print(
            f"{done.task}: {'FAILED after ' if done.error else ''}{done.seconds:.0f} s; {self.total - len(self.left)} "
            f"of {self.total}, about {self.minutes_left():.0f} min left",
            flush=True,
        )
        if done.error:
            print(done.error, flush=True)

    def minutes_left(self) -> float:
        """By the processor seconds of each method so far, and how fast these went by on the clock."""
        every = [s for some in self.seconds.values() for s in some]
        spent = max(sum(every), 1e-9)
        left = sum(_mean(self.seconds.get(key, every)) for key in self.left)
        return left * (time.monotonic() - self.began) / spent / 60


def _mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers)


def estimate(
    name: str,
    data: DataSet,
    methods: Collection[str],
    level: str,
    store: Store,
    table: Mapping[str, Method],
    most_splits: int | None = None,
) -> Iterator[dict[str, Any]]:
    """Processor seconds of a level, method by method, from the fits that are kept and one more where none is.

    The fit that is added is the middle one of the sweep, on the first split; it is kept too.
    """
    splits = splits_of(data, level)[:most_splits]
    by_method: dict[str, list[Task]] = {}
    for split in splits:
        for task in tasks_of(name, data, split, level, table):
            if task.method in methods:
                by_method.setdefault(task.method, []).append(task)
    objective_of(name, data, splits[0], level, store)
    for method, tasks in by_method.items():
        known = [task for task in tasks if store.has(task.key, task.setting)]
        if not known:
            first = [task for task in tasks if task.split == splits[0]]
            sample = first[len(first) // 2]
            done = perform(sample, data, table[method], store.folder)
            if done.error:
                print(f"{sample} FAILED\n{done.error}", flush=True)
                continue
            known = [sample]
        seconds = _mean([store.load(task.key, task.setting)[1] for task in known])
        yield {
            "data": name,
            "method": method,
            "fits": len(tasks),
            "kept": len(known),
            "seconds each": seconds,
            "hours left": seconds * (len(tasks) - len(known)) / 3600,
        }
