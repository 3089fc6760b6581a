"""The objective: the same splits, f0, prices and accounting for every method; validation chooses, test reports.

Systems are judged on validation rows, gates cut at the same shares of them whatever the method. Of one fit only the
systems that no other of its systems beats on validation are kept; these alone can be chosen later. What is kept of a
system are its numbers and, for paired intervals, what it was worth on each test unit: a row, or a query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from paper.problem import Part, Problem
from paper.scores import Score
from sparing import System
from sparing.frontier import pareto_order, threshold_systems
from sparing.system import ACCOUNTINGS, columns_read

N_CUTS = 65
"""Thresholds tried of a gate."""


# -- what the parts of a system say about some rows ---------------------------------------------------


class Rows:
    """Rows that remember what each part of a system said about them, so that f0 is asked once."""

    def __init__(self, part: Part, classes: np.ndarray, score: Score) -> None:
        self.X, self.y, self.query, self.grade = part.X, part.y, part.query, part.grade
        self.classes, self.score = classes, score
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

    def answer(self, predictor: Any) -> np.ndarray:
        """What counts of a predictor's answer on each row."""
        return self.ask("answer", predictor, lambda: self.score.answer(predictor, self))

    def read(self, part: Any) -> np.ndarray:
        """Columns a predictor or gate reads on each row."""
        n = self.X.shape[1]
        return self.ask("read", part, lambda: columns_read(part, self.X, n))


@dataclass(frozen=True)
class Answers:
    """What every stage of a system would say and cost, row by row: thresholds are arithmetic from here on.

    Attributes
    ----------
    said : what counts of the answers, of shape (n_stages, n_rows)
    scores : gate scores of shape (n_stages − 1, n_rows)
    cost : per accounting, cost of a row answered at each stage, of shape (n_stages, n_rows).
    """

    said: np.ndarray
    scores: np.ndarray
    cost: Mapping[str, np.ndarray]

    def at(self, thresholds: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
        """The stage that answers each row, and its answer."""
        goes_on = self.scores > np.reshape(thresholds, (-1, 1))
        stage = np.logical_and.accumulate(goes_on, axis=0).sum(axis=0)
        return stage, self.said[stage, np.arange(len(stage))]

    def costs(self, accounting: str, stage: np.ndarray) -> np.ndarray:
        """Cost of each row answered at the stage given."""
        return self.cost[accounting][stage, np.arange(len(stage))]


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
        np.array([rows.answer(stage.predictor) for stage in system.stages]),
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
    right : worth of its answers on each test unit: packed bits of right and wrong, or numbers.
    spread : standard deviation of the cost of a test row; NaN in what was kept by older versions.
    more : other scores on test units, which choose nothing.
    """

    method: str
    accounting: str
    setting: Mapping[str, Any]
    validation: tuple[float, float]
    test: tuple[float, float]
    rates: tuple[float, ...]
    columns: int
    right: np.ndarray
    spread: float = float("nan")
    more: Mapping[str, float] = field(default_factory=dict)

    def values(self, n_units: int) -> np.ndarray:
        """Worth of its answers on each test unit."""
        if self.right.dtype != np.uint8:
            return self.right
        return np.unpackbits(self.right, count=n_units).astype(bool)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # What was kept before other scores were: nothing of them.
        self.__dict__.update({"more": {}} | state)


class Objective:
    """Judges systems on one problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        classes, self.score = problem.full.classes, problem.score
        self.validation = Rows(problem.validation, classes, self.score)
        self.test = Rows(problem.test, classes, self.score)
        self.full = {
            accounting: self._point(problem.full, (), accounting) for accounting in ACCOUNTINGS
        }

    @property
    def n_units(self) -> int:
        """Test rows or queries."""
        query = self.test.query
        return len(self.test.y if query is None else np.unique(query))

    def _point(self, system: System, thresholds: Sequence[float], accounting: str) -> Kept:
        numbers = {}
        for name, rows in (("validation", self.validation), ("test", self.test)):
            answers = ask(system, rows)
            stage, said = answers.at(thresholds)
            cost, values = answers.costs(accounting, stage), self.score.values(said, rows)
            numbers[name] = (float(cost.mean()), float(values.mean()))
        return Kept(
            "full model",
            accounting,
            {},
            **numbers,
            rates=tuple(np.bincount(stage, minlength=len(system.stages)) / len(stage)),
            columns=len(system.stages[0].columns),
            right=np.packbits(values) if values.dtype == bool else values,
            spread=float(cost.std()),
            more=self.score.more(said, self.test),
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
                stage, said = answers.at(thresholds)
                cost = {a: float(answers.costs(a, stage).mean()) for a in ACCOUNTINGS}
                score = float(self.score.values(said, self.validation).mean())
                tried.append((number, thresholds, cost, score))
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
