"""What a user asks of a system: a budget, a tolerance, floors of recall; and the choice they lead to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparing._choice import CAUTION
from sparing._frontier_merging import cheaper_than_full
from sparing._parts import Rows
from sparing._price_list import short
from sparing._rows import ScoredRows
from sparing.costs import FeatureCosts
from sparing.frontier import Frontier, Point
from sparing.metrics.saving import within_budget
from sparing.metrics.scoring import SystemClassifier
from sparing.metrics.trial import Span
from sparing.system import System

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Wishes:
    """A budget, a tolerance, floors of recall by class; None is no wish."""

    budget: float | None = None
    tolerance: float | None = None
    min_recall: Mapping[Any, float] | None = None

    def __post_init__(self) -> None:
        for name, wish, why in (
            ("budget", self.budget, "None is no limit"),
            ("tolerance", self.tolerance, "0.01 gives up a point of accuracy"),
        ):
            if wish is not None and not (_is_number(wish) and np.isfinite(float(wish))):
                raise ValueError(f"{name} is a finite number; got {wish!r}. {why}.")
        if self.budget is not None and self.budget < 0:
            raise ValueError(
                f"budget={self.budget:g} is negative: give the average cost per row that may be spent."
            )
        for label, floor in (self.min_recall or {}).items():
            if not _is_number(floor) or not 0 <= float(floor) <= 1:
                raise ValueError(f"min_recall of {label!r} is a number from 0 to 1; got {floor!r}.")

    # -- before anything is fitted ------------------------------------------------------------------

    def check_prices(self, costs: FeatureCosts) -> None:
        """Raise for a budget that buys no column at all, or everything for everybody."""
        if self.budget is None:
            return
        calls = np.atleast_1d(np.asarray(costs.call_price, dtype=float))
        most = costs.total + float(calls.sum())
        prices = costs.of(np.eye(len(costs.columns), dtype=bool))
        cheapest = int(prices.argmin())
        least = float(prices[cheapest]) + (float(calls[0]) if len(calls) > 1 else 0.0)
        # With a free column some rows can be told from others, and any average be reached by buying for a few.
        if self.budget < least and not within_budget(np.array([least]), self.budget)[0]:
            raise ValueError(
                f"budget={self.budget:g} buys nothing: the cheapest column, {costs.columns[cheapest]!r}, costs "
                f"{least:.4g} for every row, and everything {most:.4g}. Give a budget between these."
            )
        if self.budget > most * (1 + 1e-9):
            raise ValueError(
                f"budget={self.budget:g} is no limit: all columns and calls together cost {most:.4g} for a row. Give a "
                f"budget from {least:.4g} to {most:.4g}, or tolerance=0 to save what loses nothing."
            )

    def check_tolerance(self, span: Span, name: str) -> None:
        """Raise for a tolerance that allows everything, or that no score can reach."""
        reach = span.best - span.worst
        if self.tolerance is None or not np.isfinite(reach) or abs(self.tolerance) < reach:
            return
        points = " One point of accuracy is 0.01." if reach == 1 else ""
        raise ValueError(
            f"tolerance={self.tolerance:g} is out of range: {name} is {span.best:.4g} when every answer is right and "
            f"{span.worst:.4g} when every answer is wrong. Give a part of the difference.{points}"
        )

    def check_labels(self, labels: NDArray[Any]) -> None:
        """Raise for floors of classes that are not there."""
        unknown = [label for label in self.min_recall or {} if label not in labels.tolist()]
        if unknown:
            raise ValueError(
                f"min_recall names classes that y has not: {short(unknown)}; it has {short(labels.tolist())}."
            )

    # -- choosing -----------------------------------------------------------------------------------

    def choose(self, frontier: Frontier) -> Point:
        """The cheapest system within the tolerance, the best within the budget; with both, the first keeping both.

        Without either nothing is to be lost: the cheapest that is as good as the full model.
        """
        try:
            return self._chosen(frontier)
        except ValueError as error:
            if not self.min_recall:
                raise
            raise ValueError(
                f"{error} Systems that do not keep min_recall={dict(self.min_recall)} on the validation rows are left "
                "out."
            ) from error

    def _chosen(self, frontier: Frontier) -> Point:
        if self.budget is None:
            return self._cheapest(frontier, CAUTION)
        if self.tolerance is None:
            return frontier.at(budget=self.budget)
        for caution in (CAUTION, 0.0):  # rather with less than not at all
            point = self._cheapest(frontier, caution)
            affordable = within_budget(np.array([point.cost]), self.budget)[0]
            if affordable:
                break
        if not affordable:
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

    def _cheapest(self, frontier: Frontier, caution: float) -> Point:
        """The cheapest within the tolerance; the full model alone only where nothing cheaper keeps it."""
        tolerance = self.tolerance or 0.0
        try:
            return cheaper_than_full(frontier).at(tolerance=tolerance, caution=caution)
        except ValueError:
            return frontier.at(tolerance=tolerance, caution=caution)

    def recalls(self, systems: Sequence[System], rows: Rows) -> Floats:
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


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
