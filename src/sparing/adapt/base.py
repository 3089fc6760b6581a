"""What the two-level learners share: f0's losses, the settings of one fit, the systems it yields."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from sparing._alternation import History, Problem
from sparing._cuts import threshold_cuts
from sparing._full_model import FullModel
from sparing._losses import full_loss
from sparing._routed import Training
from sparing._settings import JOBS_CONSTRAINT, PENALTY_CONSTRAINT, numbers, penalties
from sparing._two_level import TwoLevelClassifier
from sparing.system import Stage, System

Floats = NDArray[np.float64]

N_THRESHOLDS = 100
"""Thresholds kept per gate: one fitted system is a curve, at quantiles of its training scores."""


@dataclass(frozen=True)
class Learnt:
    """What one setting (a bound on the allocation, a penalty) gave.

    Attributes
    ----------
    variants : pairs of a system's cheap stage and its gate's scores on training rows; the last one is the fitted
        system, those before it are smaller (fewer trees).
    q : allocation on the training rows.
    history : per iteration.
    """

    variants: list[tuple[Stage, Floats]]
    q: Floats
    history: History


class AdaptClassifier(TwoLevelClassifier):
    """Base of the two-level learners; a subclass says how f1 and g are learnt for one setting after the other."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "full_rate": [Interval(Real, 0, 1, closed="both"), "array-like"],
        "cost_penalty": PENALTY_CONSTRAINT,
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "cv": ["cv_object"],
        "random_state": ["random_state"],
        "n_jobs": JOBS_CONSTRAINT,
        "verbose": ["verbose"],
    }

    def _validate_params(self) -> None:
        super()._validate_params()
        # Before the full model is fitted, which may take hours.
        numbers("full_rate", self.full_rate, upper=1.0)
        penalties(self.cost_penalty, 0.0)

    @abstractmethod
    def _solve(
        self, training: Training, full: FullModel, problems: list[Problem]
    ) -> Iterator[tuple[float, float, Learnt]]:
        """Learn for every bound of ``problems`` and every penalty: yields (bound, penalty, result)."""

    def _learn(self, training: Training, full: FullModel | None) -> System:
        assert full is not None
        losses = full_loss(full.proba, training.y)
        problems = [
            Problem(training.y, losses, training.weight, rate, training.costs)
            for rate in numbers("full_rate", self.full_rate, upper=1.0)
        ]
        self._variants: list[tuple[System, Floats]] = []
        histories = list[History]()
        for rate, penalty, learnt in self._solve(training, full, problems):
            for stage, scores in learnt.variants:
                system = System((stage, *full.stages), training.costs, training.classes)
                self._variants.append((system, threshold_cuts(scores, N_THRESHOLDS)))
            n = len(learnt.history["objective"])
            histories.append(
                learnt.history
                | {"full_rate": np.full(n, rate), "cost_penalty": np.full(n, penalty)}
            )
            self.allocation_ = learnt.q
            self.full_rate_, self.cost_penalty_ = rate, penalty
        self.history_ = {k: np.concatenate([h[k] for h in histories]) for k in histories[0]}
        return self._variants[-1][0]

    @property
    def n_iter_(self) -> int:
        """Alternations (or rounds of trees) it took to learn the fitted system."""
        return int(self.history_["iteration"][-1])

    def staged_systems(self) -> list[System]:
        """All systems of this fit, for a :class:`~sparing.Frontier`: every setting, size and many thresholds.

        The first threshold of each keeps all rows at the cheap stage, the last sends all to the full model; those
        between cut at quantiles of the gate's scores on the training rows.
        """
        check_is_fitted(self, "system_")
        return [
            system.with_thresholds([cut, *system.thresholds[1:]])
            for system, cuts in self._variants
            for cut in cuts
        ]

    def _with_system(self, system: System) -> Any:
        other = super()._with_system(system)
        other._variants = [(s.with_costs(system.costs), cuts) for s, cuts in self._variants]
        return other
