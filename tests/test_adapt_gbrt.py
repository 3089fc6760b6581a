"""Adapt-Gbrt: every gate and schedule keeps the contract, pays once, and learns what is worth its price."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OrdinalEncoder
from sklearn.tree import DecisionTreeClassifier

from sparing import AdaptGbrtClassifier, FeatureCosts, GreedyMiserClassifier
from sparing._folds import folds_of
from sparing.engines.refit import ExitGate
from sparing.frontier import Frontier
from sparing.system import ConfidenceGate

GATES = ["refit", "joint", "confidence"]
SCHEDULES = ["one-pass", "alternate"]


def piecewise(n=240, seed=0, n_columns=4):
    """Column 0 settles the rows with a small column 1; the others need column 2. The rest is noise."""
    X = np.random.default_rng(seed).normal(size=(n, n_columns))
    return X, np.where(X[:, 1] > 0.3, X[:, 2] > 0, X[:, 0] > 0).astype(int)


def three(X, y):
    return np.where((X[:, 1] > 0.3) & (X[:, 2] > 0), 2, y)


X, Y = piecewise()
NEW, NEW_Y = piecewise(150, seed=1)
TREE = DecisionTreeClassifier(max_depth=4, random_state=0)
FULL = FrozenEstimator(DecisionTreeClassifier(max_depth=4, random_state=0).fit(*piecewise(800, 2)))
FULL3 = FrozenEstimator(
    DecisionTreeClassifier(max_depth=5, random_state=0).fit(
        piecewise(800, 2)[0], three(*piecewise(800, 2))
    )
)
COSTS = FeatureCosts([1.0, 2.0, 4.0, 0.5], shared={"panel": (3.0, [2, 3])}, call_price=0.5)


def gbrt(estimator=FULL, **options):
    quick = {"full_rate": 0.4, "random_state": 0, "n_estimators": 10, "max_iter": 3, "cv": 3}
    return AdaptGbrtClassifier(estimator, **{**quick, **options})


@pytest.fixture(scope="module", params=GATES)
def gate(request):
    return request.param


@pytest.fixture(scope="module", params=SCHEDULES)
def schedule(request):
    return request.param


@pytest.fixture(scope="module", params=[2, 3], ids=["two classes", "three classes"])
def fitted(request, gate, schedule):
    """A model, the labels it learnt from, and those of the new rows."""
    y, new, full = (
        (Y, NEW_Y, FULL) if request.param == 2 else (three(X, Y), three(NEW, NEW_Y), FULL3)
    )
    model = gbrt(full, gate=gate, schedule=schedule, feature_costs=COSTS, cost_penalty=0.01)
    return model.fit(X, y), y, new


# -- the contract, for every gate and schedule ----------------------------------------------------------


def test_each_row_gets_the_answer_of_its_own_stage(fitted):
    model, _, new = fitted
    route, proba = model.route(NEW), model.predict_proba(NEW)
    assert set(route) == {0, 1} or model.gate == "joint"  # whose 0 need not be among the scores
    cheap, full = model.cheap_.predict_proba(NEW), model.estimator_.predict_proba(NEW)
    np.testing.assert_allclose(proba, np.where(route[:, None] == 1, full, cheap))
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert np.array_equal(model.predict(NEW), model.classes_[proba.argmax(axis=1)])
    assert model.score(NEW, new) > 0.8
    assert hasattr(model, "decision_function") == (len(model.classes_) == 2)


def test_above_the_threshold_a_row_goes_on(fitted):
    model, _, _ = fitted
    score, (threshold,) = model.gate_function(NEW), model.system_.thresholds
    assert np.isfinite(score).all()
    assert np.array_equal(model.route(NEW), (score > threshold).astype(int))
    if model.gate != "confidence":
        assert threshold == 0.0
    at_a_score = model.with_thresholds(np.sort(score)[len(score) // 2])
    assert np.array_equal(
        at_a_score.route(NEW), (score > at_a_score.system_.thresholds[0]).astype(int)
    )


def test_the_gate_sends_on_hard_rows(fitted):
    model, _, new = fitted
    wrong = model.with_thresholds(np.inf).predict(NEW) != new
    if wrong.sum() > 5:
        score = model.gate_function(NEW)
        assert score[wrong].mean() > score[~wrong].mean()


def test_rows_pay_for_the_stages_they_enter(fitted):
    model, _, _ = fitted
    route, mask = model.route(NEW), model.acquisition_mask(NEW)
    cheap, full = (set(stage.columns.tolist()) for stage in model.stages_)
    for stage, bought in zip(route, mask, strict=True):
        assert set(np.flatnonzero(bought)) == (cheap | full if stage else cheap)
    cost = model.acquisition_cost(NEW)
    np.testing.assert_allclose(cost, COSTS.of(mask) + 0.5 * route)
    np.testing.assert_allclose(cost[route == 0], COSTS.of(sorted(cheap)))
    by_path = model.acquisition_mask(NEW, accounting="path")
    assert not (by_path & ~mask).any()
    path_cost = model.acquisition_cost(NEW, accounting="path")
    np.testing.assert_allclose(path_cost, COSTS.of(by_path) + 0.5 * route)
    assert (path_cost <= cost + 1e-12).all()


@pytest.mark.parametrize("accounting", ["stage", "path"])
def test_nothing_is_read_that_was_not_paid_for(fitted, accounting):
    model, _, _ = fitted
    mask = model.acquisition_mask(NEW, accounting=accounting)
    for placeholder in (np.nan, 1e6):
        hidden = np.where(mask, NEW, placeholder)
        np.testing.assert_array_equal(model.system_.route(hidden), model.route(NEW))
        np.testing.assert_array_equal(model.system_.predict_proba(hidden), model.predict_proba(NEW))


def test_explanations_agree_with_the_other_answers(fitted):
    model, _, _ = fitted
    told = model.explain(NEW)
    assert [row["stage"] for row in told] == model.route(NEW).tolist()
    assert [row["prediction"] for row in told] == model.predict(NEW).tolist()
    np.testing.assert_allclose([row["cost"] for row in told], model.acquisition_cost(NEW))
    np.testing.assert_allclose([row["exits"][0]["score"] for row in told], model.gate_function(NEW))
    for row in told:
        assert row["exits"][0]["threshold"] == model.system_.thresholds[0]
        assert row["exits"][0]["goes_on"] == (row["stage"] == 1)


def curves(model):
    """The systems of one fit, a list per gate: each ends with the threshold that sends everyone on."""
    found = [[]]
    for system in model.staged_systems():
        found[-1].append(system)
        if system.thresholds[0] == -np.inf:
            found.append([])
    assert found.pop() == []
    return found


def test_one_fit_is_a_set_of_curves_from_all_cheap_to_all_full(fitted):
    model, _, _ = fitted
    found = curves(model)
    refit = isinstance(model.gate_, ExitGate)
    assert refit == (model.gate == "refit")
    assert len(found) >= 2 + refit
    for curve in found:
        thresholds = [system.thresholds[0] for system in curve]
        assert thresholds == sorted(thresholds, reverse=True)
        assert thresholds[0] == np.inf
        assert 2 <= len(curve) <= 100
        assert len({id(system.stages[0].gate) for system in curve}) == 1
        for rows in (X, NEW):
            shares = [system.route(rows).mean() for system in curve[:: len(curve) // 3 or 1]]
            assert shares == sorted(shares)
        assert (curve[0].route(NEW) == 0).all()
        assert (curve[-1].route(NEW) == 1).all()
        np.testing.assert_array_equal(curve[-1].predict(NEW), model.estimator_.predict(NEW))
    assert found[-1][0].stages[0].predictor is model.cheap_
    assert found[-1][0].stages[0].gate is model.gate_


def test_what_a_fit_leaves_behind(fitted):
    model, y, _ = fitted
    history = model.history_
    assert set(history) == {
        *("iteration", "objective", "allocation_rate", "n_columns", "cost"),
        *("full_rate", "cost_penalty"),
    }
    assert len({len(values) for values in history.values()}) == 1
    # Between the rounds of one pass the bound is met to a thousandth.
    assert history["allocation_rate"].max() <= 0.4 + (
        1e-3 if model.schedule == "one-pass" else 1e-9
    )
    assert model.allocation_.shape == y.shape
    assert ((model.allocation_ >= 0) & (model.allocation_ <= 1)).all()
    assert model.allocation_.mean() <= 0.4 + 1e-9
    assert (model.full_rate_, model.cost_penalty_) == (0.4, 0.01)
    assert (history["full_rate"] == 0.4).all()
    assert (history["cost_penalty"] == 0.01).all()
    assert model.n_iter_ == (10 if model.schedule == "one-pass" else history["iteration"].max())
    assert 0 < history["cost"][-1] <= COSTS.total


def said(model, X):
    return [
        model.predict(X),
        model.predict_proba(X),
        model.gate_function(X),
        model.route(X),
        model.acquisition_mask(X, accounting="path"),
        model.allocation_,
        *model.history_.values(),
        np.array([system.thresholds[0] for system in model.staged_systems()]),
    ]


def assert_same(one, other, X=NEW):
    for mine, theirs in zip(said(one, X), said(other, X), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_the_same_again_whatever_n_jobs(fitted):
    model, y, _ = fitted
    for n_jobs in (None, 2):
        other = gbrt(**{**model.get_params(deep=False), "n_jobs": n_jobs}).fit(X, y)
        assert_same(other, model)


def test_it_pickles(fitted):
    model, _, _ = fitted
    assert_same(pickle.loads(pickle.dumps(model)), model)


def test_without_a_seed_it_is_the_same_too():
    one, other = (gbrt(random_state=None).fit(X, Y) for _ in range(2))
    assert_same(one, other)


# -- labels, weights, frames ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "labels",
    [["ill", "well"], [False, True], [-5, -3], [-1, 1], ["a", "b", "c"], [-2, 0, 7]],
    ids=repr,
)
def test_labels_may_be_anything(gate, labels):
    labels = np.array(labels)
    codes = Y if len(labels) == 2 else three(X, Y)
    plain = gbrt(TREE, gate=gate).fit(X, codes)
    named = gbrt(TREE, gate=gate).fit(X, labels[codes])
    assert named.classes_.tolist() == labels.tolist()
    assert named.predict(NEW).dtype.kind == labels.dtype.kind
    assert np.array_equal(named.predict(NEW), labels[plain.predict(NEW)])
    np.testing.assert_array_equal(named.predict_proba(NEW), plain.predict_proba(NEW))
    assert {row["prediction"] for row in named.explain(NEW)} <= set(labels.tolist())


def test_equal_weights_change_nothing(gate, schedule):
    plain = gbrt(gate=gate, schedule=schedule).fit(X, Y)
    equal = gbrt(gate=gate, schedule=schedule).fit(X, Y, np.ones(len(Y)))
    for mine, theirs in zip(said(equal, NEW), said(plain, NEW), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-9)


def test_rows_without_weight_are_not_learnt_from(gate, schedule):
    easy = X[:, 1] <= 0.3
    model = gbrt(gate=gate, schedule=schedule, full_rate=0.2).fit(X, Y, easy.astype(float))
    cheap = model.with_thresholds(np.inf)
    assert model.stages_[0].columns.tolist() == [0]
    assert cheap.score(X[easy], Y[easy]) > 0.98
    assert np.average(model.allocation_, weights=easy) <= 0.2 + 1e-9


@pytest.mark.parametrize("which", ["confidence", "refit"])
def test_a_confidence_threshold_sends_the_weighted_share(which):
    """Weight on the rows f1 is unsure of: an unweighted quantile would send twice the share."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(800, 2))
    y = (rng.uniform(size=800) < 1 / (1 + np.exp(-3 * rows[:, 0]))).astype(int)
    weight = np.where(np.abs(rows[:, 0]) < 0.3, 20.0, 1.0)
    model = gbrt(TREE, gate=which, full_rate=0.3, cost_penalty=0.0).fit(rows, y, weight)
    systems = [s for s, _ in model._variants if isinstance(s.stages[0].gate, ConfidenceGate)]
    assert systems
    for system in systems:
        sent = np.average(system.route(rows), weights=weight)
        assert sent <= 0.3 + (1e-9 if which == "confidence" else 0.1)  # out of fold f1 doubts more


def test_weight_on_one_fold_of_the_refit_only():
    rows = next(iter(folds_of(5, Y, 0).split(X, Y)))[1]
    weight = np.zeros(len(Y))
    weight[rows] = 1.0
    model = gbrt(cost_penalty=1e-3).fit(X, Y, weight)
    assert isinstance(model.gate_, ExitGate)
    wrong = model.with_thresholds(np.inf).predict(X) != Y
    assert wrong[rows].mean() < 0.2


def test_the_bound_holds_for_weighted_rows(gate, schedule):
    weight = np.random.default_rng(5).exponential(size=len(Y))
    model = gbrt(gate=gate, schedule=schedule, full_rate=0.25).fit(X, Y, weight)
    assert np.average(model.allocation_, weights=weight) <= 0.25 + 1e-9


def mixed():
    """Numbers with holes, a text column and a category; red rows are of one class."""
    colour = np.array(["red", "green", "blue", None], dtype=object)[np.arange(len(Y)) % 4]
    frame = pd.DataFrame(X, columns=list("abcd")).assign(colour=colour)
    frame["size"] = pd.Categorical(np.where(X[:, 2] > 0, "big", "small"))
    frame.loc[::7, "a"] = np.nan
    return frame, np.where(colour == "red", "stop", np.array(["go", "wait"])[Y])


@pytest.mark.parametrize("library", [pd.DataFrame, pl.from_pandas])
def test_frames_with_text_categories_and_holes(gate, schedule, library):
    frame, y = mixed()
    code = OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2
    )
    transform = ColumnTransformer([("text", code, ["colour", "size"])], remainder="passthrough")
    full = Pipeline(
        [("code", transform), ("tree", DecisionTreeClassifier(max_depth=6, random_state=0))]
    )
    table = library(frame)
    prices = {**dict.fromkeys("abcd", 2.0), "colour": 1.0, "size": 1.0}
    model = gbrt(full, gate=gate, schedule=schedule, feature_costs=prices).fit(table, y)
    assert model.feature_names_in_.tolist() == [*"abcd", "colour", "size"]
    assert model.score(table, y) > 0.8
    assert model.acquisition_mask(table)[:, 4].all()  # one colour settles a row
    assert np.array_equal(
        model.with_thresholds(-np.inf).predict(table), model.estimator_.predict(table)
    )
    assert set(model.explain(table[:1])[0]["items"]) <= set(frame.columns)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(table), model.predict_proba(table))
    unknown = library(frame.assign(colour="mauve"))
    assert np.isfinite(model.predict_proba(unknown)).all()


def test_missing_cells_of_arrays(gate):
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.15, np.nan, X)
    model = gbrt(TREE, gate=gate).fit(holes, Y)
    assert np.isfinite(model.predict_proba(holes)).all()
    assert model.score(holes, Y) > 0.75
    with pytest.raises(ValueError, match=r"NaN in column .*LogisticRegression"):
        gbrt(LogisticRegression(), gate=gate).fit(holes, Y)


# -- what is bought -------------------------------------------------------------------------------------


@pytest.mark.parametrize("y", [Y, three(X, Y)], ids=["two classes", "three classes"])
@pytest.mark.parametrize("newton", [True, False])
def test_at_a_rate_of_zero_it_is_greedy_miser(gate, schedule, newton, y):
    full = FULL if y.max() == 1 else FULL3
    options = {"n_estimators": 12, "cost_penalty": 0.01, "feature_costs": COSTS, "newton": newton}
    model = gbrt(full, full_rate=0.0, gate=gate, schedule=schedule, **options).fit(X, y)
    miser = GreedyMiserClassifier(random_state=0, **options).fit(X, y)
    strange = 5 * np.random.default_rng(9).standard_t(1, size=(500, 4))
    for rows in (NEW, strange):
        np.testing.assert_array_equal(model.predict_proba(rows), miser.predict_proba(rows))
        np.testing.assert_array_equal(model.predict(rows), miser.predict(rows))
        assert (model.route(rows) == 0).all()
        np.testing.assert_array_equal(model.acquisition_cost(rows), miser.acquisition_cost(rows))
    assert (model.allocation_ == 0).all()
    assert curves(model)[-1][0].route(NEW).max() == 0


@pytest.mark.parametrize("factor", [1e-3, 100.0])
def test_prices_times_k_at_a_penalty_over_k_buy_the_same(gate, schedule, factor):
    prices = np.array([1.0, 2.0, 4.0, 0.5])
    for penalty in (0.003, 0.02):
        one, other = (
            gbrt(
                gate=gate, schedule=schedule, feature_costs=k * prices, cost_penalty=penalty / k
            ).fit(X, Y)
            for k in (1.0, factor)
        )
        assert one.stages_[0].columns.tolist() == other.stages_[0].columns.tolist()
        np.testing.assert_allclose(one.predict_proba(NEW), other.predict_proba(NEW), atol=1e-9)
        np.testing.assert_allclose(
            factor * one.acquisition_cost(NEW), other.acquisition_cost(NEW), rtol=1e-9
        )


def test_the_cheap_stage_costs_what_its_columns_do(gate):
    costs = FeatureCosts(
        [1.0, 0.0, 2.0, 1.0, 0.0],
        shared={"visit": (2.0, [0, 1]), "lab": (5.0, [2, 3])},
        derived={4: [0, 2]},
    )
    wide = np.column_stack([X, X[:, 0] * X[:, 2]])
    new = np.column_stack([NEW, NEW[:, 0] * NEW[:, 2]])
    full = FrozenEstimator(TREE.__class__(max_depth=4, random_state=0).fit(wide, Y))
    seen = set()
    for penalty in (0.0, 0.002, 0.02, 10.0):
        model = gbrt(full, gate=gate, feature_costs=costs, cost_penalty=penalty).fit(wide, Y)
        cheap = model.with_thresholds(np.inf)
        bought = model.stages_[0].columns.tolist()
        np.testing.assert_allclose(cheap.acquisition_cost(new), costs.of(bought))
        assert model.history_["cost"][-1] >= costs.of(bought) - 1e-9
        seen.add(costs.of(bought))
        for system in model.staged_systems():
            if system.thresholds[0] == np.inf:
                own = costs.of(system.stages[0].columns.tolist())
                np.testing.assert_allclose(system.acquisition_cost(new), own)
    assert len(seen) > 2
    assert 0.0 in seen


def test_a_copy_that_costs_less_is_preferred(gate, schedule):
    twice = np.column_stack([X, X[:, 0]])
    full = FrozenEstimator(TREE.__class__(max_depth=4, random_state=0).fit(twice, Y))
    model = gbrt(full, gate=gate, schedule=schedule, feature_costs=[5.0, 1.0, 5.0, 1.0, 0.5])
    bought = set(model.fit(twice, Y).stages_[0].columns.tolist())
    assert 4 in bought
    assert 0 not in bought


def test_the_dear_column_is_left_to_the_full_model(gate):
    costs = FeatureCosts([1.0, 1.0, 50.0, 1.0])
    model = gbrt(gate=gate, feature_costs=costs, n_estimators=30, cost_penalty=0.01)
    model.fit(*piecewise(600, seed=3))
    rows, y = piecewise(400, seed=4)
    assert 2 not in model.stages_[0].columns
    assert model.with_thresholds(-np.inf).acquisition_cost(rows).min() >= 51
    frontier = Frontier.evaluate(model.staged_systems(), rows, y)
    assert frontier.saving(0.03) > 0.25


# -- degenerate tables ----------------------------------------------------------------------------------


def assert_answers(model, X):
    proba = model.predict_proba(X)
    assert np.isfinite(proba).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert np.isfinite(model.gate_function(X)).all()
    assert (model.acquisition_cost(X, accounting="path") <= model.acquisition_cost(X) + 1e-12).all()
    for curve in curves(model):
        assert (curve[0].route(X) == 0).all()
        assert (curve[-1].route(X) == 1).all()


@pytest.mark.parametrize("value", [0.0, 3.0, np.nan])
def test_identical_rows(gate, schedule, value):
    same, y = np.full((20, 3), value), np.arange(20) % 2
    model = gbrt(TREE, gate=gate, schedule=schedule).fit(same, y)
    assert_answers(model, same)
    assert model.stages_[0].columns.tolist() == []
    np.testing.assert_allclose(model.with_thresholds(np.inf).predict_proba(same), 0.5, atol=1e-6)


def test_constant_columns_are_not_bought(gate, schedule):
    some = np.column_stack([np.full(len(Y), 7.0), X, np.zeros(len(Y))])
    model = gbrt(TREE, gate=gate, schedule=schedule, cost_penalty=0.0).fit(some, Y)
    assert not {0, 5} & set(model.stages_[0].columns.tolist())
    assert_answers(model, some)


def test_free_columns(gate, schedule):
    model = gbrt(gate=gate, schedule=schedule, feature_costs=np.zeros(4)).fit(X, Y)
    assert_answers(model, NEW)
    assert (model.acquisition_cost(NEW) == 0).all()
    assert model.with_thresholds(np.inf).score(NEW, NEW_Y) > 0.9
    some = gbrt(gate=gate, schedule=schedule, feature_costs=[0, 0, 1e9, 1e9], cost_penalty=1.0)
    assert some.fit(X, Y).stages_[0].columns.tolist() == [0, 1]


@pytest.mark.parametrize("y", [Y, three(X, Y)], ids=["two classes", "three classes"])
def test_prices_at_which_nothing_is_bought(gate, schedule, y):
    full = FULL if y.max() == 1 else FULL3
    model = gbrt(
        full, gate=gate, schedule=schedule, feature_costs=np.full(4, 1e9), cost_penalty=1.0
    ).fit(X, y)
    assert_answers(model, NEW)
    cheap = model.with_thresholds(np.inf)
    assert cheap.stages_[0].columns.tolist() == []
    assert (cheap.acquisition_cost(NEW) == 0).all()
    assert len(np.unique(cheap.predict(NEW))) == 1
    assert np.array_equal(model.with_thresholds(-np.inf).predict(NEW), full.predict(NEW))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("copies", [1, 2])
def test_very_few_rows(gate, schedule, n_classes, copies):
    y = np.tile(np.arange(n_classes), copies)
    full = FrozenEstimator(TREE.__class__(max_depth=3).fit(X[: len(y)], y))
    for estimator in (full, TREE):
        model = gbrt(estimator, gate=gate, schedule=schedule).fit(X[: len(y)], y)
        assert_answers(model, NEW)
        assert model.predict_proba(NEW).shape == (len(NEW), n_classes)


def test_one_column(gate, schedule):
    model = gbrt(TREE, gate=gate, schedule=schedule).fit(X[:, :1], Y)
    assert_answers(model, NEW[:, :1])
    assert model.score(NEW[:, :1], NEW_Y) > 0.6


def test_a_rate_of_one(gate, schedule):
    model = gbrt(gate=gate, schedule=schedule, full_rate=1.0).fit(X, Y)
    assert_answers(model, NEW)
    assert model.score(NEW, NEW_Y) > 0.85


def test_the_cheap_stage_does_not_see_other_columns(gate, schedule):
    model = gbrt(gate=gate, schedule=schedule, feature_costs=[1, 1, 1e6, 1e6], cost_penalty=0.01)
    own = model.fit(X, Y).stages_[0].columns
    assert set(own) <= {0, 1}
    scrambled = np.random.default_rng(1).permuted(NEW, axis=0)
    scrambled[:, own] = NEW[:, own]
    np.testing.assert_array_equal(model.route(scrambled), model.route(NEW))
    cheap = model.with_thresholds(np.inf)
    np.testing.assert_array_equal(cheap.predict_proba(scrambled), cheap.predict_proba(NEW))
    frame = pd.DataFrame(NEW, columns=list("abcd")).astype(object)
    frame.iloc[:, 2:] = "not bought"
    system = cheap.system_  # as a session serves it: placeholders where nothing was bought
    np.testing.assert_array_equal(system.predict_proba(frame), cheap.predict_proba(NEW))


# -- the refitted gate ----------------------------------------------------------------------------------


@pytest.mark.parametrize("full_rate", [0.1, 0.3, 0.6])
def test_about_the_share_asked_for_is_above_zero(full_rate):
    rows, y = piecewise(800, seed=5)
    for gate in ("refit", "confidence"):
        prices = [1.0, 1.0, 50.0, 1.0]
        model = gbrt(gate=gate, full_rate=full_rate, cost_penalty=0.01, feature_costs=prices)
        model.fit(rows, y)
        assert model.route(rows).mean() <= full_rate + 0.07
        assert model.route(piecewise(800, seed=6)[0]).mean() <= full_rate + 0.07


def test_the_joint_systems_are_kept_beside_the_refitted_one():
    joint, refit = (gbrt(gate=g).fit(X, Y) for g in ("joint", "refit"))
    n = len(joint.staged_systems())
    for mine, theirs in zip(refit.staged_systems()[:n], joint.staged_systems(), strict=True):
        assert mine.thresholds == theirs.thresholds
    np.testing.assert_array_equal(
        refit.staged_systems()[n - 1].stages[0].predictor.predict_proba(NEW),
        joint.cheap_.predict_proba(NEW),
    )
    *_, by_confidence, by_excess = curves(refit)
    assert len(curves(refit)) == len(curves(joint)) + 2
    assert isinstance(by_confidence[0].stages[0].gate, ConfidenceGate)
    assert by_confidence[0].stages[0].predictor is by_excess[0].stages[0].predictor is refit.cheap_
    assert isinstance(refit.gate_, ExitGate)


def test_columns_bought_late_also_give_systems_without_them():
    rng = np.random.default_rng(8)
    rows = rng.normal(size=(3000, 6))
    weights = np.array([3.0, 2.0, 1.2, 0.7, 0.4, 0.2])
    y = (rows @ weights + rng.normal(size=3000) > 0).astype(int)
    tree = FrozenEstimator(DecisionTreeClassifier(max_depth=8, random_state=0).fit(rows, y))
    model = gbrt(tree, n_estimators=60, cost_penalty=0.002, full_rate=0.3).fit(rows, y)
    sizes = [
        len(system.stages[0].columns)
        for system in model.staged_systems()
        if isinstance(system.stages[0].gate, ExitGate)
    ]
    assert sizes == sorted(sizes)
    assert 1 < len(set(sizes)) <= 3
    assert sizes[-1] == len(model.cheap_.columns)


# -- stored systems -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_system_is_small_and_holds_no_rows(gate, n_classes):
    rows, y = piecewise(2000, seed=7, n_columns=6)
    y = y if n_classes == 2 else three(rows, y)
    tiny = FrozenEstimator(TREE.__class__(max_depth=2).fit(rows, y))
    model = gbrt(tiny, gate=gate, n_estimators=60).fit(rows, y)
    written = pickle.dumps(model.system_)
    assert len(written) < 100_000
    again = pickle.loads(written)
    new = piecewise(300, seed=8, n_columns=6)[0]
    np.testing.assert_array_equal(again.predict_proba(new), model.predict_proba(new))
    np.testing.assert_array_equal(again.route(new), model.route(new))
    np.testing.assert_array_equal(
        again.acquisition_cost(new, accounting="path"),
        model.acquisition_cost(new, accounting="path"),
    )
    for column in rows.T:
        assert column[10:12].tobytes() not in written
    for row in rows[:200]:
        assert row[:2].tobytes() not in written


# -- several settings in one fit ------------------------------------------------------------------------


def test_sequences_of_rates_and_penalties(gate, schedule):
    rates, penalties = [0.5, 0.0, 0.2], [0.002, 0.05]
    options = {"gate": gate, "schedule": schedule, "feature_costs": COSTS}
    model = gbrt(full_rate=rates, cost_penalty=penalties, **options).fit(X, Y)
    assert (model.full_rate_, model.cost_penalty_) == (0.2, 0.002)
    assert model.allocation_.mean() <= 0.2 + 1e-9
    history = model.history_
    assert len({len(values) for values in history.values()}) == 1
    pairs = list(dict.fromkeys(zip(history["full_rate"], history["cost_penalty"], strict=True)))
    assert pairs == [(rate, penalty) for penalty in (0.05, 0.002) for rate in rates]
    systems, start = model.staged_systems(), 0
    for rate, penalty in pairs:
        single = gbrt(full_rate=rate, cost_penalty=penalty, **options).fit(X, Y)
        own = single.staged_systems()
        mine = systems[start : start + len(own)]
        assert [s.thresholds for s in mine] == [s.thresholds for s in own]
        for i in (0, len(own) // 2, -1):
            np.testing.assert_array_equal(mine[i].predict_proba(NEW), own[i].predict_proba(NEW))
        start += len(own)
    assert start == len(systems)
    np.testing.assert_array_equal(model.predict_proba(NEW), single.predict_proba(NEW))
    np.testing.assert_array_equal(model.gate_function(NEW), single.gate_function(NEW))


def test_other_prices_reach_every_system():
    model = gbrt(full_rate=[0.2, 0.4], cost_penalty=[0.01, 0.1], feature_costs=COSTS).fit(X, Y)
    dear = model.with_costs(FeatureCosts([10.0, 20.0, 30.0, 40.0], call_price=7.0))
    assert len(dear.staged_systems()) == len(model.staged_systems())
    for mine, theirs in zip(dear.staged_systems(), model.staged_systems(), strict=True):
        assert mine.costs == dear.system_.costs
        assert theirs.costs == COSTS
        assert mine.thresholds == theirs.thresholds
        assert mine.stages[0].predictor is theirs.stages[0].predictor
    np.testing.assert_allclose(
        dear.acquisition_cost(NEW),
        model.acquisition_mask(NEW) @ [10.0, 20.0, 30.0, 40.0] + 7.0 * model.route(NEW),
    )
    moved = model.with_thresholds(0.1)
    assert [s.thresholds for s in moved.staged_systems()] == [
        s.thresholds for s in model.staged_systems()
    ]


# -- what is refused ------------------------------------------------------------------------------------


class Untouched(DecisionTreeClassifier):
    """A full model that takes hours: what is wrong must be found before."""

    def fit(self, *_, **__):
        raise AssertionError("fitted")


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("full_rate", [-0.1, 1.5, np.nan, [], "x", None, [0.2, 1.5], [0.1, np.nan], [[0.1]], ["x"]]),
        ("cost_penalty", [-1.0, np.nan, np.inf, [], "x", None, [0.1, -0.1], [np.inf], ["auto"]]),
        ("learning_rate", [0, 0.0, -1, np.nan, "fast"]),
        ("schedule", ["two-pass", None, 1]),
        ("gate", ["both", None, True]),
        ("n_estimators", [0, -3, 1.5]),
        ("max_depth", [0, None]),
        ("max_iter", [0]),
        ("tol", [-1e-3]),
        ("lightgbm_params", [{"objective": "binary"}, {"cegb_tradeoff": 3}, {"max_bin": 3}, {"device": "gpu"}, 3]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_wrong_settings_are_refused_by_name_before_the_full_model_is_fitted(name, values):
    for value in values:
        with pytest.raises((ValueError, TypeError), match=name):
            gbrt(Untouched(), **{name: value}).fit(X, Y)
