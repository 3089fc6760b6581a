from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score

from handmade import Halves, Margin, Sigmoid, table, two_stages
from sparing import FeatureCosts, Frontier, Guarantee, PromiseError, certify
from sparing._bounds import binomial_bound, paired_p_value
from sparing.frontier import stage_alone, threshold_systems
from sparing.system import ConfidenceGate, Stage, System

FULL = stage_alone(two_stages())
MATRIX = [[0, 1], [5, 0]]


def frontier(n=400, scoring="accuracy", **options):
    X, y = table(n, seed=1)
    systems = threshold_systems(two_stages(**options), X, n=17)
    return Frontier.evaluate(
        systems, X, y, scoring=scoring, labels=[f"s{i}" for i in range(len(systems))]
    )


def three_stages(thresholds=(0.3, 0.2)):
    stages = [
        Stage(Sigmoid(0, 2.0), ConfidenceGate(), thresholds[0]),
        Stage(Sigmoid(0, 3.0, also=(1,)), Margin(0), -thresholds[1]),
        Stage(Sigmoid(2, 5.0)),
    ]
    return System(tuple(stages), FeatureCosts([1, 2, 3]), np.array([0, 1]))


# -- what is promised holds ------------------------------------------------------------------------


def truth(system, kind, X, y):
    answers = system.predict(X)
    if kind == "tolerance":
        return np.mean(FULL.predict(X) == y) - np.mean(answers == y)
    if kind == "budget":
        return system.acquisition_cost(X).mean()
    if kind == "max_error":
        return np.mean(answers[system.route(X) == 0] != y[system.route(X) == 0])
    return np.mean(answers[y == 1] == 0)


@pytest.mark.parametrize(
    ("guarantee", "limit"),
    [
        (Guarantee(tolerance=0.03, confidence=0.8), 0.03),
        (Guarantee(budget=3, confidence=0.8), 3),
        (Guarantee(max_error=0.1, confidence=0.8), 0.1),
        (Guarantee(min_recall={1: 0.9}, confidence=0.8), 0.1),
    ],
)
def test_broken_promises_are_as_rare_as_stated(guarantee, limit):
    kind = next(
        k for k in ("tolerance", "budget", "max_error", "min_recall") if getattr(guarantee, k)
    )
    population = table(100_000, seed=99)
    validated = frontier()
    truths, broken, made = {}, 0, 0
    for seed in range(60):
        try:
            result = certify(validated, *table(500, seed=1000 + seed), guarantee)
        except PromiseError:
            continue
        made += 1
        if result.label not in truths:
            truths[result.label] = truth(result.system, kind, *population)
        broken += truths[result.label] > limit
    assert made > 30
    # 20 % of 60, and three standard errors.
    assert broken <= 0.2 * 60 + 3 * np.sqrt(60 * 0.2 * 0.8)


# -- how systems are chosen ------------------------------------------------------------------------


def test_the_cheapest_that_passed_is_chosen():
    X, y = table(2000, seed=5)
    result = certify(frontier(), X, y, Guarantee(tolerance=0.05))
    certificate, system = result.certificate, result.system
    promise = certificate.promises[0]
    assert promise.p_value <= 0.05
    assert promise.bound <= 0.05
    both = [np.mean(s.predict(X) == y) for s in (FULL, system)]
    assert promise.estimate == pytest.approx(both[0] - both[1])
    assert certificate.score == pytest.approx(both[1])
    assert certificate.full_score == pytest.approx(both[0])
    assert certificate.cost == pytest.approx(system.acquisition_cost(X).mean())
    assert certificate.stage_counts == tuple(np.bincount(system.route(X)))
    assert certificate.thresholds == system.thresholds
    assert certificate.settings == {"label": result.label}
    # A wider promise buys a cheaper system, more rows too.
    wide = certify(frontier(), X, y, Guarantee(tolerance=0.1)).certificate
    few = certify(frontier(), X[:300], y[:300], Guarantee(tolerance=0.05)).certificate
    assert wide.cost < certificate.cost < few.cost
    assert certificate.n_tested <= certificate.n_candidates


def test_a_sequence_is_tested_in_its_order():
    X, y = table(1500, seed=5)
    system = two_stages()
    cheaper = [system.with_thresholds(t) for t in (-2.0, -1.0, 0.0)]
    guarantee = Guarantee(tolerance=0.05)
    first = certify(cheaper, X, y, guarantee, full=FULL)
    assert first.system is cheaper[1]
    assert first.certificate.n_tested == 3
    with pytest.raises(PromiseError):
        certify(cheaper[::-1], X, y, guarantee, full=FULL)


def test_a_budget_alone_buys_the_best():
    X, y = table(2000, seed=5)
    validated = frontier()
    costs = [
        certify(validated, X, y, Guarantee(budget=budget)).certificate.cost for budget in (2, 3, 4)
    ]
    assert costs == sorted(costs)
    assert all(0.7 * b < cost <= b for cost, b in zip(costs, (2, 3, 4), strict=True))


def test_two_promises_both_hold():
    X, y = table(4000, seed=5)
    both = certify(frontier(), X, y, Guarantee(tolerance=0.05, budget=4.2)).certificate
    assert [p.kind for p in both.promises] == ["tolerance", "budget"]
    assert all(p.p_value <= 0.05 for p in both.promises)
    with pytest.raises(PromiseError):
        certify(frontier(), X, y, Guarantee(tolerance=0.0, budget=2))


def test_the_order_of_the_rows_does_not_matter_for_counts():
    X, y = table(1000, seed=5)
    turned = certify(frontier(), X[::-1], y[::-1], Guarantee(tolerance=0.05))
    result = certify(frontier(), X, y, Guarantee(tolerance=0.05))
    assert turned.certificate.promises == result.certificate.promises
    assert turned.certificate.data != result.certificate.data


def test_errors_among_the_rows_kept():
    X, y = table(1500, seed=5)
    result = certify(frontier(), X, y, Guarantee(max_error=0.1))
    kept = result.system.route(X) == 0
    wrong = int((result.system.predict(X)[kept] != y[kept]).sum())
    promise = result.certificate.promises[0]
    assert promise.n == kept.sum()
    assert promise.bound == pytest.approx(binomial_bound(wrong, int(kept.sum()), 0.05))
    # Nobody is kept by a system that sends all rows on: a promise about nobody is not given.
    with pytest.raises(PromiseError, match="No system can be promised"):
        certify([two_stages(-np.inf)], X, y, Guarantee(max_error=0.1))


def test_recall_of_a_class():
    X, y = table(1500, seed=5)
    result = certify(frontier(), X, y, Guarantee(min_recall={1: 0.9}))
    promise = result.certificate.promises[0]
    assert promise.n == y.sum()
    assert promise.estimate == pytest.approx(np.mean(result.system.predict(X)[y == 1] == 0))
    assert "class 1" in str(promise)
    with pytest.raises(ValueError, match=r"class 'sick'; the classes are \[0, 1\]"):
        certify(frontier(), X, y, Guarantee(min_recall={"sick": 0.9}))


@pytest.mark.parametrize("accounting", ["stage", "path"])
def test_costs_with_more_than_two_prices(accounting):
    X, y = table(1500, seed=5)
    system = three_stages()
    if accounting == "path":
        system = two_stages(full=Halves(2, 5.0, also=(1,)))
    mean = system.acquisition_cost(X, accounting=accounting).mean()
    result = certify([system], X, y, Guarantee(budget=mean + 0.3), accounting=accounting)
    promise = result.certificate.promises[0]
    assert promise.method.startswith("betting")
    assert mean < promise.bound <= mean + 0.3
    with pytest.raises(PromiseError):
        certify([system], X, y, Guarantee(budget=mean), accounting=accounting)


def test_two_prices_are_counted_exactly():
    X, y = table(1500, seed=5)
    promise = certify([two_stages()], X, y, Guarantee(budget=5)).certificate.promises[0]
    sent = int(two_stages().route(X).sum())
    assert promise.method.startswith("exact")
    assert promise.bound == pytest.approx(1 + 5 * binomial_bound(sent, 1500, 0.05), abs=1e-4)


def test_misclassification_costs():
    X, y = table(3000, seed=5)
    result = certify(frontier(scoring=MATRIX), X, y, Guarantee(tolerance=0.3))
    promise = result.certificate.promises[0]
    cost = [np.array(MATRIX)[y, s.predict(X)].mean() for s in (result.system, FULL)]
    assert promise.estimate == pytest.approx(cost[0] - cost[1])
    assert promise.method.startswith("betting")
    assert promise.estimate < promise.bound <= 0.3
    assert result.certificate.score == pytest.approx(-cost[0])


def test_a_matrix_that_says_accuracy_promises_less_than_the_exact_test():
    X, y = table(1500, seed=5)
    exact, betting = (
        certify(frontier(), X, y, Guarantee(tolerance=0.06), scoring=s).certificate.cost
        for s in (accuracy_score, [[0, 1], [1, 0]])
    )
    assert exact <= betting


# -- what cannot be promised -----------------------------------------------------------------------


def test_too_few_rows_are_told_how_many_would_do():
    X, y = table(60, seed=5)
    with pytest.raises(PromiseError, match="calibration rows would do") as error:
        certify(frontier(), X, y, Guarantee(tolerance=0.02))
    words = str(error.value).split()
    advised = int(words[words.index("about") + 1])
    assert 100 < advised < 5000
    certify(frontier(), *table(3 * advised, seed=6), Guarantee(tolerance=0.02))


def test_hopeless_wishes_name_what_there_is():
    X, y = table(500, seed=5)
    cheapest = frontier().costs.min()
    with pytest.raises(PromiseError, match=f"the cheapest costs {cheapest:.4g}"):
        certify(frontier(), X, y, Guarantee(budget=0.5))
    with pytest.raises(PromiseError, match="No number of rows would do"):
        certify([two_stages(np.inf)], X, y, Guarantee(tolerance=0.01), full=FULL)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"sample_weight": np.ones(400)}, ValueError, "not made from weighted rows"),
        ({"guarantee": 0.01}, TypeError, "guarantee is a Guarantee"),
        ({"systems": [], "full": FULL}, ValueError, "no system to promise"),
        ({"systems": [two_stages()]}, ValueError, "compares with the full model"),
        ({"scoring": "roc_auc"}, ValueError, "not of scoring=roc_auc"),
        ({"scoring": [[0, 1, 2]]}, ValueError, "square matrix"),
        ({"scoring": np.ones((3, 3)) - np.eye(3)}, ValueError, "do not fit together"),
        ({"y": [0]}, ValueError, "inconsistent numbers"),
        ({"X": np.empty((0, 3)), "y": []}, ValueError, "no calibration rows"),
    ],
)
def test_bad_input(change, error, message):
    X, y = table(seed=5)
    arguments = {"systems": frontier(), "X": X, "y": y, "guarantee": Guarantee(tolerance=0.01)}
    with pytest.raises(error, match=message):
        certify(**arguments | change)


def test_labels_the_matrix_does_not_know():
    X, y = table(seed=5)
    with pytest.raises(ValueError, match="none of the classes"):
        certify(frontier(), X, y + 1, Guarantee(tolerance=0.2), scoring=MATRIX)


@pytest.mark.parametrize(
    ("wishes", "message"),
    [
        ({}, "promises something"),
        ({"tolerance": -0.01}, "tolerance is a number, 0 or more"),
        ({"budget": "3"}, "budget is a number"),
        ({"max_error": 2}, "max_error is a number, from 0 to 1"),
        ({"min_recall": {"sick": 1.5}}, "min_recall of 'sick'"),
        ({"budget": 1, "confidence": 0.1}, "confidence is a number"),
        ({"budget": 1, "confidence": 1}, "confidence is below 1"),
        ({"budget": True}, "budget is a number"),
    ],
)
def test_guarantees_that_make_no_sense(wishes, message):
    with pytest.raises(ValueError, match=message):
        Guarantee(**wishes)


# -- identities ------------------------------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 8), st.integers(0, 8))
def test_certificates_use_the_exact_test(worse, better):
    n = 200
    y = np.zeros(n, dtype=int)
    X = np.ones((n, 3))
    X[:, 2] = -1.0  # the full model says 0 and is right, the cheap model says 1
    X[:, 0] = -10.0
    X[:worse, 0] = 10.0
    X[worse : worse + better, 2] = 1.0
    expected = paired_p_value(worse, better, n, 0.05)
    system = two_stages(np.inf)
    if expected <= 0.05:
        promise = certify(
            [system], X, y, Guarantee(tolerance=0.05), full=FULL
        ).certificate.promises[0]
        assert promise.p_value == pytest.approx(expected)
    else:
        with pytest.raises(PromiseError):
            certify([system], X, y, Guarantee(tolerance=0.05), full=FULL)


def test_the_full_model_may_come_from_elsewhere():
    X, y = table(1500, seed=5)
    validated = frontier()
    bare = replace(validated, full=None)
    guarantee = Guarantee(tolerance=0.05)
    result = certify(bare, X, y, guarantee, full=FULL)
    assert result.certificate.promises[0].p_value <= 0.05
    with pytest.raises(ValueError, match="compares with the full model"):
        certify(bare, X, y, guarantee)


def test_systems_without_a_full_model_keep_every_row():
    X, y = table(1000, seed=5)
    cheap = stage_alone(two_stages(), 0)
    promise = certify([cheap], X, y, Guarantee(max_error=0.5)).certificate.promises[0]
    assert promise.n == 1000


def test_reporting_frontiers_order_by_validation():
    X, y = table(1500, seed=5)
    validated = frontier()
    reporting = validated.on(*table(400, seed=7))
    results = [certify(f, X, y, Guarantee(tolerance=0.05)) for f in (validated.pareto(), reporting)]
    assert results[0].system is results[1].system
