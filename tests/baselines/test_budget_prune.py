"""BudgetPruneClassifier: the contract of routed classifiers, its ways to prune, and what it refuses."""

import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from sparing.adapt import AdaptLinClassifier
from sparing.baselines._pruned_forest import held_out
from sparing.baselines.budget_prune import BudgetPruneClassifier
from sparing.costs import FeatureCosts

PATH = [0.1, 0.03, 0.01, 0.003, 0.001]


@pytest.fixture(scope="module")
def data():
    """Three classes, eight columns of which four matter, in three thirds: training, pruning, test."""
    X, y = make_classification(
        900, 8, n_informative=4, n_redundant=1, n_classes=3, class_sep=1.5, random_state=0
    )
    return X, np.array(["low", "mid", "high"])[y]


@pytest.fixture(scope="module")
def forest(data):
    X, y = data
    return RandomForestClassifier(10, random_state=0).fit(X[:300], y[:300])


@pytest.fixture(scope="module")
def fitted(data, forest):
    X, y = data
    return BudgetPruneClassifier(forest, cost_penalty=PATH).fit(X[300:600], y[300:600])


def small(**options):
    return RandomForestClassifier(**{"n_estimators": 8, "random_state": 0} | options)


# -- the contract -----------------------------------------------------------------------------------


def test_answers_with_the_pruned_forest(data, forest, fitted):
    X, y = data[0][600:], data[1][600:]
    assert fitted.estimator_ is forest
    assert fitted.classes_.tolist() == ["high", "low", "mid"]
    assert fitted.score(X, y) > 0.7
    assert not fitted.route(X).any()
    proba = fitted.predict_proba(X)
    assert proba.sum(axis=1) == pytest.approx(1)
    assert np.array_equal(fitted.classes_[proba.argmax(axis=1)], fitted.predict(X))
    assert [stage.name for stage in fitted.stages_] == ["pruned"]
    assert "1 stage," in repr(fitted.system_)
    told = fitted.explain(X[:3])
    assert [row["cost"] for row in told] == pytest.approx(fitted.acquisition_cost(X[:3]).tolist())


def test_pays_by_path_unless_asked_otherwise(data, fitted):
    X = data[0][600:]
    cheap = fitted.staged_systems()[1]
    mask = cheap.acquisition_mask(X)
    assert np.array_equal(mask, cheap.acquisition_mask(X, accounting="path"))
    stage = cheap.acquisition_mask(X, accounting="stage")
    assert np.array_equal(np.flatnonzero(stage[0]), cheap.stages[0].columns)
    assert (mask <= stage).all()
    assert mask.sum() < stage.sum()
    # Nothing that is not paid for is looked at.
    garbage = np.where(mask, X, -1e9)
    assert np.array_equal(cheap.predict_proba(garbage), cheap.predict_proba(X))


def test_a_path_is_nested_and_its_history_is_what_the_systems_do(data, forest, fitted):
    X, y = data[0][300:600], data[1][300:600]
    history, systems = fitted.history_, fitted.staged_systems()
    assert history["cost_penalty"].tolist() == PATH
    assert systems[-1] is fitted.system_
    for system, cost, error, size in zip(
        systems, history["cost"], history["error"], history["n_splits"], strict=True
    ):
        assert system.acquisition_cost(X).mean() == pytest.approx(cost)
        trees = system.stages[0].predictor.model.estimators_
        wrong = [forest.classes_[tree.predict(X).astype(int)] != y for tree in trees]
        assert np.mean(wrong) == pytest.approx(error)
        assert system.stages[0].predictor.sizes.sum() == size
    value = history["error"] + history["cost_penalty"] * history["cost"]
    assert history["objective"] == pytest.approx(value)
    assert history["objective"] == pytest.approx(history["bound"], abs=1e-8)
    for cheap, dear in pairwise(systems):
        assert (cheap.acquisition_mask(X) <= dear.acquisition_mask(X)).all()
        assert (cheap.stages[0].predictor.sizes <= dear.stages[0].predictor.sizes).all()
    assert history["n_splits"][0] < history["n_splits"][-1]


def test_order_of_the_penalties_does_not_matter(data, forest, fitted):
    X, y = data
    turned = BudgetPruneClassifier(forest, cost_penalty=PATH[::-1]).fit(X[300:600], y[300:600])
    assert turned.history_["cost_penalty"].tolist() == PATH
    assert np.array_equal(turned.predict_proba(X), fitted.predict_proba(X))


def test_methods_agree(data, forest, fitted):
    X, y = data
    dual = BudgetPruneClassifier(forest, cost_penalty=PATH, method="primal-dual", max_iter=500)
    dual.fit(X[300:600], y[300:600])
    assert dual.history_["objective"] == pytest.approx(fitted.history_["objective"], abs=1e-4)
    assert (dual.history_["bound"] <= fitted.history_["objective"] + 1e-9).all()


def test_large_problems_are_left_to_the_primal_dual(data, forest, monkeypatch, capsys):
    X, y = data
    model = BudgetPruneClassifier(forest, cost_penalty=0.01, max_iter=20, verbose=1)
    model.fit(X[300:600], y[300:600])
    assert "minimum cut" in capsys.readouterr().out
    monkeypatch.setattr("sparing.baselines.budget_prune._MOST_EDGES", 10)
    model.fit(X[300:600], y[300:600])
    assert "prices between trees" in capsys.readouterr().out


def test_free_splits_cost_nothing(data, forest, fitted):
    X, y = data
    filled = BudgetPruneClassifier(forest, cost_penalty=PATH, keep_free=True)
    filled.fit(X[300:600], y[300:600])
    assert filled.history_["cost"] == pytest.approx(fitted.history_["cost"])
    assert (filled.history_["n_splits"] >= fitted.history_["n_splits"]).all()
    assert (filled.history_["error"] >= fitted.history_["error"] - 1e-12).all()


def test_reprices_all_its_systems(data, fitted):
    X = data[0][600:]
    dear = fitted.with_costs(np.full(8, 10.0))
    assert dear.acquisition_cost(X) == pytest.approx(10 * fitted.acquisition_cost(X))
    for new, old in zip(dear.staged_systems(), fitted.staged_systems(), strict=True):
        assert new.acquisition_cost(X) == pytest.approx(10 * old.acquisition_cost(X))


def test_pickles_and_clones(data, fitted):
    X = data[0][600:]
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.predict_proba(X), fitted.predict_proba(X))
    assert len(again.staged_systems()) == len(PATH)
    assert clone(fitted).get_params()["cost_penalty"] == PATH


def test_is_a_full_model_itself(data, fitted):
    X, y = data
    adaptive = AdaptLinClassifier(FrozenEstimator(fitted), full_rate=0.5, random_state=0)
    adaptive.fit(X[600:], y[600:])
    assert adaptive.stages_[-1] is fitted.stages_[0]
    assert adaptive.system_.costs == fitted.system_.costs
    gone = adaptive.route(X) == 1
    assert gone.any()
    assert np.array_equal(adaptive.predict(X)[gone], fitted.predict(X)[gone])


def test_searches_over_penalties(data):
    X, y = data
    model = BudgetPruneClassifier(small(), random_state=0)
    search = GridSearchCV(model, {"cost_penalty": [1.0, 0.003]}, cv=3).fit(X[:300], y[:300])
    assert search.best_params_ == {"cost_penalty": 0.003}


# -- prices -----------------------------------------------------------------------------------------


def test_free_columns_are_kept_and_dear_ones_go(data, forest):
    X, y = data
    prices = np.array([1e3, 0, 0, 0, 0, 0, 0, 0.0])
    model = BudgetPruneClassifier(forest, feature_costs=prices, cost_penalty=0.01)
    model.fit(X[300:600], y[300:600])
    assert not model.acquisition_mask(X)[:, 0].any()
    assert not model.acquisition_cost(X).any()
    assert model.score(X[600:], y[600:]) > 0.6


def test_shared_and_derived_columns_are_paid_once(data, forest):
    X, y = data
    costs = FeatureCosts(
        [1, 1, 1, 1, 0, 0, 1, 1], shared={"panel": (2, [4, 5, 6])}, derived={7: [0, 1]}
    )
    model = BudgetPruneClassifier(forest, feature_costs=costs, cost_penalty=PATH)
    model.fit(X[300:600], y[300:600])
    for system, cost in zip(model.staged_systems(), model.history_["cost"], strict=True):
        assert system.acquisition_cost(X[300:600]).mean() == pytest.approx(cost)
    owned = np.ones(len(costs.items), dtype=bool)
    assert not model.acquisition_cost(X, owned=owned).any()


def test_auto_is_a_price_for_everything(data, forest):
    X, y = data
    for prices, expected in ((np.full(8, 2.0), 0.05 / 16), (np.zeros(8), 0.0)):
        model = BudgetPruneClassifier(forest, feature_costs=prices).fit(X[300:600], y[300:600])
        assert model.history_["cost_penalty"].tolist() == [pytest.approx(expected)]


def test_only_the_ratio_of_prices_to_penalty_matters(data, forest):
    X, y = data
    prices = np.arange(1, 9.0)
    one, other = (
        BudgetPruneClassifier(forest, feature_costs=f * prices, cost_penalty=0.016 / f)
        for f in (1, 1024)
    )
    for model in (one, other):
        model.fit(X[300:600], y[300:600])
    assert np.array_equal(one.predict_proba(X), other.predict_proba(X))


# -- rows to prune by -------------------------------------------------------------------------------


def test_out_of_bag_of_a_new_forest(data):
    X, y = data
    new = BudgetPruneClassifier(small(), cost_penalty=PATH, random_state=0).fit(X, y)
    told = BudgetPruneClassifier(small().fit(X, y), cost_penalty=PATH, pruning="oob").fit(X, y)
    assert new.history_["objective"] == pytest.approx(told.history_["objective"])
    assert np.array_equal(new.predict_proba(X), told.predict_proba(X))
    # A tree's in-bag rows would be nearly all right.
    assert new.history_["error"][-1] > 0.05


def test_a_share_held_out(data):
    X, y = data
    model = BudgetPruneClassifier(small(), pruning=0.25, random_state=0).fit(X, y)
    assert model.estimator_._n_samples == pytest.approx(0.75 * len(y), abs=3)
    again = BudgetPruneClassifier(small(), pruning=0.25, random_state=0).fit(X, y)
    assert np.array_equal(model.predict_proba(X), again.predict_proba(X))


def test_rare_classes_stay_with_the_forest(data):
    X, y = data
    y = y.astype("<U6")
    y[0] = "single"
    model = BudgetPruneClassifier(small(), pruning=0.5, random_state=0).fit(X, y)
    assert "single" in model.classes_


def test_extra_trees_have_no_bag_and_hold_out_instead(data):
    X, y = data
    trees = ExtraTreesClassifier(5, random_state=0)
    model = BudgetPruneClassifier(trees, random_state=0).fit(X, y)
    assert model.estimator_._n_samples < len(y)
    assert model.score(X, y) > 0.7


def test_default_forest(data):
    X, y = data
    model = BudgetPruneClassifier(random_state=0, n_jobs=1).fit(X[:200], y[:200])
    assert isinstance(model.estimator_, RandomForestClassifier)
    assert len(model.estimator_.estimators_) == 100
    jobs = BudgetPruneClassifier(random_state=0, n_jobs=2).fit(X[:200], y[:200])
    assert np.allclose(jobs.predict_proba(X), model.predict_proba(X), atol=1e-15)


def test_a_frozen_forest_is_as_good_as_a_fitted_one(data, forest, fitted):
    X, y = data
    frozen = BudgetPruneClassifier(FrozenEstimator(forest), cost_penalty=PATH)
    frozen = clone(frozen).fit(X[300:600], y[300:600])
    assert np.array_equal(frozen.predict_proba(X), fitted.predict_proba(X))


def test_weights_equal_copies_with_a_fitted_forest(data, forest):
    X, y = data[0][300:600], data[1][300:600]
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    one = BudgetPruneClassifier(forest, cost_penalty=PATH).fit(X, y, sample_weight=weight)
    copies = np.repeat(np.arange(len(y)), weight)
    other = BudgetPruneClassifier(forest, cost_penalty=PATH).fit(X[copies], y[copies])
    assert one.history_["objective"] == pytest.approx(other.history_["objective"])
    assert one.history_["cost"] == pytest.approx(other.history_["cost"])
    assert np.array_equal(one.history_["n_splits"], other.history_["n_splits"])


def test_warns_when_pruned_by_its_own_training_rows(data):
    X, y = data
    order = np.random.default_rng(0).permutation(300)
    for forest, rows in (
        (small(), np.arange(300)),  # in their order: the bags tell
        (small(n_estimators=200), order),  # in any order: no mistakes
        (ExtraTreesClassifier(5, random_state=0), order),
    ):
        forest.fit(X[:300], y[:300])
        with pytest.warns(UserWarning, match="pruning='oob'"):
            BudgetPruneClassifier(forest).fit(X[rows], y[rows])
        BudgetPruneClassifier(FrozenEstimator(forest)).fit(X[rows], y[rows])
        BudgetPruneClassifier(forest).fit(X[300:600], y[300:600])


# -- tables -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_and_prices_by_name(data, frame):
    X, y = data
    names = [f"c{i}" for i in range(8)]
    table = frame(dict(zip(names, X.T, strict=True)))
    prices = {name: 1.0 + i for i, name in enumerate(reversed(names))}
    model = BudgetPruneClassifier(small(), feature_costs=prices, cost_penalty=0.001, random_state=0)
    model.fit(table, y)
    plain = BudgetPruneClassifier(
        small(), feature_costs=np.arange(8.0, 0, -1), cost_penalty=0.001, random_state=0
    ).fit(X, y)
    assert np.array_equal(model.predict_proba(table), plain.predict_proba(X))
    assert np.array_equal(model.acquisition_cost(table), plain.acquisition_cost(X))
    with pytest.raises(ValueError, match="c3"):
        model.predict(table[[name for name in names if name != "c3"]])


def test_a_forest_that_knows_some_of_the_columns(data):
    X, y = data
    table = pd.DataFrame(X, columns=[f"c{i}" for i in range(8)])
    part = ["c5", "c0", "c2", "c3"]
    forest = small().fit(table[part].iloc[:300], y[:300])
    prices = np.arange(1.0, 9)
    model = BudgetPruneClassifier(forest, feature_costs=prices, cost_penalty=[0.01, 0.001])
    model.fit(table.iloc[300:600], y[300:600])
    assert set(model.stages_[0].columns) <= {0, 2, 3, 5}
    cost = model.acquisition_cost(table.iloc[300:600]).mean()
    assert cost == pytest.approx(model.history_["cost"][-1])


def test_missing_cells_follow_the_trees(data):
    X, y = data
    X = X.copy()
    X[np.random.default_rng(0).uniform(size=X.shape) < 0.1] = np.nan
    model = BudgetPruneClassifier(small(), cost_penalty=0.003, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.7


# -- refusals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        make_pipeline(StandardScaler(), RandomForestClassifier()),
        RandomForestRegressor(),
        "forest",
    ],
)
def test_refuses_what_is_not_a_forest(data, estimator):
    name = type(estimator).__name__
    with pytest.raises(TypeError, match=f"{name}, which is not a forest"):
        BudgetPruneClassifier(estimator).fit(*data)


def test_refuses_a_frozen_forest_that_was_never_fitted(data):
    with pytest.raises(NotFittedError, match="RandomForestClassifier"):
        BudgetPruneClassifier(FrozenEstimator(RandomForestClassifier())).fit(*data)


def test_refuses_a_forest_of_other_columns(data, forest):
    X, y = data
    with pytest.raises(ValueError, match="fitted on 8 columns, X has 5"):
        BudgetPruneClassifier(forest).fit(X[:, :5], y)
    named = small().fit(pd.DataFrame(X, columns=[f"c{i}" for i in range(8)]), y)
    other = pd.DataFrame(X, columns=[f"c{i}" for i in range(7)] + ["weight"])
    with pytest.raises(ValueError, match=r"does not have: \['c7'\]"):
        BudgetPruneClassifier(named).fit(other, y)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.from_pandas])
@pytest.mark.parametrize("fitted", [False, True])
def test_text_is_refused_by_name(library, fitted):
    numbers = pd.DataFrame({"age": np.arange(40.0), "colour": np.arange(40.0) % 3})
    y = np.arange(40) % 2
    forest = RandomForestClassifier(3, random_state=0)
    if fitted:
        forest.fit(numbers, y)
    texts = library(numbers.assign(colour=["red", "blue"] * 20))
    with pytest.raises(ValueError, match=r"'colour'.*'red'.*encode before"):
        BudgetPruneClassifier(forest).fit(texts, y)


def test_refuses_rows_of_fewer_columns_later(data, fitted):
    with pytest.raises(ValueError, match="5 features"):
        fitted.predict(data[0][:, :5])


def test_refuses_classes_the_forest_has_not_seen(data, forest):
    X, y = data
    y = y.astype("<U6").copy()
    y[400] = "absent"
    with pytest.raises(ValueError, match=r"pruning rows have labels.*absent"):
        BudgetPruneClassifier(forest).fit(X[300:600], y[300:600])


@pytest.mark.parametrize("penalty", [-0.1, np.nan, np.inf, [0.1, -0.2], [0.1, np.nan], [], "much"])
def test_refuses_penalties_that_are_no_prices(data, forest, penalty):
    with pytest.raises(ValueError, match="cost_penalty"):
        BudgetPruneClassifier(forest, cost_penalty=penalty).fit(*data)


@pytest.mark.parametrize("pruning", [0, 1.0, -0.3, np.nan, "holdout", None])
def test_refuses_other_ways_to_choose_rows(data, pruning):
    with pytest.raises(ValueError, match="pruning"):
        BudgetPruneClassifier(small(), pruning=pruning).fit(*data)


def test_refuses_to_hold_rows_out_of_a_fitted_forest(data, forest):
    with pytest.raises(ValueError, match=r"pruning=0.3 holds rows out.*is fitted"):
        BudgetPruneClassifier(forest, pruning=0.3).fit(*data)


def test_refuses_a_share_that_holds_nothing_out(data):
    X, y = data
    with pytest.raises(ValueError, match="holds out none"):
        BudgetPruneClassifier(small(), pruning=0.01).fit(X[:60], y[:60])


def test_refuses_held_out_rows_without_weight(data):
    X, y = data
    model = BudgetPruneClassifier(small(), pruning=0.3, random_state=0).fit(X, y)
    held = held_out(y, 0.3, 0)
    assert model.estimator_._n_samples == (~held).sum()
    with pytest.raises(ValueError, match="sample_weight is 0 for all 269 rows held out"):
        model.fit(X, y, sample_weight=~held)


def test_refuses_out_of_bag_without_a_bag(data, forest):
    X, y = data
    with pytest.raises(ValueError, match="ExtraTreesClassifier has none"):
        BudgetPruneClassifier(ExtraTreesClassifier(3), pruning="oob").fit(X, y)
    with pytest.raises(ValueError, match="ExtraTreesClassifier has none"):
        BudgetPruneClassifier(ExtraTreesClassifier(3).fit(X, y), pruning="oob").fit(X, y)
    with pytest.raises(ValueError, match="fitted on 300 rows, here are 900"):
        BudgetPruneClassifier(forest, pruning="oob").fit(X, y)


def test_refuses_several_targets(data):
    X, y = data
    both = RandomForestClassifier(3).fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="2 targets"):
        BudgetPruneClassifier(both).fit(X, y)


def test_refuses_prices_of_other_columns(data, forest):
    with pytest.raises(ValueError, match="prices 2 columns, X has 8"):
        BudgetPruneClassifier(forest, feature_costs=[1, 2]).fit(*data)


# -- scikit-learn -----------------------------------------------------------------------------------


def expected_failures(estimator):
    return {
        "check_sample_weight_equivalence_on_dense_data": (
            "the forest is fitted here, and its bootstrap samples depend on the number of rows; with a fitted one "
            "weights equal copies (test_weights_equal_copies_with_a_fitted_forest)"
        )
    }


@parametrize_with_checks(
    [BudgetPruneClassifier(RandomForestClassifier(5, random_state=0), random_state=0)],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([BudgetPruneClassifier()], expected_failed_checks=expected_failures)
def test_scikit_learn_checks_of_the_default(estimator, check):
    check(estimator)
