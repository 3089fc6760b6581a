from dataclasses import replace

import numpy as np
import polars
import pytest
from sklearn.metrics import balanced_accuracy_score, log_loss

from handmade import Halves, Sigmoid, table, two_stages
from small_frontier import curve
from sparing import FeatureCosts
from sparing._rows import ScoredRows
from sparing.frontier import Frontier, stage_alone, threshold_systems
from sparing.metrics import (
    mean_acquisition_cost,
    ndcg_at_k,
)
from sparing.system import ConfidenceGate, Stage, System


@pytest.mark.parametrize("accounting", ["stage", "path"])
@pytest.mark.parametrize("weighted", [False, True])
def test_numbers_are_those_of_the_systems(accounting, weighted):
    X, y = table(seed=1)
    weight = np.random.default_rng(0).random(len(y)) if weighted else None
    systems = curve(full=Halves(2, 5.0, also=(1,)), call_price=2)
    frontier = Frontier.evaluate(
        systems, X, y, accounting=accounting, sample_weight=weight, labels=["a"] * len(systems)
    )
    for system, point in zip(systems, frontier, strict=True):
        assert point.system is system
        assert point.label == "a"
        cost = mean_acquisition_cost(system, X, accounting=accounting, sample_weight=weight)
        assert point.cost == pytest.approx(cost)
        assert point.score == pytest.approx(np.average(system.predict(X) == y, weights=weight))
        sent = np.average(system.route(X), weights=weight)
        assert point.stage_rates == pytest.approx((1 - sent, sent))
    last = stage_alone(systems[0])
    assert frontier.full.cost == pytest.approx(
        mean_acquisition_cost(last, X, accounting=accounting, sample_weight=weight)
    )
    assert frontier.full.score == pytest.approx(np.average(last.predict(X) == y, weights=weight))


def test_parts_in_common_are_asked_once():
    X, y = table(seed=1)
    calls = []
    full = Sigmoid(2, 5.0, also=(1,), calls=calls)
    first, second = two_stages(full=full), two_stages(full=full)
    mixed = [
        s
        for pair in zip(*(threshold_systems(s, X, n=20) for s in (first, second)), strict=True)
        for s in pair
    ]
    Frontier.evaluate(mixed, X, y)
    assert calls == [len(X)]


def test_cascades_of_many_stages():
    X, y = table(seed=1)
    calls = []
    stages = tuple(
        Stage(Sigmoid(0, s + 1.0, calls=calls), ConfidenceGate(), 0.4) for s in range(12)
    )
    cascade = System((*stages, Stage(Sigmoid(2, 5.0))), FeatureCosts([1, 1, 1]), np.array([0, 1]))
    systems = [cascade.with_thresholds(t) for t in np.linspace(0, 0.5, 15)]
    frontier = Frontier.evaluate(systems, X, y)
    assert calls == [len(X)] * 12
    for point in frontier:
        assert point.score == np.mean(point.system.predict(X) == y)
        assert len(point.stage_rates) == 13


@pytest.mark.parametrize("scoring", ["neg_log_loss", balanced_accuracy_score, [[0, 1], [9, 0]]])
def test_scoring(scoring):
    X, y = table(seed=1)
    systems = curve()
    scores = Frontier.evaluate(systems, X, y, scoring=scoring).scores
    for system, score in zip(systems, scores, strict=True):
        said = system.predict(X)
        if scoring == "neg_log_loss":
            assert score == pytest.approx(-log_loss(y, system.predict_proba(X)))
        elif scoring is balanced_accuracy_score:
            assert score == pytest.approx(balanced_accuracy_score(y, said))
        else:
            assert score == pytest.approx(-np.mean(np.array(scoring)[y, said]))


def test_scorers_see_the_rows_themselves():
    X, y = table(seed=1)
    seen = []

    def scorer(estimator, rows, labels):
        seen.append(rows is X)
        return float((estimator.predict(rows) == labels).mean())

    frontier = Frontier.evaluate(curve(), X, y, scoring=scorer)
    assert all(seen)
    assert frontier.scores == pytest.approx(Frontier.evaluate(curve(), X, y).scores)


def test_ranking_needs_the_queries_of_the_rows_at_hand():
    (X, y), (X_test, y_test) = table(seed=1), table(300, seed=2)
    query, query_test = np.arange(400) % 20, np.arange(300) % 30
    frontier = Frontier.evaluate(curve(), X, y, scoring=ndcg_at_k, groups=query)
    test = frontier.on(X_test, y_test, groups=query_test)
    last = test.points[-1]
    expected = ndcg_at_k(y_test, last.system.predict_proba(X_test)[:, 1], query_test)
    assert last.score == pytest.approx(expected)


def test_labels_of_the_full_model_are_its_own():
    class Cautious(Sigmoid):
        def decide(self, X):
            return (self.predict_proba(X)[:, 1] > 0.9).astype(int)

    X, y = table(seed=1)
    systems = curve(full=Cautious(2, 5.0))
    frontier = Frontier.evaluate(systems, X, y)
    for point in [*frontier, frontier.full]:
        assert point.score == np.mean(point.system.predict(X) == y)


def test_frames_and_string_labels():
    X, y = table(seed=1)
    names = np.array(["no", "yes"])
    systems = [replace(system, classes=names) for system in curve()]
    frame = polars.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})
    named = Frontier.evaluate(systems, frame, names[y])
    assert named.scores == pytest.approx(Frontier.evaluate(curve(), X, y).scores)
    again = Frontier.evaluate(systems, ScoredRows(frame), polars.Series(names[y]))
    assert again.scores == pytest.approx(named.scores)


@pytest.mark.parametrize(
    ("call_price", "cheap", "full"), [(0, 1, 5), (10, 1, 15), ((2.0, 10.0), 3, 15)]
)
def test_stage_alone_pays_its_own_call(call_price, cheap, full):
    system = two_stages(call_price=call_price)
    X, _ = table()
    assert set(stage_alone(system, 0).acquisition_cost(X)) == {cheap}
    assert set(stage_alone(system).acquisition_cost(X)) == {full}
    np.testing.assert_array_equal(
        stage_alone(system, 0).predict(X), system.with_thresholds(np.inf).predict(X)
    )


def test_accountings_are_not_mixed():
    X, y = table(seed=1)
    systems = [two_stages(), two_stages(accounting="path")]
    with pytest.raises(ValueError, match="costs counted differently"):
        Frontier.evaluate(systems, X, y)
    assert Frontier.evaluate(systems, X, y, accounting="path").accounting == "path"


@pytest.mark.parametrize("weighted", [False, True])
def test_standard_error_of_the_loss(weighted):
    X, y = table(20_000, seed=1)
    weight = np.random.default_rng(0).random(len(y)) if weighted else None
    systems = threshold_systems(two_stages(), X, n=5)
    everyone = two_stages().with_thresholds([-np.inf])
    frontier = Frontier.evaluate([*systems, everyone], X, y, sample_weight=weight)
    full = stage_alone(two_stages())
    for point in frontier.points[:-1]:
        difference = (point.system.predict(X) != y).astype(float) - (full.predict(X) != y)
        drawn = np.random.default_rng(2).choice(len(y), (200, len(y)))
        weights = np.ones(len(y)) if weight is None else weight
        means = [np.average(difference[rows], weights=weights[rows]) for rows in drawn]
        assert point.loss_error == pytest.approx(np.std(means), rel=0.2, abs=1e-4)
    assert frontier.points[-1].loss_error == 0  # nothing is answered but by the full model
    assert frontier.full.loss_error == 0


def test_a_few_rows_without_a_difference_do_not_show_that_there_is_none():
    X, y = table(20, seed=1)
    cheap, full = two_stages().stages
    answers_all = replace(cheap, predictor=full.predictor, threshold=np.inf)
    system = replace(two_stages(), stages=(answers_all, full))
    point = Frontier.evaluate([system], X, y).points[0]
    assert point.loss_error == pytest.approx(1 / 20)


def test_no_standard_error_without_a_mean_or_a_full_model():
    X, y = table(seed=1)
    assert np.isnan(
        Frontier.evaluate([two_stages()], X, y, scoring="balanced_accuracy").points[0].loss_error
    )
    alone = stage_alone(two_stages(), 0)
    assert np.isnan(Frontier.evaluate([alone], X, y).points[0].loss_error)
    matrix = [[0.0, 2.0], [3.0, 0.0]]
    assert Frontier.evaluate([two_stages()], X, y, scoring=matrix).points[0].loss_error > 0
