import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from sparing.costs import FeatureCosts
from sparing.engines.penalty import GroupPenalty

LAMINAR = {
    "singles": [[0], [1], [2], [3], [4]],
    "disjoint": [[0, 1], [2], [3, 4]],
    "nested": [[0], [1], [0, 1], [2], [3], [0, 1, 2, 3]],
    "some free": [[1], [1, 2]],
}
OVERLAPPING = {
    "derived": [[0, 2], [1, 2], [3]],
    "chain": [[0, 1], [1, 2], [2, 3], [3, 4]],
    "mixed": [[0], [1], [0, 1, 2], [2, 3], [0, 1, 2, 3, 4], [1, 4]],
}


def make(groups, rng, n_rows=5):
    return GroupPenalty(groups, rng.uniform(0.2, 1.5, len(groups)), n_rows)


def slow_projection(V, groups, weights):
    """Nearest point to V of the sum of balls, by a general solver on the pieces."""
    sizes = [V[g].size for g in groups]
    cuts = np.cumsum(sizes)[:-1]

    def left(flat):
        rest = V.copy()
        for g, piece in zip(groups, np.split(flat, cuts), strict=True):
            rest[g] -= piece.reshape(-1, V.shape[1])
        return rest

    def value(flat):
        rest = left(flat)
        return 0.5 * np.sum(rest**2), -np.concatenate([rest[g].ravel() for g in groups])

    def slack(flat):
        pieces = np.split(flat, cuts)
        return np.array([w**2 - np.sum(p**2) for w, p in zip(weights, pieces, strict=True)])

    result = minimize(
        value,
        np.zeros(sum(sizes)),
        jac=True,
        method="SLSQP",
        constraints={"type": "ineq", "fun": slack},
        options={"maxiter": 500, "ftol": 1e-14},
    )
    return left(result.x)


@pytest.mark.parametrize("groups", [*LAMINAR.values(), *OVERLAPPING.values()])
@pytest.mark.parametrize("step", [0.1, 0.7, 2.0])
def test_prox_is_what_a_general_solver_finds(groups, step):
    rng = np.random.default_rng(0)
    penalty = make(groups, rng)
    W = rng.standard_normal((5, 2))
    expected = slow_projection(W, penalty.groups, step * penalty.weights)
    assert_allclose(penalty.prox(W, step), expected, atol=2e-5)


@pytest.mark.parametrize("name", LAMINAR)
def test_laminar_groups_are_recognised(name):
    assert make(LAMINAR[name], np.random.default_rng(0)).laminar


@pytest.mark.parametrize("name", OVERLAPPING)
def test_overlapping_groups_are_recognised(name):
    assert not make(OVERLAPPING[name], np.random.default_rng(0)).laminar


@st.composite
def problems(draw):
    n_rows = draw(st.integers(1, 6))
    rows = st.sets(st.integers(0, n_rows - 1), min_size=1).map(sorted)
    groups = draw(st.lists(rows, max_size=6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    penalty = GroupPenalty(groups, rng.uniform(0.0, 1.0, len(groups)), n_rows)
    return penalty, rng.standard_normal((n_rows, draw(st.integers(1, 3)))), rng


@settings(deadline=None)
@given(problems(), st.floats(0.01, 3.0))
def test_prox_is_optimal(problem, step):
    penalty, W, _ = problem
    V = penalty.prox(W, step)
    # V minimises ½‖V − W‖² + step·penalty(V) exactly when nothing of its gradient V − W is left.
    assert penalty.scaled(step).violation(V, V - W) <= 1e-9


@settings(deadline=None)
@given(problems(), st.floats(0.01, 3.0))
def test_prox_is_no_worse_than_its_neighbours(problem, step):
    penalty, W, rng = problem
    V = penalty.prox(W, step)

    def value(A):
        return 0.5 * np.sum((A - W) ** 2) + step * penalty.value(A)

    best = value(V)
    for size in (1e-3, 1e-1):
        for _ in range(5):
            assert value(V + size * rng.standard_normal(V.shape)) >= best - 1e-12


@settings(deadline=None, max_examples=30)
@given(problems())
def test_violation_is_the_distance_to_the_subdifferential(problem):
    penalty, G, rng = problem
    W = penalty.prox(2 * rng.standard_normal(G.shape), 0.8)
    rest = -G
    zero_groups, weights = [], []
    for g, w in zip(penalty.groups, penalty.weights, strict=True):
        norm = np.linalg.norm(W[g])
        if norm > 0:
            rest[g] -= w * W[g] / norm
        else:
            zero_groups.append(g)
            weights.append(w)
    if zero_groups:
        rest = slow_projection(rest, zero_groups, weights)
    assert penalty.violation(W, G) == pytest.approx(np.linalg.norm(rest), abs=2e-5)


def test_violation_by_the_formula_for_disjoint_groups():
    rng = np.random.default_rng(3)
    penalty = GroupPenalty([[0, 1], [2]], [1.0, 0.5], n_rows=4)
    W, G = np.zeros((4, 2)), rng.standard_normal((4, 2))
    W[2] = [1.0, -2.0]
    parts = [
        max(np.linalg.norm(G[:2]) - 1.0, 0.0),
        np.linalg.norm(G[2] + 0.5 * W[2] / np.linalg.norm(W[2])),
        np.linalg.norm(G[3]),
    ]
    assert penalty.violation(W, G) == pytest.approx(np.linalg.norm(parts))


@pytest.mark.parametrize("groups", [*LAMINAR.values(), *OVERLAPPING.values()])
def test_prox_makes_exact_zeros(groups):
    rng = np.random.default_rng(1)
    penalty = make(groups, rng)
    W = rng.standard_normal((5, 2))
    covered = penalty.covered
    assert_array_equal(penalty.support(penalty.prox(W, 50.0)), ~covered)
    some = penalty.prox(W, 0.6 * penalty.dual_norm(W))
    assert (np.linalg.norm(some, axis=1)[penalty.support(some)] > 1e-6).all()


@pytest.mark.parametrize("groups", [*LAMINAR.values(), *OVERLAPPING.values()])
def test_dual_norm_is_the_smallest_step_to_zero(groups):
    rng = np.random.default_rng(2)
    penalty = make(groups, rng)
    G = rng.standard_normal((5, 2))
    t = penalty.dual_norm(G)
    covered = penalty.covered
    assert np.linalg.norm(penalty.prox(G, 1.0001 * t)[covered]) <= 1e-8
    assert np.linalg.norm(penalty.prox(G, 0.99 * t)[covered]) > 1e-4


def test_dual_norm_of_nothing():
    assert GroupPenalty([], [], 3).dual_norm(np.ones((3, 1))) == 0.0
    assert GroupPenalty([[0]], [1.0], 2).dual_norm(np.array([[0.0], [1.0]])) == 0.0


@pytest.mark.parametrize("groups", [*LAMINAR.values(), *OVERLAPPING.values()])
def test_derivatives_of_the_norms(groups):
    rng = np.random.default_rng(4)
    penalty = make(groups, rng)
    W = rng.standard_normal((5, 2))
    gradient, hessian = penalty.gradient(W), penalty.hessian(W)
    h = 1e-5
    for i in range(5):
        for j in range(2):
            E = np.zeros_like(W)
            E[i, j] = h
            slope = (penalty.value(W + E) - penalty.value(W - E)) / (2 * h)
            assert slope == pytest.approx(gradient[i, j], abs=1e-8)
            column = (penalty.gradient(W + E) - penalty.gradient(W - E)) / (2 * h)
            assert_allclose(hessian[:, j * 5 + i], column.T.ravel(), atol=1e-7)


@pytest.mark.parametrize("groups", [*LAMINAR.values(), *OVERLAPPING.values()])
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_minimise_quadratic_is_optimal_whatever_the_condition(groups, scale):
    rng = np.random.default_rng(8)
    penalty = make(groups, rng)
    A = rng.standard_normal((12, 10)) * np.geomspace(1.0, scale, 10)
    H, B = A.T @ A + 1e-6 * np.eye(10), rng.standard_normal((5, 2))
    V = penalty.minimise_quadratic(H, B)
    slope = (H @ V.T.ravel()).reshape(2, 5).T - B
    assert penalty.violation(V, slope) <= 1e-6
    assert_allclose(penalty.minimise_quadratic(np.eye(10), B), penalty.prox(B), atol=1e-8)


def test_restricting_to_rows_is_the_penalty_with_the_others_zero():
    rng = np.random.default_rng(5)
    for groups in [*LAMINAR.values(), *OVERLAPPING.values()]:
        penalty = make(groups, rng)
        rows = np.array([0, 2, 4])
        W = np.zeros((5, 2))
        W[rows] = rng.standard_normal((3, 2))
        small = penalty.restricted(rows)
        assert small.value(W[rows]) == pytest.approx(penalty.value(W))
        assert_allclose(small.prox(W[rows], 0.3), penalty.prox(W, 0.3)[rows], atol=1e-10)


def test_a_warm_dual_changes_nothing_but_the_work():
    rng = np.random.default_rng(6)
    penalty = make(OVERLAPPING["mixed"], rng)
    dual: list = []
    for size in (1.0, 1.1, 0.2):
        W = size * rng.standard_normal((5, 2))
        assert_allclose(penalty.prox(W, 0.4, dual=dual), penalty.prox(W, 0.4), atol=1e-10)


def test_equal_groups_are_merged_and_free_ones_dropped():
    penalty = GroupPenalty([[1, 0], [0, 1], [2], []], [1.0, 2.0, 0.0, 4.0], n_rows=3)
    assert [g.tolist() for g in penalty.groups] == [[0, 1]]
    assert_array_equal(penalty.weights, [3.0])
    assert_array_equal(penalty.covered, [True, True, False])


def test_groups_from_costs():
    costs = FeatureCosts(
        {"age": 0, "TSH": 20.0, "TT4": 12.0, "T4U": 9.0},
        shared={"draw": (2.0, ["TSH", "TT4", "T4U"])},
        derived={"FTI": ["TT4", "T4U"]},
    )
    # Columns age, TSH, TT4, T4U, FTI; TSH has a flag of missing values as last design column.
    penalty = GroupPenalty.from_costs(costs, owner=[0, 1, 2, 3, 4, 1])
    found = dict(zip([tuple(g.tolist()) for g in penalty.groups], penalty.weights, strict=True))
    assert found == {(1, 5): 20.0, (2, 4): 12.0, (3, 4): 9.0, (1, 2, 3, 4, 5): 2.0}
    assert not penalty.laminar
    # The penalty of a 0/1 matrix of one column is the price list under square roots of sizes.
    W = np.zeros((6, 1))
    W[2] = 3.0
    assert penalty.value(W) == pytest.approx(3.0 * costs.of(["TT4"]))


def test_scaled():
    penalty = GroupPenalty([[0], [0, 1]], [1.0, 2.0], n_rows=2)
    W = np.array([[1.0], [2.0]])
    assert penalty.scaled(3.0).value(W) == pytest.approx(3.0 * penalty.value(W))
    assert penalty.scaled(0.0).value(W) == 0.0


def test_it_pickles():
    penalty = GroupPenalty([[0], [0, 1]], [1.0, 2.0], n_rows=2)
    again = pickle.loads(pickle.dumps(penalty))
    assert again.value(np.ones((2, 1))) == penalty.value(np.ones((2, 1)))


@pytest.mark.parametrize(
    ("groups", "weights", "message"),
    [
        ([[0]], [1.0, 2.0], "one per group"),
        ([[0]], [-1.0], "not negative"),
        ([[0]], [np.nan], "finite"),
        ([[5]], [1.0], "outside"),
    ],
)
def test_wrong_groups(groups, weights, message):
    with pytest.raises(ValueError, match=message):
        GroupPenalty(groups, weights, n_rows=2)


def test_a_singular_quadratic_is_minimised_all_the_same():
    penalty = GroupPenalty([[0], [1]], [0.1, 0.1], n_rows=2)
    H = np.array([[1.0, 1.0], [1.0, 1.0]])  # two columns that are the same
    V = penalty.minimise_quadratic(H, np.array([[1.0], [1.0]]))
    assert np.isfinite(V).all()
    assert V.sum() == pytest.approx(0.9, abs=1e-6)
