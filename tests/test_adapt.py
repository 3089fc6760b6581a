"""Adapt-Lin: a falling objective, prices that are paid once, penalties and bounds that do what they say."""

import itertools
from collections import defaultdict
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from sparing import AdaptLinClassifier, FeatureCosts
from sparing.datasets import load_hypothyroid, load_letters, make_synthetic1


def full_model(X, y, depth=4):
    """A tree that was trained elsewhere: nothing is cross-fitted, nothing depends on folds."""
    return FrozenEstimator(DecisionTreeClassifier(max_depth=depth, random_state=0).fit(X, y))


def piecewise(n=400, seed=0, n_columns=6):
    """Column 0 settles the rows with a small column 1; the others need column 2. The rest is noise."""
    X = np.random.default_rng(seed).normal(size=(n, n_columns))
    return X, np.where(X[:, 1] > 0.3, X[:, 2] > 0, X[:, 0] > 0).astype(int)


X, Y = piecewise()
FULL = full_model(*piecewise(1000, seed=1))
NEW, NEW_Y = piecewise(300, seed=2)


def adapt(estimator=FULL, **options):
    return AdaptLinClassifier(estimator, **{"full_rate": 0.5, "random_state": 0, **options})


# -- the objective --------------------------------------------------------------------------------------


def patients(n=400):
    data = load_hypothyroid()
    rows = np.random.default_rng(0).permutation(len(data.data))[:n]
    return data.data[rows], data.target[rows], data.costs


def letters(n=200, binary=False):
    data = load_letters(binary=binary)
    some = slice(n) if binary else np.flatnonzero(np.isin(data.target, [*"ABCD"]))[:n]
    return data.data[some], data.target[some], data.costs


TASKS = {
    "two classes": lambda: (X, Y, None),
    "missing values, shared and derived items": patients,
    "letters in two classes": lambda: letters(binary=True),
    "letters A to D": letters,
    "iris, two sensors": lambda: (
        *load_iris(return_X_y=True),
        FeatureCosts([0, 0, 0, 0], shared={"sepal": (1.0, [0, 1]), "petal": (2.0, [2, 3])}),
    ),
    "wine, computed columns": lambda: (
        *load_wine(return_X_y=True),
        FeatureCosts([1.0] * 11 + [0.0] * 2, derived={11: [0, 1], 12: [1, 2, 3]}),
    ),
    "free": lambda: (X, Y, np.zeros(6)),
    "separable": lambda: (X, (X[:, 0] > 0).astype(int), None),
}


def assert_falls(task, **options):
    X, y, costs = TASKS[task]()
    settings = {"feature_costs": costs, "max_iter": 8, "tol": 0.0, **options}
    model = adapt(full_model(X, y, 3), **settings).fit(X, y)
    assert len(model.history_["objective"]) == 8
    assert np.diff(model.history_["objective"]).max() <= 1e-7
    assert model.history_["allocation_rate"].max() <= 0.5 + 1e-9


@pytest.mark.parametrize("task", TASKS)
def test_the_objective_never_rises(task):
    assert_falls(task)


@pytest.mark.parametrize("task", ["two classes", "iris, two sensors", "separable"])
def test_the_objective_never_rises_in_own_units_from_anywhere(task):
    assert_falls(task, standardize=False, cost_penalty=1e-3, init="random")


def test_the_record_of_a_path_and_of_several_bounds():
    model = adapt(full_rate=[0.2, 0.4], cost_penalty=[0.01, 0.1, 0.03], max_iter=3, tol=0.0).fit(
        X, Y
    )
    history = model.history_
    assert history["full_rate"].tolist() == [0.2] * 9 + [0.4] * 9
    assert history["cost_penalty"].tolist() == [*[0.1] * 3, *[0.03] * 3, *[0.01] * 3] * 2
    assert history["iteration"].tolist() == [1, 2, 3] * 6
    for part in np.split(history["objective"], 6):
        assert np.diff(part).max() <= 1e-9
    assert (model.full_rate_, model.cost_penalty_) == (0.4, 0.01)
    assert model.allocation_.mean() <= 0.4 + 1e-9
    alone = adapt(full_rate=0.4, cost_penalty=[0.01, 0.1, 0.03], max_iter=3, tol=0.0).fit(X, Y)
    np.testing.assert_allclose(model.predict_proba(NEW), alone.predict_proba(NEW), atol=1e-6)


# -- penalties ------------------------------------------------------------------------------------------


def test_at_a_huge_penalty_nothing_is_bought_and_still_answered():
    model = adapt(cost_penalty=1e6, feature_costs=FeatureCosts(np.ones(6), call_price=2.0)).fit(
        X, Y
    )
    kept = model.with_thresholds(np.inf)
    assert kept.stages_[0].columns.tolist() == []
    assert not kept.acquisition_mask(NEW).any()
    assert (kept.acquisition_cost(NEW) == 0).all()
    assert set(kept.predict(NEW)) == {int(Y.mean() > 0.5)}
    assert (model.with_thresholds(-np.inf).acquisition_cost(NEW) == 3 + 2.0).all()
    assert set(model.route(NEW)) == {0}
    assert kept.explain(NEW[:1])[0]["items"] == {}


def test_without_penalty_f1_is_a_logistic_regression():
    for X, y in (piecewise(200), load_iris(return_X_y=True)):
        ridge = 0.01
        model = adapt(
            full_model(X, y),
            full_rate=0.0,
            cost_penalty=0.0,
            ridge=ridge,
            feature_costs=np.zeros(X.shape[1]),
        ).fit(X, y)
        plain = make_pipeline(
            StandardScaler(), LogisticRegression(C=1 / (len(X) * ridge), tol=1e-8)
        ).fit(X, y)
        assert set(model.route(X)) == {0}
        assert not model.allocation_.any()
        np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), atol=1e-4)


def test_fewer_columns_at_a_larger_penalty():
    # Independent columns, each half as telling as the one before: who is worth its price is clear.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 5))
    y = (X @ [4.0, 2.0, 1.0, 0.5, 0.0] + rng.logistic(size=600) > 0).astype(int)
    full = FrozenEstimator(LogisticRegression().fit(X, y))
    supports = [
        adapt(full, full_rate=0.1, cost_penalty=penalty).fit(X, y).stages_[0].columns.tolist()
        for penalty in (1e-3, 1e-2, 0.03, 0.1, 1.0)
    ]
    assert supports[0][:3] == [0, 1, 2]
    assert supports[-1] == []
    for larger, smaller in itertools.pairwise(supports):
        assert smaller == larger[: len(smaller)]
    assert len({len(support) for support in supports}) >= 4


def test_a_path_ends_where_a_single_fit_does():
    path = adapt(cost_penalty=[0.1, 0.03, 0.01]).fit(X, Y)
    single = adapt(cost_penalty=0.01).fit(X, Y)
    assert path.stages_[0].columns.tolist() == single.stages_[0].columns.tolist()
    assert path.history_["objective"][-1] <= single.history_["objective"][-1] + 1e-6
    agree = path.predict_proba(NEW), single.predict_proba(NEW)
    np.testing.assert_allclose(*agree, atol=0.02)


def test_systems_of_every_penalty_are_kept():
    model = adapt(cost_penalty=[0.3, 0.01]).fit(X, Y)
    kept = {tuple(system.stages[0].columns) for system in model.staged_systems()}
    for penalty in (0.3, 0.01):
        assert tuple(adapt(cost_penalty=penalty).fit(X, Y).stages_[0].columns) in kept
    last = model.staged_systems()[-1].stages[0]
    np.testing.assert_array_equal(
        last.predictor.predict_proba(NEW), model.cheap_.predict_proba(NEW)
    )


def test_systems_of_every_size_are_kept():
    systems = adapt().fit(X, Y).staged_systems()
    assert {len(system.stages[0].columns) for system in systems} >= {1, 2, 3, 4}


def test_a_column_is_tried_alone_with_all_items_it_needs():
    # Only the last column tells anything. It needs a sample and a test; no single item buys it.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    y = (X[:, 4] + 0.3 * rng.normal(size=300) > 0).astype(int)
    costs = FeatureCosts([1.0] * 3 + [2.0] * 2, shared={"sample": (3.0, [3, 4])})
    model = adapt(full_model(X, y), feature_costs=costs, full_rate=0.1, cost_penalty=0.05).fit(X, y)
    assert (4,) in {tuple(system.stages[0].columns) for system in model.staged_systems()}
    assert model.stages_[0].columns.tolist() == [4]
    assert (model.with_thresholds(np.inf).acquisition_cost(X) == 5.0).all()


def test_auto_does_not_depend_on_the_currency():
    cents, euros = (adapt(feature_costs=unit * np.arange(1.0, 7)).fit(X, Y) for unit in (100, 1))
    assert cents.cost_penalty_ == pytest.approx(euros.cost_penalty_ / 100)
    np.testing.assert_allclose(cents.predict_proba(NEW), euros.predict_proba(NEW), atol=1e-6)
    np.testing.assert_allclose(cents.acquisition_cost(NEW), 100 * euros.acquisition_cost(NEW))
    assert adapt(feature_costs=np.zeros(6)).fit(X, Y).cost_penalty_ == 0.0


def test_what_is_free_is_used_and_costs_nothing():
    model = adapt(feature_costs=np.zeros(6)).fit(X, Y)
    assert model.stages_[0].columns.tolist() == list(range(6))
    assert (model.acquisition_cost(NEW) == 0).all()
    some = adapt(feature_costs=[0.0, 0.0, 1e3, 1e3, 1e3, 1e3], cost_penalty=1.0).fit(X, Y)
    assert some.stages_[0].columns.tolist() == [0, 1]
    assert some.score(NEW, NEW_Y) > np.mean(some.with_thresholds(np.inf).predict(NEW) == NEW_Y)


def test_cheap_columns_are_preferred_to_their_copies():
    twins = np.column_stack([X[:, 0], X[:, 0] + 1e-3 * X[:, 5], X[:, 1:3]])
    for prices, bought in (([5.0, 1.0, 1.0, 5.0], 1), ([1.0, 5.0, 1.0, 5.0], 0)):
        model = adapt(full_model(twins, Y), feature_costs=prices).fit(twins, Y)
        assert bought in model.stages_[0].columns
        assert 1 - bought not in model.stages_[0].columns


def test_one_column():
    one, new = X[:, :1], NEW[:, :1]
    model = adapt(full_model(one, Y)).fit(one, Y)
    assert model.predict(new).shape == (300,)
    assert set(model.acquisition_cost(new)) <= {0.0, 1.0}
    assert model.score(new, NEW_Y) > 0.6


# -- shared and derived items ---------------------------------------------------------------------------


def test_a_shared_item_is_paid_once():
    panel = FeatureCosts([0.0] * 3 + [1.0] * 3, shared={"panel": (3.0, [0, 1, 2])})
    model = adapt(feature_costs=panel).fit(X, Y)
    cheap = model.stages_[0].columns
    assert {0, 1} <= set(cheap)
    kept = model.with_thresholds(np.inf)
    expected = panel.of(kept.acquisition_mask(NEW)[0])
    assert (kept.acquisition_cost(NEW) == expected).all()
    assert expected == 3.0 + sum(c > 2 for c in cheap)  # once, not per column of the panel
    assert kept.explain(NEW[:1])[0]["items"]["panel"] == 3.0
    # With the panel paid for, its third column is free: f1 and g may as well use it.
    assert 2 in cheap


def test_a_computed_column_pays_for_its_inputs():
    computed = np.column_stack([X[:, 3:6], X[:, 0], X[:, 1]])
    costs = FeatureCosts([1.0, 1.0, 1.0, 0.0, 0.5], derived={3: [0, 1]})
    model = adapt(full_model(computed, Y), feature_costs=costs, cost_penalty=5e-3).fit(computed, Y)
    assert 3 in model.stages_[0].columns
    kept = model.with_thresholds(np.inf)
    assert set(kept.explain(computed[:1])[0]["items"]) >= {0, 1}
    assert kept.acquisition_cost(computed)[0] == costs.of(kept.acquisition_mask(computed)[0]) >= 2.0


def test_owned_items_of_a_panel():
    panel = FeatureCosts([0.0] * 3 + [1.0] * 3, shared={"panel": (3.0, [0, 1, 2])})
    model = adapt(feature_costs=panel).fit(X, Y).with_thresholds(np.inf)
    owned = np.array([item == "panel" for item in panel.items])
    np.testing.assert_allclose(
        model.acquisition_cost(NEW, owned=owned), model.acquisition_cost(NEW) - 3.0
    )


# -- weights --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("three", [False, True])
def test_weights_are_copies_of_rows(three):
    y = np.where(X[:, 2] > 1, 2, Y) if three else Y
    full = full_model(X[200:], y[200:])
    weight = np.random.default_rng(0).integers(0, 4, size=200)
    again = np.repeat(np.arange(200), weight)
    settings = {"cost_penalty": 0.01, "tol": 1e-6, "max_iter": 60}
    weighted = adapt(full, **settings).fit(X[:200], y[:200], sample_weight=weight)
    copied = adapt(full, **settings).fit(X[again], y[again])
    assert weighted.stages_[0].columns.tolist() == copied.stages_[0].columns.tolist()
    np.testing.assert_allclose(weighted.predict_proba(NEW), copied.predict_proba(NEW), atol=2e-3)
    np.testing.assert_allclose(weighted.allocation_[again], copied.allocation_, atol=5e-3)
    assert np.average(weighted.allocation_, weights=weight) <= 0.5 + 1e-9


def test_equal_weights_change_nothing():
    plain = adapt().fit(X, Y)
    for scale in (1.0, 1e-3, 1e6):
        weighted = adapt().fit(X, Y, sample_weight=np.full(len(Y), scale))
        np.testing.assert_allclose(weighted.predict_proba(NEW), plain.predict_proba(NEW), atol=1e-5)


def test_heavy_rows_decide():
    weight = np.where(X[:, 0] > 0, 100.0, 1.0)
    weighted = adapt(full_rate=0.0, feature_costs=np.zeros(6)).fit(X, Y, sample_weight=weight)
    plain = adapt(full_rate=0.0, feature_costs=np.zeros(6)).fit(X, Y)
    heavy = X[:, 0] > 0
    assert weighted.score(X[heavy], Y[heavy]) > plain.score(X[heavy], Y[heavy])


# -- bounds, starts, units ------------------------------------------------------------------------------


def test_more_is_sent_when_more_is_allowed():
    rates = [0.0, 0.1, 0.3, 0.6]
    models = [adapt(full_rate=rate, cost_penalty=5e-3).fit(X, Y) for rate in rates]
    for rate, model in zip(rates, models, strict=True):
        assert model.allocation_.mean() <= rate + 1e-9
    shares = [model.route(NEW).mean() for model in models]
    assert shares[0] == 0.0
    assert shares == sorted(shares)
    assert shares[-1] > 0.3


def test_units_do_not_matter_unless_asked():
    scale, shift = 10.0 ** np.arange(-3, 3), np.arange(6.0)
    moved, moved_new = X * scale + shift, NEW * scale + shift
    full = full_model(moved, Y)
    plain = adapt(full_model(X, Y)).fit(X, Y)
    other = adapt(full).fit(moved, Y)
    assert plain.stages_[0].columns.tolist() == other.stages_[0].columns.tolist()
    np.testing.assert_allclose(plain.gate_function(NEW), other.gate_function(moved_new), atol=1e-3)
    paper = [
        adapt(f, standardize=False, cost_penalty=0.01).fit(x, Y).stages_[0].columns.tolist()
        for f, x in ((full, moved), (plain.estimator, X))
    ]
    assert paper[0] != paper[1]


def test_random_starts_follow_the_seed():
    random = {"init": "random", "max_iter": 3, "cost_penalty": 1e-3}
    one, again, other = (adapt(random_state=s, **random).fit(X, Y) for s in (1, 1, 2))
    np.testing.assert_array_equal(one.gate_function(NEW), again.gate_function(NEW))
    assert not np.allclose(one.history_["objective"], other.history_["objective"])


def test_more_starts_never_end_higher():
    random = {"init": "random", "max_iter": 5, "cost_penalty": 1e-3, "tol": 0.0}
    objectives = [adapt(n_init=n, **random).fit(X, Y).history_["objective"][-1] for n in (1, 3, 6)]
    assert objectives[1] <= objectives[0]
    assert objectives[2] <= objectives[1]
    assert objectives[2] < objectives[0]


def test_a_start_can_be_given():
    rule = (np.array([5.0, 0, 0, 0, 0, 0]), np.array([0.0, 5, 0, 0, 0, 0]))
    once = {"max_iter": 1, "tol": 0.0, "cost_penalty": 5e-3}
    given, plain = adapt(init=rule, **once).fit(X, Y), adapt(**once).fit(X, Y)
    assert given.history_["objective"][0] < plain.history_["objective"][0]
    frame = pd.DataFrame(X).add_prefix("x")
    framed = adapt(full_model(frame, Y), init=rule, **once).fit(frame, Y)
    assert framed.history_["objective"][0] < plain.history_["objective"][0]
    three = (np.ones((6, 3)), np.ones(6))
    y3 = np.where(X[:, 2] > 1, 2, Y)
    assert adapt(full_model(X, y3), init=three).fit(X, y3).score(X, y3) > 0.7


def coefficient_norms(model):
    """Columns of every system of a fit, and the norms of f1's coefficients on them."""
    norms = defaultdict(set)
    for system in model.staged_systems():
        stage = system.stages[0]
        norms[tuple(stage.columns)].add(float(np.linalg.norm(stage.predictor.scores.coef)))
    return norms


def test_a_refit_without_penalty_keeps_the_columns_and_changes_the_rest():
    settings = {"cost_penalty": 0.02, "full_rate": 0.3}
    refit, shrunk = (adapt(debias=debias, **settings).fit(X, Y) for debias in (True, False))
    np.testing.assert_array_equal(refit.history_["objective"], shrunk.history_["objective"])
    with_refit, without = coefficient_norms(refit), coefficient_norms(shrunk)
    assert with_refit.keys() == without.keys()
    changed = [columns for columns in without if with_refit[columns] != without[columns]]
    assert len(changed) == 1
    assert len(changed[0]) == shrunk.history_["n_columns"][-1]
    assert min(without[changed[0]]) < 0.9 * min(with_refit[changed[0]])


def test_alternating_longer_is_a_better_fit():
    X, y = make_synthetic1()
    objectives = [
        adapt(full_model(X, y), max_iter=n, tol=0.0, cost_penalty=0.0)
        .fit(X, y)
        .history_["objective"][-1]
        for n in (1, 5, 20)
    ]
    assert objectives[0] > objectives[1] > objectives[2]


def test_it_stops_by_itself():
    assert adapt(max_iter=500).fit(X, Y).n_iter_ < 100
    assert adapt(max_iter=2, tol=0.0).fit(X, Y).n_iter_ == 2
    assert adapt(max_iter=500, tol=1.0).fit(X, Y).n_iter_ == 2


def test_verbose_prints_the_alternations(capsys):
    adapt(verbose=1, max_iter=2, tol=0.0).fit(X, Y)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) >= 2
    assert lines[0].startswith("Adapt-Lin   1  objective ")


# -- on real data, with the settings a user starts with --------------------------------------------------


def test_default_settings_on_patients():
    X, y, costs = patients(1500)
    model = AdaptLinClassifier(feature_costs=costs, random_state=0).fit(X, y)  # warnings are errors
    assert model.score(X, y) > 0.97
    assert model.acquisition_cost(X).mean() < 0.7 * costs.total
    assert model.allocation_.mean() <= 0.3 + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"full_rate": 0.0},
        {"full_rate": 1.0},
        {"cost_penalty": 0.0},
        {"cost_penalty": [1e-4, 1e-2, 1.0]},
    ],
    ids=str,
)
@pytest.mark.parametrize(
    ("data", "n"),
    [(load_hypothyroid, 3163), (partial(load_letters, binary=True), 3000), (load_letters, 600)],
)
def test_the_engine_converges_on_the_bundled_data(data, n, settings):
    data = data()
    some = np.random.default_rng(0).permutation(len(data.data))[:n]
    full = DecisionTreeClassifier(min_samples_leaf=5, random_state=0)
    model = AdaptLinClassifier(full, feature_costs=data.costs, random_state=0, **settings)
    model.fit(data.data[some], data.target[some])  # warnings are errors
    assert (
        np.diff(model.history_["objective"])[np.diff(model.history_["iteration"]) > 0].max() <= 1e-7
    )
