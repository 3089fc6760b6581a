"""The shell every routed classifier shares: checks, scikit-learn's grammar, and the contract over a System.

A subclass says how to learn a :class:`~sparing.system.System` (``_learn``); predicting, routing, masks, costs and
explanations are the system's, checked here once.
"""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    assert_all_finite,
    check_is_fitted,
    validate_data,
)

from sparing._cells import (
    columns_of,
    missing,
    refuse_complex,
    refuse_dates,
    refuse_infinite,
    refuse_missing,
    refuse_twins,
)
from sparing._full_input import ENCODE_TEXT, takes_missing, text_named
from sparing._full_model import FullModel, fit_full_model
from sparing._full_predictor import encode
from sparing.costs import FeatureCosts, resolve_costs
from sparing.system import Accounting, Stage, System

__all__ = ["ENCODE_TEXT", "RoutedClassifier", "Training", "text_named"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Training:
    """Checked training rows.

    Attributes
    ----------
    X : array, or the user's frame.
    y : class codes, positions in ``classes``.
    weight : weights of the rows, None when none were given.
    costs : prices in the order of X's columns.
    classes : class labels.
    seed : a number, None when ``random_state`` is None.
    """

    X: Any
    y: NDArray[np.intp]
    weight: Floats | None
    costs: FeatureCosts
    classes: NDArray[Any]
    seed: int | None


def _is_binary(estimator: Any) -> bool:
    classes = getattr(estimator, "classes_", None)
    return classes is None or len(classes) == 2


class RoutedClassifier(ClassifierMixin, BaseEstimator):
    """Base of all classifiers that answer easy rows cheaply and send the others on."""

    system_: System
    history_: dict[str, NDArray[Any]]
    classes_: NDArray[Any]
    n_features_in_: int

    _accounting: Accounting = "stage"

    # -- learning -------------------------------------------------------------------------------

    def fit(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None, *, full_proba: Any = None
    ) -> Self:
        """Learn the system.

        Parameters
        ----------
        X : array or data frame of shape (n_rows, n_columns)
        y : array of shape (n_rows,)
            Class labels.
        sample_weight : array of shape (n_rows,), optional
        full_proba : array of shape (n_rows, n_classes), optional
            Probabilities of the full model on these rows that are not optimistic (out-of-fold, or a legacy system's
            logs). Nothing is cross-fitted then. With ``estimator=None`` the full model is known by them alone: routing
            and costs work, predicting a row that is routed to it raises.

        Returns
        -------
        self
        """
        self._validate_params()
        X, y = self._check_training(X, y)
        weight = None
        if sample_weight is not None:
            weight = _check_sample_weight(
                sample_weight, X, dtype=np.float64, ensure_non_negative=True
            )
            if not weight.sum() > 0:
                raise ValueError("sample_weight is 0 for every row: at least one must count.")
        names = getattr(self, "feature_names_in_", None)
        costs = resolve_costs(
            self._given_costs(), X.shape[1] if names is None else [str(n) for n in names]
        )
        self._check_first(costs, len(y))
        seed = self.random_state
        if seed is not None and not isinstance(seed, int | np.integer):
            seed = check_random_state(seed).randint(np.iinfo(np.int32).max)
        full = self._full_model(X, y, weight, full_proba, seed)
        classes = full.classes if full is not None else np.unique(y)
        training = Training(X, encode(y, classes), weight, costs, classes, seed)
        system = self._learn(training, full)
        self.classes_ = classes
        if full is not None:
            self.estimator_ = full.estimator
        self.system_ = system
        return self

    def _check_first(self, costs: FeatureCosts, n_rows: int) -> None:
        """Refuse what can be refused before a full model is fitted or asked, which may take hours or cost money."""

    @abstractmethod
    def _learn(self, training: Training, full: FullModel | None) -> System:
        """Learn the system and set the attributes that are the subclass's own."""

    def _given_costs(self) -> Any:
        """``feature_costs``, or those of a routed classifier used as the full model, fitted or not."""
        if self.feature_costs is None:
            model = getattr(self, "estimator", None)
            model = model.estimator if isinstance(model, FrozenEstimator) else model
            system = getattr(model, "system_", None)
            if isinstance(system, System):
                return system.costs
            if isinstance(model, RoutedClassifier):
                return model._given_costs()
        return self.feature_costs

    def _full_model(
        self,
        X: Any,
        y: NDArray[Any],
        weight: Floats | None,
        full_proba: Any,
        seed: int | None,
    ) -> FullModel | None:
        with text_named(X, ENCODE_TEXT):
            return fit_full_model(
                self.estimator,
                X,
                y,
                cv=self.cv,
                sample_weight=weight,
                full_proba=full_proba,
                random_state=seed,
                n_jobs=self.n_jobs,
            )

    # -- checks ---------------------------------------------------------------------------------

    def _check_training(self, X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        X = self._check_rows(X, reset=True)
        y = column_or_1d(y, warn=True)
        nameless = np.flatnonzero(missing(y))
        if len(nameless):
            raise ValueError(
                f"y contains NaN or None: {len(nameless)} of {len(y)} labels, the first in row {nameless[0]}."
            )
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        check_consistent_length(X, y)
        labels = np.unique(y)
        if len(labels) < 2:
            raise ValueError(
                f"y has only one class, {labels.tolist()[0]!r}: a classifier needs at least two classes."
            )
        return X, y

    def _check_rows(self, X: Any, *, reset: bool) -> Any:
        if hasattr(X, "columns") and hasattr(X, "shape"):
            self._check_frame(X, reset=reset)
        else:
            try:
                X = validate_data(
                    self, X, reset=reset, dtype=[np.float64, np.float32], ensure_all_finite=False
                )
            except (TypeError, ValueError):
                if isinstance(X, np.ndarray) and X.ndim == 2:
                    refuse_complex(columns_of(X))
                raise
        self._check_cells(X)
        return X

    def _check_frame(self, X: Any, *, reset: bool) -> None:
        refuse_twins(X)
        try:
            validate_data(self, X, reset=reset, skip_check_array=True)
        except ValueError as error:
            if "same order" not in str(error):  # all other differences are named by scikit-learn
                raise
            pairs = zip(map(str, X.columns), self.feature_names_in_, strict=True)
            moved = [f"{new!r} where {old!r} was" for new, old in pairs if new != old]
            raise ValueError(
                f"{error}- {', '.join(moved[:4])}{', ...' * (len(moved) > 4)}: use X[model.feature_names_in_]."
            ) from None
        if X.shape[0] == 0 or X.shape[1] == 0:
            raise ValueError(
                f"Found array with {X.shape[0]} sample(s) and {X.shape[1]} feature(s) "
                f"(shape={tuple(X.shape)}) while a minimum of 1 is required."
            )

    def _check_cells(self, X: Any) -> None:
        """Refuse complex and infinite cells, dates, and missing ones where the full model would, naming the columns."""
        if isinstance(X, np.ndarray):
            with np.errstate(all="ignore"):
                if np.isfinite(X.sum()):  # one pass tells that there is nothing to look for
                    return
        columns = list(columns_of(X))
        refuse_complex(columns)
        refuse_dates(columns)
        refuse_infinite(columns)
        if not self._allows_nan():
            refuse_missing(columns, self.estimator)

    def _allows_nan(self) -> bool:
        return takes_missing(getattr(self, "estimator", None))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._allows_nan()
        tags.input_tags.sparse = False
        return tags

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self, "system_")
        return self._check_rows(X, reset=False)

    # -- the contract ---------------------------------------------------------------------------

    def predict(self, X: Any) -> NDArray[Any]:
        """Class label per row, by the stage that answers it."""
        X = self._rows(X)
        return self.system_.predict(X)

    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities per row, by the stage that answers it."""
        X = self._rows(X)
        return self.system_.predict_proba(X)

    @available_if(_is_binary)
    def decision_function(self, X: Any) -> Floats:
        """Log-odds of the second class per row, by the stage that answers it (two classes only)."""
        proba = np.maximum(self.predict_proba(X), np.finfo(float).tiny)
        return np.log(proba[:, 1]) - np.log(proba[:, 0])

    def route(self, X: Any) -> NDArray[np.intp]:
        """Stage that answers each row: 0 is the cheapest, the last one the full model."""
        X = self._rows(X)
        return self.system_.route(X)

    def acquisition_mask(
        self, X: Any, *, accounting: Accounting | None = None
    ) -> NDArray[np.bool_]:
        """Columns each row pays for: bool of shape (n_rows, n_columns).

        ``accounting`` is ``"stage"`` (all columns of every stage entered), ``"path"`` (trees pay for the columns tested
        on the row's paths) or None, the class's own default. Columns are in the order of X, as in ``system_.costs``: a
        price list that was written in another order prices other columns by it.
        """
        X = self._rows(X)
        return self.system_.acquisition_mask(X, accounting=accounting)

    def acquisition_cost(
        self, X: Any, *, accounting: Accounting | None = None, owned: Any = None
    ) -> Floats:
        """Cost of each row, items and calls.

        ``owned`` says which items a row already has: names of items, a mapping or data frame of item to bool, or
        booleans in the order of ``system_.costs.items``.
        """
        X = self._rows(X)
        return self.system_.acquisition_cost(X, accounting=accounting, owned=owned)

    def explain(self, X: Any) -> list[dict[str, Any]]:
        """Per row: the stage that answered, the items bought and their prices, and the gates passed.

        See :meth:`sparing.system.System.explain`.
        """
        X = self._rows(X)
        return self.system_.explain(X)

    @property
    def stages_(self) -> tuple[Stage, ...]:
        """Stages of the fitted system, cheapest first."""
        check_is_fitted(self, "system_")
        return self.system_.stages

    def with_costs(self, feature_costs: Any) -> Self:
        """A copy at other prices, which are its ``feature_costs`` from now on; nothing is refitted."""
        check_is_fitted(self, "system_")
        other = self._with_system(self.system_.with_costs(feature_costs))
        other.feature_costs = feature_costs
        return other

    def with_thresholds(self, thresholds: Any) -> Self:
        """A copy whose gates send other shares on: higher thresholds keep more rows at cheap stages."""
        check_is_fitted(self, "system_")
        return self._with_system(self.system_.with_thresholds(thresholds))

    def _with_system(self, system: System) -> Self:
        other = copy(self)
        other.system_ = system
        return other
