"""Scores of systems: whatever scikit-learn calls `scoring`, applied to a System.

A :class:`~sparing.system.System` is not an estimator. :class:`SystemClassifier` dresses one as a fitted classifier, so
that scorers, which ask for ``classes_``, ``predict`` and ``predict_proba``, accept it.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from functools import cached_property, partial
from inspect import Parameter, signature
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import get_scorer, get_scorer_names

from sparing._price_list import short
from sparing._rows import ScoredRows
from sparing.system import Decides, System

Floats = NDArray[np.float64]
Score = Callable[..., float]
"""Called as ``score(estimator, X, y, sample_weight=None, groups=None)``."""


class SystemClassifier(ClassifierMixin, BaseEstimator):
    """A system as a fitted scikit-learn classifier.

    Parameters
    ----------
    system : System
    rows : ScoredRows, optional
        Rows whose scores are remembered: asked about these very rows, nothing is computed twice.
    """

    def __init__(self, system: System, rows: ScoredRows | None = None) -> None:
        self.system = system
        self.rows = rows

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Nothing to learn; here because fitted things have it."""
        return self

    @property
    def classes_(self) -> NDArray[Any]:
        """Class labels."""
        return self.system.classes

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def _scored(self, X: Any) -> Any:
        return self.rows if self.rows is not None and (X is self.rows.X or X is self.rows) else X

    def route(self, X: Any) -> NDArray[np.intp]:
        """Stage that answers each row."""
        rows = self._scored(X)
        return self._route if rows is self.rows else self.system.route(rows)

    @cached_property
    def _route(self) -> NDArray[np.intp]:
        return self.system.route(self.rows)

    def acquisition_cost(self, X: Any, **options: Any) -> Floats:
        """Cost of each row."""
        return self.system.acquisition_cost(self._scored(X), **options)

    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities per row."""
        return self.system.predict_proba(self._scored(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Class label per row."""
        rows = self._scored(X)
        if not isinstance(rows, ScoredRows):
            return self.system.predict(rows)
        answering = self.route(X)
        code = np.zeros(len(answering), dtype=np.intp)
        for index, stage in enumerate(self.system.stages):
            here = answering == index
            if here.any():
                np.copyto(code, _codes(stage.predictor, rows), where=here)
        return self.classes_[code]


def _codes(predictor: Any, rows: ScoredRows) -> NDArray[np.intp]:
    """Class of every row by one predictor: a vector to remember, where probabilities are a table."""

    def compute() -> NDArray[np.intp]:
        if isinstance(predictor, Decides):
            return predictor.decide(rows.X)
        proba = rows.remember("proba", (predictor,), lambda: predictor.predict_proba(rows.X))
        return proba.argmax(axis=1)

    return rows.remember("codes", (predictor,), compute)


# -- what `scoring` may be --------------------------------------------------------------------------------------------


def resolve_scoring(scoring: Any) -> Score:
    """Function ``score(estimator, X, y, sample_weight=None, groups=None)``, larger is better.

    Parameters
    ----------
    scoring : one of
        - name of a scikit-learn scorer: ``"accuracy"``, ``"balanced_accuracy"``, ``"neg_log_loss"``, ``"roc_auc"``;
        - scorer, called as ``scoring(estimator, X, y)``;
        - metric of labels, called as ``scoring(y_true, y_pred)``;
        - metric of rankings, called as ``scoring(y_true, y_score, groups)``, such as
          :func:`~sparing.metrics.ndcg_at_k`; the score is the probability of the second class, or the expected grade;
        - square matrix of misclassification costs: row = true class, column = answer, both in the order of the classes.
          The score is minus the mean cost.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.dummy import DummyClassifier
    >>> X, y = np.zeros((4, 1)), np.array([0, 0, 0, 1])
    >>> healthy = DummyClassifier().fit(X, y)
    >>> resolve_scoring("accuracy")(healthy, X, y)
    0.75
    >>> resolve_scoring([[0, 1], [50, 0]])(healthy, X, y)
    -12.5
    """
    if isinstance(scoring, str):
        if scoring == "accuracy":
            return _accuracy
        return partial(_with_scorer, _named_scorer(scoring), scoring)
    if not callable(scoring):
        return partial(_with_matrix, _square_matrix(scoring))
    if ranks_within_groups(scoring):
        return partial(_with_ranking, scoring)
    if not is_metric(scoring):
        return partial(_with_scorer, scoring, scoring_name(scoring))
    names = [p.name for p in _positional(scoring)]
    if len(names) > 1 and names[1] in ("y_score", "y_proba", "y_prob", "pred_decision"):
        name = scoring_name(scoring)
        raise ValueError(
            f"scoring={name} takes scores, not labels: pass the name of a scorer such as 'roc_auc', or "
            f"sklearn.metrics.make_scorer({name}, response_method='predict_proba')."
        )
    return partial(_with_metric, scoring)


def _named_scorer(name: str) -> Any:
    known = get_scorer_names()
    if name in known:
        return get_scorer(name)
    meant = [one for one in known if one.startswith(name)][:3] or get_close_matches(name, known)
    raise ValueError(
        f"scoring={name!r} is the name of no scikit-learn scorer"
        + (f"; did you mean {' or '.join(map(repr, meant))}?" if meant else ".")
        + " sklearn.metrics.get_scorer_names() lists them all."
    )


def _positional(function: Any) -> list[Parameter]:
    return [
        p
        for p in signature(function).parameters.values()
        if p.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    ]


def ranks_within_groups(scoring: Any) -> bool:
    """Whether a scoring is a metric of rankings, which needs the query of each row."""
    named = isinstance(scoring, str) or not callable(scoring)
    return not named and any(p.name == "groups" for p in _positional(scoring))


def is_metric(scoring: Any) -> bool:
    """Whether a callable compares answers with labels, and is no scorer that asks an estimator itself."""
    required = sum(p.default is Parameter.empty for p in _positional(scoring))
    return ranks_within_groups(scoring) or required < 3


def scoring_name(scoring: Any) -> str:
    """What to call a scoring in a table or a message."""
    if isinstance(scoring, str):
        return scoring
    if isinstance(scoring, partial):
        return scoring_name(scoring.func)
    if callable(scoring):
        return str(getattr(scoring, "__name__", scoring))
    return "minus misclassification cost"


def _accuracy(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None, groups: Any = None
) -> float:
    _no_groups(groups, "accuracy")
    # scikit-learn's own sorts the labels to find out what kind they are, on every call.
    return float(np.average(estimator.predict(X) == np.asarray(y), weights=sample_weight))


def _with_scorer(
    scorer: Any,
    name: str,
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    groups: Any = None,
) -> float:
    _no_groups(groups, name)
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    return float(scorer(estimator, X, y, **weights))


def _with_metric(
    metric: Any, estimator: Any, X: Any, y: Any, sample_weight: Any = None, groups: Any = None
) -> float:
    _no_groups(groups, scoring_name(metric))
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    return float(metric(y, estimator.predict(X), **weights))


def _with_ranking(
    metric: Any, estimator: Any, X: Any, y: Any, sample_weight: Any = None, groups: Any = None
) -> float:
    if groups is None:
        raise ValueError(
            f"scoring={scoring_name(metric)} ranks within queries: pass groups=, the query of each row."
        )
    if sample_weight is not None:
        raise ValueError(f"scoring={scoring_name(metric)} takes no sample_weight.")
    proba, classes = estimator.predict_proba(X), estimator.classes_
    score = proba[:, 1] if len(classes) == 2 else proba @ np.asarray(classes, dtype=float)
    grade = y if np.asarray(y).dtype.kind in "biuf" else np.asarray(y) == classes[1]
    return float(metric(grade, score, groups))


def _with_matrix(
    matrix: Floats, estimator: Any, X: Any, y: Any, sample_weight: Any = None, groups: Any = None
) -> float:
    _no_groups(groups, "a misclassification cost matrix")
    classes = estimator.classes_
    if len(matrix) != len(classes):
        raise ValueError(
            f"The misclassification cost matrix has {len(matrix)} classes, the classifier {len(classes)}: "
            f"{np.asarray(classes).tolist()}."
        )
    cost = matrix[positions(y, classes), positions(estimator.predict(X), classes)]
    return -float(np.average(cost, weights=sample_weight))


def positions(labels: Any, classes: NDArray[Any]) -> NDArray[np.intp]:
    """Place of each label among the classes."""
    found, inverse = np.unique(np.asarray(labels), return_inverse=True)
    place = {label: i for i, label in enumerate(np.asarray(classes).tolist())}
    unknown = [label for label in found.tolist() if label not in place]
    if unknown:
        raise ValueError(f"y has labels that are not among the classes {list(place)}: {unknown}.")
    return np.array([place[label] for label in found.tolist()], dtype=np.intp)[inverse]


def _square_matrix(scoring: Any) -> Floats:
    try:
        matrix = np.asarray(scoring, dtype=float)
    except (TypeError, ValueError):
        matrix = np.empty(0)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.isfinite(matrix).all():
        raise ValueError(
            "scoring is the name of a scikit-learn scorer, a scorer, a metric or a square matrix of finite "
            f"misclassification costs, not {scoring!r}."
        )
    names = matrix_names(scoring)
    if names is not None and (names != list(scoring.columns) or names != sorted(names)):
        raise ValueError(
            f"The misclassification cost matrix names its rows {short(names)} and its columns "
            f"{short(scoring.columns)}: both go in the order of the classes, matrix.loc[order, order] with order = "
            f"{sorted(names)!r}."
        )
    return matrix


def matrix_names(matrix: Any) -> list[Any] | None:
    """Classes that a frame of misclassification costs names its rows by; None where they are not named."""
    names = list(getattr(matrix, "index", [])) if hasattr(matrix, "columns") else []
    return None if names in ([], list(range(len(names)))) else names


def _no_groups(groups: Any, name: str) -> None:
    if groups is not None:
        raise ValueError(f"groups is given, but scoring={name} does not rank within groups.")
