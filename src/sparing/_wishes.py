"""What a user asks of a system: a budget, a tolerance, floors of recall; and the choice they lead to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sparing._rows import ScoredRows
from sparing.frontier import Frontier, Point
from sparing.metrics.saving import within_budget
from sparing.metrics.scoring import SystemClassifier
from sparing.system import System

Floats = NDArray[np.float64]


class Labelled(Protocol):
    """Rows with labels and weights."""

    @property
    def X(self) -> Any:  # noqa: N802
        """Rows."""

    @property
    def y(self) -> NDArray[Any]:
        """Labels."""

    @property
    def weight(self) -> Floats | None:
        """Weights."""


@dataclass(frozen=True)
class Wishes:
    """A budget, a tolerance, floors of recall by class; None is no wish."""

    budget: float | None = None
    tolerance: float | None = None
    min_recall: Mapping[Any, float] | None = None

    def __post_init__(self) -> None:
        for label, floor in (self.min_recall or {}).items():
            if isinstance(floor, bool) or not isinstance(floor, Real) or not 0 <= float(floor) <= 1:
                raise ValueError(f"min_recall of {label!r} is a number from 0 to 1; got {floor!r}.")

    def choose(self, frontier: Frontier) -> Point:
        """The cheapest system within the tolerance, the best within the budget; with both, the first keeping both.

        Without either nothing is to be lost: the cheapest that is as good as the full model.
        """
        if self.budget is None:
            return frontier.at(tolerance=0.0 if self.tolerance is None else self.tolerance)
        if self.tolerance is None:
            return frontier.at(budget=self.budget)
        point = frontier.at(tolerance=self.tolerance)
        if not within_budget(np.array([point.cost]), self.budget)[0]:
            best = frontier.at(budget=self.budget) if frontier.costs.min() <= self.budget else None
            text = (
                f"for {self.budget:g} the best scores {best.score:.4g}"
                if best is not None
                else f"the cheapest system of all costs {frontier.costs.min():.4g}"
            )
            assert frontier.full is not None
            raise ValueError(
                f"budget={self.budget:g} and tolerance={self.tolerance:g} contradict each other: the cheapest system "
                f"within {self.tolerance:g} of the full model ({frontier.full.score:.4g}) costs {point.cost:.4g}, and "
                f"{text}."
            )
        return point

    def recalls(self, systems: Sequence[System], rows: Labelled) -> Floats:
        """Recall of every class that has a floor, for every system: shape (n_floors, n_systems)."""
        floors = self.min_recall or {}
        if not floors:
            return np.empty((0, len(systems)))
        scored = ScoredRows(rows.X, size=6 * max(len(s.stages) for s in systems) + 6)
        out = np.empty((len(floors), len(systems)))
        for label in floors:
            if not (rows.y == label).any():
                raise ValueError(f"min_recall: no validation row has the class {label!r}.")
        for j, system in enumerate(systems):
            answers = SystemClassifier(system, scored).predict(scored)
            for i, label in enumerate(floors):
                mine = rows.y == label
                weight = None if rows.weight is None else rows.weight[mine]
                out[i, j] = np.average(answers[mine] == label, weights=weight)
        return out

    def keeps_floors(self, recalls: Floats) -> NDArray[np.bool_]:
        """Which systems reach all floors."""
        floors = np.array(list((self.min_recall or {}).values()), dtype=float)
        return np.all(recalls >= floors[:, None] - 1e-12, axis=0)
