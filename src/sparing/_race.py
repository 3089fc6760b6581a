"""The race: settings fitted in parallel, evaluated on the same validation rows, the hopeless methods stopped early.

Between the rounds all fits of a round are waited for, so what is stopped does not depend on who was fast. Tasks go
through joblib: ``parallel_config("dask")`` spreads them over a cluster. A task gets the full model frozen, with its
honest probabilities, and gives systems back without it; here all of them get the one full model again, which is then
asked once for all.
"""

from __future__ import annotations

import signal
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from sparing._coarse_gates import moved_cuts
from sparing._evaluation import full_alone
from sparing._frontier_merging import FULL_ALONE
from sparing._full_model import FullModel
from sparing._full_predictor import StoredModel
from sparing._methods import Setting
from sparing._parts import Rows, split_rows
from sparing._progress import Progress
from sparing._rows import take_rows
from sparing._wishes import Wishes
from sparing.costs import FeatureCosts
from sparing.frontier import Frontier
from sparing.metrics.scoring import ranks_within_groups, scoring_name
from sparing.system import Stage, System

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Task:
    """What every fit needs beside its setting."""

    rows: Rows
    costs: FeatureCosts
    full: FullModel
    cv: Any
    seed: int | None
    verbose: int = 0

    def of_some(self, n: int | None) -> Task:
        """The task on ``n`` of its rows, every class in proportion; itself when it has no more."""
        if n is None or n >= len(self.rows.y):
            return self
        some = split_rows(self.rows.y, n / len(self.rows.y), 0.0, random_state=self.seed).validation
        weight = None if self.rows.weight is None else self.rows.weight[some]
        return replace(
            self,
            rows=Rows(take_rows(self.rows.X, some), self.rows.y[some], weight),
            full=replace(self.full, proba=self.full.proba[some], decided=None),
        )


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a task gives back: its systems, with a placeholder where the full model was, or what went wrong."""

    systems: list[System]
    seconds: float
    error: Exception | None = None


def fit_setting(setting: Setting, task: Task, may_fail: bool) -> Fitted:
    """Fit one setting; runs wherever joblib sends it."""
    began = time.perf_counter()
    task = task.of_some(setting.n_rows)
    model = clone(setting.model)
    known = model.get_params(deep=False)
    given = {
        "estimator": FrozenEstimator(task.full.estimator),
        "feature_costs": task.costs,
        "cv": task.cv,
        "random_state": task.seed,
        "verbose": setting.verbose(task.verbose),
    }
    model.set_params(**{name: value for name, value in given.items() if name in known})
    try:
        model.fit(
            task.rows.X, task.rows.y, sample_weight=task.rows.weight, full_proba=task.full.proba
        )
    except Exception as error:
        if not may_fail:
            raise
        return Fitted([], time.perf_counter() - began, error)
    staged = getattr(model, "staged_systems", None)
    systems = [model.system_] if staged is None else staged()
    stages = (Stage(StoredModel(len(task.costs.columns)), name="full"),)
    stripped = [
        replace(s, stages=(*s.stages[: -len(task.full.stages)], *stages)) if s.has_full else s
        for s in systems
        if not s.has_full or len(s.stages) > len(task.full.stages)
    ]
    return Fitted(stripped, time.perf_counter() - began)


def with_full_model(system: System, full: FullModel) -> System:
    """A system of a task with the full model in its place again."""
    if not system.has_full:
        return system
    return replace(system, stages=(*system.stages[:-1], *full.stages))


@dataclass
class Race:
    """Settings fitted and evaluated, round by round.

    Attributes
    ----------
    task : what is learnt from.
    validation : rows that judge.
    wishes : systems below its floors of recall are left out.
    scoring, n_jobs : of the classifier.
    progress : tells how far it has come.
    history : an entry per setting fitted: ``method``, ``round``, ``seconds``, ``n_systems``, ``error``.
    interrupted : whether the user asked to stop.
    unkept : what no system keeps, when the frontiers are of systems below the floors.
    """

    task: Task
    validation: Rows
    wishes: Wishes
    scoring: Any
    n_jobs: int | None
    progress: Progress
    history: list[dict[str, Any]] = field(default_factory=list)
    interrupted: bool = False
    unkept: ValueError | None = None

    def __post_init__(self) -> None:
        self.best_recalls = np.zeros(len(self.wishes.min_recall or {}))
        self._below: dict[str, Frontier] = {}

    def run(self, first: Sequence[Setting], second: Sequence[Setting]) -> dict[str, Frontier]:
        """Frontiers of the methods that gave systems, by name; of those below the floors if none keeps them."""
        methods = list(dict.fromkeys(s.method for s in first))
        frontiers = self._round(1, first, len(methods) > 1)
        if not any(fit["n_systems"] for fit in self.history):
            if not all(fit["error"] for fit in self.history):
                # Interrupted early, or nothing could save anything: what is left is the full model.
                alone = full_alone(self.task.full, self.task.costs)
                return {FULL_ALONE["method"]: self._evaluate([alone], [dict(FULL_ALONE)])}
            raise RuntimeError(
                "None of the methods could be fitted: "
                + "; ".join(f"{fit['method']}: {fit['error']}" for fit in self.history)
            )
        if second and not self.interrupted:
            around = self._wished_cost(frontiers)
            alive = set(methods)
            if len(frontiers) > 1:
                alive = still_running(frontiers, self.scoring, around)
            stopped = [m for m in frontiers if m not in alive]
            if stopped:
                self.progress.say(f"stopped early, no use beside the others: {', '.join(stopped)}")
            more = self._round(2, [s for s in second if s.method in alive], len(methods) > 1)
            _add(frontiers, more)
        if not frontiers:
            floors = dict(self.wishes.min_recall or {})
            best = dict(zip(floors, self.best_recalls.round(4).tolist(), strict=True))
            self.unkept = ValueError(
                f"No system keeps min_recall={floors} on the validation rows; the best recalls there, not all of one "
                f"system, are {best}."
            )
            frontiers = self._below
        return {m: f.pareto() for m, f in frontiers.items()}

    def _wished_cost(self, frontiers: dict[str, Frontier]) -> float | None:
        """What the system costs that would be chosen now; None when the wishes cannot be met yet."""
        try:
            return self.wishes.choose(Frontier.merge(frontiers.values())).cost
        except ValueError:
            return None

    def _round(
        self, number: int, settings: Sequence[Setting], may_fail: bool
    ) -> dict[str, Frontier]:
        results = self._fit(settings, may_fail)
        systems, labels = list[System](), list[dict[str, Any]]()
        for index, fitted in sorted(results.items()):
            setting = settings[index]
            self.history.append(
                {
                    "method": setting.method,
                    "round": number,
                    "seconds": fitted.seconds,
                    "n_systems": len(fitted.systems),
                    "error": "" if fitted.error is None else str(fitted.error),
                }
            )
            if fitted.error is not None:
                warnings.warn(
                    f"{setting.method} could not be fitted and is left out: {fitted.error}",
                    UserWarning,
                    stacklevel=2,
                )
            systems += [with_full_model(s, self.task.full) for s in fitted.systems]
            labels += [setting.label] * len(fitted.systems)
        if not systems:
            return {}
        for origin, system in moved_cuts(systems, self.validation.X, len(self.task.full.stages)):
            systems.append(system)
            labels.append(labels[origin])
        self.progress.say(
            f"comparing {len(systems)} systems on {len(self.validation.y)} validation rows"
        )
        whole = self._evaluate(systems, labels)
        recalls = self.wishes.recalls(systems, self.validation)
        self.best_recalls = np.maximum(self.best_recalls, recalls.max(axis=1))
        kept = self.wishes.keeps_floors(recalls)
        methods = np.array([label["method"] for label in labels])
        by_method = {method: methods == method for method in dict.fromkeys(methods.tolist())}
        if not kept.any():
            _add(self._below, {m: _best_of(whole, mine) for m, mine in by_method.items()})
        good = {method: mine & kept for method, mine in by_method.items()}
        return {method: _best_of(whole, mine) for method, mine in good.items() if mine.any()}

    def _evaluate(self, systems: list[System], labels: list[dict[str, Any]]) -> Frontier:
        return Frontier.evaluate(
            systems,
            self.validation.X,
            self.validation.y,
            scoring=self.scoring,
            sample_weight=self.validation.weight,
            accounting="stage",
            labels=labels,
            full=full_alone(self.task.full, self.task.costs),
            groups=self.validation.groups if ranks_within_groups(self.scoring) else None,
        )

    def _fit(self, settings: Sequence[Setting], may_fail: bool) -> dict[int, Fitted]:
        results: dict[int, Fitted] = {}

        def numbered(index: int, setting: Setting) -> Any:
            return delayed(_numbered)(index, setting, self.task, may_fail)

        parallel = Parallel(n_jobs=self.n_jobs, return_as="generator_unordered")
        try:
            with self.progress.of([s.effort for s in settings]), _interrupts() as interrupted:
                for index, fitted in parallel(numbered(i, s) for i, s in enumerate(settings)):
                    results[index] = fitted
                    self.progress.done(index, settings[index].method)
                    if interrupted.is_set():  # and the method has kept the part it had
                        raise KeyboardInterrupt
        except KeyboardInterrupt:
            self.interrupted = True
            if not results and not self.history:
                raise
            warnings.warn(
                f"Interrupted after {len(results) + len(self.history)} fits: the frontier is made of these.",
                UserWarning,
                stacklevel=2,
            )
        return results


def _best_of(whole: Frontier, chosen: NDArray[np.bool_]) -> Frontier:
    """The systems that are not dominated among some of a frontier."""
    points = tuple(point for point, mine in zip(whole, chosen, strict=True) if mine)
    return replace(whole, points=points).pareto()


def _add(frontiers: dict[str, Frontier], more: Mapping[str, Frontier]) -> None:
    """Merge frontiers into those of the same method."""
    for method, frontier in more.items():
        before = frontiers.get(method)
        frontiers[method] = frontier if before is None else before.merged(frontier)


@contextmanager
def _interrupts() -> Iterator[threading.Event]:
    """Know of every Ctrl-C, also of one that a method takes as the wish to end with what it has."""
    interrupted = threading.Event()
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield interrupted
        return

    def note(number: int, frame: Any) -> None:
        interrupted.set()
        before(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)


def _numbered(index: int, setting: Setting, task: Task, may_fail: bool) -> tuple[int, Fitted]:
    return index, fit_setting(setting, task, may_fail)


def still_running(
    frontiers: dict[str, Frontier], scoring: Any, around: float | None = None
) -> set[str]:
    """Methods that are the best, or about as good, at some budget that matters.

    Budgets matter within a third of ``around``, the cost of what would be chosen now. Without it they do where half of
    the way from the cheapest system's score to the full model's is gone, up to where it is reached: what buys next to
    nothing, or everything, is bought by every method. About as good is within a standard error of an accuracy, or a
    fiftieth of the range of any other score.
    """
    merged = Frontier.merge(frontiers).pareto()
    costs, best = merged.costs, merged.scores
    assert merged.full is not None
    enough = np.flatnonzero(best >= merged.full.score)
    last = int(enough[0]) if len(enough) else len(best) - 1
    matter = np.arange(len(best))[: last + 1]
    matter = matter[best[matter] >= (best[0] + best[last]) / 2]
    if around is not None:
        near_wish = np.flatnonzero(np.abs(costs - around) <= around / 3)
        matter = near_wish if len(near_wish) else matter
    costs, best = costs[matter], best[matter]
    if scoring_name(scoring).startswith("accuracy"):
        near = np.sqrt(np.maximum(best * (1 - best), 1e-4) / merged.n_rows)
    else:
        near = np.full(len(best), 0.02 * float(np.ptp(merged.scores)))
    alive = set()
    for method, frontier in frontiers.items():
        own = frontier.pareto()
        reached = np.searchsorted(own.costs, costs * (1 + 1e-12), side="right") - 1
        scores = np.where(reached >= 0, own.scores[np.maximum(reached, 0)], -np.inf)
        if (scores >= best - near).any():
            alive.add(method)
    return alive
