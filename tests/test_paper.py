"""Facts of the paper about its two made-up data sets, learnt and measured on the same points as there."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from sparing import AdaptLinClassifier, AdaptLstsqClassifier, FeatureCosts, L1GateClassifier
from sparing._alternation import Problem, alternate
from sparing._full_model import fit_full_model
from sparing._losses import full_loss
from sparing.datasets import make_synthetic1, make_synthetic2
from sparing.engines.design import Design
from sparing.engines.linear import LinearFit, LinearProblem
from sparing.engines.linear_step import LinearStepper
from sparing.engines.penalty import GroupPenalty

OPTIMAL = {False: 110 / 70, True: 1.5}  # feature 2 for all, feature 1 for clusters 1 and 2
SECOND = {False: 120 / 70, True: 1.75}  # feature 1 for all, feature 2 for all but cluster 1


def outcome(model, X, y):
    return model.score(X, y), round(float(model.acquisition_cost(X).mean()), 6)


# -- Synthetic-2: features chosen together with the gate --------------------------------------------------


@pytest.mark.parametrize("learner", [AdaptLinClassifier, AdaptLstsqClassifier])
@pytest.mark.parametrize("equal", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_default_settings_find_the_optimal_system(learner, equal, seed):
    X, y = make_synthetic2(equal=equal, random_state=seed)
    model = learner(SVC(), full_rate=0.6, random_state=seed).fit(X, y)
    assert outcome(model, X, y) == (1.0, pytest.approx(OPTIMAL[equal], abs=1e-6))
    assert model.stages_[0].columns.tolist() == [1]
    sent = model.route(X) == 1
    assert np.array_equal(sent, X[:, 1] > 0)  # clusters 1 and 2
    assert model.estimator_.score(X, y) == 1.0


@pytest.mark.parametrize("equal", [False, True])
@pytest.mark.parametrize("cost_penalty", [0.03, 0.04, 0.056])
def test_so_does_the_start_of_the_paper(equal, cost_penalty):
    X, y = make_synthetic2(equal=equal)
    ones = (np.ones(2), np.ones(2))
    model = AdaptLinClassifier(
        SVC(),
        init=ones,
        n_init=1,
        cost_penalty=cost_penalty,
        full_rate=0.6,
        standardize=False,
        random_state=0,
    ).fit(X, y)
    assert outcome(model, X, y) == (1.0, pytest.approx(OPTIMAL[equal], abs=1e-6))


@pytest.mark.parametrize("equal", [False, True])
def test_the_best_single_feature_is_the_wrong_one_to_buy(equal):
    X, y = make_synthetic2(equal=equal)
    standardised = (X - X.mean(axis=0)) / X.std(axis=0)
    for C in np.logspace(-3, 1, 20):
        sparse = LogisticRegression(C=C, l1_ratio=1.0, solver="liblinear").fit(standardised, y)
        if sparse.coef_.any():
            break
    assert np.flatnonzero(sparse.coef_).tolist() == [0]
    # What that choice can reach at best, and what it costs: cluster 1 is settled, all others are sent on.
    settled = X[:, 0] > 0
    assert round(float(np.where(settled, 1, 2).mean()), 6) == pytest.approx(SECOND[equal], abs=1e-6)
    assert SECOND[equal] > OPTIMAL[equal]


@pytest.mark.parametrize("equal", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_the_l1_baseline_buys_it_and_needs_the_full_model_more_often(equal, seed):
    X, y = make_synthetic2(equal=equal, random_state=seed)
    model = L1GateClassifier(SVC(), full_rate=0.8, random_state=seed).fit(X, y)
    assert outcome(model, X, y) == (1.0, pytest.approx(SECOND[equal], abs=1e-6))
    assert model.stages_[0].columns.tolist() == [0]
    found = [
        (s.acquisition_cost(X).mean(), np.mean(s.predict(X) == y)) for s in model.staged_systems()
    ]
    best = min(cost for cost, accuracy in found if accuracy == 1.0)
    assert best == pytest.approx(SECOND[equal], abs=1e-6)


def optimal_starts(equal, standardize, seeds):
    """How many Gaussian starts the alternation alone (Algorithm 1, penalty 0.05) takes to the optimal system."""
    X, y = make_synthetic2(equal=equal)
    full = fit_full_model(SVC(), X, y, random_state=0)
    design = Design.fit(X, standardize=standardize)
    rows = LinearProblem(design.transform(X), y, 2)
    costs = FeatureCosts([1.0, 1.0])
    prices = GroupPenalty.from_costs(costs, design.owner).scaled(0.05)
    step = LinearStepper(rows, prices, 1e-4, design.owner)
    problem = Problem(y, full_loss(full.proba, y), None, 0.6, costs)
    found = 0
    for seed in seeds:
        coef = np.random.default_rng(seed).standard_normal((2, 2))
        start = rows.scores(LinearFit(coef, np.zeros(2), np.nan, np.nan, 0, True))
        end = alternate(problem, step, start, max_iter=50, tol=1e-4, extrapolate=True)
        fit = step.debiased(end.q, end.fit)
        sent = fit.gate > 0
        right = np.where(sent, full.proba.argmax(axis=1), fit.cheap > 0) == y
        assert right.all()
        found += len(fit.columns) * (~sent).sum() + 2 * sent.sum() <= OPTIMAL[equal] * len(y) + 1e-6
    return found


@pytest.mark.parametrize("equal", [False, True])
def test_gaussian_starts_often_find_it_in_the_units_of_the_paper(equal):
    assert optimal_starts(equal, standardize=False, seeds=range(20)) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("equal", [False, True])
def test_a_hundred_gaussian_starts(equal):
    """About a third in the units of the paper; next to none when columns are standardised."""
    own, scaled = (optimal_starts(equal, standardize, range(100)) for standardize in (False, True))
    print(f"equal={equal}: {own} of 100 starts in own units, {scaled} standardised")
    assert own >= 25
    assert scaled < own


# -- Synthetic-1: the gate adapts, without prices ---------------------------------------------------------


@pytest.fixture(scope="module")
def synthetic1():
    X, y = make_synthetic1()
    return X, y, SVC().fit(X, y).score(X, y)


def test_the_full_model_of_synthetic1_bends_where_a_line_cannot(synthetic1):
    X, y, full = synthetic1
    assert full == pytest.approx(0.936, abs=0.002)
    assert LogisticRegression().fit(X, y).score(X, y) < full - 0.04


def test_ten_alternations_keep_the_accuracy_and_send_sixty_per_cent(synthetic1):
    X, y, full = synthetic1
    model = AdaptLinClassifier(
        SVC(), full_rate=0.6, cost_penalty=0.0, max_iter=10, tol=0.0, random_state=0
    ).fit(X, y)
    assert model.n_iter_ == 10
    assert model.score(X, y) >= full - 0.005
    assert 0.3 < model.route(X).mean() <= 0.62
    kept = model.route(X) == 0
    start = LogisticRegression().fit(X, y)
    assert model.score(X[kept], y[kept]) > start.score(X[kept], y[kept]) + 0.02


def test_so_do_the_default_settings(synthetic1):
    X, y, full = synthetic1
    model = AdaptLinClassifier(SVC(), full_rate=0.6, cost_penalty=0.0, random_state=0).fit(X, y)
    assert model.score(X, y) >= full
    assert model.route(X).mean() <= 0.6
