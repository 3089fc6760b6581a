"""The L1 baseline of the paper's appendix: columns first, by an L1 path; then a cheap model; then a gate.

Each step is fitted without a thought of the next one, which is what Adapt-Lin is compared with. Every regression is
solved by the linear engine, to the optimum that scikit-learn's ``LogisticRegression`` has with the same C.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from sparing._alternation import Problem, column_mask
from sparing._full_model import FullModel
from sparing._losses import full_loss
from sparing._routed import Training
from sparing._settings import JOBS_CONSTRAINT, PENALTY_CONSTRAINT, numbers, penalties
from sparing._two_level import AUTO_SHARE, TwoLevelClassifier
from sparing.baselines._l1_supports import SupportSolver, Tried, thresholded
from sparing.costs import FeatureCosts
from sparing.engines.design import Design
from sparing.engines.linear import LinearProblem
from sparing.engines.penalty import GroupPenalty
from sparing.system import System

Floats = NDArray[np.float64]

_RIDGE = 1e-8
"""Of the L1 path: columns that are copies of each other have a solution each."""

_FARTHEST = np.log(99.0)
"""Log-odds of the largest class weight of a sweep, 0.99; the smallest is 0.01."""


class L1GateClassifier(TwoLevelClassifier):
    """L1 baseline: columns by sparse logistic regression, then a linear cheap model, then a linear gate.

    L1 logistic regressions over a range of C order the columns by their coefficients; every threshold on these gives a
    support. On each support f1 is an L2 logistic regression, and the gate one for whether f1 is wrong, at many weights
    of the two classes. One fit yields all these systems, ``staged_systems``.

    The fitted system is the one with the smallest mean log-loss plus ``cost_penalty`` × mean cost of its answers on the
    training rows, among those that send at most ``full_rate`` of them on; f0's losses are out of fold.

    Parameters
    ----------
    estimator : classifier, default=None
        The full model f0, see :class:`~sparing.AdaptLinClassifier`; None is a forest.
    feature_costs : None, array, mapping or FeatureCosts, default=None
        Prices of the columns; None is 1 each. A support holds all columns whose items it has paid for, so a panel comes
        whole, and what is free is in every support. Prices do not change the order of the columns.
    full_rate : float or sequence of float, default=0.3
        Largest share of the training rows that the fitted system sends to f0; the last one of a sequence counts.
    cost_penalty : float, "auto" or sequence of float, default="auto"
        Price of one unit of cost in units of mean loss, in the choice of the fitted system alone; the smallest one of a
        sequence counts. "auto" is a tenth of the group penalty at which a linear model would buy nothing.
    Cs : int or array of float, default=20
        Values of C of the L1 regressions; a number of them in logspace(-3, 1).
    C : float, default=1.0
        Inverse strength of the L2 penalty of f1 and gate, as in ``LogisticRegression``.
    class_weights : int or array of float, default=19
        Weights in (0, 1) of "f1 is wrong" against "f1 is right"; a number of them from 0.01 to 0.99, even in log-odds.
        The ends of the sweep are there too: on each support a system that sends nobody, and one that sends everybody.
    max_supports : int or None, default=200
        Supports at most; more are thinned out, evenly by their size. None keeps all.
    standardize : bool, default=True
        Centre and scale the columns: coefficients can be compared only then.
    cv : int, splitter or iterable, default=5
        Folds of f0's out-of-fold probabilities.
    max_iter : int, default=200
        Newton steps of each regression, at most.
    tol : float, default=1e-6
        Violation of the optimality conditions at which a regression is solved.
    random_state : int, RandomState or None, default=None
    n_jobs : int or None, default=None
        Folds of f0, and supports, in parallel.
    verbose : int, default=0

    Attributes
    ----------
    system_ : System
        The fitted system; ``stages_`` are its stages.
    cheap_, gate_ : the cheap predictor and the gate; above 0 it sends a row to f0.
    estimator_ : the fitted full model.
    allocation_ : ndarray of shape (n_rows,)
        1 for the training rows that the fitted system sends to f0, 0 for the others.
    history_ : dict of arrays
        An entry for each support, the cheapest first: ``iteration``, ``n_columns``, ``cost`` (price of the support),
        ``C`` (the smallest at which it was found; NaN for what is free), and of its best system within ``full_rate``
        the ``objective``, the ``allocation_rate`` and the ``class_weight`` (0 sends nobody).
    full_rate_, cost_penalty_ : those of the fitted system.
    n_iter_ : int
        Newton steps of the longest regression.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> from sparing import L1GateClassifier
    >>> from sparing.datasets import make_synthetic2
    >>> X, y = make_synthetic2()
    >>> clf = L1GateClassifier(SVC(), full_rate=0.8, random_state=0).fit(X, y)
    >>> clf.score(X, y), round(float(clf.acquisition_cost(X).mean()), 3)
    (1.0, 1.714)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "full_rate": [Interval(Real, 0, 1, closed="both"), "array-like"],
        "cost_penalty": PENALTY_CONSTRAINT,
        "Cs": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "C": [Interval(Real, 0, None, closed="neither")],
        "class_weights": [Interval(Integral, 2, None, closed="left"), "array-like"],
        "max_supports": [Interval(Integral, 2, None, closed="left"), None],
        "standardize": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "cv": ["cv_object"],
        "random_state": ["random_state"],
        "n_jobs": JOBS_CONSTRAINT,
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        feature_costs: Any = None,
        full_rate: float | Sequence[float] = 0.3,
        cost_penalty: float | str | Sequence[float] = "auto",
        Cs: int | ArrayLike = 20,
        C: float = 1.0,
        class_weights: int | ArrayLike = 19,
        max_supports: int | None = 200,
        standardize: bool = True,
        cv: Any = 5,
        max_iter: int = 200,
        tol: float = 1e-6,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.feature_costs = feature_costs
        self.full_rate = full_rate
        self.cost_penalty = cost_penalty
        self.Cs = Cs
        self.C = C
        self.class_weights = class_weights
        self.max_supports = max_supports
        self.standardize = standardize
        self.cv = cv
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _validate_params(self) -> None:
        super()._validate_params()
        # Before the full model is fitted, which may take hours.
        numbers("full_rate", self.full_rate, upper=1.0)
        penalties(self.cost_penalty, 0.0)
        self._sweeps()

    def _sweeps(self) -> tuple[Floats, Floats]:
        """Values of C, the sparsest first, and weights of the gate's classes."""
        Cs = (
            np.logspace(-3, 1, self.Cs)
            if isinstance(self.Cs, Integral)
            else _values("Cs", self.Cs, np.inf)
        )
        weights = (
            expit(np.linspace(-_FARTHEST, _FARTHEST, self.class_weights))
            if isinstance(self.class_weights, Integral)
            else _values("class_weights", self.class_weights, 1.0)
        )
        return np.unique(Cs), np.unique(weights)

    def _learn(self, training: Training, full: FullModel | None) -> System:
        assert full is not None
        design = Design.fit(training.X, training.weight, standardize=self.standardize)
        owner, Z = np.asarray(design.owner), design.transform(training.X)
        rows = LinearProblem(Z, training.y, len(training.classes), training.weight)
        total = float(len(training.y) if training.weight is None else training.weight.sum())
        Cs, weights = self._sweeps()
        supports = self._supports(rows, owner, training.costs, Cs, total)

        self.full_rate_ = numbers("full_rate", self.full_rate, upper=1.0)[-1]
        prices = GroupPenalty.from_costs(training.costs, owner)
        largest = rows.max_penalty(None, prices, ridge=1.0 / (self.C * total), gate=False)
        self.cost_penalty_ = penalties(self.cost_penalty, AUTO_SHARE * largest)[-1]

        losses = full_loss(full.proba, training.y)
        problem = Problem(training.y, losses, training.weight, self.full_rate_, training.costs)
        solver = SupportSolver(problem, full, weights, self.C, total, self.max_iter, self.tol)
        learnt = Parallel(n_jobs=self.n_jobs)(
            delayed(solver)(design, Z, columns) for columns, _ in supports
        )
        return self._choose(training, full, supports, learnt)

    def _supports(
        self,
        rows: LinearProblem,
        owner: NDArray[np.intp],
        costs: FeatureCosts,
        Cs: Floats,
        total: float,
    ) -> list[tuple[NDArray[np.intp], float]]:
        """Different supports, the cheapest first, and the C at which each was first found."""
        n = rows.shape[1]
        single = GroupPenalty([[j] for j in range(n)], np.ones(n), n_rows=n)
        path = rows.path(
            None,
            single,
            1.0 / (Cs * total),
            ridge=_RIDGE,
            tol=self.tol,
            max_iter=self.max_iter,
            gate=False,
        )
        self.n_iter_ = max(1, *(fit.n_iter for fit in path))
        found: dict[tuple[int, ...], float] = {}
        for C, fit in zip(Cs, path, strict=True):
            for support in thresholded(fit, owner, costs):
                found.setdefault(support, np.nan if not found else float(C))

        def price(columns: tuple[int, ...]) -> tuple[float, tuple[int, ...]]:
            return costs.of(column_mask(np.array(columns, np.intp), len(costs.columns))), columns

        ordered = sorted(found, key=price)
        if self.max_supports is not None and len(ordered) > self.max_supports:
            kept = np.linspace(0, len(ordered) - 1, self.max_supports).round().astype(int)
            ordered = [ordered[i] for i in kept]
        if self.verbose:
            print(f"L1 gate: {len(ordered)} supports from {len(Cs)} values of C")
        return [(np.array(columns, dtype=np.intp), found[columns]) for columns in ordered]

    def _choose(
        self,
        training: Training,
        full: FullModel,
        supports: list[tuple[NDArray[np.intp], float]],
        learnt: list[list[Tried]],
    ) -> System:
        """Keep all systems, and take the one that is best for the penalty within the bound."""
        costs, n = training.costs, len(training.costs.columns)
        self._systems: list[System] = []
        entries, best = list[dict[str, float]](), (np.inf, 0)
        for (columns, C), tried in zip(supports, learnt, strict=True):
            means = np.array([(t.loss, t.cost, t.rate) for t in tried]).T
            values = means[0] + self.cost_penalty_ * means[1]
            i = int(np.argmin(np.where(means[2] <= self.full_rate_, values, np.inf)))
            if values[i] < best[0]:
                best = float(values[i]), len(self._systems) + i
            self._systems += [
                System((t.stage, *full.stages), costs, training.classes) for t in tried
            ]
            entries.append(
                {
                    "iteration": len(entries) + 1,
                    "objective": float(values[i]),
                    "allocation_rate": tried[i].rate,
                    "n_columns": len(columns),
                    "cost": costs.of(column_mask(columns, n)),
                    "C": C,
                    "class_weight": tried[i].class_weight,
                }
            )
            self.n_iter_ = max(self.n_iter_, *(t.n_iter for t in tried))
        self.history_ = {
            name: np.array([entry[name] for entry in entries], float) for name in entries[0]
        }
        system = self._systems[best[1]]
        stage = system.stages[0]
        assert stage.gate is not None
        self.allocation_ = (stage.gate.score(training.X, None) > stage.threshold).astype(float)
        return system

    def staged_systems(self) -> list[System]:
        """All systems of this fit, for a :class:`~sparing.Frontier`: every support with every class weight."""
        check_is_fitted(self, "system_")
        return list(self._systems)

    def _with_system(self, system: System) -> Any:
        other = super()._with_system(system)
        other._systems = [s.with_costs(system.costs) for s in self._systems]
        return other


def _values(name: str, given: Any, upper: float) -> Floats:
    """Numbers strictly between 0 and ``upper``."""
    values = np.array(numbers(name, given))
    if not ((values > 0) & (values < upper)).all():
        between = "above 0" if upper == np.inf else f"strictly between 0 and {upper:g}"
        raise ValueError(f"{name} are numbers {between}; got {given!r}.")
    return values
