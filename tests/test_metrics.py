import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import is_classifier
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    get_scorer,
    log_loss,
    make_scorer,
    ndcg_score,
    roc_auc_score,
)
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import check_is_fitted

from handmade import table, two_stages
from sparing import AdaptLinClassifier
from sparing._rows import ScoredRows
from sparing.metrics import (
    average_precision_at_k,
    bootstrap_interval,
    make_cost_scorer,
    mean_acquisition_cost,
    ndcg_at_k,
    run_precision_at_k,
    saving_at_tolerance,
)
from sparing.metrics.scoring import SystemClassifier, resolve_scoring, scoring_name

# -- cost and saving -------------------------------------------------------------------------------


def test_mean_cost_of_a_system():
    X, _ = table()
    system = two_stages(call_price=10)
    sent = system.route(X) == 1
    assert mean_acquisition_cost(system, X) == pytest.approx(1 + sent.mean() * 15)
    weight = np.where(sent, 3.0, 1.0)
    expected = np.average(np.where(sent, 16.0, 1.0), weights=weight)
    assert mean_acquisition_cost(system, X, sample_weight=weight) == pytest.approx(expected)
    assert mean_acquisition_cost(system, X, owned=[True, False, False]) == pytest.approx(
        sent.mean() * 15
    )


def test_mean_cost_needs_something_that_costs():
    with pytest.raises(TypeError, match="LogisticRegression has no acquisition_cost"):
        mean_acquisition_cost(LogisticRegression(), np.zeros((2, 1)))


def test_saving_is_never_negative():
    reference = {"full_cost": 10, "full_score": 0.9}
    assert saving_at_tolerance([4], [0.8], tolerance=0.05, **reference) == 0
    assert saving_at_tolerance([12], [0.95], tolerance=0.05, **reference) == 0
    assert saving_at_tolerance([4, 3], [0.9, 0.8], tolerance=0, **reference) == pytest.approx(0.6)


@pytest.mark.parametrize(("score", "tolerance"), [(0.9, 0.01), (0.81, 0.1), (0.61, 0.3)])
def test_saving_forgives_rounding(score, tolerance):
    saving = saving_at_tolerance([5], [score], tolerance=tolerance, full_cost=10, full_score=0.91)
    assert saving == 0.5


def test_saving_says_what_is_wrong():
    with pytest.raises(TypeError, match="full_cost and full_score"):
        saving_at_tolerance([1], [1], tolerance=0)
    with pytest.raises(ValueError, match="one entry per system"):
        saving_at_tolerance([1, 2], [1], tolerance=0, full_cost=1, full_score=1)
    with pytest.raises(ValueError, match="nothing to save"):
        saving_at_tolerance([0], [1], tolerance=0, full_cost=0, full_score=1)
    with pytest.raises(ValueError, match="tolerance is a finite number"):
        saving_at_tolerance([0], [1], tolerance=np.nan, full_cost=1, full_score=1)


# -- ranking ---------------------------------------------------------------------------------------

documents = st.integers(1, 40).flatmap(
    lambda n: st.tuples(
        hnp.arrays(int, n, elements=st.integers(0, 3)),
        hnp.arrays(float, n, elements=st.integers(-3, 3).map(float)),
        hnp.arrays(int, n, elements=st.integers(0, 5)),
    )
)


def slow_per_query(metric, y, score, query, k):
    """The metric of each query, from documents sorted worst first among equals."""
    out = []
    for q in np.unique(query):
        rows = sorted(np.flatnonzero(query == q), key=lambda i: (-score[i], y[i]))
        out.append(metric([int(y[i]) for i in rows], k))
    return np.array(out)


def slow_run(grades, k):
    run = 0
    for grade in grades[:k]:
        if grade <= 0:
            break
        run += 1
    return run / k


def slow_average_precision(grades, k):
    precisions = []
    for rank, grade in enumerate(grades[:k], start=1):
        if grade > 0:
            precisions.append(sum(g > 0 for g in grades[:rank]) / rank)
    relevant = sum(g > 0 for g in grades)
    return sum(precisions) / min(k, relevant) if relevant else 0.0


def slow_ndcg(grades, k):
    def gain(order):
        return sum(g / np.log2(rank + 1) for rank, g in enumerate(order[:k], start=1))

    best = gain(sorted(grades, reverse=True))
    return gain(grades) / best if best else 0.0


@pytest.mark.parametrize(
    ("fast", "slow"),
    [
        (run_precision_at_k, slow_run),
        (average_precision_at_k, slow_average_precision),
        (ndcg_at_k, slow_ndcg),
    ],
)
@given(documents, st.integers(1, 8))
def test_ranking_agrees_with_the_definition(fast, slow, rows, k):
    y, score, query = rows
    per_query = fast(y, score, query, k, per_query=True)
    np.testing.assert_allclose(per_query, slow_per_query(slow, y, score, query, k), atol=1e-12)
    assert fast(y, score, query, k) == pytest.approx(per_query.mean())


@pytest.mark.parametrize("metric", [run_precision_at_k, average_precision_at_k, ndcg_at_k])
@given(documents, st.randoms(use_true_random=False))
def test_order_of_the_rows_does_not_matter(metric, rows, random):
    order = list(range(len(rows[0])))
    random.shuffle(order)
    moved = [column[order] for column in rows]
    assert metric(*rows) == pytest.approx(metric(*moved))


@given(documents)
def test_worst_ties_are_worse_than_the_order_of_the_rows(rows):
    assert run_precision_at_k(*rows) <= run_precision_at_k(*rows, ties="rows") + 1e-12


def test_ndcg_agrees_with_scikit_learn():
    rng = np.random.default_rng(0)
    y, score = rng.integers(0, 4, size=(20, 12)), rng.normal(size=(20, 12))
    query = np.repeat(np.arange(20), 12)
    shuffled = rng.permutation(240)
    ours = ndcg_at_k(y.ravel()[shuffled], score.ravel()[shuffled], query[shuffled], k=5)
    assert ours == pytest.approx(ndcg_score(y, score, k=5))


def test_ties_in_the_order_of_the_rows():
    assert run_precision_at_k([1, 0], [1, 1], [0, 0], k=1, ties="rows") == 1
    assert run_precision_at_k([0, 1], [1, 1], [0, 0], k=1, ties="rows") == 0
    assert run_precision_at_k([1, 0], [1, 1], [0, 0], k=1) == 0


def test_short_queries_cannot_reach_one():
    assert run_precision_at_k([1, 1], [2, 1], [0, 0], k=5) == pytest.approx(0.4)


def test_ranking_says_what_is_wrong():
    with pytest.raises(ValueError, match="k is at least 1"):
        ndcg_at_k([1], [1], [1], k=0)
    with pytest.raises(ValueError, match="not negative"):
        ndcg_at_k([-1], [1], [1])
    with pytest.raises(ValueError, match="ties is"):
        ndcg_at_k([1], [1], [1], ties="best")
    with pytest.raises(ValueError, match="y_score contains NaN"):
        ndcg_at_k([1], [np.nan], [1])
    with pytest.raises(ValueError, match="inconsistent numbers"):
        ndcg_at_k([1, 0], [1], [1, 1])


# -- bootstrap -------------------------------------------------------------------------------------


def test_interval_of_a_normal_mean():
    values = np.random.default_rng(0).normal(3, 1, size=400)
    estimate, low, high = bootstrap_interval(values, random_state=0, n_resamples=4000)
    assert estimate == pytest.approx(values.mean())
    half = 1.96 * values.std() / 20
    assert low == pytest.approx(estimate - half, abs=0.01)
    assert high == pytest.approx(estimate + half, abs=0.01)


def test_few_kinds_and_many_kinds_of_rows_agree():
    """Drawing how many of each kind, and drawing rows, are the same distribution."""
    right = np.arange(2000) < 1700
    by_kind = bootstrap_interval(right, random_state=0, n_resamples=4000)
    told_apart = right + 1e-9 * np.arange(2000)
    by_row = bootstrap_interval(told_apart, random_state=1, n_resamples=4000)
    np.testing.assert_allclose(by_kind, by_row, atol=0.002)


def test_pairs_are_narrower_than_their_parts():
    rng = np.random.default_rng(0)
    hard = rng.random(1000) < 0.3
    ours, theirs = ~hard | (rng.random(1000) < 0.1), ~hard
    paired = bootstrap_interval(ours, other=theirs, random_state=0)
    alone = bootstrap_interval(ours, random_state=0)
    assert paired.estimate == pytest.approx(ours.mean() - theirs.mean())
    assert 0 < paired.low < paired.estimate < paired.high
    assert paired.high - paired.low < alone.high - alone.low


def test_groups_are_drawn_together():
    query = np.repeat(np.arange(50), 20)
    value = np.random.default_rng(0).normal(size=50)[query]
    rows = bootstrap_interval(value, random_state=0)
    queries = bootstrap_interval(value, groups=query, random_state=0)
    assert rows.estimate == pytest.approx(queries.estimate)
    ratio = (queries.high - queries.low) / (rows.high - rows.low)
    assert ratio == pytest.approx(np.sqrt(20), rel=0.1)


def test_weights_count_as_copies():
    values, weight = np.array([0.0, 1.0, 5.0]), np.array([1, 2, 0])
    interval = bootstrap_interval(values, sample_weight=weight, random_state=0)
    assert interval.estimate == pytest.approx(2 / 3)
    assert 0 <= interval.low <= interval.high <= 1


def test_seed_and_level():
    values = np.random.default_rng(0).random(100)
    assert bootstrap_interval(values, random_state=3) == bootstrap_interval(values, random_state=3)
    wide = bootstrap_interval(values, random_state=3, level=0.99)
    narrow = bootstrap_interval(values, random_state=3, level=0.5)
    assert wide.low < narrow.low < narrow.high < wide.high


def test_memory_is_bounded(monkeypatch):
    values = np.random.default_rng(0).random(300)
    monkeypatch.setattr("sparing.metrics.bootstrap._CHUNK_CELLS", 1000)
    interval = bootstrap_interval(values, random_state=0, n_resamples=500)
    assert interval.low < values.mean() < interval.high


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"values": []}, "one entry per row"),
        ({"values": [[1]]}, "one entry per row"),
        ({"values": [np.nan]}, "not finite"),
        ({"values": [1, 2], "other": [1]}, "other has 1 entries for 2 rows"),
        ({"values": [1, 2], "groups": [1]}, "groups has 1 entries for 2 rows"),
        ({"values": [1, 2], "sample_weight": [0, 0]}, "not all 0"),
        ({"values": [1, 2], "level": 1}, "level is between"),
        ({"values": [1, 2], "n_resamples": 0}, "n_resamples is at least 1"),
    ],
)
def test_bootstrap_says_what_is_wrong(arguments, message):
    with pytest.raises(ValueError, match=message):
        bootstrap_interval(**arguments)


# -- scoring ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "scoring",
    [
        "accuracy",
        "balanced_accuracy",
        "f1",
        "roc_auc",
        "neg_log_loss",
        "average_precision",
        "neg_brier_score",
        "matthews_corrcoef",
    ],
)
def test_scorers_take_a_system(scoring):
    X, y = table()
    system = two_stages()
    weight = np.arange(len(y)) % 3 + 1.0
    plain = FixedClassifier(system.predict_proba(X))
    for weights in ({}, {"sample_weight": weight}):
        expected = get_scorer(scoring)(plain, X, y, **weights)
        found = resolve_scoring(scoring)(SystemClassifier(system), X, y, **weights)
        assert found == pytest.approx(expected)


class FixedClassifier(DummyClassifier):
    def __init__(self, proba=None):
        super().__init__()
        self.proba = proba
        self.classes_ = np.array([0, 1])
        self.n_outputs_ = 1

    def predict_proba(self, X):
        return self.proba

    def predict(self, X):
        return self.proba.argmax(axis=1)


def test_scoring_of_any_kind():
    X, y = table()
    model = SystemClassifier(two_stages())
    labels = model.predict(X)
    assert resolve_scoring(accuracy_score)(model, X, y) == accuracy_score(y, labels)
    own = resolve_scoring(lambda y_true, y_pred: np.mean(y_true == y_pred))
    assert own(model, X, y) == accuracy_score(y, labels)
    scorer = make_scorer(log_loss, response_method="predict_proba", greater_is_better=False)
    assert resolve_scoring(scorer)(model, X, y) == -log_loss(y, model.predict_proba(X))
    assert resolve_scoring(lambda est, X, y: float(X[0, 0]))(model, X, y) == X[0, 0]
    half = partial(accuracy_score, normalize=False)
    assert resolve_scoring(half)(model, X, y) == accuracy_score(y, labels, normalize=False)
    assert scoring_name(half) == "accuracy_score"


def test_systems_as_classifiers():
    X, _ = table()
    system = two_stages()
    rows = ScoredRows(X)
    for model in (SystemClassifier(system), SystemClassifier(system, rows)):
        check_is_fitted(model)
        assert is_classifier(model)
        for asked in (X, X[:7]):
            np.testing.assert_array_equal(model.route(asked), system.route(asked))
            np.testing.assert_array_equal(model.predict(asked), system.predict(asked))
            np.testing.assert_array_equal(model.predict_proba(asked), system.predict_proba(asked))
            np.testing.assert_array_equal(
                model.acquisition_cost(asked), system.acquisition_cost(asked)
            )


def test_misclassification_costs():
    X, y = table()
    model = SystemClassifier(two_stages())
    said = model.predict(X)
    misses, alarms = np.mean((y == 1) & (said == 0)), np.mean((y == 0) & (said == 1))
    matrix = [[0, 1], [50, 0]]
    assert resolve_scoring(matrix)(model, X, y) == pytest.approx(-(50 * misses + alarms))
    weight = np.random.default_rng(0).random(len(y))
    by_row = np.asarray(matrix)[y, said]
    found = resolve_scoring(np.array(matrix))(model, X, y, sample_weight=weight)
    assert found == pytest.approx(-np.average(by_row, weights=weight))
    assert scoring_name(matrix) == "minus misclassification cost"


def test_ranking_scores_of_a_system():
    X, y = table()
    model = SystemClassifier(two_stages())
    query = np.arange(len(y)) % 20
    expected = ndcg_at_k(y, model.predict_proba(X)[:, 1], query)
    assert resolve_scoring(ndcg_at_k)(model, X, y, groups=query) == expected
    with pytest.raises(ValueError, match="pass groups="):
        resolve_scoring(ndcg_at_k)(model, X, y)
    with pytest.raises(ValueError, match="takes no sample_weight"):
        resolve_scoring(ndcg_at_k)(model, X, y, groups=query, sample_weight=np.ones(len(y)))
    with pytest.raises(ValueError, match="does not rank within groups"):
        resolve_scoring("accuracy")(model, X, y, groups=query)


def test_scoring_says_what_is_wrong():
    X, y = table()
    model = SystemClassifier(two_stages())
    with pytest.raises(ValueError, match="roc_auc_score takes scores"):
        resolve_scoring(roc_auc_score)
    with pytest.raises(ValueError, match="square matrix"):
        resolve_scoring([[1, 2]])
    with pytest.raises(ValueError, match="square matrix"):
        resolve_scoring({"a": 1})
    with pytest.raises(ValueError, match="not None"):
        resolve_scoring(None)
    with pytest.raises(ValueError, match="has 3 classes, the classifier 2"):
        resolve_scoring(np.eye(3))(model, X, y)
    with pytest.raises(ValueError, match=r"not among the classes \[0, 1\]: \[7\]"):
        resolve_scoring(np.eye(2))(model, X, np.where(y == 1, 7, 0))


# -- the cost scorer -------------------------------------------------------------------------------


def test_cost_scorer_of_a_system():
    X, y = table()
    system = two_stages()
    weight = np.random.default_rng(0).random(len(y))
    scorer = make_cost_scorer(balanced_accuracy_score, price=0.1)
    expected = balanced_accuracy_score(y, system.predict(X)) - 0.1 * mean_acquisition_cost(
        system, X
    )
    assert scorer(system, X, y) == pytest.approx(expected)
    expected = np.average(system.predict(X) == y, weights=weight) - 0.1 * mean_acquisition_cost(
        system, X, sample_weight=weight
    )
    found = make_cost_scorer(price=0.1)(system, X, y, sample_weight=weight)
    assert found == pytest.approx(expected)


def test_cost_scorer_in_a_grid_search():
    X, y = table(100)
    X = pd.DataFrame(X, columns=["a", "b", "c"])
    search = GridSearchCV(
        AdaptLinClassifier(LogisticRegression(), cv=2, max_iter=2, random_state=0),
        {"full_rate": [0.0, 0.9]},
        scoring={"bill": pickle.loads(pickle.dumps(make_cost_scorer([[0, 1], [1, 0]], price=1.0)))},
        refit="bill",
        cv=2,
    ).fit(X, y)
    assert set(search.cv_results_) >= {"mean_test_bill"}
    assert (search.cv_results_["mean_test_bill"] < 0).all()


def test_cost_scorer_says_what_is_wrong():
    with pytest.raises(ValueError, match="price is a finite number"):
        make_cost_scorer(price=-1)
    with pytest.raises(ValueError, match="square matrix"):
        make_cost_scorer(3, price=1)
    X, y = table(50)
    pipeline = make_pipeline(LogisticRegression()).fit(X, y)
    with pytest.raises(TypeError, match="put it inside the classifier"):
        make_cost_scorer(price=1)(pipeline, X, y)
