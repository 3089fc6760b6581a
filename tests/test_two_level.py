"""What a system with one gate is worth on its training rows."""

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.tree import DecisionTreeClassifier

from sparing import AdaptLinClassifier, FeatureCosts, L1GateClassifier
from sparing._alternation import Problem
from sparing._full_model import fit_full_model
from sparing._losses import full_loss
from sparing._two_level import routed_means, routed_objective
from sparing.engines.linear_step import LinearStep

X = np.random.default_rng(0).normal(size=(80, 3))
Y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
COSTS = FeatureCosts([1.0, 2.0, 4.0], shared={"draw": (3.0, [0, 1])}, call_price=0.5)
TREE = FrozenEstimator(DecisionTreeClassifier(max_depth=5, random_state=0).fit(X, Y))


@pytest.mark.parametrize("calls", [(0.0, 0.5), (10.0, 1.0)])
@pytest.mark.parametrize("weighted", [False, True])
def test_loss_and_cost_are_those_of_the_answers(weighted, calls):
    weight = np.linspace(0.5, 2.0, 80) if weighted else None
    full = fit_full_model(TREE, X, Y)
    costs = COSTS.with_call_price(calls) if calls[0] else COSTS
    problem = Problem(Y, full_loss(full.proba, Y), weight, 0.5, costs)
    gate, cheap, columns = X[:, 1], 2 * X[:, 0], np.array([0, 1])
    loss, cost = routed_means(problem, full, LinearStep(None, cheap, gate, 0.0, columns))
    sent = gate > 0
    expected = np.where(sent, problem.full_loss, np.logaddexp(0, np.where(Y == 1, -cheap, cheap)))
    assert loss == pytest.approx(np.average(expected, weights=weight))
    # Columns 0 and 1 share a draw; f0 reads all three; a call of f1 is paid by all rows, of f0 by those sent to it.
    prices = calls[0] + np.where(sent, 1 + 2 + 3 + 4 + calls[1], 1 + 2 + 3)
    assert cost == pytest.approx(np.average(prices, weights=weight))
    step = LinearStep(None, cheap, gate, 0.0, columns)
    assert routed_objective(problem, full, step, 0.2) == pytest.approx(loss + 0.2 * cost)


@pytest.mark.parametrize("learner", [AdaptLinClassifier, L1GateClassifier])
def test_the_gate_decides_the_route(learner):
    model = learner(TREE, full_rate=0.6, feature_costs=COSTS, cost_penalty=0.0).fit(X, Y)
    assert np.array_equal(model.gate_function(X) > 0, model.route(X) == 1)
    np.testing.assert_array_equal(model.gate_.score(X, None), model.gate_function(X))
    kept = model.route(X) == 0
    np.testing.assert_array_equal(model.cheap_.predict_proba(X)[kept], model.predict_proba(X)[kept])


@pytest.mark.parametrize("learner", [AdaptLinClassifier, L1GateClassifier])
def test_the_cost_that_is_judged_is_the_cost_that_is_paid(learner, monkeypatch):
    judged = []

    def watched(problem, full, fit):
        judged.append(routed_means(problem, full, fit)[1])
        return routed_means(problem, full, fit)

    for module in ("sparing._two_level", "sparing.baselines._l1_supports"):
        monkeypatch.setattr(f"{module}.routed_means", watched)
    costs = FeatureCosts([1.0, 2.0, 4.0], call_price=(10.0, 1.0))
    model = learner(TREE, full_rate=0.6, feature_costs=costs, cost_penalty=0.01).fit(X, Y)
    assert min(abs(cost - model.acquisition_cost(X).mean()) for cost in judged) < 1e-9
