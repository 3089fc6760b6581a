import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GroupKFold,
    KFold,
    cross_val_score,
)
from sklearn.tree import DecisionTreeClassifier

from small_cascade import COSTS, FOREST, X, Y, cascade, make_rows
from sparing import CascadeClassifier, FeatureCosts, Frontier, FrontierDisplay
from sparing.cascade.network import MaskedPredictor
from sparing.runtime import load, save


@pytest.fixture(scope="module")
def fitted():
    return {
        kind: cascade(stage_estimator=kind, tolerance=0.01).fit(X, Y) for kind in ("own", "shared")
    }


@pytest.mark.parametrize("kind", ["own", "shared"])
def test_it_keeps_the_accuracy_and_cuts_the_cost(fitted, kind):
    clf, (Xt, yt) = fitted[kind], make_rows(2000, seed=1)
    full = clf.estimator_.score(Xt, yt)
    assert clf.score(Xt, yt) > full - 0.03
    assert clf.acquisition_cost(Xt).mean() < 0.8 * sum(COSTS)


@pytest.mark.parametrize("kind", ["own", "shared"])
def test_stages_are_nested_and_end_with_the_full_model(fitted, kind):
    clf = fitted[kind]
    bought = clf.system_.stage_columns()
    for before, after in pairwise([stage.columns for stage in clf.stages_]):
        assert set(before) <= set(after)
    assert (np.diff(bought.sum(axis=1)) >= 0).all()
    assert clf.stages_[-1].gate is None
    assert clf.history_["cost"][-1] == sum(COSTS)
    assert clf.order_[0] == ["0"]


def test_a_row_is_answered_by_its_stage_from_the_columns_it_has_paid_for(fitted):
    for clf in fitted.values():
        route, mask = clf.route(X), clf.acquisition_mask(X)
        blind = np.where(mask, X, np.nan)
        for stage in range(len(clf.stages_) - 1):
            rows = route == stage
            if rows.any():
                part = clf.system_.stages[stage].predictor
                assert np.array_equal(
                    part.predict_proba(np.nan_to_num(blind[rows])), clf.predict_proba(X[rows])
                )


def test_every_point_of_the_frontier_is_a_rethresholding(fitted):
    clf = fitted["shared"]
    systems = clf.staged_systems()
    assert len(systems) == len(clf.frontier_.costs) > 3
    assert (np.diff(clf.frontier_.costs) >= 0).all()
    for system in systems:
        for one, other in zip(system.stages, clf.stages_, strict=True):
            assert one.predictor is other.predictor
    frontier = Frontier.evaluate(systems, X, Y)
    assert len(frontier.pareto()) > 2


def test_at_moves_along_the_frontier(fitted):
    clf = fitted["own"]
    cheap, dear = clf.at(tolerance=0.1), clf.at(budget=np.inf)
    assert cheap.acquisition_cost(X).mean() < dear.acquisition_cost(X).mean()
    afford = clf.at(budget=float(clf.frontier_.costs[2]))
    assert afford.system_.thresholds == clf.staged_systems()[2].thresholds
    with pytest.raises(
        ValueError, match=r"The cheapest costs .* cheaper columns can be given: stages="
    ):
        clf.at(budget=0.01)
    with pytest.raises(ValueError, match="Give budget or tolerance"):
        clf.at()


@pytest.mark.parametrize("seed", [0, 1])
def test_a_budget_is_kept_where_stages_doubt_whole_leaves_alike(seed):
    tree = DecisionTreeClassifier(max_depth=4, random_state=0)
    clf = cascade(estimator=tree, stages=[[0], [0, 1]], stage_estimator="own", random_state=seed)
    clf.fit(X, Y)
    for point in clf.frontier_:
        assert point.system.acquisition_cost(X).mean() <= 1.02 * point.cost
        assert point.cost == pytest.approx(np.dot(point.stage_rates, clf.history_["cost"]))


def test_stages_that_are_given():
    frame = pd.DataFrame(X, columns=list("abcde"))
    clf = cascade(
        feature_costs=None,
        stages={"questions": ["a", "d"], "blood": ["a", "b", "c", "d"]},
        stage_estimator="own",
    ).fit(frame, Y)
    assert [stage.name for stage in clf.stages_] == ["questions", "blood", "full"]
    assert clf.history_["n_columns"].tolist() == [2, 4, 5]
    assert clf.order_ is None
    assert clf.stages_[0].columns.tolist() == [0, 3]


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ([["a"], ["a", "B"]], r"Stage 1 \(stage 1\): Column 'B' is not known; known are 'a'"),
        ([["a"], ["b"]], r"Stage 1 \(stage 1\) lacks column 'a'"),
        ([["a", "z"]], "'z'"),
        ([[]], "has no columns"),
        ([], "at least one stage"),
        ([["a"], ["a"]], "has no column that the stage before lacks"),
    ],
)
def test_stages_that_make_no_sense(stages, message):
    frame = pd.DataFrame(X, columns=list("abcde"))
    with pytest.raises(ValueError, match=message):
        cascade(feature_costs=None, stages=stages).fit(frame, Y)


@pytest.mark.parametrize("kind", ["own", "shared"])
def test_frames(kind):
    names = list("abcde")
    costs = dict(zip(names, COSTS, strict=True))
    array = cascade(stage_estimator=kind).fit(X, Y)
    frames = [pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)]
    for frame in frames:
        clf = cascade(stage_estimator=kind, feature_costs=costs).fit(frame, Y)
        assert np.array_equal(clf.predict_proba(frame), array.predict_proba(X))


def test_text_and_missing_values_with_a_network():
    frame = pd.DataFrame({"colour": np.where(X[:, 0] > 0, "red", "blue"), "size": X[:, 1]})
    frame.loc[::7, "size"] = np.nan

    class Service:
        classes_ = np.array([0, 1])

        def predict_proba(self, X):
            p = np.where(X["colour"] == "red", 0.8, 0.2)
            return np.column_stack([1 - p, p])

    clf = cascade(estimator=Service(), feature_costs=None).fit(frame, Y)
    assert clf.score(frame, Y) > 0.7


def test_a_full_model_is_judged_by_its_own_labels_and_stages_by_the_most_probable():
    careful = FixedThresholdClassifier(LogisticRegression(), threshold=0.03)
    clf = cascade(estimator=careful, stages=[[0]], stage_estimator="own").fit(X, Y)
    *stages, full = clf.stages_
    assert hasattr(full.predictor, "decide")
    assert not any(hasattr(stage.predictor, "decide") for stage in stages)
    honest = cross_val_score(careful, X, Y, cv=5).mean()
    assert clf.frontier_.full.score == pytest.approx(honest, abs=0.02)
    assert honest < cross_val_score(LogisticRegression(), X, Y, cv=5).mean() - 0.1
    Xt, yt = make_rows(2000, seed=1)
    for point in clf.frontier_:
        assert (point.system.predict(Xt) == yt).mean() > point.score - 0.05


def test_a_frozen_model_with_its_own_probabilities():
    full = clone(FOREST).fit(X[:450], Y[:450])
    proba = full.predict_proba(X[450:])
    clf = cascade(estimator=FrozenEstimator(full), stage_estimator="own")
    clf.fit(X[450:], Y[450:], full_proba=proba)
    assert clf.stage_kind_ == "RandomForestClassifier"
    assert clf.estimator_ is full


def test_degenerate_prices():
    free = cascade(feature_costs=np.zeros(5)).fit(X, Y)
    assert len(free.stages_) == 1
    panel = FeatureCosts(np.zeros(5), shared={"all": (3.0, range(5))})
    one = cascade(feature_costs=panel, stage_estimator="own").fit(X, Y)
    assert one.acquisition_cost(X).max() == 3.0
    some = cascade(feature_costs=[0, 1, 1, 1, 1], stage_estimator="own", tolerance=0.3).fit(X, Y)
    assert some.acquisition_cost(X).min() == 0.0


def test_call_prices():
    dear = cascade(feature_costs=FeatureCosts(COSTS, call_price=50.0), stage_estimator="own").fit(
        X, Y
    )
    plain = cascade(stage_estimator="own").fit(X, Y)
    assert dear.history_["cost"][-1] == sum(COSTS) + 50
    assert (dear.route(X) == len(dear.stages_) - 1).mean() <= (
        plain.route(X) == len(plain.stages_) - 1
    ).mean() + 0.02
    with pytest.raises(ValueError, match="give stages="):
        cascade(feature_costs=FeatureCosts(COSTS, call_price=[1, 2])).fit(X, Y)


def test_a_cascade_in_a_cascade(fitted):
    inner = fitted["own"]
    outer = cascade(estimator=FrozenEstimator(inner), feature_costs=None, stages=[[0]]).fit(X, Y)
    assert len(outer.stages_) == 1 + len(inner.stages_)
    assert outer.system_.thresholds[1:] == inner.system_.thresholds


def test_a_seed_repeats_the_fit_and_a_pickle_predicts_the_same(fitted):
    clf = fitted["shared"]
    with parallel_config("threading"):  # other processes would train longer than the tests do
        again = cascade(stage_estimator="shared", tolerance=0.01, n_jobs=2).fit(X, Y)
    assert np.array_equal(again.predict_proba(X), clf.predict_proba(X))
    kept = pickle.loads(pickle.dumps(clf))
    assert np.array_equal(kept.predict_proba(X), clf.predict_proba(X))
    assert isinstance(kept.stages_[0].predictor, MaskedPredictor)


def test_many_classes_and_weights():
    rng = np.random.default_rng(0)
    labels = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + 0.3 * X[:, 1], [-0.5, 0.5])]
    weight = rng.random(len(X))
    clf = cascade(stage_estimator="own").fit(X, labels, weight)
    assert clf.classes_.tolist() == ["a", "b", "c"]
    assert clf.score(X, labels) > 0.85


@pytest.mark.parametrize("kind", ["own", "shared"])
def test_progress_with_the_time_left_goes_to_standard_error(capsys, kind):
    cascade(stage_estimator=kind, verbose=1, n_stages=3).fit(X, Y)
    out, err = capsys.readouterr()
    assert out == ""
    assert "1 of" in err
    assert "s left" in err


def test_of_too_many_given_stages_those_that_earn_most_are_kept():
    stages = {"noise": [3], "first": [0, 3], "more": [0, 1, 2, 3]}
    clf = cascade(stages=stages, n_stages=2, stage_estimator="own").fit(X, Y)
    assert [stage.name for stage in clf.stages_[:-1]] != ["noise"]
    assert len(clf.stages_) == 2
    assert clf.acquisition_cost(X).mean() < sum(COSTS)
    assert len(cascade(stages=stages, stage_estimator="own").fit(X, Y).stages_) == 4


def test_given_folds_are_kept_to_by_forests_with_out_of_bag_scores():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(60), 6)
    rows = rng.normal(size=(60, 3))[group] + 0.01 * rng.normal(size=(360, 3))
    noise = rng.integers(0, 2, 60)[group]
    forest = RandomForestClassifier(30, oob_score=True, random_state=0)
    scores = {}
    for name, cv in (
        ("groups", list(GroupKFold(3).split(rows, noise, group))),
        ("rows", 3),
    ):
        clf = CascadeClassifier(
            forest, stages=[[0], [0, 1]], stage_estimator="own", cv=cv, random_state=0
        ).fit(rows, noise)
        scores[name] = clf.history_["score"]
    assert (scores["groups"] < 0.7).all()
    assert scores["rows"][-1] > 0.9


def test_folds_that_can_be_read_once_are_refused_before_anything_is_searched():
    with pytest.raises(TypeError, match=r"give list\(cv\)"):
        cascade(cv=iter(KFold(3).split(X))).fit(X, Y)


def test_other_prices_are_those_of_the_frontier_too(fitted):
    for clf in fitted.values():
        dear = clf.with_costs(np.multiply(10.0, COSTS))
        assert np.allclose(dear.frontier_.costs, 10 * clf.frontier_.costs)
        assert np.allclose(dear.history_["cost"], 10 * clf.history_["cost"])
        budget = 5 * sum(COSTS)
        cheap = clf.at(budget=budget / 10)
        assert np.array_equal(dear.at(budget=budget).predict(X), cheap.predict(X))
        free = clf.with_costs([0, 0, 0, 0, 1])
        assert (np.diff(free.frontier_.costs) >= 0).all()


@pytest.mark.parametrize("wish", [{"tolerance": np.nan}, {"budget": "much"}, {"budget": np.nan}])
def test_wishes_that_are_no_numbers_are_refused(fitted, wish):
    with pytest.raises((TypeError, ValueError), match=r"is a (finite )?number"):
        fitted["own"].at(**wish)


def test_the_frontier_is_that_of_the_systems_and_travels_with_a_bundle(fitted, tmp_path):
    for clf in fitted.values():
        frontier = clf.frontier_
        assert [p.system for p in frontier] == clf.staged_systems()
        assert frontier.full.score == clf.history_["score"][-1]
        assert frontier.full.cost == sum(COSTS)
        assert frontier.n_rows == len(X)
        same = frontier.reprice(COSTS)
        assert np.allclose(same.costs, frontier.costs)
        assert same.full.cost == frontier.full.cost
        save(clf, tmp_path / "cascade.sparing")
        stored = load(tmp_path / "cascade.sparing").frontier
        assert [p.cost for p in stored.points] == frontier.pareto().costs.tolist()


def test_a_tolerance_is_kept_with_caution(fitted):
    for clf in fitted.values():
        chosen = next(p for p in clf.frontier_ if p.system.thresholds == clf.system_.thresholds)
        assert (
            clf.frontier_.full.score - chosen.score
            <= clf.tolerance - 0.5 * chosen.loss_error + 1e-12
        )
    with pytest.warns(UserWarning, match="no system is so much better"):
        never = cascade(stages=[[0]], stage_estimator="own", tolerance=-0.5).fit(X, Y)
    assert never.frontier_.scores.max() == pytest.approx(
        next(p.score for p in never.frontier_ if p.system.thresholds == never.system_.thresholds)
    )
    with pytest.raises(ValueError, match=r"No system scores within -0\.5"):
        never.at(tolerance=-0.5)


def test_items_are_named_once_and_stages_by_all_they_add():
    costs = FeatureCosts([1.0, 1.0, 1.0, 1.0, 1.0], shared={"panel": (3.0, [1, 2])})
    clf = cascade(feature_costs=costs, stage_estimator="own").fit(X, Y)
    bought = [item for items in clf.order_ for item in items]
    assert sorted(bought) == sorted(map(str, costs.items))
    named = [name for stage in clf.stages_[:-1] for name in stage.name[2:].split(", ")]
    assert len(named) == len(set(named) - {"…"}) + named.count("…")


def test_a_cascade_of_several_gates_is_drawn(fitted):
    clf = next(c for c in fitted.values() if len(c.stages_) > 2)
    display = FrontierDisplay.from_estimator(clf, *make_rows(500, seed=2))
    assert len(display.curves[0].costs) > 2


def test_prices_per_stage_follow_the_stages_that_are_left():
    costs = FeatureCosts(COSTS, call_price=[0, 1, 2, 3])
    stages = {"a": [0], "b": [0, 1], "c": [0, 1, 2]}
    options = {"feature_costs": costs, "stages": stages, "stage_estimator": "own"}
    every = cascade(**options).fit(X, Y)
    assert every.frontier_.full.cost == sum(COSTS) + 3
    assert every.history_["cost"].tolist() == [1, 4, 8, 13]
    assert every.frontier_.on(X, Y).full.cost == every.frontier_.full.cost
    two = cascade(**options, n_stages=2).fit(X, Y)
    assert len(two.stages_) == 2
    kept = "abc".index(two.stages_[0].name)
    assert two.system_.costs.call_price == (kept, 3)
    first = [1, 3, 5][kept] + kept
    assert two.history_["cost"].tolist() == [first, sum(COSTS) + kept + 3]
    assert cascade(**options, n_stages=1).fit(X, Y).system_.costs.call_price == 3


def test_the_fitted_system_is_among_those_that_are_stored(fitted):
    for clf in fitted.values():
        for chosen in (clf, clf.at(tolerance=0.02), clf.at(budget=4.0)):
            stored = [point.system.thresholds for point in clf.frontier_.pareto()]
            assert chosen.system_.thresholds in stored
        assert all(sum(p.stage_rates) == pytest.approx(1) for p in clf.frontier_)


@pytest.fixture(scope="module")
def two_orders():
    """Columns 0 and 1 say all together, column 2 says more than either, and nothing that they do not say."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1500, 3))
    labels = (rows[:, 0] + rows[:, 1] > 0).astype(int)
    rows[:, 2] = np.where(rng.random(1500) < 0.85, labels, 1 - labels)
    clf = cascade(
        estimator=LogisticRegression(), feature_costs=[1, 1, 1], stage_estimator="own"
    ).fit(rows, labels)
    return clf, rows, labels


def test_a_small_budget_has_stages_of_its_own(two_orders):
    clf, rows, labels = two_orders
    assert {"0", "1"} == {clf.order_[0][0], clf.order_[1][0]}
    small = clf.at(budget=1.0)
    assert small.stages_[0].name == "+ 2"
    assert small.score(rows, labels) > 0.84
    assert small.acquisition_cost(rows).max() == 1.0
    assert clf.stages_[0].name != "+ 2"


def test_what_is_known_of_the_stages_follows_the_system(two_orders):
    clf, rows, _ = two_orders
    kept = pickle.loads(pickle.dumps(clf))
    for one in (clf, kept, clf.with_costs([2, 2, 2])):
        for point in one.frontier_.pareto():
            there = one.at(budget=point.cost)
            history = there.history_
            assert {len(values) for values in history.values()} == {len(there.stages_)}
            assert history["n_columns"][-1] == 3
            assert (np.diff(history["cost"]) > 0).all()
    small = clf.at(budget=1.0)
    assert small.history_["score"][0] == pytest.approx(0.85, abs=0.02)
    assert small.history_["cost"].tolist()[0] == 1.0
    assert small.at(tolerance=clf.tolerance).route(rows).tolist() == clf.route(rows).tolist()


def test_a_small_budget_has_stages_of_its_own_in_a_bundle(two_orders, tmp_path):
    clf, rows, _ = two_orders
    save(clf, tmp_path / "two.sparing")
    points = load(tmp_path / "two.sparing").frontier.points
    small = max((p for p in points if p.cost < 1.01), key=lambda p: p.score)
    assert np.array_equal(small.system.predict(rows), clf.at(budget=1.0).predict(rows))


def test_a_tolerance_is_kept_by_the_least_of_cost_and_waiting():
    rng = np.random.default_rng(0)
    M = rng.normal(size=(600, 5))
    high = M @ [5, 4, 3, 2, 1] > 0
    trips = {}
    for price in (0, 50):
        clf = CascadeClassifier(
            LogisticRegression(),
            stage_estimator="own",
            round_trip_price=price,
            cv=3,
            random_state=0,
        ).fit(M, high)
        trips[price] = clf.at(tolerance=0.05).route(M).mean()
    assert trips[50] < trips[0] - 0.2


@pytest.mark.parametrize("tolerance", [1, 1.5, -1])
def test_a_tolerance_is_a_difference_in_accuracy(tolerance):
    clf = CascadeClassifier(
        LogisticRegression(), stages=[[0]], stage_estimator="own", cv=2, random_state=0
    ).fit(np.arange(80.0).reshape(40, 2), np.arange(40) % 2)
    with pytest.raises(ValueError, match=r"between -1 and 1 \(one point is 0.01\)"):
        clf.at(tolerance=tolerance)
