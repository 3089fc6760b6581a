import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import (
    accuracy_score,
    f1_score,
    get_scorer_names,
    make_scorer,
    mean_squared_error,
    zero_one_loss,
)

from sparing import FeatureCosts
from sparing.metrics import make_cost_scorer, ndcg_at_k
from sparing.metrics.trial import Span, TrialRows, fits, try_scoring

COSTS = FeatureCosts([1.0, 2.0])


def rows(labels, **options):
    y = np.asarray(labels)
    classes = options.pop("classes", np.unique(y))
    return TrialRows(np.zeros((len(y), 2)), y, COSTS, classes, **options)


TWO, THREE = rows([0, 1] * 20), rows(["a", "b", "c"] * 14)
SICK = rows(["ill", "well"] * 20)
FRAME = pd.DataFrame([[0, 9], [1, 0]], index=["ill", "well"], columns=["ill", "well"])


@given(st.lists(st.sampled_from("abcd"), min_size=8, max_size=60).filter(lambda y: len(set(y)) > 1))
def test_accuracy_spans_everything(labels):
    assert try_scoring("accuracy", rows(labels)) == Span(1.0, 0.0)


def test_costs_of_mistakes_span_what_they_cost():
    span = try_scoring([[0, 1], [9, 2]], rows([0, 1] * 10))
    assert span == Span(-1.0, -5.0)  # sick patients cost 2 even if they are found


@pytest.mark.parametrize("name", get_scorer_names())
def test_whatever_passes_can_be_computed_and_prefers_right_answers(name):
    for trial in (TWO, THREE):
        try:
            try_scoring(name, trial)
        except ValueError as error:
            assert name in str(error)  # noqa: PT017
        else:
            assert fits(name, trial)


@pytest.mark.parametrize(
    ("scoring", "trial", "message"),
    [
        ("roc_auc", THREE, "Use 'roc_auc_ovo', 'roc_auc_ovo_weighted', 'roc_auc_ovr', "),
        ("f1", THREE, "Use 'f1_macro', 'f1_micro', 'f1_weighted', 'accuracy'"),
        ("f1", rows(["ill", "well"] * 20), r"make_scorer\(f1_score, pos_label='well'\)"),
        ("r2", TWO, "scoring=r2 measures how far numbers are off"),
        ("rand_score", TWO, "does not say which answer is right"),
        (mean_squared_error, TWO, "scoring=mean_squared_error measures how far numbers are off"),
        (make_scorer(mean_squared_error), TWO, "measures how far numbers are off"),
        (zero_one_loss, TWO, r"pass sklearn.metrics.make_scorer\(zero_one_loss, greater_is_better=False"),
        ("top_k_accuracy", TWO, "does not tell right answers from wrong ones"),
        ("recall_of_the_sick", TWO, "is the name of no scikit-learn scorer"),
        ([[5, 0], [0, 5]], TWO, "right answers would cost most"),
        (np.eye(3), TWO, "has 3 classes, y has 2"),
        (FRAME.loc[["well", "ill"], ["well", "ill"]], SICK, r"order = \['ill', 'well'\]"),
        (FRAME[["well", "ill"]], SICK, "both go in the order of the classes"),
        (FRAME, TWO, "matrix is for the classes 'ill', 'well', y has 0, 1"),
        (ndcg_at_k, TWO, r"ranks within queries: .* fit\(X, y, groups="),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_with_what_does(scoring, trial, message):
    with pytest.raises(ValueError, match=message):
        try_scoring(scoring, trial)


@pytest.mark.parametrize(
    ("scoring", "trial"),
    [
        (accuracy_score, THREE),
        ("top_k_accuracy", THREE),
        ("positive_likelihood_ratio", TWO),
        (make_scorer(f1_score, pos_label="well"), rows(["ill", "well"] * 20)),
        (make_scorer(zero_one_loss, greater_is_better=False), TWO),
        (make_cost_scorer(price=0.1), TWO),
        (lambda y, said: np.mean(y == said), THREE),
        ([[0, 1], [50, 10]], TWO),
        (FRAME, SICK),
        (pd.DataFrame([[0, 9], [1, 0]]), SICK),
        ("neg_log_loss", rows([0, 1] * 20, weight=np.linspace(0, 1, 40))),
        (ndcg_at_k, rows([0, 1] * 20, groups=np.arange(40) // 4)),
    ],
)
def test_what_fits_is_taken(scoring, trial):
    try_scoring(scoring, trial)


def test_scorers_of_ones_own_may_look_at_some_of_the_rows():
    def on_the_first_half(estimator, X, y):
        half = len(y) // 2
        return np.mean(estimator.predict(X[:half]) == y[:half])

    assert np.isnan(try_scoring(on_the_first_half, TWO).best)

    def broken(estimator, X, y):
        return X["age"].mean()

    with pytest.raises(IndexError):
        try_scoring(broken, TWO)


def test_classes_that_do_not_choose_are_named():
    trial = rows(["a", "b"] * 10, classes=np.array(["a", "b", "c"]))
    with pytest.raises(ValueError, match="The rows that choose have no 'c': give more rows of it"):
        try_scoring("roc_auc_ovr", trial)


def test_a_score_that_is_not_defined_is_refused():
    with pytest.raises(ValueError, match="gives NaN"):
        try_scoring(lambda estimator, X, y: float("nan"), TWO)
