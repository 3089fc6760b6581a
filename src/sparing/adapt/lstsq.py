"""Adapt-Lstsq (Algorithm 3 of the paper): Adapt-Lin with a gate fitted to the log-odds of the allocation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from sparing._allocation_lstsq import LstsqAllocation, allocate_lstsq, lstsq_objective
from sparing._alternation import Outcome, Problem
from sparing._full_model import FullModel
from sparing._losses import cheap_loss
from sparing._routed import Training
from sparing.adapt.base import Learnt
from sparing.adapt.lin import AdaptLinClassifier
from sparing.engines.linear_step import LinearStep, LinearStepper
from sparing.engines.penalty import GroupPenalty

Floats = NDArray[np.float64]


class LstsqProblem(Problem):
    """The learning problem in which a gate's distance from q is (logit q − g)² (OPT5)."""

    def allocate(self, cheap: Floats, gate: Floats, start: float | None = None) -> LstsqAllocation:
        """OPT5 at the current scores of f1 and g."""
        loss = cheap_loss(cheap, self.y)
        return allocate_lstsq(loss, self.full_loss, gate, self.full_rate, self.weight, start)

    def objective(self, cheap: Floats, gate: Floats, q: Floats) -> float:
        """Losses and gating approximation, without the feature costs."""
        return lstsq_objective(cheap_loss(cheap, self.y), self.full_loss, gate, q, self.weight)


class AdaptLstsqClassifier(AdaptLinClassifier):
    """Adapt-Lstsq: linear cheap model, and a linear gate that regresses the log-odds of the allocation.

    As :class:`AdaptLinClassifier`, with another distance between gate and allocation: the squared difference of their
    log-odds in place of the Kullback-Leibler divergence. The gate becomes a least-squares problem, which is better
    conditioned; the allocation is no longer in closed form, nor convex. It is solved by ADMM beside a dual bound, and
    ``history_`` holds both, so that the gap is known at every step.

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
        Price of one unit of cost in units of mean loss; f1 and g pay for an item together. A sequence is solved from
        large to small, each from the last; the smallest gives the fitted system, ``staged_systems`` all of them.
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
        Of systems that gave up items, also try f1 refitted on the rows their gates leave to it.
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
    cheap_, gate_ : the cheap predictor and the gate; above 0 it sends a row to f0.
    estimator_ : the fitted full model.
    allocation_ : ndarray of shape (n_rows,)
        q on the training rows: probability of going to f0.
    history_ : dict of arrays
        ``iteration``, ``objective``, ``allocation_rate``, ``n_columns``, ``cost``, ``full_rate``, ``cost_penalty``, and
        of the allocation step alone ``allocation_objective`` and ``allocation_bound``, below which no allocation is.
    cost_penalty_ : float
        The penalty of the fitted system.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> from sparing import AdaptLstsqClassifier
    >>> from sparing.datasets import make_synthetic2
    >>> X, y = make_synthetic2()
    >>> clf = AdaptLstsqClassifier(SVC(), full_rate=0.6, random_state=0).fit(X, y)
    >>> clf.score(X, y), round(float(clf.acquisition_cost(X).mean()), 3)
    (1.0, 1.571)
    """

    _name: ClassVar[str] = "Adapt-Lstsq"
    _gate_loss: ClassVar[Literal["kl", "lstsq"]] = "lstsq"
    # Near its ends the log-odds of q hardly move: this gate takes twice as long to grow from 0.
    _alternations: ClassVar[int] = 20

    def _solve(
        self, training: Training, full: FullModel, problems: list[Problem]
    ) -> Iterator[tuple[float, float, Learnt]]:
        names = [field.name for field in fields(Problem)]
        lstsq: list[Problem] = [
            LstsqProblem(**{name: getattr(problem, name) for name in names}) for problem in problems
        ]
        yield from super()._solve(training, full, lstsq)

    def _smaller(
        self,
        problem: Problem,
        free: LinearStepper,
        prices: GroupPenalty,
        start: tuple[Floats, Floats],
        largest: float,
    ) -> Iterator[Outcome[LinearStep]]:
        """Systems that give up items, as they are and with f1 refitted on the rows their gates leave to it.

        Least squares keep q close to a gate that is never sure. Rows that will be sent on keep some weight in f1, which
        pulls it away from the rows it answers.
        """
        for outcome in super()._smaller(problem, free, prices, start, largest):
            yield outcome
            if self.debias:
                yield replace(outcome, fit=free.routed(outcome.fit))
