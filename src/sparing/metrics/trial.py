"""A scoring on trial: whether it fits the labels, and tells right answers from wrong ones.

Called before anything is fitted. Scorers that refuse certain labels do so only when they are asked, which would be
after hours of fitting; here they are asked about made-up answers first.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import get_scorer, get_scorer_names

from sparing._price_list import short
from sparing._rows import n_rows
from sparing.costs import FeatureCosts
from sparing.metrics.scoring import (
    SystemClassifier,
    is_metric,
    matrix_names,
    positions,
    ranks_within_groups,
    resolve_scoring,
    scoring_name,
)
from sparing.system import Stage, System

Floats = NDArray[np.float64]

_SURE = 0.9
"""Probability that made-up answers have; the other classes share the rest."""
_MISTAKES = 7
"""Every so many-th answer of the good ones is wrong and of the bad ones right: ratios of nothing are not defined."""

_COMMON = (
    "accuracy", "balanced_accuracy", "neg_log_loss", "f1", "f1_macro", "roc_auc", "roc_auc_ovr",
    "matthews_corrcoef",
)  # fmt: skip
"""Scorers to name when another one does not fit, as far as they do."""

_NOT_FOR_CLASSES = {
    "sklearn.metrics._regression": "measures how far numbers are off, and labels are no numbers",
    "sklearn.metrics.cluster": "compares groupings and does not say which answer is right",
}


@dataclass(frozen=True)
class Span:
    """Scores of answers that are all right and all wrong; NaN where a score is not defined for them."""

    best: float
    worst: float


@dataclass(frozen=True, eq=False)
class TrialRows:
    """Rows that a scoring will be asked about.

    Attributes
    ----------
    X, y : rows and labels.
    costs : prices of the columns of X.
    classes : labels of the classifiers to come, those of y among them.
    weight, groups : arrays of shape (n_rows,), or None.
    """

    X: Any
    y: NDArray[Any]
    costs: FeatureCosts
    classes: NDArray[Any]
    weight: Floats | None = None
    groups: NDArray[Any] | None = None


@dataclass(frozen=True, eq=False)
class _Says:
    """A predictor with its answers given: a row for everybody, or one for each."""

    proba: Floats
    columns = np.empty(0, dtype=np.intp)

    def predict_proba(self, X: Any) -> Floats:
        n = n_rows(X)
        return np.tile(self.proba, (n, 1)) if len(self.proba) == 1 else self.proba[:n]


def try_scoring(scoring: Any, rows: TrialRows) -> Span:
    """Score made-up answers, and raise when the scoring is of no use for these labels.

    Parameters
    ----------
    scoring : see :func:`~sparing.metrics.scoring.resolve_scoring`.
    rows : TrialRows

    Returns
    -------
    Span

    Examples
    --------
    >>> import numpy as np
    >>> y = np.repeat(["none", "mild", "severe"], 10)
    >>> rows = TrialRows(np.zeros((30, 1)), y, FeatureCosts([1.0]), np.unique(y))
    >>> try_scoring("accuracy", rows)
    Span(best=1.0, worst=0.0)
    >>> try_scoring("roc_auc", rows)
    Traceback (most recent call last):
    ValueError: scoring='roc_auc' does not fit these labels, 3 classes ('mild', 'none', 'severe'): ...
    """
    name = scoring_name(scoring)
    resolve_scoring(scoring)  # raises on what is no scoring at all
    _check_kind(scoring, name, rows)
    if not _asks_for_answers_alone(scoring):
        # A scorer of the user's own may look at rows, routes and costs in any way: it gets constant answers.
        shares = np.mean(rows.y[:, None] == rows.classes, axis=0)[None, :]
        _finite(_ask(scoring, shares, rows), name)
        return Span(np.nan, np.nan)
    code = positions(rows.y, rows.classes)
    slips = np.arange(len(code)) % _MISTAKES == _MISTAKES - 1
    other = (code + 1) % len(rows.classes)
    mixed = [
        _answers(np.where(slips, second, first), len(rows.classes))
        for first, second in ((code, other), (other, code))
    ]
    try:
        good, bad = (_finite(_ask(scoring, proba, rows), name) for proba in mixed)
    except (TypeError, ValueError) as error:
        raise ValueError(_does_not_fit(scoring, name, error, rows)) from error
    _check_sense(scoring, name, good, bad)
    return Span(*(_quietly(scoring, _answers(c, len(rows.classes)), rows) for c in (code, other)))


def _answers(code: NDArray[np.intp], n_classes: int) -> Floats:
    proba = np.full((len(code), n_classes), (1 - _SURE) / max(n_classes - 1, 1))
    proba[np.arange(len(code)), code] = _SURE
    return proba


def _ask(scoring: Any, proba: Floats, rows: TrialRows) -> float:
    score = resolve_scoring(scoring)
    system = System((Stage(_Says(proba)),), rows.costs.of_last(1), rows.classes, has_full=False)
    groups = rows.groups if ranks_within_groups(scoring) else None
    with warnings.catch_warnings():
        # Constant answers leave some ratios without a value; scorers say so, and a trial is no place to repeat it.
        warnings.simplefilter("ignore")
        return score(
            SystemClassifier(system), rows.X, rows.y, sample_weight=rows.weight, groups=groups
        )


def _quietly(scoring: Any, proba: Floats, rows: TrialRows) -> float:
    try:
        return _ask(scoring, proba, rows)
    except (TypeError, ValueError):
        return np.nan


def _finite(score: float, name: str) -> float:
    if np.isnan(score):
        raise ValueError(f"scoring={name} gives NaN")
    return score


def _asks_for_answers_alone(scoring: Any) -> bool:
    """Whether a scoring only compares labels or probabilities with y, as scikit-learn's own do."""
    own = isinstance(scoring, str) or hasattr(scoring, "_score_func")
    return own or not callable(scoring) or is_metric(scoring)


# -- what is refused ---------------------------------------------------------------------------------------------------


def _check_kind(scoring: Any, name: str, rows: TrialRows) -> None:
    """Refuse scores of numbers and of groupings, and matrices that pay for right answers."""
    if ranks_within_groups(scoring) and rows.groups is None:
        raise ValueError(
            f"scoring={name} ranks within queries: pass the query of each row, fit(X, y, groups=...), and let a share "
            "of them choose, validation=0.25; rows of their own, validation=(X, y), have no queries."
        )
    if isinstance(scoring, str) or callable(scoring):
        module = str(getattr(_function(scoring), "__module__", ""))
        for start, why in _NOT_FOR_CLASSES.items():
            if module.startswith(start):
                raise ValueError(f"scoring={name} {why}. {_advice(name, rows)}")
        return
    matrix = np.asarray(scoring, dtype=float)
    if len(matrix) != len(rows.classes):
        raise ValueError(
            f"The misclassification cost matrix has {len(matrix)} classes, y has {len(rows.classes)}: "
            f"{short(rows.classes.tolist())}."
        )
    names = matrix_names(scoring)
    if names is not None and names != rows.classes.tolist():
        raise ValueError(
            f"The misclassification cost matrix is for the classes {short(names)}, y has "
            f"{short(rows.classes.tolist())}."
        )
    wrong = np.where(np.eye(len(matrix), dtype=bool), -np.inf, matrix).max(axis=1)
    if (matrix.diagonal() > wrong).all():
        raise ValueError(
            "The misclassification cost matrix has its largest entry of every row on the diagonal: right answers would "
            "cost most. Write what mistakes cost (true class × answer), or minus what answers earn."
        )


def _function(scoring: Any) -> Any:
    """The metric inside a scorer; a metric itself."""
    scorer = get_scorer(scoring) if isinstance(scoring, str) else scoring
    return getattr(scorer, "_score_func", scorer)


def _check_sense(scoring: Any, name: str, good: float, bad: float) -> None:
    if good < bad and callable(scoring):
        raise ValueError(
            f"scoring={name} is smaller for right answers ({good:.4g}) than for wrong ones ({bad:.4g}), and larger "
            f"must be better: pass sklearn.metrics.make_scorer({name}, greater_is_better=False)."
        )
    if good == bad and isinstance(scoring, str):
        raise ValueError(
            f"scoring={name!r} does not tell right answers from wrong ones here: both score {good:.4g}."
        )


def _does_not_fit(scoring: Any, name: str, error: Exception, rows: TrialRows) -> str:
    shown = repr(name) if isinstance(scoring, str) else name
    classes = rows.classes.tolist()
    reason = str(error).strip().splitlines()[0].rstrip(".")
    absent = [label for label in classes if label not in set(rows.y.tolist())]
    text = f"scoring={shown} does not fit these labels, {len(classes)} classes ({short(classes)}): {reason}. "
    if absent:
        text += f"The rows that choose have no {short(absent)}: give more rows of it, or validation=(X, y). "
    text += _advice(name, rows)
    if len(classes) == 2 and "pos_label" in reason:
        metric = scoring_name(_function(scoring))
        text += f" To look for one class: sklearn.metrics.make_scorer({metric}, pos_label={classes[1]!r})."
    return text


def _advice(name: str, rows: TrialRows) -> str:
    """Scorers that fit these labels, those of the same family first."""
    family = [other for other in get_scorer_names() if other.startswith(f"{name}_")]
    fitting = [other for other in dict.fromkeys([*family, *_COMMON]) if fits(other, rows)]
    named = f"{short(fitting[:6])}, or " if fitting else ""
    return f"Use {named}a matrix of misclassification costs."


def fits(name: str, rows: TrialRows) -> bool:
    """Whether a scorer of scikit-learn can be used for these labels."""
    shares = np.tile(np.full(len(rows.classes), 1 / len(rows.classes)), (len(rows.y), 1))
    return bool(np.isfinite(_quietly(name, shares, rows)))
