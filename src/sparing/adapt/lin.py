"""Adapt-Lin (Algorithm 1 of the paper): linear f1 and g on a sparse set of columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from sparing._alternation import Outcome, Problem, alternate
from sparing._full_model import FullModel
from sparing._routed import Training
from sparing._settings import penalties
from sparing._two_level import AUTO_SHARE, routed_objective
from sparing.adapt.base import AdaptClassifier, Learnt
from sparing.adapt.elimination import eliminate
from sparing.engines.design import Design
from sparing.engines.linear import LinearFit, LinearProblem
from sparing.engines.linear_parts import LinearGate, LinearPredictor, LinearScores
from sparing.engines.linear_step import LinearStep, LinearStepper
from sparing.engines.penalty import GroupPenalty
from sparing.system import Stage

Floats = NDArray[np.float64]

WEAK_SHARE = 0.02
"""Items are given up from a solution that has most of them: at no more than this share of that penalty."""


class AdaptLinClassifier(AdaptClassifier):
    """Adapt-Lin: linear cheap model and linear gate, chosen together with the few columns they share.

    Easy rows are answered by a linear f1 on a sparse set of columns; a linear gate on the same columns sends the others
    to the full model. Both are learnt jointly, alternating with the allocation of rows (Algorithm 1 of the paper). The
    group penalty shrinks what it keeps, and the solution is a local one: so items are then given up one after the
    other, learning on without penalty, and of all systems on the way the one with the smallest mean log-loss plus
    ``cost_penalty`` × mean cost of its answers is taken. ``staged_systems`` has them all.

    Parameters
    ----------
    estimator : classifier, default=None
        The full model f0: any scikit-learn classifier, cross-fitted here; a legacy model (``FrozenEstimator``, an
        already fitted classifier, an object with ``predict`` and no ``fit``), used as it is; None is a forest.
    feature_costs : None, array, mapping or FeatureCosts, default=None
        Prices of the columns; None is 1 each.
    full_rate : float or sequence of float, default=0.3
        Upper bound on the mean allocation to f0 while learning. The share that is really sent there is set by the
        gate's threshold. With a sequence every bound is learnt; the last one gives the fitted system.
    cost_penalty : float, "auto" or sequence of float, default="auto"
        Price of one unit of cost in units of mean loss. A sequence is solved from large to small, each from the last;
        the smallest gives the fitted system, ``staged_systems`` all of them.
    ridge : float, default=1e-4
        Weight of half the squared coefficients, so that separable rows have a solution.
    standardize : bool, default=True
        Centre and scale the columns, so that their units do not matter to the penalty. The paper does not.
    init : {"logistic", "random"} or pair of arrays, default="logistic"
        Start: f1 a logistic regression on all columns and g = 0; Gaussian coefficients; or
        coefficients (f1, g) of shapes (n_columns,) or (n_columns, n_classes), and (n_columns,), in the units of X.
    n_init : int, default=1
        Starts; those after the first have Gaussian coefficients. The one with the smallest objective is kept.
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

    _name: ClassVar[str] = "Adapt-Lin"
    _gate_loss: ClassVar[Literal["kl", "lstsq"]] = "kl"
    _alternations: ClassVar[int] = 10  # for each set of items while giving them up

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **AdaptClassifier._parameter_constraints,
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
        full_rate: float | Sequence[float] = 0.3,
        cost_penalty: float | str | Sequence[float] = "auto",
        ridge: float = 1e-4,
        standardize: bool = True,
        init: Any = "logistic",
        n_init: int = 1,
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

    def _solve(
        self, training: Training, full: FullModel, problems: list[Problem]
    ) -> Iterator[tuple[float, float, Learnt]]:
        design = Design.fit(training.X, training.weight, standardize=self.standardize)
        owner = np.asarray(design.owner)
        rows = LinearProblem(
            design.transform(training.X), training.y, len(training.classes), training.weight
        )
        prices = GroupPenalty.from_costs(training.costs, owner)
        given = list(self._starts(training, rows))
        for problem in problems:
            first = problem.allocate(*given[0]).q
            free = LinearStepper(
                rows, prices.scaled(0.0), self.ridge, owner, gate_loss=self._gate_loss
            )
            largest = rows.max_penalty(first, prices, ridge=self.ridge, **free.gate(first))
            starts = given
            learnt = list[tuple[float, Outcome[LinearStep], LinearStep]]()
            for penalty in penalties(self.cost_penalty, AUTO_SHARE * largest):
                step = replace(free, prices=prices.scaled(penalty))
                tried = [self._alternate(problem, step, start) for start in starts]
                outcome = min(tried, key=lambda outcome: outcome.objective)
                fit = step.debiased(outcome.q, outcome.fit) if self.debias else outcome.fit
                learnt.append((penalty, outcome, fit))
                # Further down the path the last solution is one more place to start from.
                starts = [*given, (outcome.fit.cheap, outcome.fit.gate)]
            smaller = list(self._smaller(problem, free, prices, given[0], largest))
            for penalty, outcome, fit in learnt:
                # Where cost has no price there is no reason to give anything up.
                others = [(other, other.fit) for other in smaller if penalty > 0]
                choices = [(outcome, fit), *others]
                values = [routed_objective(problem, full, choice, penalty) for _, choice in choices]
                best, chosen = choices[int(np.argmin(values))]
                steps = [fit, chosen]
                if penalty == learnt[0][0]:
                    steps = [*(other.fit for other in smaller), *steps]
                variants = [(_stage(design, step.fit), step.gate) for step in steps]
                yield problem.full_rate, penalty, Learnt(variants, best.q, outcome.history)

    def _smaller(
        self,
        problem: Problem,
        free: LinearStepper,
        prices: GroupPenalty,
        start: tuple[Floats, Floats],
        largest: float,
    ) -> Iterator[Outcome[LinearStep]]:
        """Systems that give up items one after the other, from one that has most of them."""
        asked = penalties(self.cost_penalty, largest)
        if max(asked) == 0 or largest == 0:
            return
        weak = prices.scaled(min(WEAK_SHARE * largest, min(asked)))
        outcome = self._alternate(problem, replace(free, prices=weak), start)
        yield from eliminate(problem, free, outcome, start, self._alternations)

    def _alternate(
        self, problem: Problem, step: LinearStepper, start: tuple[Floats, Floats]
    ) -> Outcome[LinearStep]:
        return alternate(
            problem,
            step,
            start,
            max_iter=self.max_iter,
            tol=self.tol,
            extrapolate=True,
            verbose=self.verbose,
            name=f"{self._name} ",
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
            yield gaussian()
        for _ in range(self.n_init - 1):
            yield gaussian()


def _stage(design: Design, fit: LinearFit) -> Stage:
    cheap = LinearScores.of(design, fit.coef[:, :-1], fit.intercept[:-1])
    gate = LinearScores.of(design, fit.coef[:, -1:], fit.intercept[-1:])
    return Stage(LinearPredictor(cheap), LinearGate(gate), name="cheap")


def _given_start(init: Any, X: Any, n_outputs: int) -> tuple[Floats, Floats]:
    shapes = ((X.shape[1],) if n_outputs == 1 else (X.shape[1], n_outputs), (X.shape[1],))
    if len(init) != 2 or tuple(np.shape(part) for part in init) != shapes:
        raise ValueError(
            f"init is a pair of coefficients (f1, g) of shapes {shapes[0]} and {shapes[1]}; "
            f"got {[np.shape(part) for part in init]}."
        )
    try:
        cheap, gate = (np.asarray(part, dtype=float) for part in init)
        values = np.nan_to_num(np.asarray(X, dtype=float))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"init as coefficients needs numbers in init and in X: {error}."
        ) from error
    if not (np.isfinite(cheap).all() and np.isfinite(gate).all()):
        raise ValueError("init contains NaN or infinity: give finite coefficients.")
    return values @ cheap, values @ gate
