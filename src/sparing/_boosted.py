"""What Adapt-Gbrt and GreedyMiser share: parameters of the booster, the engine made of them, prefixes, history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from sparing._alternation import History
from sparing._routed import RoutedClassifier, Training
from sparing._settings import penalties
from sparing.costs import FeatureCosts
from sparing.engines.binning import BinnedData
from sparing.engines.booster_params import checked_params
from sparing.engines.boosting import BoostingEngine, Grown, auto_cost_penalty

_FEW_ROWS, _FEW_BINS, _MANY_BINS = 10_000, 63, 255
"""On few rows the time goes into the bins, not into the rows: a quarter of them halves it at the same accuracy."""


class BoostedClassifier(RoutedClassifier):
    """Routed classifiers grown by :class:`~sparing.engines.boosting.BoostingEngine`."""

    _boosting_constraints: ClassVar[dict[str, Any]] = {
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "max_depth": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither"), None],
        "newton": ["boolean"],
        "max_bin": [Interval(Integral, 2, None, closed="left"), None],
        "lightgbm_params": [Mapping, None],
    }

    def _validate_params(self) -> None:
        super()._validate_params()
        penalties(self.cost_penalty, 0.0)
        try:
            checked_params(self.lightgbm_params or {})
        except ValueError as error:
            raise ValueError(f"lightgbm_params: {error}") from None

    def _engines(self, training: Training, gate: bool) -> Iterator[BoostingEngine]:
        """An engine per penalty, the largest first, all on rows that are binned once."""
        max_bin = self.max_bin
        if max_bin is None:
            max_bin = _FEW_BINS if len(training.y) < _FEW_ROWS else _MANY_BINS
        data = BinnedData(training.X, max_bin=max_bin, n_jobs=self.n_jobs)
        automatic = auto_cost_penalty(training.costs, self.newton)
        for penalty in penalties(self.cost_penalty, automatic):
            yield BoostingEngine(
                data,
                training.y,
                len(training.classes),
                training.costs,
                sample_weight=training.weight,
                n_estimators=self.n_estimators,
                max_depth=self.max_depth,
                learning_rate=self.learning_rate,
                newton=self.newton,
                cost_penalty=penalty,
                gate=gate,
                random_state=training.seed,
                n_jobs=self.n_jobs,
                params=self.lightgbm_params,
            )


def prefixes(n_iterations: int) -> list[int | None]:
    """Numbers of rounds at which a smaller system is kept, each about 1.5 times the last; None is all.

    Examples
    --------
    >>> prefixes(40)
    [4, 7, 11, 17, 26, None]
    """
    sizes: list[int | None] = []
    size = 4
    while size < 0.8 * n_iterations:
        sizes.append(size)
        size = int(size * 1.5) + 1
    return [*sizes, None]


def round_history(grown: Grown, costs: FeatureCosts, penalty: float) -> History:
    """History of a single run, an entry per round; the penalty for what was bought so far is added."""
    rounds = len(grown.history["objective"])
    bought = np.zeros(len(costs.columns), dtype=bool)
    price = np.zeros(rounds)
    for column, t in grown.bought:
        bought[column] = True
        price[t + 1 :] = costs.of(bought)
    return {
        "iteration": np.arange(rounds, dtype=float),
        "objective": grown.history["objective"] + penalty * price,
        "allocation_rate": grown.history["mean_q"],
        "n_columns": grown.history["n_columns"],
        "cost": price,
    }
