import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge

from sparing.engines.linear import LinearFit, LinearProblem
from sparing.engines.penalty import GroupPenalty

from .problems import GROUPS, distance_to_subdifferential, gradient, make, objective, singles


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    n_classes=st.sampled_from([2, 3, 4]),
    groups=st.sampled_from(sorted(GROUPS)),
    share=st.sampled_from([0.02, 0.2, 0.6, 0.95]),
    weighted=st.booleans(),
)
def test_optimal_on_random_problems(seed, n_classes, groups, share, weighted):
    Z, y, q, w = make(n=60, n_classes=n_classes, seed=seed, weighted=weighted)
    rng = np.random.default_rng(seed)
    penalty = GroupPenalty(GROUPS[groups], rng.uniform(0.1, 2.0, len(GROUPS[groups])), n_rows=4)
    problem = LinearProblem(Z, y, n_classes, w)
    penalty = penalty.scaled(share * problem.max_penalty(q, penalty))
    fit = problem.solve(q, penalty, ridge=1e-3)
    assert fit.converged
    assert fit.violation <= 1e-6
    assert fit.coef.shape == (4, (1 if n_classes == 2 else n_classes) + 1)
    value = objective(Z, y, q, w, fit.coef, fit.intercept, penalty, 1e-3)
    assert fit.objective == pytest.approx(value, rel=1e-12)
    # No neighbour is better.
    for size in (1e-4, 1e-2, 1.0):
        for _ in range(4):
            coef = fit.coef + size * rng.standard_normal(fit.coef.shape)
            coef *= rng.choice([1.0, 0.0], p=[0.8, 0.2], size=(4, 1))
            intercept = fit.intercept + size * rng.standard_normal(fit.intercept.shape)
            assert objective(Z, y, q, w, coef, intercept, penalty, 1e-3) >= value - 1e-11


@settings(deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(5, 60),
    n_classes=st.sampled_from([2, 3]),
    groups=st.sampled_from(sorted(GROUPS)),
    ridge=st.sampled_from([1e-2, 1e-4, 1e-6]),
    share=st.sampled_from([0.0, 1e-3, 0.3]),
)
def test_converges_with_columns_in_their_own_units(seed, n, n_classes, groups, ridge, share):
    Z, y, q, _ = make(n=n, n_classes=n_classes, seed=seed)
    rng = np.random.default_rng(seed)
    Z = Z * 10.0 ** rng.uniform(-2, 2, size=4)
    w = rng.exponential(size=n) ** 2
    penalty = GroupPenalty(GROUPS[groups], rng.uniform(0.1, 2.0, len(GROUPS[groups])), n_rows=4)
    problem = LinearProblem(Z, y, n_classes, w)
    largest = problem.max_penalty(q, penalty, ridge=ridge)
    assert problem.solve(q, penalty.scaled(share * largest), ridge=ridge).converged


@pytest.mark.parametrize("groups", sorted(GROUPS))
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("share", [0.05, 0.5])
def test_violation_by_an_independent_computation(groups, n_classes, share):
    Z, y, q, w = make(n_classes=n_classes, weighted=True, seed=7)
    penalty = GroupPenalty(GROUPS[groups], np.linspace(1, 2, len(GROUPS[groups])), n_rows=4)
    problem = LinearProblem(Z, y, n_classes, w)
    penalty = penalty.scaled(share * problem.max_penalty(q, penalty))
    for tol in (1e-2, 1e-6):
        fit = problem.solve(q, penalty, tol=tol)
        slope, slope_intercept = gradient(Z, y, q, w, fit, 1e-4)
        expected = np.hypot(
            distance_to_subdifferential(fit.coef, slope, penalty), np.linalg.norm(slope_intercept)
        )
        assert expected <= 1.01 * tol + 2e-6
        assert fit.violation == pytest.approx(expected, abs=2e-6)


# -- special cases that scikit-learn knows ---------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_equals_l1_logistic_regression(weighted):
    Z, y, _, w = make(n=300, d=6, weighted=weighted)
    total = len(y) if w is None else w.sum()
    gamma = 0.1
    fit = LinearProblem(Z, y, 2, w).solve(None, singles(6, gamma), ridge=0.0, gate=False, tol=1e-9)
    theirs = LogisticRegression(
        l1_ratio=1.0, C=1.0 / (gamma * total), solver="saga", tol=1e-9, max_iter=100_000
    ).fit(Z, y, sample_weight=w)
    assert_allclose(fit.coef[:, 0], theirs.coef_[0], atol=1e-5)
    assert_allclose(fit.intercept, theirs.intercept_, atol=1e-5)
    assert (fit.coef == 0).any()


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_equals_l2_logistic_regression(n_classes, weighted):
    Z, y, _, w = make(n=300, d=6, n_classes=n_classes, weighted=weighted)
    total = len(y) if w is None else w.sum()
    ridge = 0.01
    fit = LinearProblem(Z, y, n_classes, w).solve(None, None, ridge=ridge, gate=False, tol=1e-9)
    theirs = LogisticRegression(C=1.0 / (ridge * total), solver="lbfgs", tol=1e-10, max_iter=5000)
    theirs.fit(Z, y, sample_weight=w)
    assert_allclose(fit.coef.T, theirs.coef_, atol=1e-6)
    # Softmax intercepts are only determined up to a constant.
    ours = fit.intercept - (fit.intercept.mean() if n_classes > 2 else 0.0)
    assert_allclose(
        ours, theirs.intercept_ - (theirs.intercept_.mean() if n_classes > 2 else 0.0), atol=1e-5
    )


def test_without_penalty_the_gate_is_logistic_regression_on_soft_labels():
    Z, y, q, _ = make(n=200, d=5)
    ridge = 0.01
    fit = LinearProblem(Z, y, 2).solve(q, None, ridge=ridge, tol=1e-9)
    both = LogisticRegression(C=1.0 / (ridge * len(y)), tol=1e-10, max_iter=5000).fit(
        np.vstack([Z, Z]), np.repeat([1, 0], len(q)), sample_weight=np.concatenate([q, 1 - q])
    )
    cheap = LogisticRegression(C=1.0 / (ridge * len(y)), tol=1e-10, max_iter=5000).fit(
        Z, y, sample_weight=1 - q
    )
    assert_allclose(fit.coef[:, 1], both.coef_[0], atol=1e-6)
    assert_allclose(fit.coef[:, 0], cheap.coef_[0], atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_least_squares_gate_is_ridge_regression(n_classes):
    Z, y, q, w = make(n=200, d=5, n_classes=n_classes, weighted=True)
    target = np.log(q / (1 - q))
    fit = LinearProblem(Z, y, n_classes, w).solve(
        q, None, ridge=0.01, tol=1e-9, gate_loss="lstsq", gate_target=target
    )
    theirs = Ridge(alpha=0.5 * 0.01 * w.sum()).fit(Z, target, sample_weight=w)
    assert_allclose(fit.coef[:, -1], theirs.coef_, atol=1e-6)
    assert fit.intercept[-1] == pytest.approx(theirs.intercept_, abs=1e-6)


def test_a_joint_penalty_with_a_least_squares_gate_is_optimal():
    Z, y, q, _ = make(n=200, d=5)
    target = np.log(q / (1 - q))
    problem, penalty = LinearProblem(Z, y, 2), singles(5)
    options = {"gate_loss": "lstsq", "gate_target": target}
    largest = problem.max_penalty(q, penalty, **options)
    assert not problem.solve(q, penalty.scaled(1.001 * largest), **options).coef.any()
    fit = problem.solve(q, penalty.scaled(0.5 * largest), **options)
    assert fit.converged
    assert 0 < penalty.support(fit.coef).sum() < 5


# -- what the solver promises ----------------------------------------------------------------------


def test_exact_zeros_come_row_by_row():
    Z, y, q, _ = make(n=400, d=12, seed=1)
    problem, penalty = LinearProblem(Z, y, 2), singles(12)
    fit = problem.solve(q, penalty.scaled(0.3 * problem.max_penalty(q, penalty)))
    support = penalty.support(fit.coef)
    assert 0 < support.sum() < 12
    assert (fit.coef[~support] == 0).all()
    assert (np.abs(fit.coef[support]) > 1e-6).all()


@pytest.mark.parametrize("groups", sorted(GROUPS))
@pytest.mark.parametrize("n_classes", [2, 3])
def test_max_penalty_is_where_the_first_row_enters(groups, n_classes):
    Z, y, q, _ = make(n_classes=n_classes)
    penalty = GroupPenalty(GROUPS[groups], np.ones(len(GROUPS[groups])), n_rows=4)
    problem = LinearProblem(Z, y, n_classes)
    largest = problem.max_penalty(q, penalty)
    costly = penalty.covered
    assert not problem.solve(q, penalty.scaled(1.001 * largest)).coef[costly].any()
    assert problem.solve(q, penalty.scaled(0.98 * largest)).coef[costly].any()


@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_warm_start_reaches_the_same_optimum(n_classes):
    Z, y, q, _ = make(n=300, d=8, n_classes=n_classes)
    problem, penalty = LinearProblem(Z, y, n_classes), singles(8)
    largest = problem.max_penalty(q, penalty)
    before = problem.solve(q, penalty.scaled(0.5 * largest))
    cold = problem.solve(q**2, penalty.scaled(0.1 * largest), tol=1e-9)
    warm = problem.solve(q**2, penalty.scaled(0.1 * largest), tol=1e-9, start=before)
    assert_allclose(warm.coef, cold.coef, atol=1e-6)
    assert_array_equal(warm.coef == 0, cold.coef == 0)
    again = problem.solve(q**2, penalty.scaled(0.1 * largest), tol=1e-9, start=warm)
    assert again.n_iter == 0


def test_a_path_is_its_fits_in_the_order_asked_for():
    Z, y, q, _ = make(n=300, d=8)
    problem, penalty = LinearProblem(Z, y, 2), singles(8)
    gammas = problem.max_penalty(q, penalty) * np.array([0.05, 1.01, 0.3, 0.05])
    path = problem.path(q, penalty, gammas, tol=1e-8)
    for gamma, fit in zip(gammas, path, strict=True):
        alone = problem.solve(q, penalty.scaled(gamma), tol=1e-8)
        assert fit.converged
        assert_allclose(fit.coef, alone.coef, atol=1e-5)
        assert fit.objective == pytest.approx(alone.objective, abs=1e-10)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_are_repeated_rows(n_classes):
    Z, y, q, w = make(n=150, n_classes=n_classes, weighted=True)
    times = w.astype(int)
    penalty = singles(4, 0.02)
    weighted = LinearProblem(Z, y, n_classes, w).solve(q, penalty, tol=1e-9)
    repeated = LinearProblem(np.repeat(Z, times, axis=0), np.repeat(y, times), n_classes).solve(
        np.repeat(q, times), penalty, tol=1e-9
    )
    assert_allclose(weighted.coef, repeated.coef, atol=1e-6)
    scaled = LinearProblem(Z, y, n_classes, 17.0 * w).solve(q, penalty, tol=1e-9)
    assert_allclose(weighted.coef, scaled.coef, atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_refit_on_a_support(n_classes):
    Z, y, q, _ = make(n=300, d=6, n_classes=n_classes)
    support = np.array([True, False, True, True, False, False])
    fit = LinearProblem(Z, y, n_classes).solve(q, None, support=support, tol=1e-8)
    alone = LinearProblem(Z[:, support], y, n_classes).solve(q, None, tol=1e-8)
    assert (fit.coef[~support] == 0).all()
    assert_allclose(fit.coef[support], alone.coef, atol=1e-5)
    nothing = LinearProblem(Z, y, n_classes).solve(q, None, support=np.zeros(6, dtype=bool))
    assert nothing.converged
    assert not nothing.coef.any()


def test_the_gate_is_positive_where_rows_go_to_the_full_model():
    Z, y, _, _ = make(n=300)
    q = (Z[:, 0] > 0).astype(float)
    problem = LinearProblem(Z, y, 2)
    _, gate = problem.scores(problem.solve(q, None, ridge=1e-3))
    assert ((gate > 0) == (q == 1)).mean() > 0.97


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("share", [0.0, 1.0])
def test_all_rows_on_one_side(n_classes, share):
    Z, y, _, _ = make(n_classes=n_classes)
    q = np.full(200, share)
    problem = LinearProblem(Z, y, n_classes)
    fit = problem.solve(q, singles(4, 0.01))
    cheap, gate = problem.scores(fit)
    assert fit.converged
    assert np.abs(fit.coef[:, -1]).max() < 1e-2
    assert ((gate > 10) if share else (gate < -10)).all()
    if share == 1.0:
        assert np.abs(cheap).max() < 1e-4


@pytest.mark.parametrize("n_classes", [2, 3])
def test_separable_data(n_classes):
    Z, _, q, _ = make(n=300)
    y = np.digitize(Z[:, 0], [0.0] if n_classes == 2 else [-0.5, 0.5])
    problem = LinearProblem(Z, y, n_classes)
    fit = problem.solve(q, None)
    assert fit.converged
    assert np.isfinite(fit.coef).all()


def test_constant_and_repeated_columns():
    Z, y, q, _ = make(n=300)
    Z = np.column_stack([Z, np.zeros(300), Z[:, 0], Z[:, 0]])
    problem, penalty = LinearProblem(Z, y, 2), singles(7)
    for share in (0.2, 0.0):
        fit = problem.solve(q, penalty.scaled(share * problem.max_penalty(q, penalty)))
        assert fit.converged
        assert not fit.coef[4].any()


def test_one_design_column_and_none():
    Z, y, q, _ = make(n=100, d=1)
    fit = LinearProblem(Z, y, 2).solve(q, singles(1, 0.01))
    assert fit.converged
    assert fit.coef.shape == (1, 2)
    empty = LinearProblem(Z[:, :0], y, 2).solve(q, None)
    assert empty.converged
    assert empty.coef.shape == (0, 2)


def test_one_class_only():
    Z, _, q, _ = make(n=100)
    fit = LinearProblem(Z, np.zeros(100, dtype=int), 2).solve(q, singles(4, 0.01))
    assert fit.converged
    assert np.abs(fit.coef[:, 0]).max() < 1e-6


@pytest.mark.parametrize(("d", "n_classes"), [(300, 2), (60, 30)])
def test_many_columns(d, n_classes):
    Z, y, q, _ = make(n=500, d=d, n_classes=n_classes)
    problem, penalty = LinearProblem(Z, y, n_classes), singles(d)
    fit = problem.solve(q, penalty.scaled(0.2 * problem.max_penalty(q, penalty)))
    assert fit.converged
    assert 0 < penalty.support(fit.coef).sum() < d


def test_warns_when_it_stops_early():
    Z, y, q, _ = make()
    problem = LinearProblem(Z, y, 2)
    with pytest.warns(ConvergenceWarning, match="increase max_iter") as record:
        fit = problem.solve(q, singles(4, 0.001), max_iter=1)
    assert record[0].filename == __file__
    assert not fit.converged
    assert fit.violation > 1e-6
    assert fit.n_iter == 1


def test_a_tolerance_out_of_reach_ends_too():
    Z, y, q, _ = make()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit = LinearProblem(Z, y, 2).solve(q, singles(4, 0.01), tol=1e-17, max_iter=50)
    assert fit.violation < 1e-12


def test_input_is_left_alone_and_results_repeat():
    Z, y, q, _ = make()
    copies = Z.copy(), y.copy(), q.copy()
    problem = LinearProblem(Z, y, 2)
    first, second = (problem.solve(q, singles(4, 0.01)) for _ in range(2))
    assert_array_equal(first.coef, second.coef)
    for before, after in zip(copies, (Z, y, q), strict=True):
        assert_array_equal(before, after)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"q": np.full(200, 1.5)}, "probability"),
        ({"q": np.full(3, 0.5)}, "probability"),
        ({"gate_loss": "huber"}, "lstsq"),
        ({"gate_loss": "lstsq"}, "gate_target"),
        ({"gate_target": np.full(200, np.nan)}, "finite"),
        ({"penalty": singles(9)}, "rows"),
        ({"start": LinearFit(np.zeros((2, 2)), np.zeros(2), 0, 0, 0, True)}, "start"),
    ],
)
def test_wrong_arguments(change, message):
    Z, y, q, _ = make()
    arguments = {"q": q, "penalty": None, **change}
    with pytest.raises(ValueError, match=message):
        LinearProblem(Z, y, 2).solve(**arguments)


@pytest.mark.parametrize(
    ("y", "n_classes", "weight", "message"),
    [
        ([0, 1, 2], 2, None, "code"),
        ([0, 1], 2, None, "code"),
        ([0, 0, 0], 1, None, "two classes"),
        ([0, 1, 0], 2, [1, -1, 1], "weight"),
        ([0, 1, 0], 2, [0, 0, 0], "weight"),
    ],
)
def test_wrong_data(y, n_classes, weight, message):
    with pytest.raises(ValueError, match=message):
        LinearProblem(np.zeros((3, 2)), y, n_classes, weight)
