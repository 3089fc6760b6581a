"""GreedyMiser: boosted trees that pay for a column at its first use, without a full model behind them.

It is Adapt-Gbrt's booster with a bound of 0 on the allocation (Xu, Weinberger and Chapelle, 2012).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils.validation import check_is_fitted

from sparing._alternation import History
from sparing._boosted import BoostedClassifier, prefixes, round_history
from sparing._full_model import FullModel
from sparing._routed import Training
from sparing._settings import JOBS_CONSTRAINT, PENALTY_CONSTRAINT
from sparing.engines.boosted_parts import BoostedPair, BoostedPredictor
from sparing.system import Stage, System


class GreedyMiserClassifier(BoostedClassifier):
    """Gradient-boosted trees in which the first use of a column costs its price.

    There is no full model: ``route`` is 0 everywhere, and its ``call_price`` is never charged.

    Parameters
    ----------
    estimator : ignored
        Present for the common grammar of routed classifiers.
    feature_costs : None, array, mapping or FeatureCosts, default=None
        Prices of the columns; None is 1 each.
    cost_penalty : float, "auto" or sequence of float, default="auto"
        Price of one unit of cost in units of mean loss. A sequence gives a system each; the smallest the fitted one.
    n_estimators : int, default=200
        Trees, per class when there are more than two: twice those of an Adapt-Gbrt system is the same model size.
    max_depth : int, default=4
    learning_rate : float or None, default=None
        None is 0.2 with Newton steps, 1.0 without.
    newton : bool, default=True
        Second-order trees; False is least squares on the negative gradient.
    max_bin : int or None, default=None
        Values a column is cut into, at most. None is 255, and 63 on fewer than 10,000 rows, which halves the time.
    random_state : int, RandomState or None, default=None
    n_jobs : int or None, default=None
    verbose : int, default=0
    lightgbm_params : mapping or None, default=None
        More parameters of LightGBM.

    Attributes
    ----------
    system_ : System
    history_ : dict of arrays
        ``iteration``, ``objective`` (mean log-loss plus penalty), ``n_columns``, ``cost``, ``cost_penalty``.

    Examples
    --------
    >>> from sparing import GreedyMiserClassifier
    >>> from sparing.datasets import load_hypothyroid
    >>> data = load_hypothyroid()
    >>> clf = GreedyMiserClassifier(feature_costs=data.costs, n_estimators=20).fit(data.data, data.target)
    >>> clf.score(data.data, data.target) > 0.97
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BoostedClassifier._boosting_constraints,
        "cost_penalty": PENALTY_CONSTRAINT,
        "random_state": ["random_state"],
        "n_jobs": JOBS_CONSTRAINT,
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        feature_costs: Any = None,
        cost_penalty: float | str | Sequence[float] = "auto",
        n_estimators: int = 200,
        max_depth: int = 4,
        learning_rate: float | None = None,
        newton: bool = True,
        max_bin: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        lightgbm_params: Mapping[str, Any] | None = None,
    ) -> None:
        self.estimator = estimator
        self.feature_costs = feature_costs
        self.cost_penalty = cost_penalty
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.learning_rate = learning_rate
        self.newton = newton
        self.max_bin = max_bin
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.lightgbm_params = lightgbm_params

    def _full_model(self, *_: Any) -> None:
        """There is none."""

    def _allows_nan(self) -> bool:
        return True

    def _learn(self, training: Training, full: FullModel | None) -> System:  # noqa: ARG002
        self._systems: list[System] = []
        histories: list[History] = []
        for engine in self._engines(training, gate=False):
            grown = engine.grow(np.zeros(len(training.y)))
            history = round_history(grown, training.costs, engine.cost_penalty)
            penalty = np.full(len(history["objective"]), engine.cost_penalty)
            histories.append(history | {"cost_penalty": penalty})
            pair = BoostedPair.of(grown, effective_n_jobs(self.n_jobs))
            for n_iteration in prefixes(grown.n_iterations):
                stage = Stage(BoostedPredictor(pair, n_iteration), name="cheap")
                self._systems.append(
                    System((stage,), training.costs, training.classes, has_full=False)
                )
        self.history_ = {k: np.concatenate([h[k] for h in histories]) for k in histories[0]}
        return self._systems[-1]

    def staged_systems(self) -> list[System]:
        """All systems of this fit, for a :class:`~sparing.Frontier`: every penalty and many numbers of trees."""
        check_is_fitted(self, "system_")
        return list(self._systems)

    def _with_system(self, system: System) -> Any:
        other = super()._with_system(system)
        other._systems = [s.with_costs(system.costs) for s in self._systems]
        return other
