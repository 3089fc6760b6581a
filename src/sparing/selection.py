"""BudgetedClassifier: one fit for the whole frontier, a choice by budget or tolerance, a promise if one is wanted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length, column_or_1d

from sparing._frontier_classifier import FrontierClassifier
from sparing._frontier_merging import with_full_alone
from sparing._full_model import FullModel, fit_full_model, is_legacy
from sparing._guarantee import check_promisable
from sparing._methods import settings_of
from sparing._parts import Rows
from sparing._preparation import (
    HELD_OUT,
    Preparation,
    Prepared,
    check_share_or_rows,
    refuse_the_impossible,
)
from sparing._progress import Progress
from sparing._race import Race, Task
from sparing._routed import ENCODE_TEXT, Training, text_named
from sparing._rows import take_rows
from sparing._settings import JOBS_CONSTRAINT
from sparing._wishes import Wishes
from sparing.costs import FeatureCosts, resolve_costs
from sparing.frontier import Frontier
from sparing.guarantees import Guarantee, PromiseError
from sparing.metrics.scoring import resolve_scoring
from sparing.system import System

Floats = NDArray[np.float64]


class BudgetedClassifier(FrontierClassifier):
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
        must keep both. With neither, nothing is to be lost: the tolerance is 0 (a ``guarantee`` needs one of them). The
        cheapest of many systems on a few hundred validation rows is partly the luckiest, so it must keep the tolerance
        by half a standard error; where it has to hold on other rows ask for a guarantee.
    scoring : str, callable or matrix, default="accuracy"
        What is compared, see :meth:`sparing.Frontier.evaluate`: names of scikit-learn scorers, scorers, metrics, or a
        matrix of misclassification costs (true class × answer, in the order of the classes). What does not fit the
        labels is refused before anything is fitted.
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
        1 tells on stderr what is done and about how long it will take. Ctrl-C ends the race with what it has.

    Attributes
    ----------
    frontier_ : Frontier
        Every system worth having, of every method, with cost and score on the validation rows; where none of them is
        as good as the full model, it is there alone too.
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
        "cv": ["cv_object"],
        "random_state": ["random_state"],
        "n_jobs": JOBS_CONSTRAINT,
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
            Rows of one group (a patient, a customer) stay on one side of every split. For a ranking metric as
            ``scoring`` they are the queries. There is no promise from groups of several rows.

        Returns
        -------
        self
        """
        self._check_wishes(sample_weight is not None, full_proba is not None, groups)
        self._groups = groups
        self._unkept: ValueError | None = None
        try:
            super().fit(X, y, sample_weight, full_proba=full_proba)
            self._remember(X, y)
            if isinstance(self._unkept, PromiseError):
                raise PromiseError(
                    f"{self._unkept} Nothing needs to be fitted again: frontier_ is kept, at(...) chooses without a "
                    "promise, and recalibrate(X, y) promises on other rows."
                )
            if self._unkept is not None:
                raise ValueError(
                    f"{self._unkept} Nothing needs to be fitted again: frontier_ is kept, and at(budget=...) or "
                    f"at(tolerance=...) chooses from it{', without the floor' if self.min_recall else ''}."
                )
        finally:
            for name in ("_groups", "_unkept", "_prepared"):
                self.__dict__.pop(name, None)
        return self

    def _check_wishes(self, weighted: bool, stored: bool, groups: Any) -> None:
        """Raise on wishes that contradict each other, before anybody looks at the rows."""
        self._validate_params()
        resolve_scoring(self.scoring)
        self._wishes()
        settings_of(self.method, FeatureCosts([1.0]))
        for name in ("validation", "calibration"):
            check_share_or_rows(name, getattr(self, name))
        promised = self._guarantee()
        if promised is None and isinstance(self.calibration, tuple | list):
            raise ValueError(
                "calibration rows are given, but nothing is to be promised by them: add guarantee=0.95, or a Guarantee."
            )
        if promised is not None:
            check_promisable(promised, self.scoring)
        if promised is not None and weighted:
            raise ValueError(
                "guarantee and sample_weight: a promise is not made from weighted rows. Fit with weights and without a "
                "guarantee, then recalibrate(X, y) on rows drawn like those to come."
            )
        if promised is not None and groups is not None and len(np.unique(groups)) < len(groups):
            raise ValueError(
                "guarantee and groups: rows of one group are alike, and a promise counts every row as drawn by itself. "
                "Fit with groups and without a guarantee, then recalibrate(X, y) on one row of each of other groups."
            )
        if stored and self.estimator is None:
            raise ValueError(
                "full_proba without an estimator: the validation rows need the full model's answers too. Pass the "
                "model, or evaluate systems yourself (AdaptGbrtClassifier, Frontier)."
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
        """Set the rows that choose and promise aside, refuse what cannot be, then fit f0 on the others."""
        prepared = self._prepared = self._prepare(X, y, weight, seed)
        train = prepared.train
        if full_proba is not None:
            full_proba = np.asarray(full_proba)
            check_consistent_length(y, full_proba)
        with text_named(X, ENCODE_TEXT):
            return fit_full_model(
                self.estimator,
                take_rows(X, train),
                y[train],
                cv=prepared.folds,
                sample_weight=None if weight is None else weight[train],
                full_proba=None if full_proba is None else full_proba[train],
                random_state=seed,
                n_jobs=self.n_jobs,
            )

    def _prepare(
        self, X: Any, y: NDArray[Any], weight: Floats | None, seed: int | None
    ) -> Prepared:
        groups = self._groups
        if groups is not None:
            groups = column_or_1d(np.asarray(groups))
            check_consistent_length(y, groups)
        prepared = Preparation(
            Rows(X, y, weight, groups),
            HELD_OUT if self.validation is None else self.validation,
            None if self.guarantee is None else self.calibration,
            self.cv,
            seed,
            lambda rows: self._check_rows(rows, reset=False),
        ).divided()
        names = getattr(self, "feature_names_in_", None)
        columns = X.shape[1] if names is None else [str(name) for name in names]
        classes = np.unique(y)
        if is_legacy(self.estimator):  # it may know more of them
            classes = np.asarray(getattr(self.estimator, "classes_", classes))
        refuse_the_impossible(
            prepared,
            self._wishes(),
            self._guarantee(),
            self.scoring,
            resolve_costs(self._given_costs(), columns),
            classes,
        )
        return prepared

    def _learn(self, training: Training, full: FullModel | None) -> System:
        assert full is not None
        prepared = self._prepared
        labels = training.classes[training.y]
        wishes, guarantee = self._wishes(), self._guarantee()
        train, validation = prepared.train, prepared.validation
        weight = None if training.weight is None else training.weight[train]
        rows = Rows(take_rows(training.X, train), labels[train], weight)
        task = Task(rows, training.costs, full, prepared.folds, training.seed, self.verbose)
        progress = Progress(self.verbose)
        race = Race(task, validation, wishes, self.scoring, self.n_jobs, progress)
        progress.say(f"full model ready; {len(rows.y)} rows learn, {len(validation.y)} choose")
        frontiers = race.run(*settings_of(self.method, training.costs))
        self.history_ = {k: np.array([h[k] for h in race.history]) for k in race.history[0]}
        self.frontier_ = Frontier.merge(frontiers.values())
        unkept = race.unkept
        alone = self.frontier_.full
        if alone is not None and wishes.keeps_floors(wishes.recalls([alone.system], validation))[0]:
            if unkept is not None:  # the others are below the floors
                self.frontier_, unkept = replace(self.frontier_, points=()), None
            self.frontier_ = with_full_alone(self.frontier_)
        self.__dict__.pop("certificate_", None)
        try:
            if unkept is not None:
                raise unkept
            if prepared.calibration is not None and guarantee is not None:
                return self._promise(prepared.calibration.X, prepared.calibration.y, guarantee)
            self.choice_ = wishes.choose(self.frontier_)
        except ValueError as error:
            # Raised when everything that was learnt is in its place, with the best of it as the fitted system.
            self._unkept = error
            self.choice_ = max(self.frontier_, key=lambda point: (point.score, -point.cost))
        return self.choice_.system
