import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from handmade import table
from sparing import (
    AdaptGbrtClassifier,
    AdaptLinClassifier,
    BudgetedClassifier,
    FeatureCosts,
    Frontier,
    GreedyMiserClassifier,
    Guarantee,
    PromiseError,
    certify,
)
from sparing.metrics import mean_acquisition_cost, ndcg_at_k

FOREST = RandomForestClassifier(20, oob_score=True, random_state=0)
SMALL = AdaptGbrtClassifier(n_estimators=8, cost_penalty=[0.1, 0.01], full_rate=[0.2, 0.5])
PRICES = [1, 2, 6]


def budgeted(**options):
    given = {"estimator": FOREST, "method": SMALL, "feature_costs": PRICES, "random_state": 0}
    return BudgetedClassifier(**given | options)


@pytest.fixture(scope="module")
def rows():
    return table(1200, seed=3)


@pytest.fixture(scope="module")
def fitted(rows):
    return budgeted(tolerance=0.03).fit(*rows)


# -- one fit, all budgets --------------------------------------------------------------------------


def test_the_choice_is_the_frontiers(fitted):
    assert fitted.choice_ is fitted.frontier_.at(tolerance=0.03, caution=0.5)
    assert fitted.system_ is fitted.choice_.system
    assert fitted.choice_.label["method"] == "AdaptGbrtClassifier"
    assert fitted.frontier_.n_rows == 300
    for wish in ({"budget": 4}, {"tolerance": 0.1}, {"budget": 9, "tolerance": 0.03}):
        other = fitted.at(**wish)
        assert other.frontier_ is fitted.frontier_
        if len(wish) == 1:
            assert other.system_ is fitted.frontier_.at(**wish, caution=0.5).system
        assert type(other) is BudgetedClassifier
    assert fitted.at(budget=2).choice_.cost <= 2
    with pytest.raises(ValueError, match="Give budget or tolerance"):
        fitted.at()


def test_the_frontier_holds_on_other_rows(fitted):
    X, y = table(3000, seed=4)
    for budget in (2, 4, 6):
        other = fitted.at(budget=budget)
        assert mean_acquisition_cost(other, X) == pytest.approx(other.choice_.cost, abs=0.5)
        assert other.score(X, y) == pytest.approx(other.choice_.score, abs=0.06)
    assert fitted.score(X, y) > fitted.estimator_.score(X, y) - 0.06
    assert mean_acquisition_cost(fitted, X) < 9


def test_rows_that_choose_are_not_learnt_from(rows):
    # Labels of the held-out rows are changed: the full model and the cheap models stay the same.
    X, y = rows
    given = (X[900:], y[900:])
    first = budgeted(validation=given, budget=5).fit(X[:900], y[:900])
    second = budgeted(validation=(X[900:], 1 - y[900:]), budget=5).fit(X[:900], y[:900])
    np.testing.assert_array_equal(first.estimator_.predict(X), second.estimator_.predict(X))
    assert first.frontier_.scores.max() > 0.9 > 0.6 > second.frontier_.scores.max()


def test_validation_by_share_and_by_rows(rows):
    quick = GreedyMiserClassifier(n_estimators=4)
    assert budgeted(method=quick, validation=0.5, budget=9).fit(*rows).frontier_.n_rows == 600
    assert budgeted(method=quick, validation=table(77), budget=9).fit(*rows).frontier_.n_rows == 77


def test_groups_are_kept_together(rows):
    X, y = rows
    groups = np.arange(len(y)) // 3
    X = X.copy()
    X[:, 1] = groups  # so that the rows of every split tell
    seen = []

    class Spy(RandomForestClassifier):
        def fit(self, X, y, sample_weight=None):
            seen.append(set(X[:, 1]))
            return super().fit(X, y, sample_weight)

        def predict_proba(self, X):
            seen[-1].isdisjoint(set(X[:, 1]))
            return super().predict_proba(X)

    clf = budgeted(estimator=Spy(5, random_state=0), cv=3, budget=5).fit(X, y, groups=groups)
    learnt = set.union(*seen)
    # Whole groups of three rows were set aside.
    assert len(learnt) == pytest.approx(300, abs=1)
    assert clf.frontier_.n_rows == pytest.approx(300, abs=3)


def test_weights_reach_learning_and_choosing(rows):
    X, y = rows
    weight = np.where(y == 1, 5.0, 1.0)
    plain, heavy = (budgeted(budget=1.5).fit(X, y, sample_weight=w) for w in (None, weight))
    recalls = [np.mean(clf.predict(X)[y == 1] == 1) for clf in (plain, heavy)]
    assert recalls[1] > recalls[0]


def test_several_methods_in_one_frontier(rows):
    methods = [SMALL, AdaptLinClassifier(max_iter=3), GreedyMiserClassifier(n_estimators=8)]
    clf = budgeted(method=methods, budget=4).fit(*rows)
    assert set(clf.history_["method"]) == {type(m).__name__ for m in methods}
    alone = budgeted(method=SMALL, budget=4).fit(*rows)
    assert clf.choice_.score >= alone.choice_.score
    frame = clf.frontier_.frame()
    assert set(frame["method"]) <= {type(m).__name__ for m in methods}
    assert (clf.history_["seconds"] > 0).all()


def test_names_have_sweeps_of_their_own(rows):
    clf = budgeted(method="greedy-miser", budget=6).fit(*rows)
    assert clf.history_["round"].tolist() == [1, 2, 2]
    assert clf.choice_.label["method"] == "greedy-miser"


def test_a_legacy_model_is_used_as_it_is(rows):
    X, y = rows
    legacy = SVC().fit(X[:400], y[:400])
    clf = budgeted(estimator=FrozenEstimator(legacy), tolerance=0.05).fit(X[400:], y[400:])
    assert clf.estimator_ is legacy


def test_known_probabilities_are_not_computed_again(rows):
    X, y = rows
    legacy = clone(FOREST).fit(X[:400], y[:400])
    proba = legacy.predict_proba(X[400:])
    clf = budgeted(estimator=FrozenEstimator(legacy), tolerance=0.05)
    clf.fit(X[400:], y[400:], full_proba=proba)
    assert clf.score(X[400:], y[400:]) > 0.8
    with pytest.raises(ValueError, match="full_proba without an estimator"):
        budgeted(estimator=None, budget=3).fit(X[400:], y[400:], full_proba=proba)


def test_a_routed_classifier_as_full_model(rows):
    X, y = rows
    inner = AdaptGbrtClassifier(clone(FOREST), feature_costs=PRICES, n_estimators=5, random_state=0)
    inner.fit(X[:600], y[:600])
    clf = budgeted(estimator=FrozenEstimator(inner), tolerance=0.1).fit(X[600:], y[600:])
    full = clf.frontier_.full.system
    assert len(full.stages) == 2
    np.testing.assert_array_equal(full.predict(X), inner.predict(X))
    np.testing.assert_allclose(full.acquisition_cost(X), inner.acquisition_cost(X))
    assert len(clf.at(budget=9).stages_) == 3


@pytest.mark.parametrize("call_price", [4.0, (1.0, 4.0)])
def test_prices_per_call(rows, call_price):
    prices = FeatureCosts(PRICES, call_price=call_price)
    clf = budgeted(feature_costs=prices, tolerance=0.05).fit(*rows)
    # Alone the full model pays its own call; behind a cheap model the cheap one's as well.
    assert clf.frontier_.full.cost == 9 + 4
    first = 0.0 if call_price == 4.0 else 1.0
    everyone = clf.system_.with_thresholds(-np.inf).acquisition_cost(rows[0])
    assert everyone == pytest.approx(9 + 4 + first)


def test_frames_labels_and_storage():
    X, y = table(600, seed=3)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    names = np.array(["no", "yes"])[y]
    prices = FeatureCosts({"a": 1, "b": 2, "c": 6})
    clf = budgeted(feature_costs=prices, tolerance=0.05).fit(frame, names)
    assert set(clf.predict(frame)) == {"no", "yes"}
    stored = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(stored.predict(frame), clf.predict(frame))
    assert stored.at(budget=3).choice_.cost == clf.at(budget=3).choice_.cost
    assert clone(clf).get_params()["tolerance"] == 0.05
    assert set(clf.explain(frame[:1])[0]["items"]) <= {"a", "b", "c"}


def test_inside_a_grid_search(rows):
    X, y = rows
    search = GridSearchCV(budgeted(budget=4), {"validation": [0.2, 0.4]}, cv=2)
    assert search.fit(X[:400], y[:400]).best_params_["validation"] in (0.2, 0.4)


def test_other_prices_choose_again(fitted):
    dear = fitted.with_costs([10, 20, 60])
    assert dear.choice_.cost == pytest.approx(10 * fitted.choice_.cost)
    assert dear.frontier_.full.cost == pytest.approx(10 * fitted.frontier_.full.cost)
    free = fitted.with_costs([0, 0, 1])
    assert free.choice_.cost <= 1
    with pytest.raises(NotFittedError):
        budgeted().with_costs(PRICES)


def test_one_fit_is_evaluated_like_any_other(fitted):
    X, y = table(300, seed=8)
    frontier = Frontier.evaluate(fitted, X, y)
    assert len(frontier) == len(fitted.frontier_)
    np.testing.assert_allclose(
        frontier.pareto().costs, Frontier.evaluate(fitted.staged_systems(), X, y).pareto().costs
    )


# -- other scores ----------------------------------------------------------------------------------


def test_scores_of_every_kind(rows):
    X, y = rows
    for scoring in ("neg_log_loss", "roc_auc", [[0, 1], [10, 0]]):
        clf = budgeted(scoring=scoring, tolerance=0.2).fit(X, y)
        full = clf.frontier_.full.score
        assert clf.choice_.score >= full - 0.2
    # Missing a positive costs ten times as much as a false alarm.
    assert np.mean(clf.predict(X)[y == 1] == 1) > np.mean(clf.predict(X)[y == 0] == 0) - 0.05


def test_a_floor_on_recall(rows):
    X, y = rows
    validation = table(300, seed=9)
    free, floor = (
        budgeted(budget=6, min_recall=m, validation=validation).fit(X, y) for m in (None, {1: 0.85})
    )

    def recalls(clf):
        answers = [point.system.predict(validation[0]) for point in clf.frontier_]
        return [np.mean(a[validation[1] == 1] == 1) for a in answers]

    assert min(recalls(free)) < 0.85 <= min(recalls(floor))
    assert floor.choice_.cost <= 6
    with pytest.raises(ValueError, match=r"costs at most 1 .* min_recall=\{1: 0\.85\} .* left out"):
        floor.at(budget=1)
    strict = budgeted(budget=3, min_recall={1: 1.0, 0: 1.0})
    with pytest.raises(
        ValueError, match=r"No system keeps min_recall=\{1: 1\.0, 0: 1\.0\}.* frontier_ is kept"
    ):
        strict.fit(X, y)
    # Minutes of fitting are not lost to a wish that is too strict.
    assert strict.at(budget=3).score(X, y) > 0.7


# -- promises --------------------------------------------------------------------------------------


def test_a_guarantee_is_certified_on_rows_of_its_own(rows):
    clf = budgeted(guarantee=Guarantee(tolerance=0.08)).fit(*rows)
    assert clf.certificate_.n == 240
    assert clf.certificate_.promises[0].limit == 0.08
    assert clf.certificate_.thresholds == clf.system_.thresholds
    assert clf.choice_.system is clf.system_
    assert not hasattr(clf.at(budget=3), "certificate_")
    short = budgeted(tolerance=0.08, guarantee=0.9, calibration=table(500, seed=11)).fit(*rows)
    assert short.certificate_.confidence == 0.9
    assert short.certificate_.n == 500
    again = clf.recalibrate(*table(3000, seed=12), date="2026-05-01")
    assert again.certificate_.n == 3000
    assert again.certificate_.date == "2026-05-01"
    assert again.certificate_.cost < clf.certificate_.cost
    assert clf.certificate_.n == 240
    wider = clf.recalibrate(*table(1000, seed=12), Guarantee(budget=6))
    assert wider.certificate_.promises[0].kind == "budget"


def test_other_prices_choose_by_what_was_promised(rows):
    """A quick method reaches the promised tolerance, but not the full model."""
    quick = GreedyMiserClassifier(n_estimators=3, cost_penalty=[0.1, 0.001])
    clf = budgeted(method=quick, guarantee=Guarantee(tolerance=0.3)).fit(*rows)
    dear = clf.with_costs(10 * np.array(PRICES))
    assert dear.choice_ is dear.frontier_.at(tolerance=0.3, caution=0.5)
    assert not hasattr(dear, "certificate_")
    promised = clf.recalibrate(*table(900, seed=7), Guarantee(budget=7.0))
    assert promised.with_costs(PRICES).choice_.cost <= 7.0
    assert promised.with_costs(PRICES).choice_.score > clf.with_costs(PRICES).choice_.score


def test_drift_is_seen(rows):
    clf = budgeted(guarantee=Guarantee(tolerance=0.1)).fit(*rows)
    X, _ = table(500, seed=12)
    assert not clf.check_drift(X).moved
    assert clf.check_drift(X + 2.5).moved
    stored = pickle.loads(pickle.dumps(clf))
    assert stored.recalibrate(*table(2000, seed=13)).check_drift(X).n == 500


def test_a_promise_that_cannot_be_given_loses_no_work(rows):
    clf = budgeted(guarantee=Guarantee(max_error=0.0135))
    with pytest.raises(PromiseError, match="Nothing needs to be fitted again"):
        clf.fit(*rows)
    assert clf.predict(rows[0]).shape == (1200,)
    assert clf.at(budget=3).choice_.cost <= 3
    assert not hasattr(clf, "certificate_")
    wide = clf.recalibrate(*table(1000, seed=12), Guarantee(tolerance=0.1))
    assert wide.certificate_.n == 1000


def test_an_unkept_promise_is_told_even_if_no_system_reaches_the_full_model(rows):
    stump = GreedyMiserClassifier(n_estimators=1, max_depth=1)
    clf = budgeted(method=stump, guarantee=Guarantee(max_error=0.0135))
    with pytest.raises(PromiseError, match="Nothing needs to be fitted again"):
        clf.fit(*rows)
    assert clf.choice_.score == clf.frontier_.scores.max()
    assert len(clf.predict(rows[0])) == 1200


def test_nothing_was_promised(fitted):
    X, y = table(50)
    with pytest.raises(ValueError, match="Nothing was promised"):
        fitted.check_drift(X)
    with pytest.raises(ValueError, match="nothing to promise"):
        fitted.recalibrate(X, y)


# -- wishes that cannot be ------------------------------------------------------------------------


class NeverFitted(RandomForestClassifier):
    """A full model that tells when it is fitted after all."""

    def fit(self, X, y, sample_weight=None):
        raise AssertionError("something was fitted")


def refused(X, y, match, *, error=ValueError, fit=None, **options):
    with pytest.raises(error, match=match):
        budgeted(estimator=NeverFitted(), **options).fit(X, y, **(fit or {}))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": -1}, "budget=-1 is negative"),
        ({"budget": float("nan")}, "budget is a finite number; got nan"),
        ({"budget": float("inf")}, "budget is a finite number; got inf"),
        ({"budget": True}, "budget is a finite number; got True"),
        ({"budget": "much"}, "budget"),
        (
            {"budget": 0.5},
            r"budget=0\.5 buys nothing: the cheapest column, 0, costs 1 .* everything 9",
        ),
        ({"budget": 9.1}, r"budget=9\.1 is no limit: all columns and calls together cost 9"),
        ({"guarantee": Guarantee(budget=0.5)}, "buys nothing"),
        ({"guarantee": Guarantee(budget=20)}, "is no limit"),
        ({"tolerance": float("nan")}, "tolerance is a finite number; got nan"),
        (
            {"tolerance": 1},
            r"tolerance=1 is out of range: accuracy is 1 .* One point of accuracy is 0\.01",
        ),
        ({"tolerance": -1}, "tolerance=-1 is out of range"),
        ({"guarantee": Guarantee(tolerance=2)}, "tolerance=2 is out of range"),
        (
            {"tolerance": 10, "scoring": [[0, 1], [10, 0]]},
            "tolerance=10 is out of range: minus miscl",
        ),
        ({"budget": 1, "guarantee": Guarantee(budget=2)}, "two wishes"),
        ({"guarantee": 0.9}, "A guarantee promises something"),
        ({"tolerance": 0.1, "guarantee": 0.3}, "confidence is a number, from 0.5 to 1"),
        ({"tolerance": 0.1, "guarantee": 0.9, "scoring": "roc_auc"}, "not of scoring=roc_auc"),
        ({"calibration": table(50)}, "nothing is to be promised by them: add guarantee"),
        (
            {"validation": 0.6, "guarantee": Guarantee(budget=5), "calibration": 0.4},
            "leave no row to learn",
        ),
        ({"scoring": "recal"}, "is the name of no scikit-learn scorer; did you mean 'recall'"),
        ({"scoring": "r2"}, "scoring=r2 measures how far numbers are off"),
        ({"scoring": "neg_mean_squared_error"}, "Use 'accuracy', 'balanced_accuracy'"),
        ({"scoring": np.ones((3, 3))}, "has 3 classes, y has 2"),
        ({"scoring": [[1, 0], [0, 1]]}, "right answers would cost most"),
        ({"min_recall": {"sick": 0.9}}, "min_recall names classes"),
        ({"min_recall": {1: 90}}, "min_recall of 1 is a number from 0 to 1; got 90"),
        ({"method": "magic"}, "is not known"),
        ({"method": AdaptGbrtClassifier(FOREST)}, "brings its own full model"),
        ({"method": AdaptGbrtClassifier(feature_costs=[1, 2, 3])}, "brings its own prices"),
        ({"validation": 1.5}, r"validation=1\.5: the share .* is a number between 0 and 1"),
        ({"validation": pd.DataFrame([[1]])}, r"a pair \(X, y\), not a DataFrame"),
        ({"calibration": None}, r"calibration is a share of the rows or a pair"),
        ({"method": BudgetedClassifier()}, "is a race itself"),
        ({"validation": (1, 2, 3)}, "validation is a share of the rows or a pair"),
        ({"validation": 0.0001}, "leaves no row"),
        (
            {"validation": (np.ones((3, 3)), [0, 1, 7])},
            "validation rows have labels that y has not: 7",
        ),
        ({"validation": (np.ones((3, 3)), [0, 1])}, "inconsistent numbers of samples"),
        ({"validation": (np.ones((3, 2)), [0, 1, 1])}, "2 features"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_fitted(rows, options, message):
    X, y = rows
    refused(X[:200], y[:200], message, **options)


@pytest.mark.parametrize(
    ("guarantee", "message"),
    [
        (Guarantee(tolerance=0.02), "40 calibration rows are too few .* at least 149 are needed"),
        (Guarantee(max_error=0.05), "at least 59 are needed"),
        (
            Guarantee(min_recall={1: 0.9}),
            r"20 calibration rows of class 1 .* at least 29 are needed",
        ),
        (Guarantee(min_recall={1: 1.0}), "No number of calibration rows proves min_recall"),
        (Guarantee(max_error=0.0), "No number of calibration rows proves max_error=0"),
    ],
)
def test_too_few_calibration_rows_are_refused_before_anything_is_fitted(rows, guarantee, message):
    X, y = rows
    some = np.concatenate([np.flatnonzero(y == label)[:100] for label in (0, 1)])
    refused(X[some], y[some], message, error=PromiseError, guarantee=guarantee)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a", "b", "a"], "3 rows are too few to learn from and to choose by: give at least 10"),
        (["a", "b"] * 6 + ["c"], "Class 'c' has 1 row; at least 2 are needed"),
    ],
)
def test_too_few_rows(labels, message):
    refused(np.ones((len(labels), 3)), np.array(labels), message, tolerance=0.1)


def test_too_few_rows_of_a_class_for_a_promise():
    refused(
        np.ones((22, 3)),
        np.array(["a", "b"] * 10 + ["c"] * 2),
        "at least 3 are needed, to learn from and to choose by and to promise by",
        guarantee=Guarantee(budget=5),
    )


@pytest.mark.parametrize("scoring", ["roc_auc", "f1", "precision", "recall"])
def test_scorers_of_two_classes_are_refused_for_three(scoring):
    X, _ = table(60)
    y = np.array(["none", "mild", "severe"] * 20)
    refused(X, y, f"scoring='{scoring}' does not fit these labels, 3 classes", scoring=scoring)


def test_scorers_that_look_for_a_label_1_are_refused_for_text(rows):
    X, y = rows
    names = np.array(["ill", "well"])[y]
    refused(X, names, r"make_scorer\(f1_score, pos_label='well'\)", scoring="f1")


def test_rankings_need_queries(rows):
    X, y = rows
    refused(X, y, r"ranks within queries: .* fit\(X, y, groups=", scoring=ndcg_at_k, tolerance=0.1)
    queries = np.arange(1200) // 6
    own = {"validation": (X, y), "scoring": ndcg_at_k, "fit": {"groups": queries}}
    refused(X, y, r"validation=0\.25; rows of their own, validation=\(X, y\), have no", **own)
    clf = budgeted(scoring=ndcg_at_k, tolerance=0.2).fit(X, y, groups=queries)
    full = clf.frontier_.full.score
    assert full - 0.2 <= clf.choice_.score <= 1
    assert full > 0.9


def test_stored_probabilities_must_fit_the_rows(rows):
    X, y = rows
    refused(
        X, y, "inconsistent numbers of samples", tolerance=0.1, fit={"full_proba": np.ones((3, 2))}
    )
    refused(X, y, "inconsistent numbers of samples", tolerance=0.1, fit={"groups": [1, 2, 3]})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tolerance": -0.5}, "the best scores"),
        ({"budget": 1.0, "tolerance": 0.0}, "contradict each other"),
    ],
)
def test_what_turns_out_to_be_impossible_names_what_is_possible(rows, options, message):
    X, y = rows
    clf = budgeted(**options)
    with pytest.raises(ValueError, match=f"{message}.*Nothing needs to be fitted again"):
        clf.fit(X[:200], y[:200])
    assert clf.choice_.score == clf.frontier_.scores.max()
    assert clf.at(tolerance=0.5).predict(X).shape == (1200,)


QUICK = GreedyMiserClassifier(n_estimators=3, cost_penalty=0.1)  # buys the first column only


def test_the_full_model_alone_is_chosen_where_nothing_cheaper_will_do(rows):
    X, y = rows
    clf = budgeted(method=QUICK, tolerance=0.0).fit(X, y)
    full = clf.frontier_.full
    assert clf.choice_.label == {"method": "full model"}
    assert (clf.choice_.cost, clf.choice_.score) == (full.cost, full.score)
    np.testing.assert_array_equal(clf.predict(X), clf.estimator_.predict(X))
    cheaper = clf.at(tolerance=0.4).choice_
    assert cheaper.cost < full.cost
    assert cheaper is clf.frontier_.at(tolerance=0.4)
    assert clf.at(budget=full.cost).choice_.score == full.score
    assert clf.with_costs([10, 20, 60]).choice_.cost == pytest.approx(10 * full.cost)
    # It was not learnt, and is no system to evaluate beside the full model.
    assert len(clf.staged_systems()) == len(clf.frontier_) - 1
    with pytest.raises(ValueError, match=r"The cheapest costs 1 and scores .*; the best scores"):
        clf.at(tolerance=-0.5)


def test_the_full_model_alone_is_no_system_beside_one_that_is_as_good(rows, fitted):
    assert all(point.label["method"] != "full model" for point in fitted.frontier_)


def test_a_tolerance_that_a_cheaper_system_keeps_just_so_is_not_for_the_full_model(rows):
    """Caution takes the nearest of the cheaper ones, though the full model keeps every tolerance for sure."""
    clf = budgeted(method=QUICK, tolerance=0.0).fit(*rows)
    learnt = [point for point in clf.frontier_ if point.label["method"] != "full model"]
    best = max(learnt, key=lambda point: point.score)
    loss = clf.frontier_.full.score - best.score
    assert clf.at(tolerance=loss + 0.1 * best.loss_error).choice_ is best


def test_a_floor_that_only_the_full_model_keeps(rows):
    validation = table(300, seed=9)
    floors = {0: 0.93, 1: 0.93}
    clf = budgeted(method=QUICK, min_recall=floors, tolerance=0.0, validation=validation).fit(*rows)
    assert [point.label for point in clf.frontier_] == [{"method": "full model"}]
    assert len(clf.staged_systems()) == 1
    np.testing.assert_array_equal(clf.predict(rows[0]), clf.estimator_.predict(rows[0]))


def test_a_free_column_makes_any_budget_possible(rows):
    clf = budgeted(feature_costs=[0, 2, 6], budget=0.5).fit(*rows)
    assert clf.choice_.cost <= 0.5


def test_no_promise_from_weighted_rows(rows):
    X, y = rows
    with pytest.raises(ValueError, match="not made from weighted rows"):
        budgeted(guarantee=Guarantee(budget=5)).fit(X, y, sample_weight=np.ones(len(y)))


def test_text_is_named_where_the_full_model_takes_none(rows):
    frame = pd.DataFrame(rows[0], columns=["a", "b", "c"]).assign(city="Bern")
    with pytest.raises(ValueError, match="does not take text, which column 'city' holds"):
        budgeted(feature_costs=None, tolerance=0.1).fit(frame, rows[1])


def test_labels_that_nobody_can_say_promise_nothing(rows):
    clf = budgeted(guarantee=Guarantee(tolerance=0.1)).fit(*rows)
    X, y = table(500, seed=12)
    strange = np.where(np.arange(500) < 3, 7, y)
    with pytest.raises(ValueError, match="Calibration labels 7 are none of the classes"):
        clf.recalibrate(X, strange)


# -- what a new user tried ------------------------------------------------------------------------


class OnlyLabels:
    """A model with nothing but ``predict``."""

    def predict(self, X):
        return (np.asarray(X)[:, 0] > 0).astype(int)


@pytest.mark.parametrize("method", [SMALL, "greedy-miser"])
def test_a_full_model_with_nothing_but_predict(rows, method):
    X, y = rows
    clf = budgeted(estimator=OnlyLabels(), method=method, tolerance=0.1).fit(X, y)
    assert clf.predict(X[:5]).shape == (5,)


@pytest.mark.parametrize("make", [np.asarray, pd.DataFrame])
def test_nothing_is_promised_by_rows_that_were_learnt_from(rows, make):
    X, y = make(rows[0]), rows[1]
    clf = budgeted(feature_costs=None, tolerance=0.1).fit(X, y)
    with pytest.raises(ValueError, match="rows that fit has learnt from"):
        clf.recalibrate(X, y, Guarantee(tolerance=0.1))


def test_nothing_is_promised_by_rows_that_come_in_groups(rows):
    X, y = rows
    message = "guarantee and groups: .* recalibrate"
    refused(X, y, message, tolerance=0.1, guarantee=0.9, fit={"groups": np.arange(len(y)) // 2})
    alone = budgeted(tolerance=0.1, guarantee=0.9).fit(X, y, groups=np.arange(len(y)))
    assert alone.certificate_.confidence == 0.9


def test_what_was_promised_last_is_promised_again(fitted):
    X, y = table(900, seed=7)
    once = fitted.recalibrate(X, y, Guarantee(tolerance=0.15))
    again = once.recalibrate(*table(900, seed=8))
    wishes = [[p.limit for p in clf.certificate_.promises] for clf in (once, again)]
    assert wishes[0] == wishes[1] == [0.15]
    surer = once.recalibrate(*table(900, seed=8), 0.99).certificate_
    assert (surer.confidence, [p.limit for p in surer.promises]) == (0.99, [0.15])
    with pytest.raises(ValueError, match="nothing to promise"):
        fitted.recalibrate(X, y)
    with pytest.raises(ValueError, match=r"confidence of 0\.9 alone says nothing"):
        fitted.recalibrate(X, y, 0.9)


def test_a_class_without_calibration_rows_is_named(fitted):
    X, y = table(900, seed=7)
    with pytest.raises(PromiseError, match="No calibration row is of class 1: bring some"):
        fitted.recalibrate(X[y == 0], y[y == 0], Guarantee(min_recall={1: 0.5}))


def test_certify_says_where_the_frontier_is(fitted, rows):
    with pytest.raises(TypeError, match="pass the BudgetedClassifier's frontier_"):
        certify(fitted, *rows, Guarantee(tolerance=0.1))


def test_recalls_are_given_by_class():
    with pytest.raises(ValueError, match="min_recall names classes"):
        Guarantee(min_recall=0.9)
