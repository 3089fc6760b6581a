"""Trees that also see differences of columns: a stage may compute what it likes from what is already paid for.

A tree splits one column at a time, and needs many splits to say that one value is larger than another. Columns of the
same unit often matter by their difference: on Forest (elevation, distances and heights in metres; training rows of one
split, a fifth held out) extra trees on six columns are right on 84.0% of the rows without differences, on 87.2% with
them, in the same time; on ten 86.0 and 88.5%. Sums bring less and nothing on top. On ann-thyroid (forests) 0.3 points
are lost, on MiniBooNE and Letters 0 to 0.4 won: whether it helps is measured.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, _safe_indexing, get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from sparing._full_model import fitted
from sparing._routed import Training
from sparing._rows import take_rows
from sparing.cascade.exits import mean_and_error
from sparing.cascade.judges import small

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

_DISTINCT = 7
"""Columns with no more values than this, such as codes of a word, have no difference worth a name."""
_LOOKED_AT = 2000
"""Rows in which distinct values are counted."""
_TELLING = 12
"""Columns that matter most, on which trees with and without differences are compared."""
_TAUGHT, _JUDGED = 24_000, 12_000
"""Rows that the compared trees are fitted and judged on, at most."""


class WithDifferences(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A classifier of trees that is given the differences of all pairs of numeric columns beside the columns.

    Parameters
    ----------
    estimator : classifier
        Fitted on columns and differences. A forest that tries a share of the columns at each split tries as many as it
        would without differences, so that it takes no longer.
    most : int, default=30
        Numeric columns beyond which there are too many pairs: then no differences are made.

    Attributes
    ----------
    estimator_ : the fitted classifier.
    pairs_ : int of shape (n_pairs, 2), positions of the columns that are subtracted.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.ensemble import ExtraTreesClassifier
    >>> from sparing.cascade import WithDifferences
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 4))
    >>> y = X[:, 0] > X[:, 3]
    >>> forest = ExtraTreesClassifier(20, max_features=1.0, random_state=0)
    >>> both = [forest, WithDifferences(forest)]
    >>> [bool(model.fit(X[:300], y[:300]).score(X[300:], y[300:]) > 0.97) for model in both]
    [False, True]
    """

    def __init__(self, estimator: Any, *, most: int = 30) -> None:
        self.estimator = estimator
        self.most = most

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the columns that can be subtracted, and fit on all."""
        if not hasattr(self.estimator, "fit"):
            raise TypeError(
                f"WithDifferences needs a classifier such as RandomForestClassifier(), not {self.estimator!r}."
            )
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_all_finite=self._finite())
        numeric = [j for j, column in enumerate(X[:_LOOKED_AT].T) if _has_many_values(column)]
        if len(numeric) > self.most:
            numeric = []
        self.pairs_ = np.array(numeric, dtype=np.intp)[np.argwhere(np.tri(len(numeric), k=-1))]
        model = clone(self.estimator)
        share = model.get_params().get("max_features", "")
        if share is None or isinstance(share, float):
            tried = round((1.0 if share is None else share) * X.shape[1])
            model.set_params(max_features=max(1, tried))
        takes_weight = sample_weight is not None and has_fit_parameter(model, "sample_weight")
        more = {"sample_weight": sample_weight} if takes_weight else {}
        self.estimator_ = model.fit(self._widened(X), y, **more)
        self.classes_ = self.estimator_.classes_
        # What a forest remembers of its training rows stays where serving leaves it behind.
        if (honest := vars(self.estimator_).pop("oob_decision_function_", None)) is not None:
            self.oob_decision_function_ = honest
        return self

    @property
    def oob_score(self) -> bool:
        """Whether the classifier inside is judged by its out-of-bag rows."""
        return bool(getattr(self.estimator, "oob_score", False))

    @property
    def feature_importances_(self) -> Floats:
        """Importance of each column; half that of a difference belongs to either side."""
        check_is_fitted(self)
        found = np.asarray(self.estimator_.feature_importances_, dtype=float)
        n = self.n_features_in_
        of_columns = found[:n].copy()
        for side in self.pairs_.T:
            np.add.at(of_columns, side, 0.5 * found[n:])
        return of_columns

    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities."""
        rows = self._asked(X)
        return self.estimator_.predict_proba(rows)

    def predict(self, X: Any) -> NDArray[Any]:
        """Class labels."""
        rows = self._asked(X)
        return self.estimator_.predict(rows)

    def _asked(self, X: Any) -> Floats:
        check_is_fitted(self)
        finite = self._finite()
        X = validate_data(self, X, dtype=np.float64, ensure_all_finite=finite, reset=False)
        return self._widened(X)

    def _widened(self, X: Floats) -> Floats:
        left, right = self.pairs_.T
        return np.concatenate([X, X[:, left] - X[:, right]], axis=1)

    def _finite(self) -> Any:
        return "allow-nan" if self.__sklearn_tags__().input_tags.allow_nan else True

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if hasattr(self.estimator, "fit"):
            tags.input_tags.allow_nan = get_tags(self.estimator).input_tags.allow_nan
        return tags


def _has_many_values(column: Floats) -> bool:
    return len(np.unique(column[~np.isnan(column)])) > _DISTINCT


def with_differences_if_better(own: Any, training: Training, train: Codes, test: Codes) -> Any:
    """A model with differences of columns where held-out rows tell that they help, otherwise the model as it is.

    Only for models of trees, alone and not in a pipeline, which may need columns by name. They are compared by small
    copies on the columns that matter most, by more than a standard error of the difference.

    Parameters
    ----------
    own : the model, unfitted.
    training : all rows.
    train, test : rows to fit and to compare on.
    """
    copy = None if own is None or isinstance(own, Pipeline) else small(own)
    if copy is None:
        return own
    train, test = train[:_TAUGHT], test[:_JUDGED]
    weight = np.ones(len(training.y)) if training.weight is None else training.weight
    if not weight[train].any() or not weight[test].any():
        return own
    taught = None if training.weight is None else weight[train]
    rows, labels = take_rows(training.X, train), training.y[train]
    held_out, truth = take_rows(training.X, test), training.y[test]

    def wrong(model: Any, columns: Codes) -> Floats:
        part, asked = (_safe_indexing(table, columns, axis=1) for table in (rows, held_out))
        found = fitted(model, part, labels, taught, training.seed).predict(asked)
        return (found != truth).astype(float)

    try:
        every = fitted(copy, rows, labels, taught, training.seed)
        matters = np.sort(np.argsort(-every.feature_importances_, kind="stable")[:_TELLING])
        plain, wide = (wrong(model, matters) for model in (copy, WithDifferences(copy)))
    except (AttributeError, KeyError, TypeError, ValueError):
        # Words among the columns, or none that tells how much each matters: nothing to subtract.
        return own
    gained, spread = mean_and_error(plain - wide, weight[test] / weight[test].sum())
    return WithDifferences(own) if gained > spread else own
