"""Adapt-Gbrt (Algorithm 2 of the paper): f1 and g as boosted trees that share the columns they pay for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils._param_validation import StrOptions

from sparing._alternation import History, Problem, alternate
from sparing._boosted import BoostedClassifier, prefixes, round_history
from sparing._folds import folds_of
from sparing._full_model import FullModel
from sparing._routed import Training
from sparing._rows import take_rows
from sparing.adapt.base import AdaptClassifier, Learnt
from sparing.engines.boosted_parts import BoostedGate, BoostedPair, BoostedPredictor
from sparing.engines.boosting import BoostingEngine, Grown
from sparing.engines.refit import Refitted, refit, weighted_quantile
from sparing.system import ConfidenceGate, Stage

Floats = NDArray[np.float64]

_SCORED_ROWS = 4096
"""Training rows whose gate scores say where thresholds of smaller prefixes may stand."""
_BASKETS = 3
"""Sets of columns of one run that f1 is refitted on, at most."""
_QUICK_CELLS = 300_000
"""Rows times classes that all refits of one run may look at, unless there is only one: they take most of the time."""


@dataclass(frozen=True)
class _GrownStep:
    """A grown booster as the alternation sees it."""

    grown: Grown

    @property
    def cheap(self) -> Floats:
        return self.grown.cheap

    @property
    def gate(self) -> Floats:
        return self.grown.gate

    @property
    def penalty(self) -> float:
        return self.grown.penalty

    @property
    def columns(self) -> NDArray[np.intp]:
        return np.array([column for column, _ in self.grown.bought], dtype=np.intp)


class AdaptGbrtClassifier(AdaptClassifier, BoostedClassifier):
    """Adapt-Gbrt: cheap model and gate as gradient-boosted trees, beside a full model.

    A split pays for a column the first time any tree of f1 or g uses it. Easy rows are answered by f1, the gate sends
    the others to the full model.

    Parameters
    ----------
    estimator : classifier, default=None
        The full model f0, see :class:`AdaptLinClassifier`; None is a forest.
    feature_costs : None, array, mapping or FeatureCosts, default=None
        Prices of the columns; None is 1 each.
    full_rate : float or sequence of float, default=0.3
        Upper bound on the mean allocation to f0 while learning; 0 learns no gate: f1 alone is GreedyMiser.
    cost_penalty : float, "auto" or sequence of float, default="auto"
        Price of one unit of cost in units of mean loss, whatever the number of rows. A sequence gives a system each;
        the smallest gives the fitted one.
    n_estimators : int, default=100
        Trees of f1 (per class when there are more than two) and of g.
    max_depth : int, default=4
    learning_rate : float or None, default=None
        None is 0.2 with Newton steps, 1.0 without.
    newton : bool, default=True
        Second-order trees; False is the paper's least squares on the negative gradient.
    max_bin : int or None, default=None
        Values a column is cut into, at most. None is 255, and 63 on fewer than 10,000 rows, which halves the time.
    schedule : {"one-pass", "alternate"}, default="one-pass"
        ``"alternate"`` is the paper: all trees are grown from scratch for an allocation, then the allocation is solved
        again. ``"one-pass"`` solves it before every round of a single run.
    gate : {"refit", "joint", "confidence"}, default="refit"
        ``"joint"`` is the paper's: g and f1 as they were grown. ``"refit"`` keeps the columns they bought, refits f1 on
        them without prices and learns a gate for its excess error over f0 on out-of-fold scores; ``staged_systems`` has
        the joint ones too, the refitted f1 gated by its confidence, and both on the columns bought first.
        ``"confidence"`` goes on where the jointly grown f1 is unsure.
    cv : int, splitter or iterable, default=5
        Folds of f0's out-of-fold probabilities.
    max_iter : int, default=10
        Alternations, at most.
    tol : float, default=1e-4
        Stop alternating when allocation and objective change less than this.
    random_state : int, RandomState or None, default=None
    n_jobs : int or None, default=None
        Threads of the trees and folds of f0; changes the time, never the result.
    verbose : int, default=0
    lightgbm_params : mapping or None, default=None
        More parameters of LightGBM, for f1 and the joint gate.

    Attributes
    ----------
    system_ : System
    cheap_, gate_ : the cheap predictor and the gate.
    estimator_ : the fitted full model.
    allocation_ : ndarray of shape (n_rows,)
        q on the training rows.
    history_ : dict of arrays
        ``iteration`` (alternations, or rounds of trees in one pass), ``objective``, ``allocation_rate``, ``n_columns``,
        ``cost``, ``full_rate``, ``cost_penalty``.

    Examples
    --------
    >>> from sparing import AdaptGbrtClassifier
    >>> from sparing.datasets import load_hypothyroid
    >>> data = load_hypothyroid()
    >>> clf = AdaptGbrtClassifier(feature_costs=data.costs, full_rate=0.1, random_state=0)
    >>> clf = clf.fit(data.data, data.target)
    >>> bool(clf.acquisition_cost(data.data).mean() < 0.8 * data.costs.total)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **AdaptClassifier._parameter_constraints,
        **BoostedClassifier._boosting_constraints,
        "schedule": [StrOptions({"one-pass", "alternate"})],
        "gate": [StrOptions({"refit", "joint", "confidence"})],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        feature_costs: Any = None,
        full_rate: float | Sequence[float] = 0.3,
        cost_penalty: float | str | Sequence[float] = "auto",
        n_estimators: int = 100,
        max_depth: int = 4,
        learning_rate: float | None = None,
        newton: bool = True,
        max_bin: int | None = None,
        schedule: str = "one-pass",
        gate: str = "refit",
        cv: Any = 5,
        max_iter: int = 10,
        tol: float = 1e-4,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        lightgbm_params: Mapping[str, Any] | None = None,
    ) -> None:
        self.estimator = estimator
        self.feature_costs = feature_costs
        self.full_rate = full_rate
        self.cost_penalty = cost_penalty
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.learning_rate = learning_rate
        self.newton = newton
        self.max_bin = max_bin
        self.schedule = schedule
        self.gate = gate
        self.cv = cv
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.lightgbm_params = lightgbm_params

    def _solve(
        self,
        training: Training,
        full: FullModel,
        problems: list[Problem],
    ) -> Iterator[tuple[float, float, Learnt]]:
        n = len(training.y)
        scored = np.arange(0, n, max(1, n // _SCORED_ROWS))
        some = take_rows(training.X, scored)
        weight = training.weight
        weight_of_some = None if weight is None else weight[scored]
        # Rows without weight teach nothing: they must not fill a fold that others should.
        counts = training.weight is None or training.weight > 0
        strata = 2 * training.y + counts
        folds = [rows for _, rows in folds_of(5, strata, 0).split(np.zeros(n), strata)]
        wrong = (full.codes != training.y).astype(float)
        n_jobs = effective_n_jobs(self.n_jobs)
        most = int(np.clip(_QUICK_CELLS // (n * len(training.classes)), 1, _BASKETS))
        # Neighbouring settings often buy the same columns: the refit on them is the same.
        known: dict[tuple[tuple[int, ...], float], Refitted] = {}
        for engine in self._engines(training, gate=True):
            start = None
            if self.schedule == "alternate":
                start = engine.grow(np.zeros(n)).cheap
            for problem in problems:
                grown, q, history = self._grow(problem, engine, start)
                pair = BoostedPair.of(grown, n_jobs)
                variants = [
                    self._variant(pair, t, some, weight_of_some, problem.full_rate)
                    for t in prefixes(grown.n_iterations)
                ]
                wanted = self.gate == "refit" and problem.full_rate > 0
                for bought in _baskets(grown, most) if wanted else ():
                    key = (bought, problem.full_rate)
                    if key not in known:
                        columns = np.array(bought, dtype=np.intp)
                        known[key] = refit(
                            engine,
                            training.X,
                            columns,
                            wrong,
                            problem.full_rate,
                            folds=folds,
                            n_jobs=n_jobs,
                        )
                    variants += _refitted_variants(known[key], weight, problem.full_rate)
                yield problem.full_rate, engine.cost_penalty, Learnt(variants, q, history)

    def _variant(
        self,
        pair: BoostedPair,
        n_iteration: int | None,
        some: Any,
        weight: Floats | None,
        full_rate: float,
    ) -> tuple[Stage, Floats]:
        predictor = BoostedPredictor(pair, n_iteration)
        if self.gate == "confidence":
            doubt = ConfidenceGate().score(some, predictor.predict_proba(some))
            return _confident(predictor, doubt, weight, full_rate)
        gate = BoostedGate(pair, n_iteration)
        return Stage(predictor, gate, name="cheap"), gate.score(some)

    def _grow(
        self, problem: Problem, engine: BoostingEngine, start: Floats | None
    ) -> tuple[Grown, Floats, History]:
        if start is None or problem.full_rate == 0:
            grown = engine.grow_one_pass(problem.full_loss, problem.full_rate)
            return grown, grown.q, round_history(grown, problem.costs, engine.cost_penalty)
        outcome = alternate(
            problem,
            lambda q, _: _GrownStep(engine.grow(q, full_loss=problem.full_loss)),
            (start, np.zeros(len(problem.y))),
            max_iter=self.max_iter,
            tol=self.tol,
            verbose=self.verbose,
            name="Adapt-Gbrt ",
        )
        return outcome.fit.grown, outcome.q, outcome.history


def _baskets(grown: Grown, most: int) -> list[tuple[int, ...]]:
    """Sets of columns worth a refit: all that were bought last, before it what had been bought after fewer rounds.

    One penalty often buys four columns more than the next larger one; the sets between them are good stages too.
    """
    sets = {
        tuple(sorted(column for column, t in grown.bought if t < (n or grown.n_iterations)))
        for n in prefixes(grown.n_iterations)
    }
    return sorted((s for s in sets if s), key=len)[-most:]


def _confident(
    predictor: BoostedPredictor, doubt: Floats, weight: Floats | None, full_rate: float
) -> tuple[Stage, Floats]:
    # At a rate of 0 nobody goes on, however unsure f1 is on later rows; at 1 everybody may, equal doubts or not.
    if not 0 < full_rate < 1:
        threshold = np.inf if full_rate == 0 else -np.inf
    # Weights that are all the same, also all 0 on the rows that are scored, are none.
    elif weight is None or np.ptp(weight) == 0:
        threshold = float(np.quantile(doubt, 1.0 - full_rate))
    else:
        threshold = weighted_quantile(doubt, weight, 1.0 - full_rate)
    return Stage(predictor, ConfidenceGate(), threshold, name="cheap"), doubt


def _refitted_variants(
    again: Refitted, weight: Floats | None, full_rate: float
) -> list[tuple[Stage, Floats]]:
    """The refitted f1 gated by its own confidence, and by the model of its excess error."""
    by_excess = Stage(again.predictor, again.gate, name="cheap")
    confident = _confident(again.predictor, again.doubt, weight, full_rate)
    return [confident, (by_excess, again.scores)]
