"""What Adapt-Gbrt and GreedyMiser share: prefixes, histories, engines for one penalty after the other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier

from sparing import AdaptGbrtClassifier, FeatureCosts, GreedyMiserClassifier
from sparing._boosted import prefixes, round_history
from sparing._routed import Training
from sparing.engines.binning import BinnedData
from sparing.engines.boosting import BoostingEngine

X = np.random.default_rng(0).normal(size=(120, 3))
Y = (X[:, 0] + X[:, 1] > 0).astype(int)
COSTS = FeatureCosts([1.0, 2.0, 4.0], shared={"visit": (3.0, [0, 1])})


@given(st.integers(0, 5000))
def test_prefixes_grow_and_end_with_all(n):
    sizes = prefixes(n)
    assert sizes[-1] is None
    assert sizes[:-1] == sorted(set(sizes[:-1]))
    assert all(4 <= size < 0.8 * n for size in sizes[:-1])
    assert len(sizes) < 20


def test_history_of_a_single_run():
    engine = BoostingEngine(BinnedData(X), Y, 2, COSTS, n_estimators=9, cost_penalty=0.01)
    grown = engine.grow(np.zeros(len(Y)))
    history = round_history(grown, COSTS, 0.01)
    assert {len(values) for values in history.values()} == {10}
    assert history["iteration"].tolist() == list(range(10))
    assert history["cost"][0] == 0
    assert history["cost"][-1] == COSTS.of([column for column, _ in grown.bought])
    np.testing.assert_allclose(
        history["objective"] - 0.01 * history["cost"], grown.history["objective"]
    )
    assert (history["allocation_rate"] == 0).all()


def test_a_shared_item_enters_the_history_once():
    engine = BoostingEngine(BinnedData(X), Y, 2, COSTS, n_estimators=9, cost_penalty=0.0)
    history = round_history(engine.grow(np.zeros(len(Y))), COSTS, 0.0)
    assert history["cost"].max() <= COSTS.total


def test_engines_share_their_rows_and_start_with_the_largest_penalty():
    model = GreedyMiserClassifier(cost_penalty=[0.1, 0.5, 0.2], n_estimators=7, learning_rate=0.3)
    training = Training(X, Y, None, COSTS, np.array([0, 1]), 0)
    engines = list(model._engines(training, gate=False))
    assert [engine.cost_penalty for engine in engines] == [0.5, 0.2, 0.1]
    assert len({id(engine.data) for engine in engines}) == 1
    assert {engine.n_estimators for engine in engines} == {7}
    assert not any(engine.gate for engine in engines)


@pytest.mark.parametrize("newton", [True, False])
def test_auto_does_not_depend_on_the_currency(newton):
    cents = FeatureCosts([100.0, 200.0, 400.0], shared={"visit": (300.0, [0, 1])})
    one, other = (
        GreedyMiserClassifier(n_estimators=8, newton=newton, feature_costs=c).fit(X, Y)
        for c in (COSTS, cents)
    )
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X))


class Untouched(DecisionTreeClassifier):
    """A full model that takes hours, so nothing wrong may be found only after it."""

    def fit(self, *_, **__):
        raise AssertionError("fitted")


FORBIDDEN = {
    "objective": "binary",
    "num_class": 3,
    "metric": "auc",
    "boost_from_average": True,
    "linear_tree": True,
    "boosting": "dart",
    "cegb_tradeoff": 2.0,
    "cegb_penalty_feature_coupled": [1.0],
    "max_bin": 15,
    "categorical_feature": [0],
    "use_missing": False,
    "device": "gpu",
    "device_type": "cuda",
    "tree_learner": "data",
    "eta": 0.1,
    "n_jobs": 4,
    "reg_lambda": 1.0,
}


@pytest.mark.parametrize("name", FORBIDDEN)
@pytest.mark.parametrize("make", [AdaptGbrtClassifier, GreedyMiserClassifier])
def test_parameters_that_would_break_the_prices_are_refused_first(make, name):
    model = make(Untouched(), lightgbm_params={name: FORBIDDEN[name]})
    with pytest.raises(ValueError, match=f"lightgbm_params: {name}"):
        model.fit(X, Y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_estimators": 0}, "n_estimators"),
        ({"n_estimators": 2.5}, "n_estimators"),
        ({"max_depth": 0}, "max_depth"),
        ({"max_depth": None}, "max_depth"),
        ({"learning_rate": 0}, "learning_rate"),
        ({"learning_rate": -0.1}, "learning_rate"),
        ({"learning_rate": np.nan}, "learning_rate"),
        ({"learning_rate": np.inf}, "learning_rate"),
        ({"newton": "yes"}, "newton"),
        ({"lightgbm_params": [("max_bin", 3)]}, "lightgbm_params"),
        ({"cost_penalty": -0.1}, "cost_penalty"),
        ({"cost_penalty": [0.1, np.inf]}, "cost_penalty"),
        ({"cost_penalty": []}, "cost_penalty"),
    ],
)
@pytest.mark.parametrize("make", [AdaptGbrtClassifier, GreedyMiserClassifier])
def test_wrong_settings_are_refused_first(make, options, message):
    with pytest.raises(ValueError, match=message):
        make(Untouched(), **options).fit(X, Y)


def test_allowed_parameters_reach_lightgbm():
    plain = GreedyMiserClassifier(n_estimators=5, random_state=0).fit(X, Y)
    stumps = GreedyMiserClassifier(
        n_estimators=5, random_state=0, lightgbm_params={"num_leaves": 2}
    )
    assert not np.allclose(stumps.fit(X, Y).predict_proba(X), plain.predict_proba(X))
    assert stumps.lightgbm_params == {"num_leaves": 2}
