"""A lender's system small enough to work out by hand, for the examples in the documentation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparing.costs import FeatureCosts
from sparing.system import ConfidenceGate, Stage, System

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class _Score:
    """Probability that somebody pays, by a weight for each of some columns."""

    columns: NDArray[np.intp]
    weights: Floats

    def predict_proba(self, X: Any) -> Floats:
        cells = np.asarray(X, dtype=float)[:, self.columns]
        pays = 1.0 / (1.0 + np.exp(-cells @ self.weights))
        return np.column_stack([1.0 - pays, pays])


def lender() -> tuple[System, dict[str, dict[str, float]]]:
    """Income costs 1 and often suffices; a bureau score costs 5 more. Two people come with it.

    Examples
    --------
    >>> system, people = lender()
    >>> system
    System: 2 stages, 2 classes, by stage
      0 income: 1 column, 1, goes on above 0.2
      1 bureau: 2 columns, 6
    """
    stages = (
        Stage(_Score(np.array([0]), np.array([1.0])), ConfidenceGate(), 0.2, name="income"),
        Stage(_Score(np.array([0, 1]), np.array([0.5, 1.0])), name="bureau"),
    )
    costs = FeatureCosts({"income": 1.0, "bureau": 5.0})
    people = {"anna": {"income": 3.0, "bureau": 1.0}, "bert": {"income": 0.5, "bureau": -2.0}}
    return System(stages, costs, np.array(["defaults", "pays"])), people
