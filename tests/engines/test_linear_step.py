"""OPT2 as a step of the alternation: scores and price of a solution, refits on its columns."""

import numpy as np
import pytest

from sparing.costs import FeatureCosts
from sparing.engines.linear import LinearProblem
from sparing.engines.linear_step import LinearStepper
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
    rows, nobody = LinearProblem(Z, (Z[:, 0] > 0).astype(int), 2), np.zeros(300)
    separable = LinearStepper(rows, stepper().prices, 0.0, OWNER)
    step = separable(nobody, None)
    refit = separable.debiased(nobody, step)
    assert step.columns.tolist() == refit.columns.tolist() == [0]
    expected = rows.solve(nobody, None, ridge=1e-6, support=OWNER == 0)
    np.testing.assert_allclose(refit.fit.coef[0, 0], expected.coef[0, 0], rtol=0.02)


def test_a_support_is_kept():
    support = np.isin(OWNER, [1, 2])
    step = stepper(penalty=0.0, support=support)(Q, None)
    assert step.columns.tolist() == [1, 2]
    assert not step.fit.coef[~support].any()


def test_nothing_bought_is_a_step_too():
    step = stepper(penalty=10.0)(Q, None)
    assert step.columns.tolist() == []
    assert step.penalty == 0.0
    assert len(np.unique(step.cheap)) == len(np.unique(step.gate)) == 1
    refit = stepper(penalty=10.0).debiased(Q, step)
    np.testing.assert_allclose(refit.cheap, step.cheap, atol=1e-5)


# -- a least-squares gate --------------------------------------------------------------------------------


def test_a_least_squares_gate_is_fitted_to_the_log_odds():
    q = np.clip(Q, 0.05, 0.95)
    step = stepper(penalty=0.0, gate_loss="lstsq")(q, None)
    fit = ROWS.solve(q, None, ridge=1e-3, gate_loss="lstsq", gate_target=np.log(q / (1 - q)))
    np.testing.assert_allclose(step.fit.coef, fit.coef, atol=1e-5)
    # f1 does not care how the gate is fitted.
    np.testing.assert_allclose(step.cheap, stepper(penalty=0.0)(q, None).cheap, atol=1e-4)
    assert np.corrcoef(step.gate, Z[:, 3])[0, 1] > 0.5
    # Rows that surely stay or go have finite log-odds too.
    assert np.isfinite(stepper(gate_loss="lstsq")(np.round(q), None).gate).all()


def test_f1_of_the_rows_a_gate_leaves_to_it():
    step = stepper(penalty=0.0)(Q, None)
    routed = stepper(penalty=0.0).routed(step)
    kept = step.gate <= 0
    assert 0 < kept.mean() < 1
    np.testing.assert_array_equal(routed.gate, step.gate)
    alone = LinearProblem(Z[kept], Y[kept], 2).solve(
        None, None, ridge=1e-3 / kept.mean(), gate=False
    )
    np.testing.assert_allclose(routed.fit.coef[:, 0], alone.coef[:, 0], atol=1e-4)


def test_a_gate_that_leaves_nothing_changes_nothing():
    step = stepper(penalty=0.0)(np.full(300, 0.99), None)
    assert (step.gate > 0).all()
    assert stepper(penalty=0.0).routed(step) is step
