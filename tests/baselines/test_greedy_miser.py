"""GreedyMiser: no full model, no gate, trees that pay for a column once."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from sparing import AdaptGbrtClassifier, FeatureCosts, GreedyMiserClassifier
from sparing.frontier import Frontier


def piecewise(n=300, seed=0, n_columns=5):
    """Column 0 settles the rows with a small column 1; the others need column 2. The rest is noise."""
    X = np.random.default_rng(seed).normal(size=(n, n_columns))
    return X, np.where(X[:, 1] > 0.3, X[:, 2] > 0, X[:, 0] > 0).astype(int)


X, Y = piecewise()
NEW, NEW_Y = piecewise(200, seed=1)
Y3 = np.where(X[:, 3] > 1, 2, Y)
COSTS = FeatureCosts([1.0, 2.0, 4.0, 3.0, 1.0], shared={"panel": (2.0, [1, 2])}, call_price=50.0)


def miser(**options):
    return GreedyMiserClassifier(**{"n_estimators": 20, "random_state": 0, **options})


@pytest.fixture(scope="module")
def model():
    return miser(feature_costs=COSTS).fit(X, Y)


def test_every_row_is_answered_by_the_only_stage(model):
    assert (model.route(NEW) == 0).all()
    assert len(model.stages_) == 1
    assert model.stages_[0].gate is None
    assert not model.system_.has_full
    assert not hasattr(model, "estimator_")
    assert not hasattr(model, "gate_function")
    assert model.score(NEW, NEW_Y) > 0.9
    np.testing.assert_allclose(model.predict_proba(NEW).sum(axis=1), 1.0)
    assert np.array_equal(model.decision_function(NEW) > 0, model.predict(NEW) == 1)
    assert [row["exits"] for row in model.explain(NEW)] == [[]] * len(NEW)


def test_the_call_of_a_full_model_is_not_charged(model):
    cost = COSTS.of(model.stages_[0].columns.tolist())
    assert 0 < cost < 50
    np.testing.assert_allclose(model.acquisition_cost(NEW), cost)
    assert {row["call_price"] for row in model.explain(NEW)} == {0.0}
    assert {row["cost"] for row in model.explain(NEW)} == {cost}
    by_path = model.acquisition_cost(NEW, accounting="path")
    assert (by_path <= cost + 1e-12).all()
    assert not (model.acquisition_mask(NEW, accounting="path") & ~model.acquisition_mask(NEW)).any()
    few = miser(feature_costs=COSTS, n_estimators=1, max_depth=3).fit(X, Y)
    assert few.acquisition_cost(NEW, accounting="path").min() < few.acquisition_cost(NEW).min()
    everything = np.ones(len(COSTS.items), dtype=bool)
    assert (model.acquisition_cost(NEW, owned=everything) == 0).all()


def test_prices_per_call_are_those_of_the_cheap_stage_and_the_full_model_after_it():
    calls = FeatureCosts(np.ones(5), call_price=(0.25, 9.0))
    model = miser(feature_costs=calls).fit(X, Y)
    bought = len(model.stages_[0].columns)
    np.testing.assert_allclose(model.acquisition_cost(NEW), bought + 0.25)
    assert model.explain(NEW)[0]["call_price"] == 0.25


def test_a_frontier_of_it_has_no_full_model_unless_given_one(model):
    alone = Frontier.evaluate(model.staged_systems(), NEW, NEW_Y)
    assert alone.full is None
    assert alone.costs.max() <= COSTS.total
    assert alone.at(budget=COSTS.total).score == alone.scores.max()
    with pytest.raises(ValueError, match="no full model to compare with: pass full="):
        alone.at(tolerance=0.01)
    dear = alone.reprice(FeatureCosts(10 * np.ones(5), call_price=7.0))
    assert dear.costs.max() <= 50
    np.testing.assert_allclose(dear.costs % 10, 0)
    full = FrozenEstimator(DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, Y))
    adapt = AdaptGbrtClassifier(full, feature_costs=COSTS, n_estimators=10).fit(X, Y)
    both = Frontier.evaluate([*model.staged_systems(), adapt], NEW, NEW_Y)
    assert both.full.cost > 50
    assert both.at(tolerance=0.5).cost < 50


@pytest.mark.parametrize("y", [Y, Y3], ids=["two classes", "three classes"])
@pytest.mark.parametrize("n_estimators", [1, 20, 30])
def test_prefixes_are_systems_of_their_own(y, n_estimators):
    model = miser(n_estimators=n_estimators, feature_costs=COSTS).fit(X, y)
    systems = model.staged_systems()
    assert systems[-1] is model.system_
    assert len(systems) == {1: 1, 20: 4, 30: 5}[n_estimators]
    costs = [system.acquisition_cost(NEW).mean() for system in systems]
    assert costs == sorted(costs)
    losses = [-np.log(s.predict_proba(X)[np.arange(len(X)), y]).mean() for s in systems]
    assert losses == sorted(losses, reverse=True)
    if n_estimators > 4:
        short = miser(n_estimators=4, feature_costs=COSTS).fit(X, y)
        np.testing.assert_allclose(
            systems[0].predict_proba(NEW), short.predict_proba(NEW), atol=1e-12
        )


def test_several_penalties_in_one_fit():
    model = miser(cost_penalty=[0.001, 0.05, 0.01], feature_costs=COSTS).fit(X, Y)
    found = 0
    for penalty in (0.05, 0.01, 0.001):
        single = miser(cost_penalty=penalty, feature_costs=COSTS).fit(X, Y)
        for system in single.staged_systems():
            mine = model.staged_systems()[found]
            np.testing.assert_array_equal(mine.predict_proba(NEW), system.predict_proba(NEW))
            found += 1
    assert found == len(model.staged_systems())
    np.testing.assert_array_equal(model.predict_proba(NEW), single.predict_proba(NEW))
    history = model.history_
    assert len({len(values) for values in history.values()}) == 1
    assert list(dict.fromkeys(history["cost_penalty"])) == [0.05, 0.01, 0.001]


def test_the_record_is_one_entry_per_round(model):
    history = model.history_
    assert {"iteration", "objective", "n_columns", "cost", "cost_penalty"} <= set(history)
    assert history["iteration"].tolist() == list(range(21))
    assert np.diff(history["objective"]).max() <= 1e-9
    assert history["n_columns"][-1] == len(model.stages_[0].columns)
    assert history["cost"][-1] == COSTS.of(model.stages_[0].columns.tolist())
    assert np.diff(history["cost"]).min() >= 0


def test_other_prices_keep_the_stages(model):
    dear = model.with_costs(np.full(5, 10.0))
    np.testing.assert_array_equal(dear.predict_proba(NEW), model.predict_proba(NEW))
    assert len(dear.staged_systems()) == len(model.staged_systems())
    assert all(s.costs == dear.system_.costs for s in dear.staged_systems())
    assert not any(s.has_full for s in dear.staged_systems())
    assert all(s.costs == COSTS for s in model.staged_systems())
    assert (dear.acquisition_cost(NEW) == 10 * len(model.stages_[0].columns)).all()


def test_a_larger_penalty_never_buys_more_and_a_huge_one_nothing():
    costs = []
    for penalty in (0.0, 0.001, 0.01, 0.03, 0.1, 1e6):
        model = miser(cost_penalty=penalty, feature_costs=COSTS).fit(X, Y)
        costs.append(model.acquisition_cost(NEW)[0])
    assert costs == sorted(costs, reverse=True)
    assert costs[0] >= 9  # columns 0, 1 and 2 tell everything
    assert costs[-1] == 0
    assert (model.predict(NEW) == int(Y.mean() > 0.5)).all()
    np.testing.assert_allclose(model.predict_proba(NEW)[:, 1], Y.mean())


def test_missing_cells_and_text_need_no_full_model():
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    assert miser().fit(holes, Y).score(holes, Y) > 0.85
    assert miser().__sklearn_tags__().input_tags.allow_nan
    colour = np.array(["red", "green", None], dtype=object)[np.arange(len(Y)) % 3]
    y = np.where(colour == "red", "stop", np.array(["go", "wait"])[Y])
    frame = pd.DataFrame(X, columns=list("abcde")).assign(colour=colour)
    answers = []
    for table in (frame, pl.from_pandas(frame), frame.astype({"colour": "category"})):
        model = miser(feature_costs={**dict.fromkeys("abcde", 2.0), "colour": 1.0}).fit(table, y)
        assert model.score(table, y) > 0.9
        assert model.classes_.tolist() == ["go", "stop", "wait"]
        assert model.acquisition_mask(table)[:, 5].all()
        answers.append(model.predict_proba(table))
    np.testing.assert_array_equal(answers[0], answers[1])
    np.testing.assert_array_equal(answers[0], answers[2])


def test_the_estimator_is_ignored(model):
    other = miser(estimator=LogisticRegression(), feature_costs=COSTS, n_jobs=2).fit(X, Y)
    np.testing.assert_array_equal(other.predict_proba(NEW), model.predict_proba(NEW))


def test_it_pickles_and_holds_no_rows(model):
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(NEW), model.predict_proba(NEW))
    np.testing.assert_array_equal(again.acquisition_cost(NEW), model.acquisition_cost(NEW))
    small, large = (
        len(pickle.dumps(miser().fit(*piecewise(n, n_columns=2 + 1)).system_)) for n in (300, 3000)
    )
    assert large < small + 2000


def test_weights_are_respected():
    heavy = np.where(X[:, 1] > 0.3, 0.0, 1.0)
    model = miser().fit(X, Y, heavy)
    assert 2 not in model.stages_[0].columns
    assert model.score(X[heavy > 0], Y[heavy > 0]) == 1.0
    equal = miser().fit(X, Y, np.full(len(Y), 1.0))
    np.testing.assert_array_equal(equal.predict_proba(X), miser().fit(X, Y).predict_proba(X))


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"cost_penalty": -1.0}, "cost_penalty"),
        ({"cost_penalty": [0.1, np.nan]}, "cost_penalty"),
        ({"cost_penalty": []}, "cost_penalty"),
        ({"n_estimators": 0}, "n_estimators"),
        ({"max_depth": 0}, "max_depth"),
        ({"learning_rate": 0}, "learning_rate"),
        ({"newton": "yes"}, "newton"),
        ({"lightgbm_params": {"metric": "auc"}}, "lightgbm_params: metric"),
        ({"lightgbm_params": "depth=3"}, "lightgbm_params"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(options, name):
    with pytest.raises((ValueError, TypeError), match=name):
        miser(**options).fit(X, Y)
