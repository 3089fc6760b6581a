"""A frontier: many systems evaluated on the same rows, of which the non-dominated ones are worth having.

Validation chooses, test reports. A frontier evaluated on validation rows chooses (:meth:`Frontier.at`); what
:meth:`Frontier.on` gives holds the numbers of other rows and still chooses by the validation ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparing._choice import (
    best_within_budget,
    cheapest_within_tolerance,
    check_wish,
    pareto_order,
)
from sparing._evaluation import (
    Evaluation,
    Label,
    Point,
    one_accounting,
    stage_alone,
    system_of,
)
from sparing._frontier_merging import merged, named
from sparing._frontier_prices import repriced
from sparing._frontier_summary import area_weights, frontier_summary
from sparing._frontier_table import frontier_frame, frontier_text
from sparing._intervals import FrontierIntervals, frontier_intervals
from sparing._thresholds import threshold_systems
from sparing.metrics.saving import cut, within_tolerance
from sparing.system import Accounting

__all__ = [
    "Frontier",
    "FrontierIntervals",
    "Point",
    "pareto_order",
    "stage_alone",
    "threshold_systems",
]

Floats = NDArray[np.float64]


@dataclass(frozen=True, repr=False, eq=False)
class Frontier:
    """Systems with their cost and score on the same rows; made by :meth:`evaluate`.

    Attributes
    ----------
    points : tuple of Point
        System, cost, score, share of rows per stage, label; in the order given.
    full : Point or None
        The full model alone on the same rows.
    scoring : str, callable or matrix
    accounting : {"stage", "path"}
    n_rows : int
    chosen : Frontier or None
        The same systems on the rows where they were chosen, when these are other rows; see :meth:`on`.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> from sparing import AdaptLinClassifier
    >>> from sparing.datasets import make_synthetic2
    >>> from sparing.frontier import Frontier, threshold_systems
    >>> (X, y), (X_val, y_val), (X_test, y_test) = (make_synthetic2(random_state=i) for i in range(3))
    >>> clf = AdaptLinClassifier(SVC(), full_rate=0.6, random_state=0).fit(X, y)
    >>> frontier = Frontier.evaluate(threshold_systems(clf, X, n=8), X_val, y_val)
    >>> frontier.at(tolerance=0.0)
    Point(cost=1.571, score=1, stages 0.43 0.57)
    >>> frontier.on(X_test, y_test).at(tolerance=0.0)
    Point(cost=1.571, score=1, stages 0.43 0.57)
    >>> round(frontier.saving(0.0), 3)
    0.214
    >>> frontier
    Frontier: 8 systems, ... not dominated; accuracy on 70 rows, cost by stage
           cost     score  saved
              1    0.7143    50%
    ...
          1.571    1.0000    21%
              2    1.0000     0%  full model
    """

    points: tuple[Point, ...]
    full: Point | None
    scoring: Any
    accounting: Accounting
    n_rows: int
    chosen: Frontier | None = None
    # Kept for prices by path, which depend on the rows; never stored with the frontier.
    _evaluation: Evaluation | None = None

    # -- making one -----------------------------------------------------------------------------------

    @classmethod
    def evaluate(
        cls,
        systems: Any,
        X: Any,
        y: Any,
        *,
        scoring: Any = "accuracy",
        sample_weight: ArrayLike | None = None,
        accounting: Accounting | None = None,
        labels: Sequence[Label] | None = None,
        full: Any = None,
        groups: ArrayLike | None = None,
    ) -> Frontier:
        """Evaluate systems on rows they were not learnt from.

        Parameters
        ----------
        systems : sequence of System or of fitted routed classifiers, or one classifier with ``staged_systems``
            Parts that several of them share (f0, a booster, a gate) are asked once.
        X, y : rows and labels
        scoring : str, callable or matrix, default="accuracy"
            Name of a scikit-learn scorer; scorer ``(estimator, X, y)``; metric ``(y_true, y_pred)``; ranking metric
            ``(y_true, y_score, groups)``; or a matrix of misclassification costs (true class × answer), whose mean
            counts negative. Larger is better.
        sample_weight : array of shape (n_rows,), optional
        accounting : {"stage", "path"} or None
            One for all systems; None is their own, when they agree.
        labels : sequence of mapping, str or None, optional
            Where each system comes from.
        full : System or fitted routed classifier, optional
            The full model alone, to compare with. None is the last stage of the first system that has one.
        groups : array of shape (n_rows,), optional
            Query of each row, for ranking metrics.

        Returns
        -------
        Frontier
        """
        if hasattr(systems, "staged_systems"):
            systems = systems.staged_systems()
        chosen = [system_of(s) for s in systems]
        if not chosen:
            raise ValueError("A frontier needs at least one system.")
        labels = [None] * len(chosen) if labels is None else list(labels)
        if len(labels) != len(chosen):
            raise ValueError(f"labels has {len(labels)} entries for {len(chosen)} systems.")
        if full is None:
            full = next((stage_alone(s) for s in chosen if s.has_full), None)
        else:
            full = system_of(full)
        extra = [] if full is None else [full]
        evaluation = Evaluation(
            X,
            y,
            scoring=scoring,
            accounting=one_accounting([*chosen, *extra], accounting),
            sample_weight=sample_weight,
            groups=groups,
        )
        points = evaluation.points(
            [*chosen, *extra], [*labels, *("full model" for _ in extra)], full
        )
        return cls(
            tuple(points[: len(chosen)]),
            points[-1] if extra else None,
            scoring,
            evaluation.accounting,
            len(evaluation.y),
            _evaluation=evaluation,
        )

    def on(
        self,
        X: Any,
        y: Any,
        *,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Frontier:
        """The systems that are non-dominated here, evaluated on other rows.

        What comes back reports the numbers of the new rows and chooses by those of the old: ``test.at(budget=3)`` is
        the system that validation chooses, with its cost and score on test.

        Parameters
        ----------
        X, y, sample_weight, groups
            As in :meth:`evaluate`; scoring, accounting and full model stay as they are.

        Returns
        -------
        Frontier
            Of the non-dominated systems only; ``chosen`` holds them on the old rows.
        """
        best = self.pareto()
        other = Frontier.evaluate(
            [point.system for point in best],
            X,
            y,
            scoring=self.scoring,
            sample_weight=sample_weight,
            accounting=self.accounting,
            labels=[point.label for point in best],
            full=None if self.full is None else self.full.system,
            groups=groups,
        )
        return replace(other, chosen=best.judge)

    def merged(self, other: Frontier) -> Frontier:
        """Both sets of systems in one; also written ``self + other``.

        They must come from the same rows, prices, scoring and accounting. The full model is this frontier's, or the
        other's when this one has none.
        """
        return merged(self, other)

    @classmethod
    def merge(cls, frontiers: Mapping[str, Frontier] | Iterable[Frontier]) -> Frontier:
        """Systems of several methods in one frontier.

        Parameters
        ----------
        frontiers : mapping of method to Frontier, or Frontiers
            Of the same rows, prices, scoring and accounting. With names, every label says ``method`` first.

        Returns
        -------
        Frontier

        Examples
        --------
        >>> from sparing import AdaptLinClassifier, Frontier, GreedyMiserClassifier
        >>> from sparing.datasets import make_synthetic1
        >>> X, y = make_synthetic1()
        >>> methods = {
        ...     "adapt-lin": AdaptLinClassifier(cv=2, random_state=0),
        ...     "greedy-miser": GreedyMiserClassifier(n_estimators=10, random_state=0),
        ... }
        >>> both = Frontier.merge(
        ...     {m: Frontier.evaluate(clf.fit(X[::2], y[::2]), X[1::2], y[1::2]) for m, clf in methods.items()}
        ... )
        >>> sorted({point.label["method"] for point in both})
        ['adapt-lin', 'greedy-miser']
        """
        if isinstance(frontiers, Frontier):
            raise TypeError("merge takes several frontiers: Frontier.merge([a, b]), or a + b.")
        every = (
            frontiers.values() if isinstance(frontiers, Mapping) else (frontiers := [*frontiers])
        )
        for one in every:
            if not isinstance(one, Frontier):
                raise TypeError(
                    f"merge takes frontiers, not {type(one).__name__}: pass its frontier_, or Frontier.evaluate(...)."
                )
        if isinstance(frontiers, Mapping):
            parts = [named(frontier, name) for name, frontier in frontiers.items()]
        else:
            parts = list(frontiers)
        if not parts:
            raise ValueError("There is no frontier to merge.")
        return reduce(cls.merged, parts)

    def __add__(self, other: Frontier) -> Frontier:
        return self.merged(other) if isinstance(other, Frontier) else NotImplemented

    # -- choosing -------------------------------------------------------------------------------------

    def pareto(self) -> Frontier:
        """The systems that no other one beats, cheapest first.

        One beats another when it costs no more and scores no less, and is better in one of them. Of equals the first
        is kept.
        """
        return self._subset(self.pareto_positions())

    def pareto_positions(self) -> NDArray[np.intp]:
        """Where the systems of :meth:`pareto` stand among the points."""
        return pareto_order(self.judge.costs, self.judge.scores)

    @property
    def judge(self) -> Frontier:
        """Where systems are chosen: here, or where they came from."""
        return self if self.chosen is None else self.chosen

    def at(
        self,
        *,
        budget: float | None = None,
        tolerance: float | None = None,
        caution: float = 0.0,
    ) -> Point:
        """The system to use: the best within a budget, or the cheapest within a tolerance.

        Parameters
        ----------
        budget : float
            Average cost per row, at most.
        tolerance : float
            Score of the full model minus score of the system, at most; an absolute difference.
        caution : float, default=0.0
            Standard errors (``Point.loss_error``) by which the tolerance must be kept: the cheapest of many systems on
            few rows is partly the luckiest. When none keeps it so, the one that comes nearest to it is taken.

        Returns
        -------
        Point

        Raises
        ------
        ValueError
            When no system qualifies. The message names the cheapest and the best there are.
        """
        check_wish(budget, tolerance)
        judge = self.judge
        if budget is not None:
            return self.points[best_within_budget(judge.costs, judge.scores, budget)]
        assert tolerance is not None
        full = judge._full()
        doubts = caution * np.nan_to_num([point.loss_error for point in judge.points])
        return self.points[
            cheapest_within_tolerance(judge.costs, judge.scores, full.score, tolerance, doubts)
        ]

    def saving(self, tolerance: float) -> float:
        """Part of the full model's cost that the cheapest system within a tolerance saves.

        It is 0 when no system qualifies or none is cheaper: the full model is always there to fall back on. With
        :meth:`on` the system is chosen by the old rows and its saving is that of the new ones, whatever it is: below 0
        where it costs more there than the full model.
        """
        judge, full = self.judge, self.judge._full()
        good = within_tolerance(judge.scores, full.score, tolerance) & (judge.costs < full.cost)
        return cut(self.at(tolerance=tolerance).cost, self._full().cost) if good.any() else 0.0

    def area(self, low: float | None = None, high: float | None = None) -> float:
        """Average score over budgets spread evenly from ``low`` to ``high``: one number for a whole frontier.

        Parameters
        ----------
        low : float, optional
            None is the cost of the cheapest system. To compare frontiers give them the same.
        high : float, optional
            None is the cost of the full model, or of the dearest system without one.

        Returns
        -------
        float
            In units of the score. Every budget buys the system :meth:`at` would choose.
        """
        return float(area_weights(self, low, high) @ self.scores)

    def intervals(
        self,
        level: float = 0.95,
        *,
        n_resamples: int | None = None,
        random_state: int | np.random.Generator | None = 0,
    ) -> FrontierIntervals:
        """Percentile bootstrap intervals of cost and score of every system, and of what it loses and saves.

        Parameters
        ----------
        level : float, default=0.95
        n_resamples : int, optional
            None is 2000 when the score is a mean over rows, 200 when it must be computed on every resample.
        random_state : int, Generator or None, default=0

        Returns
        -------
        FrontierIntervals
            Of systems that were chosen on the same rows the intervals are too optimistic: take those of :meth:`on`.
        """
        if self._evaluation is None:
            raise ValueError(
                "Intervals draw the rows again, and this frontier has none any more (it was stored, or merged from "
                "different rows): evaluate its systems again."
            )
        return frontier_intervals(
            self._evaluation,
            [point.system for point in self.points],
            None if self.full is None else self.full.system,
            level=level,
            n_resamples=n_resamples,
            random_state=random_state,
        )

    def summary(
        self,
        tolerances: Sequence[float] = (0.0, 0.01),
        *,
        level: float | None = None,
        low: float | None = None,
        high: float | None = None,
        random_state: int | np.random.Generator | None = 0,
    ) -> dict[str, Any]:
        """A few numbers for the whole frontier, as plain data.

        Parameters
        ----------
        tolerances : sequence of float, default=(0.0, 0.01)
            Losses of score at which the saving is stated.
        level : float, optional
            Level of bootstrap intervals; None gives none.
        low, high : float, optional
            Budgets of the area, see :meth:`area`.
        random_state : int, Generator or None, default=0

        Returns
        -------
        dict
            ``cheapest``, ``best`` and ``full`` (cost and score), ``area``, ``saving`` (by tolerance, without a full
            model empty); with a level ``area_interval`` and ``saving_interval``, of the systems chosen.
        """
        return frontier_summary(
            self, tolerances, level=level, low=low, high=high, random_state=random_state
        )

    def reprice(self, costs: Any) -> Frontier:
        """The same systems and scores at other prices; nothing is refitted and no model is asked for labels.

        Parameters
        ----------
        costs : None, array, mapping or FeatureCosts

        Returns
        -------
        Frontier
            Other systems may now be the ones worth having: re-price before :meth:`on`, which keeps only those.
        """
        return repriced(self, costs)

    def _full(self) -> Point:
        if self.full is None:
            raise ValueError(
                "There is no full model to compare with: pass full= to Frontier.evaluate."
            )
        return self.full

    def _subset(self, indices: NDArray[np.intp]) -> Frontier:
        points = tuple(self.points[i] for i in indices.tolist())
        chosen = None if self.chosen is None else self.chosen._subset(indices)
        return replace(self, points=points, chosen=chosen)

    # -- looking at it --------------------------------------------------------------------------------

    @property
    def costs(self) -> Floats:
        """Average cost of each system."""
        return np.array([point.cost for point in self.points])

    @property
    def scores(self) -> Floats:
        """Score of each system."""
        return np.array([point.score for point in self.points])

    def __len__(self) -> int:
        return len(self.points)

    def __iter__(self) -> Iterator[Point]:
        return iter(self.points)

    def frame(self) -> Any:
        """A pandas DataFrame, one row per system.

        Columns: ``cost``, ``score``, ``saving`` (against the full model), ``pareto``, ``stage_0`` … (share of rows
        answered there), ``chosen_cost`` and ``chosen_score`` (when chosen on other rows), and what the labels say.
        """
        return frontier_frame(self)

    def __repr__(self) -> str:
        return frontier_text(self)

    def __getstate__(self) -> dict[str, Any]:
        # Validation rows are other people's data: they do not travel with a stored frontier.
        return self.__dict__ | {"_evaluation": None}
