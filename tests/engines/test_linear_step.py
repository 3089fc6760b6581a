"""OPT2 as a step of the alternation: scores and price of a solution, refits on its columns, attempts with one item."""

import numpy as np
import pytest

from sparing.costs import FeatureCosts
from sparing.engines.linear import LinearProblem
from sparing.engines.linear_step import LinearStepper, single_purchases
from sparing.engines.penalty import GroupPenalty

RNG = np.random.default_rng(0)
Z = RNG.normal(size=(300, 5))
Y = (Z[:, 0] + 0.5 * Z[:, 1] + 0.2 * Z[:, 2] + RNG.logistic(size=300) > 0).astype(int)
Q = RNG.random(300) * (Z[:, 3] > 0)
ROWS = LinearProblem(Z, Y, 2)
OWNER = np.array([0, 1, 1, 2, 3])  # columns of X behind those of the design


def stepper(penalty=0.05, costs=None, **options):
    prices = GroupPenalty.from_costs(costs or FeatureCosts(np.ones(4)), OWNER)
    return LinearStepper(ROWS, prices.scaled(penalty), 1e-3, OWNER, **options)


def test_a_step_is_the_solution_of_opt2_with_its_scores_and_price():
    step = stepper()(Q, None)
    fit = ROWS.solve(Q, stepper().prices, ridge=1e-3)
    np.testing.assert_allclose(step.fit.coef, fit.coef, atol=1e-5)
    np.testing.assert_array_equal(step.cheap, ROWS.scores(step.fit)[0])
    np.testing.assert_array_equal(step.gate, ROWS.scores(step.fit)[1])
    by_column = [np.linalg.norm(step.fit.coef[c == OWNER]) for c in range(4)]
    expected = 0.05 * sum(by_column) + 0.5e-3 * np.sum(step.fit.coef**2)
    assert step.penalty == pytest.approx(expected)
    assert step.columns.tolist() == [c for c in range(4) if by_column[c] > 0]
    assert 0 < len(step.columns) < 4


def test_a_step_starts_from_the_last_one():
    first = stepper()(Q, None)
    again = stepper()(Q, first)
    assert again.fit.n_iter == 0
    np.testing.assert_array_equal(again.fit.coef, first.fit.coef)


def test_a_refit_keeps_the_columns_and_drops_the_penalty():
    step = stepper()(Q, None)
    free = stepper().debiased(Q, step)
    assert free.columns.tolist() == step.columns.tolist()
    assert (np.linalg.norm(free.fit.coef) > 1.05 * np.linalg.norm(step.fit.coef)).all()
    kept = np.isin(OWNER, step.columns)
    alone = LinearProblem(Z[:, kept], Y, 2).solve(Q, None, ridge=1e-3)
    np.testing.assert_allclose(free.fit.coef[kept], alone.coef, atol=1e-4)
    assert not free.fit.coef[~kept].any()


def test_a_refit_without_ridge_still_has_a_solution():
    step = LinearStepper(ROWS, stepper().prices, 0.0, OWNER)
    separable = LinearStepper(
        LinearProblem(Z, (Z[:, 0] > 0).astype(int), 2), step.prices, 0.0, OWNER
    )
    refit = separable.debiased(np.zeros(300), separable(np.zeros(300), None))
    assert np.isfinite(refit.fit.coef).all()
    assert refit.fit.converged


def test_nothing_bought_is_a_step_too():
    step = stepper(penalty=10.0)(Q, None)
    assert step.columns.tolist() == []
    assert step.penalty == 0.0
    assert len(np.unique(step.cheap)) == len(np.unique(step.gate)) == 1
    refit = stepper(penalty=10.0).debiased(Q, step)
    np.testing.assert_allclose(refit.cheap, step.cheap, atol=1e-5)


# -- what could be bought first -------------------------------------------------------------------------


def purchases(costs, Z=Z, y=Y, weight=None):
    labels = np.eye(y.max() + 1)[y]
    return single_purchases(costs, OWNER, Z, labels, weight)


def columns(costs):
    return sorted(each.columns.tolist() for each in purchases(costs))


def test_plain_prices_are_one_purchase_each():
    found = purchases(FeatureCosts([1.0, 2.0, 3.0, 4.0]))
    assert sorted((each.columns.tolist(), each.price) for each in found) == [
        ([0], 1.0),
        ([1], 2.0),
        ([2], 3.0),
        ([3], 4.0),
    ]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_gain_is_about_what_the_best_weak_model_gains(n_classes):
    rng = np.random.default_rng(1)
    signal = 0.3 * Z[:, 0] + rng.logistic(size=300)
    y = np.digitize(signal, np.quantile(signal, np.arange(1, n_classes) / n_classes))
    weight = rng.random(300)
    found = {int(p.columns[0]): p for p in purchases(FeatureCosts(np.ones(4)), y=y, weight=weight)}
    shares = np.average(np.eye(n_classes)[y], axis=0, weights=weight)
    before = -shares @ np.log(shares)
    for column in (0, 2):
        alone = LinearProblem(Z[:, column == OWNER] + 5.0, y, n_classes, weight)
        fit = alone.solve(None, None, ridge=0.0, gate=False)
        assert found[column].gain == pytest.approx(before - fit.objective, rel=0.1, abs=5e-4)


def test_units_and_offsets_do_not_matter_to_the_gain():
    plain = purchases(FeatureCosts(np.ones(4)))
    moved = purchases(FeatureCosts(np.ones(4)), Z=7.0 + 100.0 * Z)
    assert [p.gain for p in moved] == pytest.approx([p.gain for p in plain])
    constant = Z.copy()
    constant[:, 0] = 3.0
    assert purchases(FeatureCosts(np.ones(4)), Z=constant)[-1].columns.tolist() == [0]
    assert purchases(FeatureCosts(np.ones(4)), Z=constant)[-1].gain == 0.0


def test_dear_purchases_must_gain_more():
    best, other = sorted(purchases(FeatureCosts([50.0, 1.0, 1.0, 1.0])), key=lambda p: -p.gain)[:2]
    assert best.columns.tolist() == [0]
    assert best.loss(0.0) == -best.gain < other.loss(0.0)
    assert best.loss(0.01) == pytest.approx(0.5 - best.gain)
    assert best.loss(0.01) > other.loss(0.01)


def test_free_columns_come_along_and_count_for_nothing():
    found = purchases(FeatureCosts([1.0, 0.0, 1.0, 1.0]))
    assert sorted(each.columns.tolist() for each in found) == [[0, 1], [1, 2], [1, 3]]
    alone = purchases(FeatureCosts([1.0, 1.0, 1.0, 1.0]))
    assert {each.gain for each in found} < {each.gain for each in alone}


def test_shared_items_are_bought_with_what_they_are_needed_for():
    costs = FeatureCosts([1.0, 0.0, 0.0, 5.0], shared={"panel": (2.0, [1, 2, 3])})
    found = {tuple(each.columns): each.price for each in purchases(costs)}
    # The panel brings 1 and 2; column 3 has a price of its own on top and brings the panel's columns, too.
    assert found == {(0,): 1.0, (1, 2): 2.0, (1, 2, 3): 7.0}


def test_a_column_that_is_computed_brings_its_inputs():
    costs = FeatureCosts([1.0, 1.0, 1.0, 0.0], derived={3: [0, 1]})
    found = {tuple(each.columns): each.price for each in purchases(costs)}
    assert found == {(0,): 1.0, (1,): 1.0, (2,): 1.0, (0, 1, 3): 2.0}


def test_what_is_free_or_brings_everything_is_no_purchase():
    assert purchases(FeatureCosts(np.zeros(4))) == []
    assert purchases(FeatureCosts(np.zeros(4), shared={"all": (1.0, [0, 1, 2, 3])})) == []
    assert columns(FeatureCosts([0.0, 0.0, 0.0, 1.0])) == []
