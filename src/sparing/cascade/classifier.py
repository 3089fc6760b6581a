"""The cascade: nested stages bought one after the other until the answer is sure enough."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from sparing._choice import CAUTION
from sparing._full_model import FullModel, default_full_model
from sparing._routed import RoutedClassifier, Training
from sparing._settings import JOBS_CONSTRAINT
from sparing.cascade.given import given_stages
from sparing.cascade.kinds import asked_kinds
from sparing.cascade.learning import CascadeLearner
from sparing.cascade.points import frontier_of
from sparing.cascade.stage_models import cloneable
from sparing.costs import FeatureCosts
from sparing.system import System

_FOUND_CAUTION = 2.0
"""By how many standard errors a tolerance is kept where the order was found: the rows that tell of a loss have chosen
from many orders too.

On five made-up tables of 1500 rows, cascades that should lose half a point lose 1.6 on new rows when it is kept by half
a standard error, 0.8 with one and a half, 0.6 with two; those that should lose two points 2.6, 2.2 and 1.9. With given
stages it is 0.5 and 1.9 with half a standard error.
"""


class CascadeClassifier(RoutedClassifier):
    """A cascade: stages with more and more columns, each of which answers what it is sure of.

    The order of purchases is found by a search (see ``order_``), every stage has a model refitted without prices on
    the columns it has, and the last stage is the full model. Exits are tuned together on out-of-fold scores; one fit
    holds the whole frontier: :meth:`at` and :meth:`staged_systems` give other points of it without fitting anything.
    What is best within a point of the full model is not what is best for little money, so a second order with a few
    stages is found for about half the cost; a small budget may get these stages. Budgets for which these two have
    nothing get orders of their own: those below the cheapest stage, where that is dear, and those between a cheap
    stage that tells few rows apart and the next.

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
        Stages at most, the full model among them; of more that are given those that earn most are kept. None keeps all
        that are given, or those that earn their place, up to ten before the full model.
    stage_estimator : {"auto", "own", "boosted", "shared", "both"}, classifier, or list of these, default="auto"
        Model of the stages: ``"own"`` is the full model's kind, fitted for each stage on its columns; ``"boosted"``
        are LightGBM's trees, fitted likewise; ``"shared"`` are small networks that serve all stages, trained with the
        columns of later stages taken away, two per fold, whose answers are averaged (with a number as ``cv`` each
        learns from half of the fold too and is asked out of fold about the other half); ``"both"`` averages ``"own"``
        and ``"shared"``; a classifier is cloned for each stage. Of a list the best on held-out rows is taken;
        ``"auto"`` is ``["own", "boosted", "shared", "both"]``, without networks if these err far more often than the
        full model, and trees of the full model's kind see differences of columns where that helps
        (:class:`~sparing.cascade.WithDifferences`). A stage answers with its most probable class, the full model with
        its own label: where a tuned threshold makes that another one, accuracy may prefer the stages.
    tolerance : float, default=0.005
        The fitted system is the cheapest whose out-of-fold accuracy is within this of the full model's, by half a
        standard error, or by two where the order was found: order and exits were tuned on these rows, and others may
        lose more. Who needs a promise takes :class:`BudgetedClassifier` with a
        :class:`~sparing.guarantees.Guarantee`.
    round_trip_price : float, default=0.0
        What every further stage of a row costs in time, in units of cost. It decides which stages are kept, of those
        that are given only when ``n_stages`` allows fewer, and counts among the systems within a tolerance. It is not
        part of ``acquisition_cost``; prices that are really paid per stage belong in ``FeatureCosts(call_price=…)``.
    cv : int, splitter or iterable, default=5
        Folds of all out-of-fold probabilities. An iterable of (train, test) keeps groups of rows together.
    random_state : int, RandomState or None, default=None
    n_jobs : int or None, default=None
        Folds in parallel.
    verbose : int, default=0
        1 says on standard error what is being done and how long it will take.

    Notes
    -----
    Ctrl-C while fitting keeps what is ready: the stages that are fitted, the networks of the folds that are through, or
    the full model alone and the order if it was found. While kinds of stages are compared, it ends the comparison, and
    the best of those that are through is fitted.

    Attributes
    ----------
    system_ : System
        The fitted system; ``stages_`` are its stages.
    estimator_ : the fitted full model.
    order_ : list of lists of str
        Items in the order of purchase that the stages follow, those bought together in one list; None when ``stages``
        was given.
    stage_kind_ : str
        The kind of model chosen for the stages.
    history_ : dict of arrays
        Per stage of ``system_``: ``stage``, ``n_columns``, ``cost``, ``score`` (out-of-fold accuracy on all rows).
    frontier_ : Frontier
        Every system of :meth:`staged_systems` with its cost and accuracy out-of-fold. Exits were tuned on the same
        rows: what they are really worth is told by ``frontier_.on(X_test, y_test)``.

    Examples
    --------
    >>> from sparing import CascadeClassifier
    >>> from sparing.datasets import load_hypothyroid
    >>> data = load_hypothyroid()
    >>> X, y = data.data[:500], data.target[:500]
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
        "stage_estimator": [StrOptions({"auto", "own", "boosted", "shared", "both"}), object],
        "tolerance": [Interval(Real, -1, 1, closed="neither")],
        "round_trip_price": [Interval(Real, 0, None, closed="left")],
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

    def _check_first(self, costs: FeatureCosts, n_rows: int) -> None:
        if self.stages is not None:
            given_stages(self.stages, costs)
        elif isinstance(costs.call_price, tuple):
            raise ValueError(
                "call_price has a price per stage, but the stages are yet to be found: give stages=, or one call_price "
                "for the full model."
            )
        model = default_full_model(None, None) if self.estimator is None else self.estimator
        asked_kinds(
            self.stage_estimator,
            cloneable(model),
            type(model).__name__,
            out_of_bag=False,
            n_rows=n_rows,
        )

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
        self.frontier_, self._chains = frontier_of(learnt, full, training)
        self._n_full = len(full.stages)
        system = self._wished(self.tolerance)
        self._describe(system)
        _warn_of_idle(system)
        return system

    def _describe(self, system: System) -> None:
        """Set what is known of the stages of a system, a full model of several stages being one."""
        bought = system.stage_columns()
        costs = system.costs.of(bought) + system.call_prices()
        n_cheap = len(system.stages) - self._n_full
        cheap = [id(stage.predictor) for stage in system.stages[:n_cheap]]
        known = next(
            chain
            for chain in self._chains
            if [id(predictor) for predictor in chain.predictors] == cheap
        )
        self.stage_kind_, self.order_ = known.kind, known.order
        self.history_ = {
            "stage": np.arange(n_cheap + 1),
            "n_columns": bought.sum(axis=1)[: n_cheap + 1],
            "cost": np.append(costs[:n_cheap], costs[-1]),
            "score": known.scores,
        }

    def _with_system(self, system: System) -> Self:
        other = super()._with_system(system)
        other._describe(system)
        return other

    @property
    def _caution(self) -> float:
        """By how many standard errors a tolerance is kept."""
        return _FOUND_CAUTION if self.stages is None else CAUTION

    def _within(self, tolerance: float) -> System:
        """The system within a tolerance that costs least, what waiting is worth counted too."""
        if isinstance(tolerance, Real) and abs(tolerance) >= 1:
            raise ValueError(
                f"tolerance is a difference in accuracy, between -1 and 1 (one point is 0.01), not {tolerance:g}."
            )
        frontier = self.frontier_
        if self.round_trip_price:
            n_gates = [len(point.system.stages) - self._n_full for point in frontier]
            trips = [
                np.minimum(np.arange(len(point.stage_rates)), n) @ point.stage_rates
                for point, n in zip(frontier, n_gates, strict=True)
            ]
            waited = [
                replace(point, cost=point.cost + self.round_trip_price * float(trip))
                for point, trip in zip(frontier, trips, strict=True)
            ]
            frontier = replace(frontier, points=tuple(waited))
        return frontier.pareto().at(tolerance=tolerance, caution=self._caution).system

    def _wished(self, tolerance: float) -> System:
        """The cheapest system within a tolerance, kept with caution; the best one when there is none."""
        try:
            return self._within(tolerance)
        except ValueError:
            warnings.warn(
                f"tolerance={tolerance:g}: no system is so much better than the full model, so the best one is taken.",
                UserWarning,
                stacklevel=4,
            )
            return self.frontier_.pareto().at(budget=np.inf).system

    # -- the frontier -----------------------------------------------------------------------------

    def staged_systems(self) -> list[System]:
        """Systems along the frontier, the cheapest first: stages with other thresholds, or those for small budgets.

        Behind the most accurate one stand some that are more careful, up to the full model alone: choose among them by
        rows that were not learnt from.
        """
        check_is_fitted(self, "system_")
        return [point.system for point in self.frontier_]

    def at(self, *, tolerance: float | None = None, budget: float | None = None) -> Self:
        """The cascade at another point of its frontier; nothing is refitted.

        Parameters
        ----------
        tolerance : float, optional
            The cheapest system whose out-of-fold accuracy is within this of the full model's, as sure as at fitting.
        budget : float, optional
            The most accurate system whose mean cost is at most this, out-of-fold and as its fitted stages route the
            rows of the fit.

        Returns
        -------
        CascadeClassifier
            A fitted copy.
        """
        check_is_fitted(self, "system_")
        if tolerance is not None and budget is None:
            other = self._with_system(self._within(tolerance))
            other.tolerance = tolerance
            return other
        best = self.frontier_.pareto()  # a stored cascade has these only
        try:
            point = best.at(tolerance=tolerance, budget=budget)
        except ValueError as error:
            if budget is None or tolerance is not None or np.isnan(budget):
                raise
            more = "A first stage with cheaper columns can be given: stages=[[...], ...]."
            raise ValueError(f"{error} {more}") from None
        return self._with_system(point.system)

    def with_costs(self, feature_costs: Any) -> Self:
        """A copy at other prices, its frontier too; nothing is refitted."""
        again = self.frontier_.reprice(feature_costs)
        # Prices per stage are those of all stages; a system may have fewer, the last ones.
        longest = max((point.system for point in again), key=lambda system: len(system.stages))
        other = super().with_costs(longest.costs.of_last(len(self.system_.stages)))
        other.frontier_ = replace(
            again, points=tuple(sorted(again.points, key=lambda p: (p.cost, -p.score)))
        )
        other.feature_costs = feature_costs
        return other


def _warn_of_idle(system: System) -> None:
    """Say which stages answer nobody and are paid for by everybody that comes to them."""
    idle = [
        f"{stage.name} ({price:g} per call)"
        for stage, price in zip(system.stages[:-1], system.call_prices(), strict=False)
        if price > 0 and stage.threshold == -np.inf
    ]
    if idle:
        warnings.warn(
            f"At this tolerance no row is answered by {', '.join(idle)}, whose call is paid all the same: without this "
            "stage the cascade costs less. Leave it out of stages, or give n_stages.",
            UserWarning,
            stacklevel=4,
        )
