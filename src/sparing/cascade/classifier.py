"""The cascade: nested stages bought one after the other until the answer is sure enough."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from sparing._full_model import FullModel
from sparing._routed import RoutedClassifier, Training
from sparing.cascade.exits import Choice, trace
from sparing.cascade.given import given_stages
from sparing.cascade.learning import CascadeLearner
from sparing.system import ConfidenceGate, Stage, System

Floats = NDArray[np.float64]


class CascadeClassifier(RoutedClassifier):
    """A cascade: stages with more and more columns, each of which answers what it is sure of.

    The order of purchases is found by a search (see ``order_``), every stage has a model refitted without prices on
    the columns it has, and the last stage is the full model. Exits are tuned together on out-of-fold scores; one fit
    holds the whole frontier: :meth:`at` and :meth:`staged_systems` give other points of it without fitting anything.

    Parameters
    ----------
    estimator : classifier, default=None
        The full model f0, see :class:`AdaptLinClassifier`; None is a forest.
    feature_costs : None, array, mapping or FeatureCosts, default=None
        Prices of the columns; None is 1 each.
    stages : None, list of lists of columns, or mapping from a name to columns, default=None
        Columns of each stage before the full model, if you know them ("the questionnaire, then the blood test"); each
        must contain the columns of the one before. None finds them.
    n_stages : int or None, default=None
        Stages at most, the full model among them. None keeps those that earn their place, up to ten before it.
    stage_estimator : {"auto", "own", "shared"}, classifier, or list of these, default="auto"
        Model of the stages: ``"own"`` is the full model's kind, fitted for each stage on its columns; ``"shared"`` are
        small networks that serve all stages, trained with the columns of later stages taken away, two per fold, whose
        answers are averaged; a classifier is cloned for each stage. Of a list the best on held-out rows is taken;
        ``"auto"`` is ``["own", "shared"]``, or ``"own"`` if networks err far more often than the full model.
    tolerance : float, default=0.005
        The fitted system is the cheapest whose out-of-fold accuracy is within this of the full model's.
    round_trip_price : float, default=0.0
        What every further stage of a row costs in time, in units of cost. It decides which stages are kept and is not
        part of ``acquisition_cost``; prices that are really paid per stage belong in ``FeatureCosts(call_price=…)``.
    cv : int, splitter or iterable, default=5
        Folds of all out-of-fold probabilities. An iterable of (train, test) keeps groups of rows together.
    random_state : int, RandomState or None, default=None
    n_jobs : int or None, default=None
        Folds in parallel.
    verbose : int, default=0

    Attributes
    ----------
    system_ : System
        The fitted system; ``stages_`` are its stages.
    estimator_ : the fitted full model.
    order_ : list of lists of str
        Items in the order of purchase, those bought together in one list; None when ``stages`` was given.
    stage_kind_ : str
        The kind of model chosen for the stages.
    history_ : dict of arrays
        Per stage: ``stage``, ``n_columns``, ``cost``, ``score`` (out-of-fold accuracy on all rows).
    frontier_costs_, frontier_scores_ : ndarray
        Out-of-fold cost and accuracy of every system of :meth:`staged_systems`.

    Examples
    --------
    >>> from sparing import CascadeClassifier
    >>> from sparing.datasets import load_hypothyroid
    >>> data = load_hypothyroid()
    >>> X, y = data.data[:1000], data.target[:1000]
    >>> clf = CascadeClassifier(feature_costs=data.costs, stage_estimator="own", cv=3, random_state=0)
    >>> clf = clf.fit(X, y)
    >>> bool(clf.acquisition_cost(X).mean() < 0.6 * data.costs.total)
    True
    >>> dearer = clf.at(tolerance=0.0)
    >>> bool(dearer.acquisition_cost(X).mean() >= clf.acquisition_cost(X).mean())
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "stages": ["array-like", Mapping, None],
        "n_stages": [Interval(Integral, 1, None, closed="left"), None],
        "stage_estimator": [StrOptions({"auto", "own", "shared"}), object],
        "tolerance": [Interval(Real, None, None, closed="neither")],
        "round_trip_price": [Interval(Real, 0, None, closed="left")],
        "cv": ["cv_object"],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        feature_costs: Any = None,
        stages: Any = None,
        n_stages: int | None = None,
        stage_estimator: Any = "auto",
        tolerance: float = 0.005,
        round_trip_price: float = 0.0,
        cv: Any = 5,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.feature_costs = feature_costs
        self.stages = stages
        self.n_stages = n_stages
        self.stage_estimator = stage_estimator
        self.tolerance = tolerance
        self.round_trip_price = round_trip_price
        self.cv = cv
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # -- learning -------------------------------------------------------------------------------

    def _learn(self, training: Training, full: FullModel | None) -> System:
        assert full is not None
        learner = CascadeLearner(
            training,
            full,
            stage_estimator=self.stage_estimator,
            estimator=self.estimator,
            n_stages=self.n_stages,
            round_trip_price=self.round_trip_price,
            cv=self.cv,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )
        stages = None if self.stages is None else given_stages(self.stages, training.costs)
        learnt = learner.learn(stages)
        scores = learnt.scores
        self.order_ = learnt.order
        self.stage_kind_ = learnt.kind
        self._choices = trace(scores)
        self._full_error = float(scores.errors[-1] @ scores.weight)
        cheap = [
            Stage(predictor, ConfidenceGate(), name=name)
            for predictor, name in zip(learnt.predictors, learnt.names, strict=True)
        ]
        system = System((*cheap, *full.stages), training.costs, training.classes)
        self.history_ = {
            "stage": np.arange(len(scores.costs)),
            "n_columns": system.stage_columns().sum(axis=1)[: len(scores.costs)],
            "cost": scores.costs,
            "score": 1.0 - scores.errors @ scores.weight,
        }
        return self._thresholded(system, self._within(self.tolerance))

    # -- the frontier -----------------------------------------------------------------------------

    @property
    def frontier_costs_(self) -> Floats:
        """Out-of-fold mean cost of each of :meth:`staged_systems`."""
        return np.array([choice.cost for choice in self._choices])

    @property
    def frontier_scores_(self) -> Floats:
        """Out-of-fold accuracy of each of :meth:`staged_systems`."""
        return np.array([1.0 - choice.error for choice in self._choices])

    def staged_systems(self) -> list[System]:
        """Systems along the frontier, the cheapest first: the same stages with other thresholds.

        Behind the most accurate one stand some that are more careful, up to the full model alone: choose among them by
        rows that were not learnt from.
        """
        check_is_fitted(self, "system_")
        return [self._thresholded(self.system_, choice) for choice in self._choices]

    def at(self, *, tolerance: float | None = None, budget: float | None = None) -> Self:
        """The same cascade at another point of its frontier; nothing is refitted.

        Parameters
        ----------
        tolerance : float, optional
            The cheapest system whose out-of-fold accuracy is within this of the full model's.
        budget : float, optional
            The most accurate system whose out-of-fold mean cost is at most this.

        Returns
        -------
        CascadeClassifier
            A fitted copy.
        """
        check_is_fitted(self, "system_")
        if (tolerance is None) == (budget is None):
            raise ValueError("Give either tolerance or budget.")
        for name, wish in (("tolerance", tolerance), ("budget", budget)):
            if wish is not None and not (isinstance(wish, Real) and np.isfinite(float(wish))):
                raise ValueError(f"{name} is {wish!r}: give a finite number.")
        if budget is None:
            assert tolerance is not None
            choice = self._within(tolerance)
        else:
            affordable = [c for c in self._choices if c.cost <= budget]
            if not affordable:
                raise ValueError(
                    f"No system costs {budget} or less on average: the cheapest costs {self._choices[0].cost:.4g} at "
                    f"an out-of-fold accuracy of {1 - self._choices[0].error:.4f}."
                )
            choice = min(affordable, key=lambda c: (c.error, c.cost))
        return self._with_system(self._thresholded(self.system_, choice))

    def with_costs(self, feature_costs: Any) -> Self:
        """A copy at other prices, its frontier too; nothing is refitted."""
        other = super().with_costs(feature_costs)
        system = other.system_
        by_stage = system.costs.of(system.stage_columns()) + system.call_prices()
        # A full model of several stages counts as one here.
        costs = np.append(by_stage[: len(self._choices[0].thresholds)], by_stage[-1])
        again = [replace(c, cost=float(np.dot(c.shares, costs))) for c in self._choices]
        other._choices = sorted(again, key=lambda c: (c.cost, c.error))
        other.history_ = {**self.history_, "cost": costs}
        return other

    def _within(self, tolerance: float) -> Choice:
        """The cheapest choice within a tolerance of the full model; the best one when there is none."""
        good = [c for c in self._choices if c.error <= self._full_error + tolerance + 1e-12]
        return good[0] if good else min(self._choices, key=lambda c: (c.error, c.cost))

    @staticmethod
    def _thresholded(system: System, choice: Choice) -> System:
        inner = system.thresholds[len(choice.thresholds) :]
        return system.with_thresholds([*choice.thresholds, *inner])
