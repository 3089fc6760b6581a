"""The paper's learners: a cheap model f1 and a gate g that share few, cheap columns, beside a full model f0.

Each class is a thin shell: an engine for f1 and g, the alternation of ``_alternation``, the contract of ``_routed``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from sparing._alternation import History, Outcome, Problem, alternate, column_mask
from sparing._full_model import FullModel
from sparing._losses import cheap_loss, full_loss
from sparing._routed import RoutedClassifier, Training
from sparing.engines.design import Design
from sparing.engines.linear import LinearFit, LinearProblem
from sparing.engines.linear_parts import LinearGate, LinearPredictor, LinearScores
from sparing.engines.linear_step import LinearStep, LinearStepper, single_items
from sparing.engines.penalty import GroupPenalty
from sparing.system import Stage, System

Floats = NDArray[np.float64]

N_THRESHOLDS = 32
"""Thresholds kept per gate: a curve of one fitted system, at quantiles of its training scores."""


class _AdaptClassifier(RoutedClassifier):
    """What the two-level learners share: f0's losses, a path of penalties, the systems of one fit."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "full_rate": [Interval(Real, 0, 1, closed="both")],
        "cost_penalty": [
            Interval(Real, 0, None, closed="left"),
            StrOptions({"auto"}),
            "array-like",
        ],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "cv": ["cv_object"],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def gate_function(self, X: Any) -> Floats:
        """The gate g per row: above 0 (or the threshold set later) the row goes to the full model."""
        X = self._rows(X)
        stage = self.system_.stages[0]
        assert stage.gate is not None
        proba = stage.predictor.predict_proba(X) if stage.gate.reads_predictor else None
        return stage.gate.score(X, proba)

    @property
    def cheap_(self) -> Any:
        """The cheap predictor f1."""
        return self.system_.stages[0].predictor

    @property
    def gate_(self) -> Any:
        """The gate g."""
        return self.system_.stages[0].gate

    def staged_systems(self) -> list[System]:
        """All systems of this fit, for a :class:`~sparing.Frontier`: every penalty, many thresholds.

        The first of each penalty keeps all rows at the cheap stage, the last sends all to the full model; between them
        the thresholds cut at quantiles of the gate's scores on the training rows.
        """
        check_is_fitted(self, "system_")
        return [
            system.with_thresholds(cut)
            for system, cuts in zip(self._systems, self._cuts, strict=True)
            for cut in cuts
        ]

    def _keep(self, systems: list[System], gates: list[Floats]) -> System:
        """Remember the systems of a path; the last, of the smallest penalty, is the fitted one."""
        self._systems = systems
        self._cuts = [threshold_cuts(scores) for scores in gates]
        return systems[-1]

    def _with_system(self, system: System) -> Any:
        other = super()._with_system(system)
        other._systems = [s.with_costs(system.costs) for s in self._systems]
        return other

    def _penalties(self, automatic: float) -> list[float]:
        """Penalties to solve for, the largest first."""
        given = self.cost_penalty
        if isinstance(given, str):
            return [automatic]
        values = np.atleast_1d(np.asarray(given, dtype=float))
        if values.ndim != 1 or not len(values) or not (np.isfinite(values) & (values >= 0)).all():
            raise ValueError(
                f"cost_penalty is 'auto', a number 0 or more, or a sequence of such numbers; got {given!r}."
            )
        return sorted(values.tolist(), reverse=True)


def threshold_cuts(scores: Floats, n: int = N_THRESHOLDS) -> Floats:
    """Thresholds that send growing shares on: none, then by quantiles of the scores, then all.

    Cuts lie strictly between distinct scores, so that rounding cannot move a row.
    """
    distinct = np.unique(scores)
    if len(distinct) > n:
        places = np.linspace(0, len(scores) - 1, n).round().astype(int)
        distinct = np.unique(np.sort(scores)[places])
    between = (distinct[1:] + distinct[:-1]) / 2
    return np.concatenate([[np.inf], between[::-1], [-np.inf]])


class AdaptLinClassifier(_AdaptClassifier):
    """Adapt-Lin: linear cheap model and linear gate, chosen together with the few columns they share.

    Easy rows are answered by a linear f1 on a sparse set of columns; a linear gate on the same columns sends the others
    to the full model. Both are learnt jointly, alternating with the allocation of rows (Algorithm 1 of the paper).

    Parameters
    ----------
    estimator : classifier, default=None
        The full model f0: any scikit-learn classifier, cross-fitted here; a legacy model (``FrozenEstimator``, an
        already fitted classifier, an object with ``predict`` and no ``fit``), used as it is; None is a forest.
    feature_costs : None, array, mapping or FeatureCosts, default=None
        Prices of the columns; None is 1 each.
    full_rate : float, default=0.3
        Upper bound on the mean allocation to f0 while learning. The share that is really sent there is set by the
        gate's threshold.
    cost_penalty : float, "auto" or sequence of float, default="auto"
        Price of one unit of cost in units of mean loss. A sequence is solved from large to small, each from the last;
        the smallest gives the fitted system, ``staged_systems`` all of them.
    ridge : float, default=1e-4
        Weight of half the squared coefficients, so that separable rows have a solution.
    standardize : bool, default=True
        Centre and scale the columns, so that their units do not matter to the penalty. The paper does not.
    init : {"logistic", "random"} or pair of arrays, default="logistic"
        Start: f1 a logistic regression on all columns and g = 0; Gaussian coefficients, ``n_init`` times; or
        coefficients (f1, g) of shapes (n_columns,) or (n_columns, n_classes), and (n_columns,), in the units of X.
    n_init : int, default=4
        Attempts. Those after the first use the columns of one item alone, the most promising items first: the problem
        is not convex, and a system on one good item is easily missed. The attempt with the smallest mean log-loss plus
        ``cost_penalty`` × mean cost of its answers is kept.
    debias : bool, default=True
        Refit f1 and g without penalty on the columns found: the penalty shrinks, and a shrunk f1 classifies worse.
    cv : int, splitter or iterable, default=5
        Folds of f0's out-of-fold probabilities.
    max_iter : int, default=50
        Alternations, at most.
    tol : float, default=1e-4
        Stop when allocation and objective change less than this.
    random_state : int, RandomState or None, default=None
    n_jobs : int or None, default=None
        Folds of f0 in parallel.
    verbose : int, default=0

    Attributes
    ----------
    system_ : System
        The fitted system; ``stages_`` are its stages.
    cheap_, gate_ : the cheap predictor and the gate.
    estimator_ : the fitted full model.
    allocation_ : ndarray of shape (n_rows,)
        q on the training rows: probability of going to f0.
    history_ : dict of arrays
        ``iteration``, ``objective``, ``allocation_rate``, ``n_columns``, ``cost``, ``cost_penalty``.
    cost_penalty_ : float
        The penalty of the fitted system.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> from sparing import AdaptLinClassifier
    >>> from sparing.datasets import make_synthetic2
    >>> X, y = make_synthetic2()
    >>> clf = AdaptLinClassifier(SVC(), full_rate=0.6, random_state=0).fit(X, y)
    >>> clf.score(X, y), round(float(clf.acquisition_cost(X).mean()), 3)
    (1.0, 1.571)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **_AdaptClassifier._parameter_constraints,
        "ridge": [Interval(Real, 0, None, closed="left")],
        "standardize": ["boolean"],
        "init": [StrOptions({"logistic", "random"}), tuple, list],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "debias": ["boolean"],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        feature_costs: Any = None,
        full_rate: float = 0.3,
        cost_penalty: float | str | Sequence[float] = "auto",
        ridge: float = 1e-4,
        standardize: bool = True,
        init: Any = "logistic",
        n_init: int = 4,
        debias: bool = True,
        cv: Any = 5,
        max_iter: int = 50,
        tol: float = 1e-4,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.feature_costs = feature_costs
        self.full_rate = full_rate
        self.cost_penalty = cost_penalty
        self.ridge = ridge
        self.standardize = standardize
        self.init = init
        self.n_init = n_init
        self.debias = debias
        self.cv = cv
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _learn(self, training: Training, full: FullModel | None) -> System:
        assert full is not None
        design = Design.fit(training.X, training.weight, standardize=self.standardize)
        rows = LinearProblem(
            design.transform(training.X), training.y, len(training.classes), training.weight
        )
        prices = GroupPenalty.from_costs(training.costs, design.owner)
        problem = Problem(
            training.y,
            full_loss(full.proba, training.y),
            training.weight,
            float(self.full_rate),
            training.costs,
        )
        starts = list(self._starts(training, rows))
        first = problem.allocate(*starts[0]).q
        automatic = AUTO_SHARE * rows.max_penalty(first, prices, ridge=self.ridge)
        owner = np.asarray(design.owner)
        supports = single_items(training.costs, owner, rows, self.n_init - 1)

        systems, gates, histories = [], [], list[History]()
        for penalty in self._penalties(automatic):
            step = LinearStepper(rows, prices.scaled(penalty), self.ridge, owner)
            tried = [self._alternate(problem, step, start) for start in starts]
            tried += [
                self._alternate(problem, replace(step, support=support), starts[0])
                for support in supports
            ]
            finished = [(o, step.debiased(o.q, o.fit) if self.debias else o.fit) for o in tried]
            outcome, fit = min(
                finished, key=lambda pair: _lagrangian(problem, full, pair[1], penalty)
            )
            # Further down the path the last solution is one more place to start from.
            starts = [*starts[:1], (outcome.fit.cheap, outcome.fit.gate)]
            cheap, gate = _parts(design, fit.fit)
            stages = (Stage(cheap, gate, name="cheap"), *full.stages)
            systems.append(System(stages, training.costs, training.classes))
            gates.append(fit.gate)
            histories.append(
                outcome.history
                | {"cost_penalty": np.full(len(outcome.history["objective"]), penalty)}
            )
        self.history_ = {k: np.concatenate([h[k] for h in histories]) for k in histories[0]}
        self.allocation_ = outcome.q
        self.cost_penalty_ = penalty
        return self._keep(systems, gates)

    def _alternate(
        self, problem: Problem, step: LinearStepper, start: tuple[Floats, Floats]
    ) -> Outcome[LinearStep]:
        return alternate(
            problem,
            step,
            start,
            max_iter=self.max_iter,
            tol=self.tol,
            verbose=self.verbose,
            name="Adapt-Lin ",
        )

    def _starts(self, training: Training, rows: LinearProblem) -> Iterator[tuple[Floats, Floats]]:
        """Scores of f1 and g to start from."""
        rng = np.random.default_rng(training.seed)
        n_outputs = rows.n_outputs

        def gaussian() -> tuple[Floats, Floats]:
            n_columns = rows.shape[1]
            coef = rng.standard_normal((n_columns, n_outputs + 1))
            return rows.scores(LinearFit(coef, np.zeros(n_outputs + 1), np.nan, np.nan, 0, True))

        if not isinstance(self.init, str):
            yield _given_start(self.init, training.X, n_outputs)
        elif self.init == "logistic":
            yield rows.scores(rows.solve(None, None, ridge=max(self.ridge, 1e-6), gate=False))
        else:
            for _ in range(self.n_init):
                yield gaussian()


AUTO_SHARE = 0.1
"""``cost_penalty="auto"`` of Adapt-Lin: this share of the penalty at which nothing would be bought."""


def _lagrangian(problem: Problem, full: FullModel, step: LinearStep, price: float) -> float:
    """What a system is for, as a number: mean log-loss of its answers plus ``price`` × mean cost."""
    costs, n = problem.costs, len(problem.costs.columns)
    cheap = column_mask(step.columns, n)
    every = cheap | column_mask(np.concatenate([s.columns for s in full.stages]), n)
    calls = float(np.sum(costs.call_prices(1 + len(full.stages))))
    sent = step.gate > 0
    loss = np.where(sent, problem.full_loss, cheap_loss(step.cheap, problem.y))
    cost = np.where(sent, costs.of(every) + calls, costs.of(cheap))
    return float(np.average(loss + price * cost, weights=problem.weight))


def _parts(design: Design, fit: LinearFit) -> tuple[LinearPredictor, LinearGate]:
    cheap = LinearScores.of(design, fit.coef[:, :-1], fit.intercept[:-1])
    gate = LinearScores.of(design, fit.coef[:, -1:], fit.intercept[-1:])
    return LinearPredictor(cheap), LinearGate(gate)


def _given_start(init: Any, X: Any, n_outputs: int) -> tuple[Floats, Floats]:
    values = np.nan_to_num(np.asarray(X, dtype=float))
    shapes = ((X.shape[1],) if n_outputs == 1 else (X.shape[1], n_outputs), (X.shape[1],))
    if len(init) != 2 or tuple(np.shape(part) for part in init) != shapes:
        raise ValueError(
            f"init is a pair of coefficients (f1, g) of shapes {shapes[0]} and {shapes[1]}; "
            f"got {[np.shape(part) for part in init]}."
        )
    return values @ np.asarray(init[0], dtype=float), values @ np.asarray(init[1], dtype=float)
