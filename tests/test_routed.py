"""The contract of every routed classifier: answers, money, checks of what is passed, scikit-learn's grammar."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from routed_models import (
    COLUMNS,
    COSTS,
    FOREST,
    NEW,
    NEW_Y,
    PRICES,
    TREE,
    X,
    Y,
    as_frame,
    gbrt,
    is_hard,
    lin,
    rows,
    three_classes,
)
from sparing import FeatureCosts
from sparing.system import System


@pytest.fixture(scope="module", params=[lin, gbrt])
def make(request):
    return request.param


@pytest.fixture(scope="module")
def model(make):
    return make(feature_costs=PRICES).fit(X, Y)


# -- answers --------------------------------------------------------------------------------------------


def test_each_row_gets_the_answer_of_its_own_stage(model):
    route, proba = model.route(NEW), model.predict_proba(NEW)
    assert set(route) == {0, 1}
    cheap, full = model.cheap_.predict_proba(NEW), model.estimator_.predict_proba(NEW)
    np.testing.assert_allclose(proba, np.where(route[:, None] == 1, full, cheap))
    assert np.array_equal(model.predict(NEW), model.classes_[proba.argmax(axis=1)])
    assert model.score(NEW, NEW_Y) == np.mean(model.predict(NEW) == NEW_Y)


def test_gate_above_zero_sends_a_row_to_the_full_model(model):
    gate = model.gate_function(NEW)
    assert gate.min() < 0 < gate.max()
    assert np.array_equal(model.route(NEW), (gate > 0).astype(int))
    np.testing.assert_array_equal(model.gate_.score(NEW, model.cheap_.predict_proba(NEW)), gate)


def test_the_gate_sends_on_what_the_cheap_stage_cannot_tell(make):
    full = FrozenEstimator(TREE.__class__(max_depth=3).fit(*rows(1000, seed=2)))
    model = make(full, feature_costs=PRICES, cost_penalty=0.01).fit(*rows(600, seed=3))
    assert model.stages_[0].columns.tolist() == [0, 1]
    X, y = rows(400, seed=4)
    route, hard = model.route(X), is_hard(X)
    assert route[hard].mean() > route[~hard].mean() + 0.5
    wrong = model.with_thresholds(np.inf).predict(X) != y
    assert route[wrong].mean() > route[~wrong].mean() + 0.3
    assert model.score(X, y) > max(0.95, 1 - wrong.mean())


def test_decision_function_is_the_log_odds_of_the_answering_stage(model):
    proba, odds = model.predict_proba(NEW), model.decision_function(NEW)
    inside = (proba > 0).all(axis=1)
    np.testing.assert_allclose(odds[inside], np.log(proba[inside, 1] / proba[inside, 0]))
    assert np.isfinite(odds).all()
    untied = odds != 0
    assert np.array_equal((odds > 0)[untied], (model.predict(NEW) == 1)[untied])


def test_three_classes_have_no_decision_function(make):
    X3, y3 = three_classes()
    model = make().fit(X3, y3)
    assert not hasattr(model, "decision_function")
    assert model.predict_proba(X3).shape == (len(X3), 3)
    np.testing.assert_allclose(model.predict_proba(X3).sum(axis=1), 1.0)
    assert model.score(X3, y3) > 0.8


# -- money ----------------------------------------------------------------------------------------------


def test_mask_and_cost_are_those_of_the_stages_entered(model):
    route, mask = model.route(NEW), model.acquisition_mask(NEW)
    cheap, full = (set(stage.columns.tolist()) for stage in model.stages_)
    for stage, bought in zip(route, mask, strict=True):
        assert set(np.flatnonzero(bought)) == (cheap | full if stage else cheap)
    cost = model.acquisition_cost(NEW)
    np.testing.assert_allclose(cost, PRICES.of(mask) + 0.5 * route)
    assert cost[route == 0].max() < cost[route == 1].min()


def test_by_path_no_row_pays_more(model):
    by_path = model.acquisition_mask(NEW, accounting="path")
    assert not (by_path & ~model.acquisition_mask(NEW)).any()
    cost = model.acquisition_cost(NEW, accounting="path")
    np.testing.assert_allclose(cost, PRICES.of(by_path) + 0.5 * model.route(NEW))
    assert (cost <= model.acquisition_cost(NEW) + 1e-12).all()


def test_owned_items_are_free_for_their_row(model):
    cost, bought = model.acquisition_cost(NEW), PRICES.items_of(model.acquisition_mask(NEW))
    owned = np.random.default_rng(0).random(bought.shape) < 0.5
    saved = (bought & owned) @ PRICES.item_prices
    np.testing.assert_allclose(model.acquisition_cost(NEW, owned=owned), cost - saved)
    everything = np.ones(len(PRICES.items), dtype=bool)
    np.testing.assert_allclose(
        model.acquisition_cost(NEW, owned=everything), 0.5 * model.route(NEW)
    )


def test_explanations_agree_with_the_other_answers(model):
    told = model.explain(NEW)
    assert [row["stage"] for row in told] == model.route(NEW).tolist()
    assert [row["prediction"] for row in told] == model.predict(NEW).tolist()
    np.testing.assert_allclose([row["cost"] for row in told], model.acquisition_cost(NEW))
    np.testing.assert_allclose([row["exits"][0]["score"] for row in told], model.gate_function(NEW))
    for row in told:
        assert row["cost"] == pytest.approx(sum(row["items"].values()) + row["call_price"])
        assert row["exits"][0]["threshold"] == 0.0
        assert row["exits"][0]["goes_on"] == (row["stage"] == 1)


def test_other_prices_change_the_bill_and_nothing_else(model):
    dear = model.with_costs(FeatureCosts([10.0, 20.0, 30.0, 40.0]))
    assert np.array_equal(dear.predict(NEW), model.predict(NEW))
    assert np.array_equal(dear.acquisition_mask(NEW), model.acquisition_mask(NEW))
    np.testing.assert_allclose(
        dear.acquisition_cost(NEW), model.acquisition_mask(NEW) @ [10.0, 20.0, 30.0, 40.0]
    )
    assert all(system.costs == dear.system_.costs for system in dear.staged_systems())
    assert model.system_.costs == PRICES
    assert all(system.costs == PRICES for system in model.staged_systems())


def test_other_thresholds_send_other_shares(model):
    shares = [model.with_thresholds(t).route(NEW).mean() for t in (np.inf, 0.5, 0.0, -0.5, -np.inf)]
    assert shares[0] == 0
    assert shares[-1] == 1
    assert shares == sorted(shares)
    assert len(set(shares)) > 3
    assert shares[2] == model.route(NEW).mean()
    moved = model.with_thresholds([0.5])
    assert moved.system_.thresholds == (0.5,)
    assert model.system_.thresholds == (0.0,)


def test_one_fit_yields_many_systems(model):
    systems = model.staged_systems()
    assert all(isinstance(system, System) for system in systems)
    ends = [i for i, system in enumerate(systems) if system.thresholds[0] == -np.inf]
    assert ends[-1] == len(systems) - 1
    start = 0
    for end in ends:  # one gate each: from nobody to everybody
        shares = [system.route(X).mean() for system in systems[start : end + 1]]
        assert shares[0] == 0
        assert shares[-1] == 1
        assert shares == sorted(shares)
        start = end + 1


def test_what_a_fit_leaves_behind(model):
    assert isinstance(model.system_, System)
    assert model.stages_ == model.system_.stages
    assert len(model.stages_) == 2
    assert model.cheap_ is model.stages_[0].predictor
    assert model.gate_ is model.stages_[0].gate
    assert model.allocation_.shape == (len(X),)
    assert ((model.allocation_ >= 0) & (model.allocation_ <= 1)).all()
    assert model.allocation_.mean() <= 0.5 + 1e-9
    keys = {"iteration", "objective", "allocation_rate", "n_columns", "cost"}
    assert keys <= set(model.history_)
    assert len({len(values) for values in model.history_.values()}) == 1
    assert model.n_iter_ == model.history_["iteration"][-1] >= 1
    assert model.history_["allocation_rate"].max() <= 0.5 + 1e-9
    assert model.classes_.tolist() == [0, 1]
    assert model.n_features_in_ == 4
    assert isinstance(model.estimator_, DecisionTreeClassifier)
    assert model.estimator_ is not model.estimator
    assert not hasattr(model.estimator, "classes_")


# -- frames ---------------------------------------------------------------------------------------------


def everything_said(model, X):
    return [
        model.predict(X),
        model.predict_proba(X),
        model.decision_function(X),
        model.route(X),
        model.gate_function(X),
        model.acquisition_mask(X),
        model.acquisition_mask(X, accounting="path"),
        model.acquisition_cost(X),
        np.array([row["cost"] for row in model.explain(X)]),
    ]


@pytest.mark.parametrize(
    "frame", [lambda X: pd.DataFrame(X, columns=COLUMNS), lambda X: pl.DataFrame(X, COLUMNS)]
)
def test_frames_give_the_answers_of_arrays(make, model, frame):
    framed = make(feature_costs=COSTS).fit(frame(X), Y)
    assert framed.feature_names_in_.tolist() == COLUMNS
    for one, other in zip(
        everything_said(framed, frame(NEW)), everything_said(model, NEW), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_prices_are_found_by_name():
    frame = pd.DataFrame(X, columns=COLUMNS)
    shuffled = {"d": 4.0, "b": 2.0, "a": 1.0, "c": 3.0}
    by_name = lin(feature_costs=shuffled).fit(frame, Y)
    assert by_name.system_.costs.columns == tuple(COLUMNS)
    assert by_name.system_.costs.item_prices.tolist() == [1.0, 2.0, 3.0, 4.0]
    series = lin(feature_costs=pd.Series(shuffled)).fit(pl.DataFrame(X, COLUMNS), Y)
    in_order = lin(feature_costs=[1.0, 2.0, 3.0, 4.0]).fit(frame, Y)
    assert series.system_.costs == by_name.system_.costs == in_order.system_.costs
    numbered = lin(feature_costs={0: 1.0, 1: 2.0, 2: 3.0, 3: 4.0}).fit(pd.DataFrame(X), Y)
    assert numbered.system_.costs.item_prices.tolist() == [1.0, 2.0, 3.0, 4.0]


def mixed(n=160, seed=0):
    """Numbers, a flag, text with a missing value, a category; the text matters."""
    X, y = rows(n, seed)
    colour = np.array(["red", "green", "blue"])[np.random.default_rng(seed).integers(3, size=n)]
    y = np.where(colour == "red", 1, y)
    colour = colour.astype(object)
    colour[0] = None
    frame = pd.DataFrame(X, columns=COLUMNS).assign(colour=colour, old=X[:, 1] > 0)
    frame["size"] = pd.Categorical(np.where(X[:, 2] > 0, "big", "small"))
    return frame, y


@pytest.mark.parametrize("library", [pd.DataFrame, pl.from_pandas])
def test_a_pipeline_sees_raw_columns_and_they_are_what_is_priced(make, library):
    frame, y = mixed()
    coded = OneHotEncoder(handle_unknown="ignore")
    full = Pipeline(
        [
            ("code", ColumnTransformer([("text", coded, ["colour", "size"])], remainder="passthrough")),
            ("tree", DecisionTreeClassifier(max_depth=4, random_state=0)),
        ]
    )  # fmt: skip
    X, costs = (
        library(frame),
        {**dict.fromkeys(COLUMNS, 2.0), "colour": 1.0, "old": 1.0, "size": 1.0},
    )
    model = make(full, feature_costs=costs).fit(X, y)
    assert model.acquisition_mask(X).shape == (160, 7)
    sent = model.with_thresholds(-np.inf)
    assert np.array_equal(sent.predict(X), model.estimator_.predict(X))
    assert (sent.acquisition_cost(X) == 11.0).all()  # the transformer is given every column
    assert 4 in model.stages_[0].columns  # one of three colours settles the row
    assert set(model.explain(X[:1])[0]["items"]) <= set(frame.columns)
    assert model.score(X, y) > 0.8


def test_wrong_columns_are_named_with_the_difference(make):
    frame = pd.DataFrame(X, columns=COLUMNS)
    model = make().fit(frame, Y)
    with pytest.raises(ValueError, match=r"(?s)unseen at fit time:\n- z\n.*now missing:\n- a"):
        model.predict(frame.rename(columns={"a": "z"}))
    with pytest.raises(ValueError, match="now missing:\n- d"):
        model.route(frame[["a", "b", "c"]])
    with pytest.raises(ValueError, match="unseen at fit time:\n- e"):
        model.explain(frame.assign(e=0.0))
    for reordered in (frame[["b", "a", "c", "d"]], pl.DataFrame(frame)[["b", "a", "c", "d"]]):
        with pytest.raises(ValueError, match="'b' where 'a' was, 'a' where 'b' was"):
            model.acquisition_cost(reordered)
    with pytest.raises(
        ValueError, match=r"'d' where 'a' was, 'c' where 'b' was, .*, 'a' where 'd'"
    ):
        model.predict(frame[COLUMNS[::-1]])
    with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 4"):
        make().fit(X, Y).predict(X[:, :3])


# -- what is refused ------------------------------------------------------------------------------------


NAN_Y = np.where(np.arange(len(Y)) == 4, np.nan, Y)


NONE_Y = np.where(np.arange(len(Y)) == 4, None, np.array(["no", "yes"], dtype=object)[Y])


WEIGHT = np.ones(len(Y))


LETTERS = LogisticRegression().fit(X, np.array(["u", "v"])[Y])


@pytest.mark.parametrize(
    ("options", "arguments", "message"),
    [
        ({}, (csr_matrix(X), Y), "[Ss]parse data was passed"),
        ({}, (X[:, 0], Y), "Expected 2D array, got 1D"),
        ({}, (X[:0], Y[:0]), r"0 sample\(s\)"),
        ({}, (as_frame(X)[:0], Y[:0]), r"0 sample\(s\)"),
        ({}, (as_frame(X)[[]], Y), r"0 feature\(s\)"),
        ({}, (X, Y[:-1]), r"inconsistent numbers of samples: \[160, 159\]"),
        ({}, (X, None), "requires y"),
        ({}, (X, 0 * Y), "y has only one class, 0"),
        ({}, (X, np.full(len(Y), "yes")), "y has only one class, 'yes'"),
        ({}, (X, NAN_Y), "y contains NaN or None: 1 of 160 labels, the first in row 4"),
        ({}, (X, NONE_Y), "y contains NaN or None: 1 of 160 labels, the first in row 4"),
        ({}, (X, pd.Series(NONE_Y)), "y contains NaN or None"),
        ({}, (X, pl.Series(NONE_Y.tolist())), "y contains NaN or None"),
        ({}, (X, np.where(NAN_Y == 1, np.inf, Y)), "y contains infinity"),
        ({}, (X, X[:, 0]), "Unknown label type: continuous"),
        ({}, (X, Y, -WEIGHT), "Negative values in .*sample_weight"),
        ({}, (X, Y, 0 * WEIGHT), "(?i)sample.weights? (must contain at least one non-zero|is 0)"),
        ({}, (X, Y, WEIGHT[:-1]), r"sample_weight.shape == \(159,\), expected \(160,\)"),
        ({}, (X, Y, np.nan * WEIGHT), "sample_weight contains NaN"),
        ({"full_rate": 1.2}, (X, Y), "full_rate.*1.2"),
        ({"full_rate": -0.1}, (X, Y), "full_rate.*-0.1"),
        ({"full_rate": np.nan}, (X, Y), "full_rate.*nan"),
        ({"full_rate": [0.2, 1.2]}, (X, Y), "full_rate is a number from 0 to 1.*1.2"),
        ({"cost_penalty": -1.0}, (X, Y), "cost_penalty.*-1.0"),
        ({"cost_penalty": np.inf}, (X, Y), "cost_penalty.*inf"),
        ({"cost_penalty": "cheap"}, (X, Y), "cost_penalty.*'cheap'"),
        ({"cost_penalty": []}, (X, Y), r"cost_penalty .*\[\]"),
        ({"cost_penalty": [0.1, -0.1]}, (X, Y), "cost_penalty .*-0.1"),
        ({"cost_penalty": [np.inf]}, (X, Y), "cost_penalty .*inf"),
        ({"cost_penalty": ["dear"]}, (X, Y), "cost_penalty .*'dear'"),
        ({"cost_penalty": [[0.1]]}, (X, Y), "cost_penalty .*0.1"),
        ({"cv": 1}, (X, Y), "'cv' parameter.*1"),
        ({"cv": "many"}, (X, Y), "'cv' parameter.*'many'"),
        ({"max_iter": 0}, (X, Y), "'max_iter' parameter.*0"),
        ({"tol": -1.0}, (X, Y), "'tol' parameter.*-1.0"),
        ({"random_state": "luck"}, (X, Y), "'random_state' parameter.*'luck'"),
        ({"feature_costs": [1, 1, -1, 1]}, (X, Y), "price of column 2 is -1"),
        ({"feature_costs": [1, np.nan, 1, 1]}, (X, Y), "price of column 1 is nan"),
        ({"feature_costs": [1, 1, 1]}, (X, Y), "prices 3 columns, X has 4"),
        ({"feature_costs": {"a": 1, "b": 1, "c": 1, "z": 1}}, (as_frame(X), Y), "no price for 'd'.* 'z'"),
        ({"feature_costs": dict.fromkeys(COLUMNS, 1)}, (X, Y), "X has no column names"),
        ({"feature_costs": FeatureCosts(np.ones(4), call_price=[0, 1, 2])}, (X, Y), "3 prices for 2 stages"),
        ({"estimator": FrozenEstimator(LETTERS)}, (X, Y), "full model does not know: 0, 1; it knows 'u', 'v'"),
        ({"estimator": FrozenEstimator(LogisticRegression())}, (X, Y), "LogisticRegression .*not fitted"),
        ({"estimator": "forest"}, (X, Y), "str has none of predict_proba"),
    ],
)  # fmt: skip
def test_what_cannot_be_learnt_from_is_refused_by_name(make, options, arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make(**options).fit(*arguments)


def test_init_of_the_wrong_shape_is_refused():
    three, four = np.ones(3), np.ones(4)
    with pytest.raises(ValueError, match=r"init .*\(4,\) and \(4,\); got \[\(3,\), \(4,\)\]"):
        lin(init=(three, four)).fit(X, Y)
    with pytest.raises(ValueError, match=r"init .*\(4, 3\) and \(4,\); got \[\(4,\), \(4,\)\]"):
        lin(init=(four, four)).fit(*three_classes())
    with pytest.raises(ValueError, match=r"init .*got .*, .*, "):
        lin(init=(four, four, four)).fit(X, Y)
    with pytest.raises(ValueError, match="init contains NaN or infinity"):
        lin(init=(four, four * np.nan)).fit(X, Y)
    with pytest.raises(ValueError, match=r"'init' parameter.*'cold'"):
        lin(init="cold").fit(X, Y)
    frame, y = mixed()
    with pytest.raises(ValueError, match=r"init .*needs numbers"):
        lin(None, init=(np.ones(7), np.ones(7))).fit(frame, y, full_proba=np.full(len(y), 0.5))


@pytest.mark.parametrize(
    "method", ["predict", "predict_proba", "decision_function", "route", "gate_function",
               "acquisition_mask", "acquisition_cost", "explain", "with_costs", "with_thresholds"],
)  # fmt: skip
def test_an_unfitted_model_says_so(make, method):
    with pytest.raises(NotFittedError, match="not fitted"):
        getattr(make(), method)(X)
    with pytest.raises(NotFittedError, match="not fitted"):
        make().staged_systems()
    assert not hasattr(make(), "stages_")
    assert not hasattr(make(), "cheap_")


def test_arguments_of_the_answers_are_checked(model):
    with pytest.raises(ValueError, match="accounting is 'stage' or 'path', not 'leaf'"):
        model.acquisition_cost(NEW, accounting="leaf")
    with pytest.raises(ValueError, match="accounting is 'stage' or 'path', not 'leaf'"):
        model.acquisition_mask(NEW, accounting="leaf")
    with pytest.raises(ValueError, match=r"owned has shape \(90, 4\).*\(3, 4\)"):
        model.acquisition_cost(NEW, owned=np.ones((3, 4), dtype=bool))
    with pytest.raises(TypeError, match="owned is boolean"):
        model.acquisition_cost(NEW, owned=np.ones((90, 4)))
    with pytest.raises(ValueError, match="one threshold per gate, 1 here"):
        model.with_thresholds([0.0, 1.0])
    with pytest.raises(ValueError, match="one threshold per gate, 1 here; got nan"):
        model.with_thresholds(np.nan)
    with pytest.raises(ValueError, match="prices 2 columns, X has 4"):
        model.with_costs([1.0, 2.0])


# -- full models that are not fitted here ---------------------------------------------------------------


def test_a_frozen_model_with_more_classes_sets_the_classes(make):
    X3, y3 = three_classes()
    model = make(FrozenEstimator(FOREST.__class__(10, random_state=0).fit(X3, y3))).fit(X, Y)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.predict_proba(NEW).shape == (90, 3)
    assert not hasattr(model, "decision_function")
    assert set(model.with_thresholds(np.inf).predict(NEW)) <= {0, 1}


class Rule:
    """A legacy system that says labels, and nothing else."""

    def predict(self, X):
        return np.where(np.asarray(X)[:, 2] * np.asarray(X)[:, 3] > 0, "yes", "no")


def test_a_rule_can_be_the_full_model(make):
    labels = np.where(is_hard(X), Rule().predict(X), np.where(X[:, 0] > 0, "yes", "no"))
    model = make(Rule()).fit(X, labels)
    assert np.array_equal(model.with_thresholds(-np.inf).predict(NEW), Rule().predict(NEW))
    assert isinstance(model.estimator_, Rule)
    assert model.score(X, labels) > np.mean(Rule().predict(X) == labels)


def test_stored_probabilities_route_and_price_but_do_not_answer(make):
    stored = FOREST.__class__(50, oob_score=True, random_state=0).fit(X, Y).oob_decision_function_
    model = make(None, feature_costs=PRICES).fit(X, Y, full_proba=stored)
    assert model.estimator_ is None
    route = model.route(NEW)
    assert 0 < route.mean() < 1
    assert (model.acquisition_cost(NEW)[route == 1] == PRICES.total + 0.5).all()
    assert model.acquisition_mask(NEW)[route == 1].all()
    with pytest.raises(
        RuntimeError, match=rf"{route.sum()} rows are routed .*stored probabilities"
    ):
        model.predict(NEW)
    assert model.predict(NEW[route == 0]).shape == ((route == 0).sum(),)
    told = model.explain(NEW)
    assert [row["prediction"] is None for row in told] == (route == 1).tolist()
    assert [row["cost"] for row in told] == pytest.approx(model.acquisition_cost(NEW).tolist())


@pytest.mark.parametrize(
    ("proba", "message"),
    [
        (np.full((160, 3), 1 / 3), r"full_proba has shape \(160, 3\).*\(160, 2\).*0, 1"),
        (np.full((159, 2), 1 / 2), r"full_proba has shape \(159, 2\).*\(160, 2\)"),
        (np.full((160, 2), 1.0), r"full_proba, row 0 is \[1.0, 1.0\]"),
        (np.full((160, 2), np.nan), "full_proba, row 0 is .*nan"),
    ],
)
@pytest.mark.parametrize("full", [None, FOREST], ids=["stored only", "with a model"])
def test_wrong_stored_probabilities_are_refused(full, proba, message):
    with pytest.raises(ValueError, match=message):
        lin(full).fit(X, Y, full_proba=proba)


# -- scikit-learn's grammar -----------------------------------------------------------------------------


def test_clone_and_parameters(make):
    model = make(feature_costs=PRICES, full_rate=0.4)
    copy = clone(model)
    assert copy.get_params(deep=False).keys() == model.get_params(deep=False).keys()
    assert copy.full_rate == 0.4
    assert copy.feature_costs == PRICES
    copy.set_params(full_rate=0.2, estimator__max_depth=2)
    assert copy.fit(X, Y).estimator_.max_depth == 2
    assert model.full_rate == 0.4
    assert TREE.max_depth == 3
    with pytest.raises(ValueError, match="Invalid parameter 'budget'"):
        copy.set_params(budget=1)


def test_fit_changes_no_parameter(make):
    model = make(feature_costs=[1.0, 2.0, 3.0, 4.0])
    before = {name: repr(value) for name, value in model.get_params().items()}
    assert model.fit(X, Y) is model
    assert {name: repr(value) for name, value in model.get_params().items()} == before


def test_fitting_again_forgets_the_first_time(make):
    X3, y3 = three_classes()
    model = make(feature_costs=None).fit(X3[:, :3], y3).fit(as_frame(X), Y)
    fresh = make(feature_costs=None).fit(as_frame(X), Y)
    assert model.classes_.tolist() == [0, 1]
    assert model.n_features_in_ == 4
    np.testing.assert_array_equal(
        model.predict_proba(as_frame(NEW)), fresh.predict_proba(as_frame(NEW))
    )
    assert len(model.staged_systems()) == len(fresh.staged_systems())


def test_a_pickled_model_says_the_same(model):
    again = pickle.loads(pickle.dumps(model))
    for one, other in zip(everything_said(again, NEW), everything_said(model, NEW), strict=True):
        np.testing.assert_array_equal(one, other)
    assert len(again.staged_systems()) == len(model.staged_systems())


def test_no_training_row_is_inside_a_system(make):
    X, y = rows(400)
    written = pickle.dumps(
        make(FrozenEstimator(TREE.__class__(max_depth=2).fit(X, y))).fit(X, y).system_
    )
    for row in X:
        assert row[:2].tobytes() not in written
    for column in X.T:
        assert column[10:12].tobytes() not in written
    assert y[:20].tobytes() not in written


def test_a_linear_system_stays_small_whatever_the_rows():
    full = FrozenEstimator(LogisticRegression().fit(X, Y))
    small, large = (lin(full).fit(*rows(n)).system_ for n in (160, 1600))
    assert len(pickle.dumps(large)) < len(pickle.dumps(small)) + 400


def test_grid_search(make):
    grid = {"full_rate": [0.1, 0.5], "cost_penalty": [1e-3, 1e-2]}
    search = GridSearchCV(make(), grid, cv=2).fit(X, Y)
    assert set(search.best_params_) == set(grid)
    assert search.best_estimator_.full_rate == search.best_params_["full_rate"]
    assert search.predict(NEW).shape == (90,)


def test_pipelines_and_cross_validation(make):
    chain = make_pipeline(StandardScaler(), make()).fit(X, Y)
    assert chain.predict_proba(NEW).shape == (90, 2)
    scores = cross_val_score(make(), X, Y, cv=3)
    assert scores.shape == (3,)
    assert scores.mean() > 0.6


@pytest.mark.parametrize(("make", "full"), [(lin, RandomForestClassifier(5)), (gbrt, FOREST)])
def test_the_same_seed_gives_the_same_model_whatever_n_jobs(make, full):
    one, two = (make(full, n_jobs=n).fit(X, Y) for n in (1, 2))
    np.testing.assert_array_equal(one.predict_proba(NEW), two.predict_proba(NEW))
    np.testing.assert_array_equal(one.allocation_, two.allocation_)
    np.testing.assert_array_equal(one.gate_function(NEW), two.gate_function(NEW))


def test_a_random_state_is_drawn_from_once_per_fit():
    forest = RandomForestClassifier(5, oob_score=True)
    state = np.random.RandomState(3)
    first, second = (lin(forest, random_state=state).fit(X, Y).predict_proba(NEW) for _ in range(2))
    assert not np.array_equal(first, second)
    again = lin(forest, random_state=np.random.RandomState(3)).fit(X, Y).predict_proba(NEW)
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["ill", "well"]),
        np.array(["ill", "well"], dtype=object),
        np.array([False, True]),
        np.array([-1, 1]),
        np.array([-5, -3]),
        np.array([1.0, 2.0]),
        np.array(["b", "a"]),
    ],
    ids=repr,
)
def test_labels_may_be_anything(make, model, labels):
    named = make(feature_costs=PRICES).fit(X, labels[Y])
    assert named.classes_.tolist() == np.unique(labels).tolist()
    assert named.predict(NEW).dtype.kind == labels.dtype.kind
    if labels[0] < labels[1]:  # otherwise the forest's ties fall the other way
        assert np.array_equal(named.predict(NEW), labels[model.predict(NEW)])
    assert named.score(NEW, labels[NEW_Y]) > 0.6
    assert {row["prediction"] for row in named.explain(NEW)} == set(labels.tolist())


def test_labels_of_frames(make):
    text = np.array(["ill", "well"])[Y]
    for y in (pd.Series(text), pl.Series(text), text.tolist(), pd.Series(text, dtype="category")):
        assert make().fit(X, y).predict(NEW[:3]).tolist()[0] in ("ill", "well")
    with pytest.warns(UserWarning, match="column-vector y"):
        make().fit(X, text[:, None])


# -- a routed classifier as the full model --------------------------------------------------------------


def bought_one_at_a_time(system, row):
    """What a row pays to a clerk who buys an item when a stage first asks for it, and asks the stages in turn."""
    costs, purse, paid = system.costs, set(), 0.0
    for stage in system.stages:
        for column in stage.columns:
            for item in np.flatnonzero(costs.needs[column]):
                if item not in purse:
                    purse.add(item)
                    paid += costs.item_prices[item]
        hidden = np.full((1, len(costs.columns)), 1e6)  # what was not bought is not known
        known = [
            c for c in range(len(costs.columns)) if set(np.flatnonzero(costs.needs[c])) <= purse
        ]
        hidden[0, known] = row[known]
        proba = stage.predictor.predict_proba(hidden)
        if stage.gate is None or stage.gate.score(hidden, proba)[0] <= stage.threshold:
            break
    entered = system.stages.index(stage)
    paid += costs.call_prices(len(system.stages))[: entered + 1].sum()
    return entered, paid, system.classes[proba.argmax()]


@pytest.mark.parametrize("call_price", [0.5, (0.0, 0.25, 1.0)])
def test_a_system_inside_a_system_is_one_longer_system(make, call_price):
    costs = FeatureCosts([1.0, 2.0, 4.0, 0.0], shared={"panel": (3.0, [2, 3])}, call_price=0.5)
    inner = make(feature_costs=costs).fit(X, Y)
    three = FeatureCosts(
        [1.0, 2.0, 4.0, 0.0], shared={"panel": (3.0, [2, 3])}, call_price=call_price
    )
    outer = lin(FrozenEstimator(inner), feature_costs=three, cost_penalty=0.05).fit(X, Y)
    assert len(outer.stages_) == 3
    assert outer.stages_[1:] == inner.stages_
    system = outer.with_thresholds([np.median(outer.gate_function(NEW)), 0.0]).system_
    route, cost, answer = system.route(NEW), system.acquisition_cost(NEW), system.predict(NEW)
    assert set(route) == {0, 1, 2}
    for i, row in enumerate(NEW):
        stage, paid, label = bought_one_at_a_time(system, row)
        assert stage == route[i]
        assert paid == pytest.approx(cost[i])
        assert label == answer[i]
    assert [told["cost"] for told in system.explain(NEW)] == pytest.approx(cost.tolist())


def test_prices_of_the_inner_system_are_taken_over():
    inner = lin(feature_costs=PRICES).fit(X, Y)
    assert lin(FrozenEstimator(inner)).fit(X, Y).system_.costs == PRICES
    assert lin(inner).fit(X, Y).stages_[1:] == inner.stages_
    unfitted = lin(clone(inner)).fit(X, Y)
    assert unfitted.system_.costs == unfitted.estimator_.system_.costs == PRICES
    assert lin(lin(clone(inner))).fit(X, Y).system_.costs == PRICES
    assert lin(clone(inner), feature_costs=[1, 1, 1, 1]).fit(X, Y).system_.costs.total == 4
    assert (
        lin(FrozenEstimator(inner), feature_costs=[1, 1, 1, 1]).fit(X, Y).system_.costs.total == 4
    )


def test_thresholds_of_the_inner_gates_stay_in_staged_systems():
    inner = lin().fit(X, Y).with_thresholds(0.25)
    outer = lin(FrozenEstimator(inner)).fit(X, Y)
    assert {system.thresholds[1] for system in outer.staged_systems()} == {0.25}
    assert outer.staged_systems()[0].route(NEW).max() == 0
