"""The objective: the same splits, f0, prices and accounting for every method; validation chooses, test reports.

Systems are judged on validation rows, gates cut at the same shares of them whatever the method. Of one fit only the
systems that no other of its systems beats on validation are kept; these alone can be chosen later. What is kept of a
system are its numbers and, for paired intervals, whether it was right on each test row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from paper.datasets import Part, Problem
from sparing import Frontier, System
from sparing.frontier import Point, pareto_order, threshold_systems
from sparing.metrics import bootstrap_interval
from sparing.system import ACCOUNTINGS, Decides, columns_read

TOLERANCES = (0.01, 0.005, 0.0)
BUDGETS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8)
"""Shares of the full model's cost at which scores are compared."""
N_CUTS = 65
REFERENCE = "adapt-gbrt"
"""The method that others are compared with, in pairs, at equal budgets."""


# -- what the parts of a system say about some rows ---------------------------------------------------


class Rows:
    """Rows that remember what each part of a system said about them, so that f0 is asked once."""

    def __init__(self, part: Part, classes: np.ndarray) -> None:
        self.X, self.y, self.classes = part.X, part.y, classes
        self._kept: dict[tuple[str, int], tuple[Any, Any]] = {}

    def ask(self, what: str, part: Any, compute: Callable[[], Any]) -> Any:
        """A result, computed once per part; the part is kept too, or its id could be used again."""
        key = what, id(part)
        if key not in self._kept:
            self._kept[key] = part, compute()
        return self._kept[key][1]

    def forget(self, but: Sequence[Any]) -> None:
        """Forget all parts except some."""
        kept = {id(part) for part in but}
        self._kept = {key: value for key, value in self._kept.items() if key[1] in kept}

    def proba(self, predictor: Any) -> np.ndarray:
        """Class probabilities."""
        return self.ask("proba", predictor, lambda: predictor.predict_proba(self.X))

    def right(self, predictor: Any) -> np.ndarray:
        """Whether a predictor is right on each row."""

        def answer() -> np.ndarray:
            decides = isinstance(predictor, Decides)
            code = predictor.decide(self.X) if decides else self.proba(predictor).argmax(axis=1)
            return self.classes[code] == self.y

        return self.ask("right", predictor, answer)

    def read(self, part: Any) -> np.ndarray:
        """Columns a predictor or gate reads on each row."""
        n = self.X.shape[1]
        return self.ask("read", part, lambda: columns_read(part, self.X, n))


@dataclass(frozen=True)
class Answers:
    """What every stage of a system would say and cost, row by row: thresholds are arithmetic from here on.

    Attributes
    ----------
    right : bool of shape (n_stages, n_rows)
    scores : gate scores of shape (n_stages − 1, n_rows)
    cost : per accounting, cost of a row answered at each stage, of shape (n_stages, n_rows).
    """

    right: np.ndarray
    scores: np.ndarray
    cost: Mapping[str, np.ndarray]

    def at(self, thresholds: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
        """The stage that answers each row, and whether it is right."""
        goes_on = self.scores > np.reshape(thresholds, (-1, 1))
        stage = np.logical_and.accumulate(goes_on, axis=0).sum(axis=0)
        return stage, self.right[stage, np.arange(len(stage))]

    def mean_cost(self, accounting: str, stage: np.ndarray) -> float:
        """Average cost of rows answered at the stages given."""
        return float(self.cost[accounting][stage, np.arange(len(stage))].mean())


def ask(system: System, rows: Rows) -> Answers:
    """Ask every stage of a system about every row."""
    n, costs, calls = len(rows.y), system.costs, system.call_prices()
    scores, by_path = [], []
    passed = np.zeros((n, len(costs.columns)), dtype=bool)
    for stage, call in zip(system.stages, calls, strict=True):
        mask = passed | rows.read(stage.predictor)
        if (gate := stage.gate) is not None:
            scores.append(
                gate.score(rows.X, rows.proba(stage.predictor) if gate.reads_predictor else None)
            )
            mask |= rows.read(gate)
            # A row that goes on has paid for this stage's predictor only if the gate asked it.
            passed = mask if gate.reads_predictor else passed | rows.read(gate)
        by_path.append(costs.of(mask) + call)
    by_stage = costs.of(system.stage_columns()) + calls
    return Answers(
        np.array([rows.right(stage.predictor) for stage in system.stages]),
        np.array(scores).reshape(len(scores), n),
        {
            "stage": np.tile(by_stage[:, None], n).astype(np.float32),
            "path": np.array(by_path, dtype=np.float32),
        },
    )


# -- what is kept of a fit ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Kept:
    """A system's numbers.

    Attributes
    ----------
    validation, test : (cost, score).
    rates : share of the test rows answered by each stage.
    columns : number of columns of its first stage.
    right : on each test row, packed bits.
    """

    method: str
    accounting: str
    setting: Mapping[str, Any]
    validation: tuple[float, float]
    test: tuple[float, float]
    rates: tuple[float, ...]
    columns: int
    right: np.ndarray


class Objective:
    """Judges systems on one problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        classes = problem.full.classes
        self.validation = Rows(problem.validation, classes)
        self.test = Rows(problem.test, classes)
        self.full = {
            accounting: self._point(problem.full, (), accounting) for accounting in ACCOUNTINGS
        }

    def _point(self, system: System, thresholds: Sequence[float], accounting: str) -> Kept:
        numbers = {}
        for name, rows in (("validation", self.validation), ("test", self.test)):
            answers = ask(system, rows)
            stage, right = answers.at(thresholds)
            numbers[name] = (answers.mean_cost(accounting, stage), float(right.mean()))
        rates = tuple(np.bincount(stage, minlength=len(system.stages)) / len(stage))
        bits = np.packbits(right)
        columns = len(system.stages[0].columns)
        return Kept(
            "full model", accounting, {}, **numbers, rates=rates, columns=columns, right=bits
        )

    def judge(
        self, method: str, systems: Iterable[System], setting: Mapping[str, Any]
    ) -> list[Kept]:
        """Systems of one fit that no other of them beats on validation, in either accounting."""
        own = self.problem.full.stages
        # The same f0 for all, as an object too: it is asked once.
        systems = [
            replace(s, stages=(*s.stages[:-1], *own)) if len(s.stages) > 1 else s for s in systems
        ]
        tried = []
        for number, system in enumerate(systems):
            answers = ask(system, self.validation)
            for thresholds in self._thresholds(system):
                stage, right = answers.at(thresholds)
                cost = {a: answers.mean_cost(a, stage) for a in ACCOUNTINGS}
                tried.append((number, thresholds, cost, float(right.mean())))
        kept = []
        for accounting in ACCOUNTINGS:
            costs = [cost[accounting] for *_, cost, _ in tried]
            for i in pareto_order(costs, [score for *_, score in tried]).tolist():
                number, thresholds, *_ = tried[i]
                point = self._point(systems[number], thresholds, accounting)
                kept.append(replace(point, method=method, setting=setting))
        return kept

    def forget(self) -> None:
        """Forget what was asked of any model but f0."""
        for rows in (self.validation, self.test):
            rows.forget(but=[stage.predictor for stage in self.problem.full.stages])

    def _thresholds(self, system: System) -> list[tuple[float, ...]]:
        if len(system.stages) != 2:
            return [system.thresholds]
        return [s.thresholds for s in threshold_systems(system, self.validation.X, N_CUTS)]


# -- comparing methods --------------------------------------------------------------------------------


def frontier_of(kept: Sequence[Kept], full: Kept, n_rows: int) -> Frontier:
    """Frontier on test rows that chooses by the validation numbers; its points stand for systems not kept."""

    def points(where: str) -> tuple[Point, ...]:
        return tuple(Point(None, *getattr(k, where), k.rates, i) for i, k in enumerate(kept))

    def frontier(where: str, chosen: Frontier | None) -> Frontier:
        alone = Point(None, *getattr(full, where), (1.0,), "full model")
        return Frontier(points(where), alone, "accuracy", full.accounting, n_rows, chosen)

    return frontier("test", frontier("validation", None)).pareto()


def compare(kept: Sequence[Kept], full: Mapping[str, Kept], n_rows: int) -> tuple[list, list]:
    """Rows of the two tables of one problem: what is chosen for each wish, and the frontiers."""
    choices, curves = [], []
    for accounting in ACCOUNTINGS:
        f0 = full[accounting]
        by_method: dict[str, list[Kept]] = {}
        for k in kept:
            if k.accounting == accounting:
                by_method.setdefault(k.method, []).append(k)
        fronts = {m: frontier_of(mine, f0, n_rows) for m, mine in by_method.items()}
        for method, front in fronts.items():
            curves += [_curve_row(by_method[method][p.label]) for p in front]
        for tolerance in TOLERANCES:
            for method, front in fronts.items():
                chosen = _choose(front, by_method[method], tolerance=tolerance) or f0
                choices.append(
                    _choice_row(method, chosen, f0, n_rows, tolerance=tolerance, other=f0)
                )
        for share in BUDGETS:
            found = {
                method: _choose(front, by_method[method], budget=share * f0.test[0])
                for method, front in fronts.items()
            }
            for method, chosen in found.items():
                if chosen is not None:
                    other = found.get(REFERENCE)
                    choices.append(
                        _choice_row(method, chosen, f0, n_rows, budget=share, other=other)
                    )
    return choices, curves


def _choose(front: Frontier, among: Sequence[Kept], **wish: float) -> Kept | None:
    try:
        return among[front.at(**wish).label]
    except ValueError:  # none qualifies
        return None


def _choice_row(
    method: str,
    chosen: Kept,
    full: Kept,
    n_rows: int,
    *,
    other: Kept | None,
    tolerance: float | None = None,
    budget: float | None = None,
) -> dict[str, Any]:
    """One line of the table; ``low`` and ``high`` bound the difference of its test score to that of ``other``."""
    row = {
        "accounting": chosen.accounting,
        "tolerance": tolerance,
        "budget": budget,
        "method": method,
        "validation_cost": chosen.validation[0],
        "validation_score": chosen.validation[1],
        "cost": chosen.test[0],
        "cut": 1 - chosen.test[0] / full.test[0],
        "score": chosen.test[1],
        "columns": chosen.columns,
        "sent": chosen.rates[-1] if len(chosen.rates) > 1 else float(chosen is full),
        "setting": ", ".join(f"{k}={v}" for k, v in chosen.setting.items()),
    }
    if other is not None:
        mine, theirs = (np.unpackbits(k.right, count=n_rows) for k in (chosen, other))
        interval = bootstrap_interval(mine, other=theirs, random_state=0)
        row |= {"difference": interval.estimate, "low": interval.low, "high": interval.high}
    return row


def _curve_row(kept: Kept) -> dict[str, Any]:
    return {
        "accounting": kept.accounting,
        "method": kept.method,
        "validation_cost": kept.validation[0],
        "validation_score": kept.validation[1],
        "cost": kept.test[0],
        "score": kept.test[1],
        "cheap_share": kept.rates[0],
        "columns": kept.columns,
    }
