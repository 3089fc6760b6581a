"""The L1 baseline: scikit-learn's regressions, every support once, the sign of the gate, the rule of choice."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from sparing import FeatureCosts, Frontier, L1GateClassifier
from sparing._alternation import Problem
from sparing._full_model import fit_full_model
from sparing._losses import full_loss
from sparing.baselines._l1_supports import SupportSolver, thresholded
from sparing.costs import resolve_costs
from sparing.datasets import load_hypothyroid
from sparing.engines.design import Design
from sparing.engines.linear import LinearFit


def full_model(X, y, depth=4):
    return FrozenEstimator(DecisionTreeClassifier(max_depth=depth, random_state=0).fit(X, y))


def piecewise(n=250, seed=0, n_columns=6):
    """Column 0 settles the rows with a small column 1; the others need column 2. The rest is noise."""
    X = np.random.default_rng(seed).normal(size=(n, n_columns))
    return X, np.where(X[:, 1] > 0.3, X[:, 2] > 0, X[:, 0] > 0).astype(int)


X, Y = piecewise()
FULL = full_model(*piecewise(1000, seed=1))
NEW, NEW_Y = piecewise(300, seed=2)


def l1_gate(estimator=FULL, **options):
    quick = {"full_rate": 0.5, "Cs": 6, "class_weights": 5, "random_state": 0}
    return L1GateClassifier(estimator, **{**quick, **options})


def supports_of(model):
    """Columns of each support, as the history and the systems have them."""
    per_support = len(model.staged_systems()) // len(model.history_["cost"])
    systems = model.staged_systems()[::per_support]
    return [tuple(system.stages[0].predictor.columns.tolist()) for system in systems]


# -- the regressions ------------------------------------------------------------------------------------


def test_the_sparse_path_is_that_of_scikit_learn():
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    for C in (0.01, 0.05, 0.3):
        # liblinear penalises the intercept, which a large scaling makes harmless.
        sparse = LogisticRegression(
            C=C, l1_ratio=1.0, solver="liblinear", intercept_scaling=1e3, tol=1e-8
        ).fit(Z, Y)
        order = np.argsort(-np.abs(sparse.coef_[0]))[: np.count_nonzero(sparse.coef_)]
        expected = {tuple(sorted(order[:k].tolist())) for k in range(len(order) + 1)}
        assert set(supports_of(l1_gate(Cs=[C]).fit(X, Y))) == expected


@pytest.mark.parametrize("three", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_f1_and_gate_are_those_of_scikit_learn(three, weighted):
    y = np.where(X[:, 2] > 1, 2, Y) if three else Y
    weight = np.random.default_rng(0).uniform(0.2, 2.0, len(y)) if weighted else None
    full = fit_full_model(full_model(X, y), X, y)
    costs = resolve_costs(None, 6)
    problem = Problem(y, full_loss(full.proba, y), weight, 0.5, costs)
    total = len(y) if weight is None else weight.sum()
    solver = SupportSolver(problem, full, np.array([0.2, 0.7]), 1.0, total, 200, 1e-8)
    design, columns = Design.fit(X, weight, standardize=False), np.array([0, 1, 4])
    nobody, *tried, everybody = solver(design, design.transform(X), columns)
    plain = LogisticRegression(tol=1e-9, max_iter=1000).fit(X[:, columns], y, sample_weight=weight)
    wrong = plain.predict(X[:, columns]) != y
    for entry, class_weight in zip(tried, (0.2, 0.7), strict=True):
        stage = entry.stage
        np.testing.assert_allclose(
            stage.predictor.predict_proba(NEW), plain.predict_proba(NEW[:, columns]), atol=1e-4
        )
        gate = LogisticRegression(
            tol=1e-9, max_iter=1000, class_weight={True: class_weight, False: 1 - class_weight}
        ).fit(X[:, columns], wrong, sample_weight=weight)
        expected = gate.decision_function(NEW[:, columns])
        np.testing.assert_allclose(stage.gate.score(NEW, None), expected, atol=1e-3)
        # What it is worth, from the answers themselves.
        sent = gate.decision_function(X[:, columns]) > 0
        assert entry.rate == pytest.approx(np.average(sent, weights=weight))
        every = len(np.union1d(columns, full.stages[0].columns))
        assert entry.cost == pytest.approx(np.average(np.where(sent, every, 3), weights=weight))
        answers = np.where(sent[:, None], full.proba, plain.predict_proba(X[:, columns]))
        loss = -np.log(np.clip(answers[np.arange(len(y)), y], 1e-6, 1))
        assert entry.loss == pytest.approx(np.average(loss, weights=weight), abs=1e-4)
    assert (nobody.rate, everybody.rate) == (0.0, 1.0)


def test_above_zero_f1_is_probably_wrong_and_the_row_goes_on():
    # Free columns are all in the support, also the one that tells where f1 is wrong and not what is right.
    options = {"feature_costs": np.zeros(6), "class_weights": [0.75], "full_rate": 0.9}
    model = l1_gate(**options).fit(X, Y)
    g = model.gate_function(NEW)
    assert np.array_equal(model.route(NEW), (g > 0).astype(int))
    hard = NEW[:, 1] > 0.3
    assert g[hard].mean() > 0 > g[~hard].mean()
    cheap_right = model.with_thresholds(np.inf).predict(NEW) == NEW_Y
    assert cheap_right[g > 0].mean() < cheap_right[g <= 0].mean()
    assert model.score(NEW, NEW_Y) > cheap_right.mean()
    np.testing.assert_array_equal(model.allocation_, model.gate_function(X) > 0)


def test_a_heavier_class_sends_more():
    model = l1_gate(class_weights=[0.1, 0.65, 0.7, 0.75, 0.95]).fit(X, Y)
    rates = np.array([s.route(NEW).mean() for s in model.staged_systems()]).reshape(-1, 7)
    assert (np.diff(rates, axis=1) >= 0).all()
    assert (rates[:, 0] == 0).all()
    assert (rates[:, -1] == 1).all()
    assert ((rates > 0.05) & (rates < 0.95)).sum() >= 5


# -- supports -------------------------------------------------------------------------------------------


def test_every_support_once_and_of_every_size():
    model = l1_gate(Cs=20).fit(X, Y)
    supports = supports_of(model)
    assert len(supports) == len(set(supports))
    assert {len(support) for support in supports} == set(range(7))
    assert model.history_["n_columns"].tolist() == [len(support) for support in supports]
    assert (np.diff(model.history_["cost"]) >= 0).all()
    assert np.isnan(model.history_["C"][0])
    assert len(model.staged_systems()) == 7 * len(supports)


def test_panels_come_whole_and_computed_columns_with_their_inputs():
    owner = np.array([0, 1, 2, 3, 4])
    fit = LinearFit(np.array([[0.1], [3.0], [0.0], [1.0], [2.0]]), np.zeros(1), 0, 0, 0, True)
    plain = list(thresholded(fit, owner, FeatureCosts(np.ones(5))))
    assert plain == [(), (1,), (1, 4), (1, 3, 4), (0, 1, 3, 4)]
    panel = FeatureCosts([1.0, 0.0, 0.0, 1.0, 1.0], shared={"panel": (2.0, [1, 2])})
    assert next(s for s in thresholded(fit, owner, panel) if s) == (1, 2)
    draw = FeatureCosts([1.0, 1.0, 1.0, 1.0, 1.0], shared={"draw": (2.0, [1, 2])})
    assert list(thresholded(fit, owner, draw))[1:3] == [(1,), (1, 4)]
    derived = FeatureCosts([1.0, 0.0, 1.0, 1.0, 1.0], derived={1: [2, 3]})
    assert list(thresholded(fit, owner, derived))[1] == (1, 2, 3)
    free = FeatureCosts([0.0, 1.0, 1.0, 1.0, 1.0])
    assert list(thresholded(fit, owner, free))[:2] == [(0,), (0, 1)]


def test_a_panel_is_paid_once():
    panel = FeatureCosts([0.0] * 3 + [1.0] * 3, shared={"panel": (3.0, [0, 1, 2])})
    model = l1_gate(feature_costs=panel).fit(X, Y)
    assert {0.0, 3.0} <= set(model.history_["cost"]) <= {0.0, 1.0, 3.0, 4.0, 5.0, 6.0}
    assert all(len({0, 1, 2} & set(support)) in (0, 3) for support in supports_of(model))


def test_too_many_supports_are_thinned_out():
    every, some = l1_gate().fit(X, Y), l1_gate(max_supports=3).fit(X, Y)
    assert len(some.history_["cost"]) == 3
    assert some.history_["cost"][[0, -1]].tolist() == every.history_["cost"][[0, -1]].tolist()
    assert set(supports_of(some)) <= set(supports_of(every))
    everything = l1_gate(max_supports=None).fit(X, Y)
    assert supports_of(everything) == supports_of(every)


# -- the choice -----------------------------------------------------------------------------------------


def test_the_fitted_system_is_the_best_one_for_its_price_within_its_bound():
    model = l1_gate(cost_penalty=0.03, full_rate=0.4).fit(X, Y)
    best = np.inf
    full = FULL.predict_proba(X)
    for system in model.staged_systems():
        sent = system.route(X) == 1
        if sent.mean() <= 0.4:
            proba = np.where(sent[:, None], full, system.stages[0].predictor.predict_proba(X))
            loss = -np.log(np.clip(proba[np.arange(len(Y)), Y], 1e-6, 1))
            best = min(best, loss.mean() + 0.03 * system.acquisition_cost(X).mean())
    assert model.history_["objective"].min() == pytest.approx(best, abs=1e-6)
    assert model.route(X).mean() <= 0.4
    assert (model.full_rate_, model.cost_penalty_) == (0.4, 0.03)


def test_penalties_and_bounds_only_choose():
    cheap, dear = l1_gate(cost_penalty=10.0).fit(X, Y), l1_gate(cost_penalty=0.0).fit(X, Y)
    assert cheap.stages_[0].columns.tolist() == []
    assert len(dear.stages_[0].columns) > 1
    assert supports_of(cheap) == supports_of(dear)
    several = l1_gate(cost_penalty=[10.0, 0.0], full_rate=[0.9, 0.5]).fit(X, Y)
    np.testing.assert_array_equal(several.predict_proba(NEW), dear.predict_proba(NEW))
    nobody = l1_gate(full_rate=0.0).fit(X, Y)
    assert not nobody.route(NEW).any()
    # Its gate still tells rows apart, for whoever sets another threshold later.
    shares = [
        nobody.with_thresholds(t).route(NEW).mean()
        for t in np.sort(nobody.gate_function(NEW))[::60]
    ]
    assert len(set(shares)) == 5
    cents, euros = (l1_gate(feature_costs=unit * np.ones(6)).fit(X, Y) for unit in (100, 1))
    assert cents.cost_penalty_ == pytest.approx(euros.cost_penalty_ / 100)
    assert cents.stages_[0].columns.tolist() == euros.stages_[0].columns.tolist()


def test_an_f1_without_mistakes_keeps_its_rows():
    y = (X[:, 0] > 0).astype(int)
    wide = np.where(np.abs(X) < 0.3, X + np.sign(X), X)  # a margin that even C = 1 respects
    model = l1_gate(full_model(wide, y), cost_penalty=0.01).fit(wide, y)
    assert model.stages_[0].columns.tolist() == [0]
    assert not model.route(wide).any()
    assert model.score(wide, y) == 1.0


def test_weights_are_copies_of_rows():
    weight = np.random.default_rng(0).integers(0, 4, size=len(Y))
    again = np.repeat(np.arange(len(Y)), weight)
    weighted = l1_gate().fit(X, Y, sample_weight=weight)
    copied = l1_gate().fit(X[again], Y[again])
    assert supports_of(weighted) == supports_of(copied)
    np.testing.assert_allclose(weighted.predict_proba(NEW), copied.predict_proba(NEW), atol=1e-4)
    np.testing.assert_allclose(weighted.allocation_[again], copied.allocation_)


# -- grammar, and what a user does ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"Cs": [0.0, 1.0]}, "Cs are numbers above 0"),
        ({"class_weights": [0.5, 1.0]}, "strictly between 0 and 1"),
        ({"class_weights": "balanced"}, "class_weights"),
        ({"full_rate": 1.5}, "full_rate"),
        ({"cost_penalty": -1.0}, "cost_penalty"),
    ],
)
def test_bad_settings_are_named(options, match):
    with pytest.raises(ValueError, match=match):
        l1_gate(**options).fit(X, Y)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_text_labels_and_copies(frame):
    names = list("abcdef")
    table, labels = frame(dict(zip(names, X.T, strict=True))), np.array(["ill", "well"])[Y]
    model = l1_gate(DecisionTreeClassifier(max_depth=4, random_state=0), cv=3)
    model.set_params(feature_costs=dict.fromkeys(names, 2.0)).fit(table, labels)
    assert set(model.predict(table)) == {"ill", "well"}
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(table), model.predict(table))
    assert clone(model).get_params().keys() == model.get_params().keys()
    cheaper = model.with_costs(dict.fromkeys(names, 1.0))
    np.testing.assert_allclose(
        2 * cheaper.staged_systems()[9].acquisition_cost(table),
        model.staged_systems()[9].acquisition_cost(table),
    )


def test_missing_values_are_refused_by_name_where_the_full_model_does():
    holed = pd.DataFrame(X, columns=list("abcdef"))
    holed.loc[3, "b"] = np.nan
    with pytest.raises(ValueError, match=r"NaN in column 'b' \(1 of 250 rows\).*SVC"):
        l1_gate(SVC()).fit(holed, Y)


def test_three_classes_and_two_jobs():
    X, y = load_iris(return_X_y=True)
    with parallel_config(backend="threading"):
        models = [l1_gate(full_model(X, y), n_jobs=n).fit(X, y) for n in (None, 2)]
    np.testing.assert_array_equal(models[0].predict_proba(X), models[1].predict_proba(X))
    assert models[0].score(X, y) > 0.95
    assert models[0].predict_proba(X).shape == (150, 3)


def test_default_settings_on_patients():
    data = load_hypothyroid()
    rows = np.random.default_rng(0).permutation(len(data.data))
    X, y = data.data[rows], data.target[rows]
    model = L1GateClassifier(feature_costs=data.costs, random_state=0, class_weights=9)
    model.fit(X[:600], y[:600])  # warnings are errors
    assert model.score(X[600:], y[600:]) > 0.95
    assert model.acquisition_cost(X[600:]).mean() < 0.7 * data.costs.total
    frontier = Frontier.evaluate(model, X[600:1500], y[600:1500])
    assert len(frontier.pareto()) > 3
