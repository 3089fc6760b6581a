"""The alternation: the objective never rises, extrapolation only makes it faster, the record says what happened."""

from dataclasses import dataclass

import numpy as np
import pytest

from sparing._allocation import allocate
from sparing._alternation import Problem, alternate, column_mask
from sparing._losses import cheap_loss, objective
from sparing.costs import FeatureCosts
from sparing.datasets import make_synthetic1
from sparing.engines.linear import LinearProblem
from sparing.engines.linear_step import LinearStepper
from sparing.engines.penalty import GroupPenalty

RNG = np.random.default_rng(0)


def linear(n_classes=2, *, costs=None, full_rate=0.4, penalty=1e-3, weight=None, seed=0, n=150):
    """A problem, its exact engine, and a start at f1 = g = 0."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 4))
    y = np.digitize(Z[:, 0] + Z[:, 1] ** 2 + rng.normal(size=n), np.linspace(0, 2, n_classes - 1))
    costs = costs or FeatureCosts(np.ones(4))
    rows = LinearProblem(Z, y, n_classes, weight)
    full = rng.exponential(0.2, size=n)  # a good full model
    problem = Problem(y, full, weight, full_rate, costs)
    prices = GroupPenalty.from_costs(costs, np.arange(4)).scaled(penalty)
    step = LinearStepper(rows, prices, 1e-4, np.arange(4))
    start = (np.zeros(n if n_classes == 2 else (n, n_classes)), np.zeros(n))
    return problem, step, start


PRICES = {
    "plain": FeatureCosts([1.0, 2.0, 0.5, 3.0]),
    "shared": FeatureCosts([1.0, 0.0, 0.0, 0.5], shared={"panel": (2.0, [1, 2, 3])}),
    "derived": FeatureCosts([1.0, 2.0, 0.0, 0.0], derived={2: [0, 1], 3: [1]}),
    "free": FeatureCosts(np.zeros(4)),
}


@pytest.mark.parametrize("extrapolate", [False, True])
@pytest.mark.parametrize("costs", PRICES.values(), ids=PRICES)
@pytest.mark.parametrize(("n_classes", "full_rate"), [(2, 0.4), (2, 0.0), (2, 1.0), (4, 0.4)])
def test_the_objective_never_rises(costs, n_classes, full_rate, extrapolate):
    problem, step, start = linear(n_classes, costs=costs, full_rate=full_rate, penalty=5e-3)
    history = alternate(problem, step, start, max_iter=25, tol=0.0, extrapolate=extrapolate).history
    # The engine's own ridge on intercepts is not part of the record.
    assert np.diff(history["objective"]).max() <= 1e-7
    assert history["objective"][0] - history["objective"][-1] > 1e-4 or full_rate == 0.0
    assert history["allocation_rate"].max() <= full_rate + 1e-9


def test_extrapolation_finds_the_same_place_in_fewer_alternations():
    X, y = make_synthetic1()
    rows = LinearProblem((X - X.mean(axis=0)) / X.std(axis=0), y, 2)
    problem = Problem(y, np.full(1000, 0.2), None, 0.6, FeatureCosts([1.0, 1.0]))
    step = LinearStepper(rows, GroupPenalty([], [], 2), 1e-4, np.arange(2))
    start = rows.scores(rows.solve(None, None, gate=False))
    plain, fast = (
        alternate(problem, step, start, max_iter=600, tol=1e-5, extrapolate=extrapolate)
        for extrapolate in (False, True)
    )
    assert fast.objective == pytest.approx(plain.objective, abs=1e-3)
    assert np.abs(fast.q - plain.q).mean() < 0.01
    assert len(fast.history["objective"]) < 0.5 * len(plain.history["objective"])


@dataclass
class Recorder:
    """An engine that never helps: f1 and g stay where they are told, and every allocation is remembered."""

    gates: list
    seen: list
    previous: list

    def __call__(self, q, previous):
        self.seen.append(q)
        self.previous.append(previous)
        gate = self.gates[min(len(self.seen), len(self.gates)) - 1]
        return Stayed(np.zeros(len(q)), np.full(len(q), gate), 0.25, np.array([1]))


@dataclass(frozen=True)
class Stayed:
    cheap: np.ndarray
    gate: np.ndarray
    penalty: float
    columns: np.ndarray


def stayed(gates, full_rate=1.0, **options):
    costs = FeatureCosts([1.0, 7.0])
    problem = Problem(np.array([0, 1, 1]), np.zeros(3), None, full_rate, costs)
    step = Recorder(gates, [], [])
    outcome = alternate(problem, step, (np.zeros(3), np.zeros(3)), **options)
    return outcome, step, problem


def test_each_step_gets_the_allocation_at_the_last_scores_and_the_last_fit():
    outcome, step, problem = stayed([-1.0, -2.0, -3.0], max_iter=3, tol=0.0)
    for q, gate in zip(step.seen, [0.0, -1.0, -2.0], strict=True):
        np.testing.assert_allclose(q, problem.allocate(np.zeros(3), np.full(3, gate)).q)
    assert step.previous[0] is None
    assert [previous.gate[0] for previous in step.previous[1:]] == [-1.0, -2.0]
    assert outcome.fit.gate[0] == -3.0
    np.testing.assert_array_equal(outcome.q, step.seen[-1])


def test_an_extrapolation_goes_further_along_the_last_move():
    # The last move was from 1 to 2, and a first extrapolation adds half of it.
    _, step, problem = stayed([1.0, 2.0, 3.0], max_iter=3, tol=0.0, extrapolate=True)
    third = problem.allocate(np.zeros(3), np.full(3, 2.0 + 0.5 * 1.0)).q
    np.testing.assert_allclose(step.seen[2], third)


def test_an_extrapolation_that_raises_the_objective_is_taken_back():
    # The third gate is far off for the extrapolated allocation: the step is done again from the scores themselves.
    outcome, step, problem = stayed(
        [1.0, 2.0, -9.0, 2.5, 2.6], max_iter=4, tol=0.0, extrapolate=True
    )
    plain = problem.allocate(np.zeros(3), np.full(3, 2.0)).q
    np.testing.assert_allclose(step.seen[3], plain)
    assert len(step.seen) == 5
    assert step.previous[3].gate[0] == 2.0
    assert np.diff(outcome.history["objective"]).max() <= 0
    # Afterwards the next step starts from the scores, too: nothing is left of the extrapolation.
    np.testing.assert_allclose(step.seen[4], problem.allocate(np.zeros(3), np.full(3, 2.5)).q)


def test_it_stops_when_nothing_moves():
    outcome, step, _ = stayed([1.0], max_iter=50, tol=1e-6)
    assert len(step.seen) == 3  # once at the start's scores, twice at the engine's
    assert outcome.history["iteration"].tolist() == [1, 2, 3]
    assert len(stayed([1.0], max_iter=2, tol=1e-6)[1].seen) == 2


def test_it_goes_on_while_the_objective_moves_though_the_allocation_does_not():
    # Nobody may be sent: q is 0 throughout, and the gate settles at the third step.
    outcome, step, _ = stayed([-1.0, -2.0, -3.0], max_iter=50, tol=1e-6, full_rate=0.0)
    assert not np.any(step.seen)
    assert outcome.history["iteration"].tolist() == [1, 2, 3, 4]


def test_the_record():
    outcome, step, problem = stayed([1.0, 2.0], max_iter=2, tol=0.0)
    history = outcome.history
    assert list(history) == ["iteration", "objective", "allocation_rate", "n_columns", "cost"]
    q, gate = step.seen[1], np.full(3, 2.0)
    loss = cheap_loss(np.zeros(3), problem.y)
    expected = objective(loss, problem.full_loss, gate, q) + 0.25
    assert history["objective"][1] == pytest.approx(expected) == outcome.objective
    assert history["allocation_rate"][1] == pytest.approx(q.mean())
    assert history["n_columns"].tolist() == [1, 1]
    assert history["cost"].tolist() == [7.0, 7.0]


def test_verbose_prints_a_line_per_alternation(capsys):
    stayed([1.0], max_iter=2, tol=0.0, verbose=1, name="Test ")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("Test   1  objective ")
    assert lines[0].endswith("columns 1 for 7")
    stayed([1.0], max_iter=2, tol=0.0)
    assert capsys.readouterr().err == ""


def test_weights_are_copies_of_rows():
    weight = RNG.integers(0, 3, size=60).astype(float)
    problem, step, start = linear(weight=weight, n=60)
    again = np.repeat(np.arange(60), weight.astype(int))
    rows = LinearProblem(step.rows._Z[again], problem.y[again], 2)
    copies = Problem(problem.y[again], problem.full_loss[again], None, 0.4, problem.costs)
    one = alternate(problem, step, start, max_iter=5, tol=0.0)
    two = alternate(
        copies,
        LinearStepper(rows, step.prices, step.ridge, step.owner),
        (start[0][again], start[1][again]),
        max_iter=5,
        tol=0.0,
    )
    np.testing.assert_allclose(one.history["objective"], two.history["objective"], atol=1e-9)
    np.testing.assert_allclose(one.q[again], two.q, atol=1e-4)
    np.testing.assert_allclose(one.history["allocation_rate"], two.history["allocation_rate"])


def test_a_problem_allocates_by_opt1():
    problem, _, _ = linear(4, weight=RNG.random(150))
    cheap, gate = RNG.normal(size=(150, 4)), RNG.normal(size=150)
    loss = cheap_loss(cheap, problem.y)
    expected = allocate(loss, problem.full_loss, gate, 0.4, problem.weight)
    np.testing.assert_allclose(problem.allocate(cheap, gate).q, expected.q)
    value = objective(loss, problem.full_loss, gate, expected.q, problem.weight)
    assert problem.objective(cheap, gate, expected.q) == pytest.approx(value)


def test_column_mask():
    assert column_mask(np.array([2, 0]), 4).tolist() == [True, False, True, False]
    assert not column_mask(np.array([], dtype=np.intp), 2).any()
