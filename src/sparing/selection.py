"""BudgetedClassifier: one fit for the whole frontier, a choice by budget or tolerance, a promise if one is wanted."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import GroupKFold
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from sparing._certificate import Certificate
from sparing._drift import Drift, check_drift
from sparing._evaluation import loss_matrix
from sparing._full_model import FullModel, fit_full_model, is_legacy
from sparing._methods import settings_of
from sparing._parts import Parts, split_rows
from sparing._price_list import short
from sparing._race import Race, Rows, Task
from sparing._routed import ENCODE_TEXT, RoutedClassifier, Training, text_named
from sparing._rows import take_rows
from sparing._wishes import Wishes
from sparing.costs import FeatureCosts
from sparing.frontier import Frontier, Point
from sparing.guarantees import Guarantee, PromiseError, certify, check_promisable
from sparing.metrics.scoring import resolve_scoring
from sparing.system import System

Floats = NDArray[np.float64]

_HELD_OUT = 0.25
"""Share of the rows that choose when ``validation`` is None."""


class BudgetedClassifier(RoutedClassifier):
    """The best system for a budget, or the cheapest for a tolerance; all other budgets come with the same fit.

    The full model is cross-fitted once. Methods are raced on it, each with a sweep of settings; rows held out judge
    their systems, and the non-dominated ones are the frontier. Methods of no use beside the others are stopped early.

    Parameters
    ----------
    estimator : classifier, default=None
        The full model f0: any classifier, a fitted one in ``FrozenEstimator``; None is a forest.
    method : "auto", str, routed classifier, or list of these, default="auto"
        What to race: names of methods ("cascade", "adapt-gbrt", "adapt-lin", "greedy-miser", "adapt-lstsq",
        "l1-gate"), or classifiers with settings of your own. ``"auto"`` races the first four.
    feature_costs : None, array, mapping or FeatureCosts, default=None
        Prices of the columns; None is 1 each.
    budget : float, default=None
        Average cost per row, at most: the fitted system is the best within it.
    tolerance : float, default=None
        Score below the full model's, at most: the fitted system is the cheapest within it. With a budget as well, it
        must keep both. With neither, nothing is to be lost: the tolerance is 0. The cheapest of many systems on a few
        hundred validation rows is partly the luckiest: ask for less than you can give up, or for a guarantee.
    scoring : str, callable or matrix, default="accuracy"
        What is compared, see :meth:`sparing.Frontier.evaluate`: names of scikit-learn scorers, scorers, metrics, or a
        matrix of misclassification costs (true class × answer).
    min_recall : mapping of label to float, default=None
        Floors: systems that find less of a class on the validation rows are left out.
    guarantee : Guarantee or float, default=None
        Promise something with confidence, see :func:`sparing.certify`. A number is the confidence with which
        ``tolerance``, ``budget`` and ``min_recall`` are to hold.
    validation : float or (X, y), default=None
        Rows that choose: a share of the rows given, or rows of their own. None is a quarter. They are held out from all
        learning, the full model included.
    calibration : float or (X, y), default=0.2
        Rows for the guarantee, used for nothing else; without a guarantee none are kept.
    cv : int, splitter or iterable, default=5
        Folds of the full model's out-of-fold probabilities.
    random_state : int, RandomState or None, default=None
    n_jobs : int or None, default=None
        Fits at the same time, through joblib; changes the time, never the result.
    verbose : int, default=0
        1 tells on stderr what is done and about how long it will take.

    Attributes
    ----------
    frontier_ : Frontier
        Every system worth having, of every method, with cost and score on the validation rows.
    system_ : System
        The fitted system; ``stages_`` are its stages.
    choice_ : Point
        It on the frontier: cost, score, and a label that says method and settings.
    certificate_ : Certificate
        What is promised, with a guarantee.
    estimator_ : the fitted full model.
    history_ : dict of arrays
        Per fit: ``method``, ``round``, ``seconds``, ``n_systems``, ``error``.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from sparing import AdaptGbrtClassifier, BudgetedClassifier
    >>> from sparing.datasets import load_hypothyroid
    >>> data = load_hypothyroid()
    >>> forest = RandomForestClassifier(50, oob_score=True)
    >>> boosted = AdaptGbrtClassifier(n_estimators=30, cost_penalty=[0.01, 0.002])
    >>> clf = BudgetedClassifier(forest, method=boosted, feature_costs=data.costs, budget=20, random_state=0)
    >>> clf = clf.fit(data.data, data.target)
    >>> clf.choice_.cost <= 20
    True
    >>> clf.at(budget=5).choice_.cost <= 5
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "budget": [Real, None],
        "tolerance": [Real, None],
        "min_recall": [Mapping, None],
        "guarantee": [Guarantee, Real, None],
        "validation": [Interval(Real, 0, 1, closed="neither"), tuple, list, None],
        "calibration": [Interval(Real, 0, 1, closed="neither"), tuple, list],
        "cv": ["cv_object"],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        method: Any = "auto",
        feature_costs: Any = None,
        budget: float | None = None,
        tolerance: float | None = None,
        scoring: Any = "accuracy",
        min_recall: Mapping[Any, float] | None = None,
        guarantee: Guarantee | float | None = None,
        validation: Any = None,
        calibration: Any = 0.2,
        cv: Any = 5,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.feature_costs = feature_costs
        self.budget = budget
        self.tolerance = tolerance
        self.scoring = scoring
        self.min_recall = min_recall
        self.guarantee = guarantee
        self.validation = validation
        self.calibration = calibration
        self.cv = cv
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # -- learning -------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        full_proba: Any = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Learn the whole frontier and choose.

        Parameters
        ----------
        X : array or data frame of shape (n_rows, n_columns)
        y : array of shape (n_rows,)
            Class labels.
        sample_weight : array of shape (n_rows,), optional
            Of the rows that learn and choose. There is no promise from weighted rows.
        full_proba : array of shape (n_rows, n_classes), optional
            Out-of-fold probabilities of the full model, if known; with a fitted ``estimator``, which answers for the
            validation rows.
        groups : array of shape (n_rows,), optional
            Rows of one group (a patient, a customer) stay on one side of every split.

        Returns
        -------
        self
        """
        self._check_wishes(sample_weight is not None, full_proba is not None)
        self._groups = groups
        self._unkept: PromiseError | None = None
        try:
            super().fit(X, y, sample_weight, full_proba=full_proba)
            if self._unkept is not None:
                raise PromiseError(
                    f"{self._unkept} Nothing needs to be fitted again: frontier_ is kept, at(...) chooses without a "
                    "promise, and recalibrate(X, y) promises on other rows."
                )
        finally:
            for name in ("_groups", "_unkept", "_split", "_folds"):
                self.__dict__.pop(name, None)
        return self

    def _check_wishes(self, weighted: bool, stored: bool) -> None:
        """Raise on wishes that contradict each other, before hours of fitting."""
        self._validate_params()
        resolve_scoring(self.scoring)
        self._wishes()
        settings_of(self.method, FeatureCosts([1.0]))
        for name in ("validation", "calibration"):
            given = getattr(self, name)
            if isinstance(given, tuple | list) and len(given) != 2:
                raise ValueError(
                    f"{name} is a share of the rows or a pair (X, y); got {len(given)} things."
                )
        promised = self._guarantee()
        if promised is not None:
            check_promisable(promised, self.scoring)
        if promised is not None and weighted:
            raise ValueError(
                "guarantee and sample_weight: a promise is not made from weighted rows. Fit with weights and without a "
                "guarantee, then recalibrate(X, y) on rows drawn like those to come."
            )
        if stored and self.estimator is None:
            raise ValueError(
                "full_proba without an estimator: the validation rows need the full model's answers too. Pass the "
                "model, or evaluate systems yourself (AdaptGbrtClassifier, Frontier)."
            )

    def _check_labels(self, labels: NDArray[Any]) -> None:
        """Raise when floors or a cost matrix do not fit the classes; a legacy model may know more of them."""
        promised = self._guarantee()
        for floors in (self.min_recall, None if promised is None else promised.min_recall):
            unknown = [label for label in floors or {} if label not in labels.tolist()]
            if unknown:
                raise ValueError(
                    f"min_recall names classes that y has not: {short(unknown)}; it has {short(labels.tolist())}."
                )
        matrix = loss_matrix(self.scoring)
        if matrix is not None and len(matrix) != len(labels) and not is_legacy(self.estimator):
            raise ValueError(
                f"The misclassification cost matrix has {len(matrix)} classes, y has {len(labels)}: "
                f"{short(labels.tolist())}."
            )

    def _wishes(self) -> Wishes:
        return Wishes(self.budget, self.tolerance, self.min_recall)

    def _guarantee(self) -> Guarantee | None:
        wish = self.guarantee
        if wish is None:
            return None
        if not isinstance(wish, Guarantee):
            return Guarantee(
                tolerance=self.tolerance,
                budget=self.budget,
                min_recall=self.min_recall,
                confidence=wish,
            )
        if self.budget is not None or self.tolerance is not None:
            raise ValueError(
                "budget or tolerance and a Guarantee are two wishes: put them into the Guarantee, or pass its "
                "confidence as guarantee=0.95."
            )
        return wish

    def _full_model(
        self,
        X: Any,
        y: NDArray[Any],
        weight: Floats | None,
        full_proba: Any,
        seed: int | None,
    ) -> FullModel:
        """Set the rows that choose and promise aside, then fit f0 on the others."""
        self._check_labels(np.unique(y))
        parts = split_rows(
            y,
            _share(self.validation, _HELD_OUT),
            0.0 if self.guarantee is None else _share(self.calibration, 0.2),
            groups=self._groups,
            random_state=seed,
        )
        self._split = parts
        train, cv = parts.train, self.cv
        if self._groups is not None and isinstance(cv, int | np.integer):
            groups = np.asarray(self._groups)[train]
            n_folds = min(int(cv), len(np.unique(groups)))
            cv = list(GroupKFold(n_folds).split(np.zeros(len(train)), y[train], groups))
        self._folds = cv
        with text_named(X, ENCODE_TEXT):
            return fit_full_model(
                self.estimator,
                take_rows(X, train),
                y[train],
                cv=cv,
                sample_weight=None if weight is None else weight[train],
                full_proba=None if full_proba is None else np.asarray(full_proba)[train],
                random_state=seed,
                n_jobs=self.n_jobs,
            )

    def _learn(self, training: Training, full: FullModel | None) -> System:
        assert full is not None
        parts, cv = self._split, self._folds
        labels = training.classes[training.y]
        wishes, guarantee = self._wishes(), self._guarantee()
        validation = self._part(training, labels, parts, "validation")
        promise_rows = (
            None if guarantee is None else self._part(training, labels, parts, "calibration")
        )
        weight = None if training.weight is None else training.weight[parts.train]
        rows = Rows(take_rows(training.X, parts.train), labels[parts.train], weight)
        task = Task(rows, training.costs, full, cv, training.seed)
        race = Race(task, validation, wishes, self.scoring, self.n_jobs, self.verbose)
        race.say(f"full model ready; {len(rows.y)} rows learn, {len(validation.y)} choose")
        frontiers = race.run(*settings_of(self.method, training.costs))
        self.history_ = {k: np.array([h[k] for h in race.history]) for k in race.history[0]}
        self.frontier_ = Frontier.merge(frontiers.values())
        self.__dict__.pop("certificate_", None)
        if promise_rows is not None and guarantee is not None:
            try:
                return self._promise(promise_rows.X, promise_rows.y, guarantee)
            except PromiseError as error:
                # Raised when everything that was learnt is in its place, with the best of it as the fitted system.
                self._unkept = error
                self.choice_ = max(self.frontier_, key=lambda point: (point.score, -point.cost))
                return self.choice_.system
        self.choice_ = wishes.choose(self.frontier_)
        return self.choice_.system

    def _part(self, training: Training, labels: NDArray[Any], parts: Parts, name: str) -> Rows:
        """Rows for one purpose: those given, or those set aside."""
        given, rows = getattr(self, name), getattr(parts, name)
        if given is None or isinstance(given, Real):
            weight = None if training.weight is None else training.weight[rows]
            return Rows(take_rows(training.X, rows), labels[rows], weight)
        X, y = self._check_rows(given[0], reset=False), column_or_1d(np.asarray(given[1]))
        check_consistent_length(X, y)
        return Rows(X, y)

    # -- the same fit, otherwise ------------------------------------------------------------------

    def at(self, *, budget: float | None = None, tolerance: float | None = None) -> Self:
        """The classifier for another wish; nothing is refitted and nothing promised.

        Parameters
        ----------
        budget, tolerance : float
            As for the class; with both, both are kept.

        Returns
        -------
        BudgetedClassifier
            A fitted copy.
        """
        check_is_fitted(self, "frontier_")
        if budget is None and tolerance is None:
            raise ValueError("Give budget or tolerance: at(budget=3) or at(tolerance=0.01).")
        return self._at_point(Wishes(budget, tolerance).choose(self.frontier_))

    def _at_point(self, point: Point) -> Self:
        other = self._with_system(point.system)
        other.choice_ = point
        return other

    def with_costs(self, feature_costs: Any) -> Self:
        """A copy at other prices, chosen again by the same wishes; nothing is refitted and nothing promised."""
        check_is_fitted(self, "frontier_")
        frontier = self.frontier_.reprice(feature_costs)
        other = self._at_point(self._wishes().choose(frontier))
        other.frontier_ = frontier
        return other

    def _with_system(self, system: System) -> Self:
        other = super()._with_system(system)
        for name in ("certificate_", "choice_"):
            other.__dict__.pop(name, None)
        return other

    def staged_systems(self) -> list[System]:
        """All systems of the frontier."""
        check_is_fitted(self, "frontier_")
        return [point.system for point in self.frontier_]

    # -- promises ---------------------------------------------------------------------------------

    def _promise(
        self, X: Any, y: NDArray[Any], guarantee: Guarantee, date: str | None = None
    ) -> System:
        system, self.certificate_, _ = certify(self.frontier_, X, y, guarantee, date=date)
        self.choice_ = next(point for point in self.frontier_ if point.system is system)
        return system

    def recalibrate(
        self, X: Any, y: Any, guarantee: Guarantee | None = None, *, date: str | None = None
    ) -> Self:
        """A copy whose system is chosen and certified again on new rows; nothing is refitted.

        Parameters
        ----------
        X, y : calibration rows and labels
            Used for nothing else before.
        guarantee : Guarantee, optional
            None is the classifier's own.
        date : str, optional
            Written into the certificate.

        Returns
        -------
        BudgetedClassifier
        """
        check_is_fitted(self, "frontier_")
        guarantee = self._guarantee() if guarantee is None else guarantee
        if guarantee is None:
            raise ValueError("There is nothing to promise: pass a Guarantee.")
        X, y = self._check_rows(X, reset=False), column_or_1d(np.asarray(y))
        other = self._with_system(self.system_)
        other.system_ = other._promise(X, y, guarantee, date)
        return other

    def check_drift(self, X: Any, *, level: float = 0.01) -> Drift:
        """Whether cost or routing have moved since calibration; see :func:`sparing.guarantees.check_drift`.

        Parameters
        ----------
        X : rows that have come in since
        level : float, default=0.01
            Probability of a false alarm.

        Returns
        -------
        Drift
        """
        X = self._rows(X)
        certificate = getattr(self, "certificate_", None)
        if not isinstance(certificate, Certificate):
            raise ValueError(
                "Nothing was promised, so there is nothing to compare with: fit with a guarantee, or recalibrate(X, y)."
            )
        return check_drift(certificate, self.system_, X, level=level)


def _share(given: Any, default: float) -> float:
    """Share of the rows to set aside; 0 when rows of their own are given."""
    if given is None:
        return default
    return float(given) if isinstance(given, Real) else 0.0
