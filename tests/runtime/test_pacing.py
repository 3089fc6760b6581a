"""The average spend follows its target: by an identity that holds on any stream, and on drifting ones in practice."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handmade import Margin, Sigmoid, two_stages
from sparing import FeatureCosts
from sparing.runtime import Ledger, MappingSource, Pacer, Session
from sparing.system import Stage, System


def drifting(n=20_000, seed=0):
    """Rows whose difficulty doubles halfway: the column that says how sure the cheap stage is shrinks by two."""
    X = np.random.default_rng(seed).normal(size=(n, 3))
    X[n // 2 :, 0] /= 2
    return X


def served(system, X, pacer):
    """Costs of a stream, with the thresholds moved after every row."""
    scores = system.exit_scores(X)[:, 0]
    cheap, dear = (system.costs.of(system.stage_columns()) + system.call_prices()).tolist()
    costs = np.empty(len(X))
    for i, score in enumerate(scores.tolist()):
        costs[i] = dear if score > pacer.thresholds[0] else cheap
        pacer.update(costs[i])
    return costs


@given(
    st.lists(st.floats(0.0, 30.0), min_size=1, max_size=200),
    st.floats(1.0, 20.0),
    st.floats(1e-4, 1e-2),
)
@settings(max_examples=60, deadline=None)
def test_mean_cost_differs_from_target_by_the_way_travelled(costs, target, rate):
    pacer = Pacer(target, [[1.0], [0.0]], rate=rate)
    inside = True
    for cost in costs:
        pacer.update(cost)
        inside &= 0.0 < pacer.position < 1.0
    if inside:
        expected = target + target * (0.5 - pacer.position) / (rate * len(costs))
        rounding = 1e-14 * target / rate  # of the position, a number about 0.5
        assert np.mean(costs) == pytest.approx(expected, abs=rounding)
    assert 0.0 <= pacer.position <= 1.0
    assert pacer.spent == pytest.approx(sum(costs))


def test_spend_follows_the_target_through_a_drift():
    X = drifting()
    system = two_stages(threshold=-0.5, prices=(1, 2, 7))
    before = X[:2000]
    target = float(system.acquisition_cost(before).mean())
    scores = system.exit_scores(before)[:, 0]
    pacer = Pacer.for_gate(system, target, scores=scores)
    assert pacer.thresholds[0] == pytest.approx(-0.5, abs=1e-9)
    costs = served(system, X, pacer)
    assert abs(costs[-5000:].mean() / target - 1) < 0.02
    assert abs(costs.mean() / target - 1) < 0.02
    without = system.acquisition_cost(X)
    assert without[-5000:].mean() / target > 1.3


def test_it_also_spends_what_it_may():
    """When traffic gets easier the target is still spent."""
    X = drifting()[::-1]
    system = two_stages(threshold=-0.5, prices=(1, 2, 7))
    target = float(system.acquisition_cost(X[:2000]).mean())
    pacer = Pacer.for_gate(system, target, scores=system.exit_scores(X[:2000])[:, 0])
    assert abs(served(system, X, pacer)[-5000:].mean() / target - 1) < 0.02


def test_bounds_hold():
    pacer = Pacer(10.0, [[1.0], [-1.0]], bounds=(0.25, 0.75), rate=0.1)
    for cost, position in ((1000.0, 0.25), (0.0, 0.35), (0.0, 0.45)):
        pacer.update(cost)
        assert pacer.position == pytest.approx(position)
    for _ in range(10):
        pacer.update(0.0)
    assert pacer.position == 0.75
    assert pacer.at_bound
    assert repr(pacer).endswith("at its bound")
    assert pacer.thresholds == (-0.5,)


def test_several_gates_move_together():
    stages = (
        Stage(Sigmoid(0), Margin(0), 0.0),
        Stage(Sigmoid(1), Margin(1), 0.0),
        Stage(Sigmoid(2)),
    )
    system = System(stages, FeatureCosts([1, 3, 9]), np.array([0, 1]))
    path = [(-0.2, -0.1), (-0.5, -0.3), (-2.0, -1.5)]
    systems = [system.with_thresholds(thresholds) for thresholds in path]
    pacer = Pacer.along(systems, 5.0, start=0.75)
    assert pacer.thresholds == pytest.approx((-1.25, -0.9))  # halfway between the last two
    X = np.random.default_rng(0).normal(size=(8_000, 3))
    costs = []
    for i, row in enumerate(X):
        row = row / (1 + (i > 4000))
        now = system.with_thresholds(pacer.thresholds)
        costs.append(now.acquisition_cost(row[None])[0])
        pacer.update(costs[-1])
    assert abs(np.mean(costs[-2500:]) / 5.0 - 1) < 0.02
    other = System((*stages[:2], Stage(Sigmoid(2))), system.costs, system.classes)
    with pytest.raises(ValueError, match="more than their thresholds"):
        Pacer.along([systems[0], other], 5.0)
    with pytest.raises(ValueError, match=r"2 gates: use Pacer\.along"):
        Pacer.for_gate(system, 5.0, scores=[0.0])


def test_it_goes_on_where_it_stood():
    rng = np.random.default_rng(0)
    one = Pacer(10.0, [[1.0], [0.5], [-1.0]])
    for cost in rng.uniform(0, 25, 50):
        one.update(cost)
    other = Pacer(10.0, [[1.0], [0.5], [-1.0]]).resume(one.state())
    for cost in rng.uniform(0, 25, 50):
        one.update(cost)
        other.update(cost)
        assert one.thresholds == other.thresholds
    assert one.state() == other.state()
    assert "100 answers" in repr(one)
    narrow = Pacer(10.0, [[1.0], [0.0]], bounds=(0.4, 0.6)).resume({**one.state(), "position": 0.0})
    assert narrow.position == 0.4


def test_a_session_is_paced_and_remembers(tmp_path):
    X = drifting(3000)
    system = two_stages(threshold=-0.5, prices=(1, 2, 7))
    with Ledger(tmp_path / "books.db") as ledger:
        pacer = Pacer(6.0, [[0.0], [-0.5], [-3.0]], rate=0.01)
        with Session(system, [MappingSource(X, range(3))], pacer=pacer, ledger=ledger) as session:
            for i in range(250):
                thresholds = pacer.thresholds
                answer = session.predict(i)
                # The answer is the batch's at the thresholds of that moment.
                now = system.with_thresholds(thresholds)
                assert answer.stage == now.route(X[i : i + 1])[0]
                assert answer.exits[0].threshold == thresholds[0]
        assert ledger.load_state("pacer") == pacer.state()
        assert pacer.spent == pytest.approx(ledger.total())
        fresh = Pacer(6.0, [[0.0], [-0.5], [-3.0]], rate=0.01)
        Session(system, [MappingSource(X, range(3))], pacer=fresh, ledger=ledger)
        assert fresh.state() == pacer.state()
    with pytest.raises(ValueError, match="moves 2 thresholds, the system has 1"):
        Session(system, [], pacer=Pacer(6.0, [[0, 0], [1, 1]]))


def test_equal_scores_make_a_path_too():
    system = two_stages(threshold=-0.5)
    pacer = Pacer.for_gate(system, 2.0, scores=np.full(50, -0.5))
    for _ in range(2000):
        pacer.update(10.0)
    assert pacer.thresholds[0] > -0.5
    for _ in range(9000):
        pacer.update(0.0)
    assert pacer.thresholds[0] < -0.5


def test_a_path_may_begin_with_nobody_and_end_with_everybody():
    """As cascades' frontiers do; the mean cost is as close as ever, in steps where there is nothing between."""
    system = two_stages()
    systems = [system.with_thresholds(t) for t in (np.inf, 0.0, -np.inf)]
    pacer = Pacer.along(systems, 3.0, start=0.0, rate=0.01)
    seen = [pacer.thresholds[0]]
    for _ in range(50):  # an answer for nothing moves it on by a hundredth
        pacer.update(0.0)
        seen.append(pacer.thresholds[0])
    assert set(seen) == {np.inf, 0.0}
    assert seen.index(0.0) == pytest.approx(25, abs=1)
    X = np.random.default_rng(0).normal(size=(3000, 3))
    pacer = Pacer.along(systems, 3.0, rate=0.01)
    for row in X:
        pacer.update(6.0 if -abs(row[0]) > pacer.thresholds[0] else 1.0)
    assert pacer.spent / pacer.n_answers == pytest.approx(3.0, rel=0.04)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": 0.0}, "target is 0.0"),
        ({"path": [[1.0]]}, "at least two points"),
        ({"path": [[np.nan], [0.0]]}, "thresholds without NaN"),
        ({"rate": 0.0}, "rate is 0.0"),
        ({"bounds": (0.5, 0.2)}, "bounds are"),
        ({"start": 2.0}, "start is 2.0, outside"),
    ],
)
def test_parameters_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        Pacer(**({"target": 1.0, "path": [[1.0], [0.0]]} | options))
    with pytest.raises(ValueError, match="no numbers"):
        Pacer.for_gate(two_stages(), 1.0, scores=[np.nan])
