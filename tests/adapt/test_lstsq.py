"""Adapt-Lstsq: a falling objective beside its bound, the sign of the gate, prices, weights, and the whole contract."""

import itertools
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from sparing import AdaptLinClassifier, AdaptLstsqClassifier, FeatureCosts, Frontier
from sparing._allocation_rows import log_odds
from sparing.adapt.lstsq import LstsqProblem
from sparing.costs import resolve_costs
from sparing.datasets import load_hypothyroid, make_synthetic1


def full_model(X, y, depth=4):
    """A tree that was trained elsewhere: nothing is cross-fitted, nothing depends on folds."""
    return FrozenEstimator(DecisionTreeClassifier(max_depth=depth, random_state=0).fit(X, y))


def piecewise(n=400, seed=0, n_columns=6):
    """Column 0 settles the rows with a small column 1; the others need column 2. The rest is noise."""
    X = np.random.default_rng(seed).normal(size=(n, n_columns))
    return X, np.where(X[:, 1] > 0.3, X[:, 2] > 0, X[:, 0] > 0).astype(int)


X, Y = piecewise(250)
FULL = full_model(*piecewise(1000, seed=1))
NEW, NEW_Y = piecewise(300, seed=2)


def adapt(estimator=FULL, **options):
    return AdaptLstsqClassifier(
        estimator, **{"full_rate": 0.5, "random_state": 0, "max_iter": 15, **options}
    )


def patients(n=300):
    data = load_hypothyroid()
    rows = np.random.default_rng(0).permutation(len(data.data))[:n]
    return data.data[rows], data.target[rows], data.costs


TASKS = {
    "two classes": lambda: (X, Y, None),
    "missing values, shared and derived items": patients,
    "iris, two sensors": lambda: (
        *load_iris(return_X_y=True),
        FeatureCosts([0, 0, 0, 0], shared={"sepal": (1.0, [0, 1]), "petal": (2.0, [2, 3])}),
    ),
    "free": lambda: (X, Y, np.zeros(6)),
    "separable": lambda: (X, (X[:, 0] > 0).astype(int), None),
}


# -- objective and bound --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "full_rate"), list(zip(TASKS, [0.1, 0.3, 0.5, 0.1, 0.5], strict=True))
)
def test_the_objective_never_rises_and_the_bound_is_close(task, full_rate):
    X, y, costs = TASKS[task]()
    settings = {"feature_costs": costs, "max_iter": 8, "tol": 0.0, "full_rate": full_rate}
    model = adapt(full_model(X, y, 3), **settings).fit(X, y)
    history = model.history_
    assert len(history["objective"]) == 8
    assert np.diff(history["objective"]).max() <= 1e-7
    assert history["allocation_rate"].max() <= full_rate + 1e-9
    gap = history["allocation_objective"] - history["allocation_bound"]
    assert gap.min() >= -1e-8
    assert gap.max() <= 2e-3 * (1 + np.abs(history["allocation_objective"]).max())
    # What follows the allocation, new f1 and g for it, can only be better; the penalty comes on top.
    if costs is not None and not np.any(costs):
        assert (history["objective"] <= history["allocation_objective"] + 1e-3).all()


def test_the_record_of_a_path_and_of_several_bounds():
    settings = {"cost_penalty": [0.01, 0.1], "max_iter": 3, "tol": 0.0}
    model = adapt(full_rate=[0.2, 0.4], **settings).fit(X, Y)
    assert model.history_["full_rate"].tolist() == [0.2] * 6 + [0.4] * 6
    assert model.history_["cost_penalty"].tolist() == [*[0.1] * 3, *[0.01] * 3] * 2
    assert {len(values) for values in model.history_.values()} == {12}
    assert (model.full_rate_, model.cost_penalty_) == (0.4, 0.01)
    assert model.allocation_.mean() <= 0.4 + 1e-9
    alone = adapt(full_rate=0.4, **settings).fit(X, Y)
    np.testing.assert_allclose(model.predict_proba(NEW), alone.predict_proba(NEW), atol=1e-6)


def test_the_problem_is_opt5():
    costs = resolve_costs(None, 6)
    problem = LstsqProblem(Y, np.full(len(Y), 0.1), None, 0.3, costs)
    cheap, gate = X[:, 0], 0.5 * X[:, 1]
    found = problem.allocate(cheap, gate)
    loss = np.logaddexp(0.0, np.where(Y == 1, -cheap, cheap))
    expected = (1 - found.q) * loss + found.q * 0.1 + (log_odds(found.q) - gate) ** 2
    assert problem.objective(cheap, gate, found.q) == pytest.approx(expected.mean())
    assert found.objective == pytest.approx(expected.mean())


# -- the gate -------------------------------------------------------------------------------------------


def test_above_zero_a_row_goes_to_the_full_model():
    # Column 1 says who needs f0; f1 knows column 0 alone.
    prices = [1.0, 1.0, 1e3, 1e3, 1e3, 1e3]
    model = adapt(feature_costs=prices, cost_penalty=1e-4).fit(X, Y)
    g = model.gate_function(NEW)
    assert np.array_equal(model.route(NEW), (g > 0).astype(int))
    hard = NEW[:, 1] > 0.3
    assert g[hard].mean() > 0 > g[~hard].mean()
    assert model.allocation_[X[:, 1] > 0.3].mean() > 2 * model.allocation_[X[:, 1] <= 0.3].mean()
    assert model.score(NEW, NEW_Y) > np.mean(model.with_thresholds(np.inf).predict(NEW) == NEW_Y)


def test_the_gate_is_a_regression_of_the_log_odds():
    model = adapt(cost_penalty=0.0, ridge=1e-9).fit(X, Y)
    fitted = LinearRegression().fit(X, log_odds(model.allocation_))
    np.testing.assert_allclose(model.gate_function(NEW), fitted.predict(NEW), atol=1e-4)


def test_it_grows_where_f1_is_worse():
    X, y = make_synthetic1()
    model = adapt(full_model(X, y, 8), full_rate=0.6, cost_penalty=0.0).fit(X, y)
    kept = model.route(X) == 0
    cheap = model.with_thresholds(np.inf).predict(X) == y
    assert 0.3 < kept.mean() < 0.7
    assert cheap[kept].mean() > cheap[~kept].mean() + 0.1


def test_more_is_sent_when_more_is_allowed():
    rates = [0.0, 0.2, 0.6]
    models = [adapt(full_rate=rate, cost_penalty=5e-3).fit(X, Y) for rate in rates]
    for rate, model in zip(rates, models, strict=True):
        assert model.allocation_.mean() <= rate + 1e-9
    shares = [model.route(NEW).mean() for model in models]
    assert shares[0] == 0.0
    assert shares == sorted(shares)
    assert shares[-1] > 0.3


def test_nobody_goes_at_a_rate_of_zero_and_f1_is_that_of_adapt_lin():
    settings = {"full_rate": 0.0, "cost_penalty": 0.02}
    lstsq = adapt(**settings).fit(X, Y)
    lin = AdaptLinClassifier(FULL, random_state=0, **settings).fit(X, Y)
    assert not lstsq.route(NEW).any()
    assert not lstsq.allocation_.any()
    assert np.isfinite(lstsq.history_["objective"]).all()
    assert lstsq.stages_[0].columns.tolist() == lin.stages_[0].columns.tolist()
    np.testing.assert_allclose(lstsq.predict_proba(NEW), lin.predict_proba(NEW), atol=0.02)


# -- prices, weights ------------------------------------------------------------------------------------


def test_at_a_huge_penalty_nothing_is_bought_and_still_answered():
    model = adapt(cost_penalty=1e6).fit(X, Y)
    assert model.stages_[0].columns.tolist() == []
    assert (model.with_thresholds(np.inf).acquisition_cost(NEW) == 0).all()


def test_f1_and_gate_share_what_they_buy():
    model = adapt(cost_penalty=0.02).fit(X, Y)
    assert {0, 1} <= set(model.stages_[0].columns) <= {0, 1, 2}
    assert set(model.cheap_.columns) | set(model.gate_.columns) == set(model.stages_[0].columns)
    twins = np.column_stack([X[:, 0], X[:, 0] + 1e-3 * X[:, 5], X[:, 1:3]])
    for prices, bought in (([5.0, 1.0, 1.0, 5.0], 1), ([1.0, 5.0, 1.0, 5.0], 0)):
        model = adapt(full_model(twins, Y), feature_costs=prices).fit(twins, Y)
        assert bought in model.stages_[0].columns
        assert 1 - bought not in model.stages_[0].columns


@pytest.mark.parametrize("three", [False, True])
def test_weights_are_copies_of_rows(three):
    y = np.where(X[:, 2] > 1, 2, Y) if three else Y
    full = full_model(X[100:], y[100:])
    weight = np.random.default_rng(0).integers(0, 4, size=150)
    again = np.repeat(np.arange(150), weight)
    settings = {"cost_penalty": 0.01, "tol": 1e-6, "max_iter": 25}
    weighted = adapt(full, **settings).fit(X[:150], y[:150], sample_weight=weight)
    copied = adapt(full, **settings).fit(X[again], y[again])
    assert weighted.stages_[0].columns.tolist() == copied.stages_[0].columns.tolist()
    np.testing.assert_allclose(weighted.predict_proba(NEW), copied.predict_proba(NEW), atol=5e-3)
    np.testing.assert_allclose(weighted.allocation_[again], copied.allocation_, atol=1e-2)
    assert np.average(weighted.allocation_, weights=weight) <= 0.5 + 1e-9


# -- systems, grammar, what a user does -----------------------------------------------------------------


def test_systems_of_every_size_are_kept():
    model = adapt().fit(X, Y)
    systems = model.staged_systems()
    assert {len(system.stages[0].columns) for system in systems} >= {1, 2, 3, 4}
    frontier = Frontier.evaluate(systems, NEW, NEW_Y)
    assert len(frontier.pareto()) > 3


def test_f1_of_a_system_that_gave_up_items_is_refitted_on_what_it_answers():
    refit, plain = (adapt(debias=debias, cost_penalty=0.02).fit(X, Y) for debias in (True, False))
    np.testing.assert_array_equal(refit.history_["objective"], plain.history_["objective"])
    assert len(refit._variants) > len(plain._variants)
    gates = [system.stages[0].gate.score(NEW, None) for system, _ in refit._variants]
    same = [np.array_equal(a, b) for a, b in itertools.pairwise(gates)]
    assert sum(same) >= len(plain._variants) - 2  # the gate stays


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_text_labels_and_copies(frame):
    names = list("abcdef")
    table = frame(dict(zip(names, X.T, strict=True)))
    labels = np.array(["ill", "well"])[Y]
    full = DecisionTreeClassifier(max_depth=4, random_state=0)
    model = adapt(full, feature_costs=dict.fromkeys(names, 2.0), max_iter=10, cv=3)
    model.fit(table, labels)
    assert set(model.predict(table)) <= {"ill", "well"}
    assert model.gate_function(table).shape == (250,)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(table), model.predict(table))
    assert clone(model).get_params().keys() == model.get_params().keys()


def test_missing_values_are_refused_by_name_where_the_full_model_does():
    holed = pd.DataFrame(X, columns=list("abcdef"))
    holed.loc[3, "b"] = np.nan
    with pytest.raises(ValueError, match=r"NaN in column 'b' \(1 of 250 rows\).*SVC"):
        adapt(SVC()).fit(holed, Y)


def test_default_settings_on_patients():
    X, y, costs = patients(600)
    model = AdaptLstsqClassifier(feature_costs=costs, random_state=0).fit(
        X, y
    )  # warnings are errors
    assert model.score(X, y) > 0.96
    assert model.acquisition_cost(X).mean() < 0.7 * costs.total
    assert model.allocation_.mean() <= 0.3 + 1e-9


def test_verbose_prints_the_alternations(capsys):
    adapt(verbose=1, max_iter=2, tol=0.0, cost_penalty=0.0).fit(X, Y)
    assert capsys.readouterr().err.startswith("Adapt-Lstsq   1  objective ")
