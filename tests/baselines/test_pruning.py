"""The closure problem, its two solvers, and forests cut down by it."""

import pickle
from copy import copy
from importlib.util import find_spec
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy.optimize import linprog
from scipy.sparse import coo_array
from sklearn.datasets import make_classification
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from sparing._tree_paths import forest_columns_read
from sparing.baselines import _pruning_closure
from sparing.baselines._pruned_forest import PrunedForest, pruned_forest
from sparing.baselines._pruning import ForestPruning
from sparing.baselines._pruning_closure import cut_path, dual_path
from sparing.costs import FeatureCosts

PENALTIES = (0.1, 0.03, 0.01, 0.003, 0.0)
with_ortools = pytest.mark.skipif(find_spec("ortools") is None, reason="OR-tools is not installed")
SOLVERS = [
    pytest.param(lambda c, p: cut_path(c, p, ortools=False), id="scipy"),
    pytest.param(lambda c, p: cut_path(c, p, ortools=True), id="ortools", marks=with_ortools),
    pytest.param(lambda c, p: dual_path(c, p, max_iter=3000, tol=1e-7), id="primal-dual"),
]


class Case:
    """A small random forest with pruning rows and prices."""

    def __init__(self, seed, *, weighted=False, bagged=False, prices="shared", n=80, **options):
        rng = np.random.default_rng(seed)
        n_classes = 2 + seed % 2
        X, y = make_classification(
            2 * n, 6, n_informative=4, n_redundant=0, n_classes=n_classes, random_state=seed
        )
        self.costs = {
            "plain": FeatureCosts(np.ones(6)),
            "shared": FeatureCosts(
                [*rng.uniform(0, 2, 4), 0, 0],
                shared={"panel": (1.5, [0, 1, 4])},
                derived={5: [2, 3]},
            ),
            "some free": FeatureCosts([1, 0, 2, 0, 1, 3]),
        }[prices]
        kind = ExtraTreesClassifier if seed % 3 == 0 else RandomForestClassifier
        options = {"n_estimators": 4, "max_depth": 4, "bootstrap": True} | options
        self.forest = kind(random_state=seed, **options).fit(X[:n], y[:n])
        self.X, self.y = (X[:n], y[:n]) if bagged else (X[n:], y[n:])
        self.weight = rng.integers(1, 4, n).astype(float) if weighted else None
        inside = self.forest.estimators_samples_
        self.counted = [np.setdiff1d(np.arange(n), rows) for rows in inside] if bagged else None
        self.trees = [tree.tree_ for tree in self.forest.estimators_]

    def problem(self):
        return ForestPruning(
            self.trees,
            self.forest.apply(self.X),
            self.y,
            self.costs.needs,
            self.costs.item_prices,
            weight=self.weight,
            counted=self.counted,
        )

    def by_definition(self, forest):
        """Mean error of the trees of a forest and mean cost, as the paper defines them, from predictions alone."""
        weight = np.ones(len(self.y)) if self.weight is None else self.weight
        errors = []
        for t, tree in enumerate(forest.estimators_):
            rows = np.arange(len(self.y)) if self.counted is None else self.counted[t]
            wrong = tree.predict(self.X[rows]) != self.y[rows]
            errors.append(np.average(wrong, weights=weight[rows]))
        cost = self.costs.of(forest_columns_read(forest, self.X))
        return np.mean(errors), np.average(cost, weights=weight)

    def linear_program(self, penalty):
        """The smallest objective of the relaxed problem, row by row and node by node."""
        weight = np.ones(len(self.y)) if self.weight is None else self.weight
        n, n_items = len(self.y), len(self.costs.items)
        gain, less, more, error = [], [], [], 0.0
        paths = [tree.decision_path(self.X.astype(np.float32)).toarray() for tree in self.trees]
        sizes = [tree.node_count for tree in self.trees]
        first_w = sum(sizes)
        for t, tree in enumerate(self.trees):
            rows = np.arange(n) if self.counted is None else self.counted[t]
            label = tree.value[:, 0].argmax(axis=1)
            wrong = (label[None, :] != self.y[rows, None]) * weight[rows, None]
            e = (paths[t][rows] * wrong).sum(axis=0) / weight[rows].sum() / len(self.trees)
            error += e[0]
            offset = sum(sizes[:t])
            for h in range(sizes[t]):
                left, right = tree.children_left[h], tree.children_right[h]
                gain.append(e[h] - e[left] - e[right] if left >= 0 else 0.0)
                for child in (left, right):
                    if child >= 0:
                        less.append(offset + child)
                        more.append(offset + h)
            for i in range(n):
                had = np.zeros(n_items, dtype=bool)
                for h in np.flatnonzero(paths[t][i]):
                    if tree.children_left[h] >= 0:
                        need = self.costs.needs[tree.feature[h]] & ~had
                        had |= need
                        less += [offset + h] * int(need.sum())
                        more += (first_w + i * n_items + np.flatnonzero(need)).tolist()
        price = penalty * np.outer(weight / weight.sum(), self.costs.item_prices).ravel()
        m = len(less)
        rows = np.tile(np.arange(m), 2)
        sign = np.repeat([1.0, -1.0], m)
        limits = coo_array(
            (sign, (rows, np.array(less + more))), shape=(m, first_w + len(price))
        ).tocsr()
        cost = np.concatenate([-np.array(gain), price])
        found = linprog(cost, A_ub=limits, b_ub=np.zeros(m), bounds=(0, 1), method="highs")
        assert found.status == 0
        return error + found.fun


CASES = [
    pytest.param({}, id="held out"),
    pytest.param({"weighted": True}, id="weights"),
    pytest.param({"bagged": True}, id="out of bag"),
    pytest.param({"prices": "some free"}, id="free items"),
    pytest.param({"prices": "plain", "n": 40, "max_depth": None}, id="full depth"),
]


# -- optimality -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("options", CASES)
def test_all_solvers_reach_the_linear_program(options, seed):
    case = Case(seed, **options)
    best = [case.linear_program(penalty) for penalty in PENALTIES]
    closure = case.problem().closure
    for solver in SOLVERS:
        if solver.marks and find_spec("ortools") is None:
            continue
        solutions = solver.values[0](closure, PENALTIES)
        assert [s.objective for s in solutions] == pytest.approx(best, abs=1e-6), solver.id
        assert [s.bound for s in solutions] == pytest.approx(best, abs=2e-4), solver.id
        assert all(s.bound <= b + 1e-9 for s, b in zip(solutions, best, strict=True)), solver.id


@pytest.mark.parametrize("solve", SOLVERS)
@pytest.mark.parametrize("seed", range(4))
def test_solutions_are_closed_and_nested(solve, seed):
    closure = Case(seed, n=150, n_estimators=6).problem().closure
    path = np.geomspace(0.3, 1e-4, 12)
    solutions = solve(closure, path)
    for solution in solutions:
        inner = closure.parent >= 0
        assert (solution.keep[closure.parent[inner]] >= solution.keep[inner]).all()
        assert solution.objective == closure.objective(solution.keep, solution.penalty)
    for cheap, dear in pairwise(solutions):
        assert (dear.keep >= cheap.keep).all()


ONE = Case(1, n=60)


@settings(max_examples=40, deadline=None)
@given(
    prices=npst.arrays(float, 6, elements=st.one_of(st.just(0.0), st.floats(0.01, 100.0))),
    panel=st.lists(st.integers(0, 5), min_size=1, unique=True),
    penalty=st.floats(0.0, 0.2),
    seed=st.integers(0, 2**32 - 1),
)
def test_no_closed_set_beats_the_cut(prices, panel, penalty, seed):
    case = copy(ONE)
    case.costs = FeatureCosts(prices, shared={"panel": (1.0, panel)})
    problem = case.problem()
    closure = problem.closure
    (solution,) = cut_path(closure, [penalty], ortools=False)
    error, cost = case.by_definition(
        pruned_forest(case.forest, problem.by_tree(problem.kept(solution.keep)))
    )
    assert solution.objective == pytest.approx(error + penalty * cost, abs=1e-9)
    some = np.random.default_rng(seed).uniform(size=len(closure.benefit)) < 0.7
    for start, end in pairwise(closure.level[1:]):
        some[start:end] &= some[closure.parent[start:end]]
    assert solution.bound <= closure.objective(some, penalty) + 1e-9
    assert solution.objective <= closure.objective(some, penalty) + 1e-8


def test_the_optimum_is_concave_and_rises_with_the_penalty():
    closure = Case(1, n=150).problem().closure
    path = np.linspace(0.1, 0, 21)
    best = np.array([s.objective for s in cut_path(closure, path)])[::-1]
    assert (np.diff(best) >= -1e-12).all()
    assert (np.diff(best, 2) <= 1e-8).all()


def test_a_path_is_its_single_solutions():
    closure = Case(5, n=150).problem().closure
    together = cut_path(closure, PENALTIES)
    for solution in together:
        (alone,) = cut_path(closure, [solution.penalty])
        assert alone.objective == pytest.approx(solution.objective, abs=1e-8)


def test_penalties_at_the_ends():
    problem = Case(2).problem()
    nothing, everything = cut_path(problem.closure, [1e6, 0.0])
    assert not nothing.keep.any()
    assert everything.keep.all()  # what could not pay even for free is no part of the problem
    assert nothing.objective == pytest.approx(problem.closure.error)


def test_scipy_is_as_exact_as_64_bits():
    # Costs from 1e-6 to 1e3 in one problem: a single round of 32-bit capacities would lose the small ones.
    case = Case(3, n=150, n_estimators=8, max_depth=None)
    case.costs = FeatureCosts(np.geomspace(1e-6, 1e3, 6))
    for solution in cut_path(case.problem().closure, [1.0, 1e-2, 1e-4], ortools=False):
        assert solution.objective - solution.bound <= 1e-8


def test_works_without_ortools(monkeypatch):
    closure = Case(0).problem().closure
    reference = cut_path(closure, PENALTIES)
    monkeypatch.setattr(_pruning_closure, "find_spec", lambda name: None)
    monkeypatch.setattr(_pruning_closure, "import_module", lambda name: pytest.fail("imported"))
    here = cut_path(closure, PENALTIES)
    assert [s.objective for s in here] == pytest.approx([s.objective for s in reference], abs=1e-8)


def test_more_steps_of_the_primal_dual_never_hurt():
    closure = Case(4, n=150, n_estimators=6).problem().closure
    few, many = (dual_path(closure, [0.01], max_iter=k, tol=0)[0] for k in (5, 200))
    assert many.objective <= few.objective
    assert many.bound >= few.bound


# -- the problem ------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", CASES)
def test_objective_is_that_of_the_pruned_forest(options):
    case = Case(1, **options)
    problem = case.problem()
    for solution in cut_path(problem.closure, PENALTIES):
        kept = problem.kept(solution.keep)
        forest = pruned_forest(case.forest, problem.by_tree(kept))
        error, cost = case.by_definition(forest)
        assert problem.mean_error(kept) == pytest.approx(error, abs=1e-12)
        assert problem.mean_cost(kept) == pytest.approx(cost, abs=1e-12)
        assert solution.objective == pytest.approx(error + solution.penalty * cost, abs=1e-9)


def test_equal_rows_share_their_purchases():
    case = Case(1)
    once = case.problem().closure
    case.X, case.y = np.repeat(case.X, 3, axis=0), np.repeat(case.y, 3)
    thrice = case.problem().closure
    assert len(thrice.cost) == len(once.cost)
    assert thrice.cost == pytest.approx(once.cost)


def test_weights_are_copies():
    case = Case(2, weighted=True)
    weighted = cut_path(case.problem().closure, PENALTIES)
    copies = case.weight.astype(int)
    case.X, case.y, case.weight = np.repeat(case.X, copies, axis=0), np.repeat(case.y, copies), None
    copied = cut_path(case.problem().closure, PENALTIES)
    assert [s.objective for s in weighted] == pytest.approx([s.objective for s in copied])


def test_trees_without_splits_and_rows_always_in_the_bag():
    case = Case(1, bagged=True)
    case.counted[0] = np.empty(0, dtype=int)  # no row is out of this bag
    problem = case.problem()
    assert np.isfinite(problem.benefit).all()
    assert not problem.error[: case.trees[0].node_count].any()

    stumps = RandomForestClassifier(3, max_depth=1, min_samples_leaf=60).fit(case.X, case.y)
    empty = ForestPruning(
        [tree.tree_ for tree in stumps.estimators_],
        stumps.apply(case.X),
        case.y,
        case.costs.needs,
        case.costs.item_prices,
    )
    for solve in (cut_path, dual_path):
        (solution,) = solve(empty.closure, [0.1])
        assert solution.objective == solution.bound == empty.closure.error
        assert not empty.kept(solution.keep).any()


# -- splits that cost nothing -----------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_ties_are_kept_where_nothing_new_is_bought(seed):
    case = Case(seed, n=200, n_estimators=6, max_depth=None)
    problem = case.problem()
    for solution in cut_path(problem.closure, PENALTIES):
        smallest = np.zeros(problem.nodes.start[-1], dtype=bool)
        smallest[problem._splits[solution.keep]] = True
        largest = problem.kept(solution.keep)
        every = problem.kept(solution.keep, harmful=True)
        assert (smallest <= largest).all()
        assert (largest <= every).all()
        assert problem.mean_error(largest) == pytest.approx(problem.mean_error(smallest), abs=1e-12)
        costs = [problem.mean_cost(kept) for kept in (smallest, largest, every)]
        assert costs == pytest.approx([costs[0]] * 3, abs=1e-12)
    assert largest.sum() > smallest.sum()


@pytest.mark.parametrize("harmful", [False, True])
def test_nested_with_ties(harmful):
    problem = Case(1, n=200, max_depth=None).problem()
    kept = [
        problem.kept(solution.keep, harmful=harmful)
        for solution in cut_path(problem.closure, np.geomspace(0.1, 1e-4, 9))
    ]
    assert all((more >= fewer).all() for fewer, more in pairwise(kept))


# -- pruned forests ---------------------------------------------------------------------------------


def test_a_forest_that_keeps_everything_is_the_same():
    case = Case(1, max_depth=None)
    whole = pruned_forest(case.forest, [np.ones(t.node_count, dtype=bool) for t in case.trees])
    assert np.array_equal(whole.predict_proba(case.X), case.forest.predict_proba(case.X))
    assert np.array_equal(whole.apply(case.X), case.forest.apply(case.X))


def test_a_forest_that_keeps_nothing_knows_the_class_shares():
    case = Case(1)
    none = pruned_forest(case.forest, [np.zeros(t.node_count, dtype=bool) for t in case.trees])
    shares = np.mean([tree.value[0, 0] for tree in case.trees], axis=0)
    assert none.predict_proba(case.X) == pytest.approx(np.tile(shares, (len(case.X), 1)))
    assert not forest_columns_read(none, case.X).any()
    assert case.forest.estimators_[0].tree_.node_count > 1  # the one given is left alone


def test_pruned_trees_answer_from_the_node_where_they_stop():
    case = Case(2, n=200, max_depth=None)
    rng = np.random.default_rng(0)
    kept = [rng.uniform(size=t.node_count) < 0.8 for t in case.trees]
    forest = pickle.loads(pickle.dumps(pruned_forest(case.forest, kept)))
    expected = np.zeros((len(case.X), case.forest.n_classes_))
    for tree, stays in zip(case.trees, kept, strict=True):
        for i, x in enumerate(case.X.astype(np.float32)):
            h = 0
            while stays[h] and tree.children_left[h] >= 0:
                left = x[tree.feature[h]] <= tree.threshold[h]
                h = tree.children_left[h] if left else tree.children_right[h]
            expected[i] += tree.value[h, 0] / len(case.trees)
    assert forest.predict_proba(case.X) == pytest.approx(expected)


def test_pruned_forest_reads_only_the_columns_of_its_paths():
    case = Case(4, n=200, max_depth=None)
    problem = case.problem()
    solution = cut_path(problem.closure, [0.01])[0]
    predictor = PrunedForest.of(case.forest, problem.by_tree(problem.kept(solution.keep)), case.X)
    read = predictor.columns_read(case.X)
    garbage = np.where(read, case.X, 1e6)
    assert 0 < read.sum() < read.size
    assert np.array_equal(predictor.predict_proba(garbage), predictor.predict_proba(case.X))
    assert np.array_equal(predictor.columns_read(garbage), read)
    assert np.array_equal(np.flatnonzero(read.any(axis=0)), predictor.columns)
    assert predictor.sizes.sum() == problem.kept(solution.keep).sum()


# -- large ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_solvers_agree_on_a_forest_of_some_size():
    case = Case(7, n=3000, n_estimators=20, max_depth=None)
    closure = case.problem().closure
    path = np.geomspace(0.05, 1e-3, 6)
    exact = cut_path(closure, path, ortools=False)
    near = dual_path(closure, path, max_iter=500)
    for a, b in zip(exact, near, strict=True):
        assert a.objective - a.bound <= 1e-8
        assert b.bound - 1e-9 <= a.objective <= b.objective + 1e-9
        assert b.objective - a.objective <= 1e-3
