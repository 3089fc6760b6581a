import pickle

import numpy as np
import pytest

from handmade import Halves, Sigmoid, table
from small_frontier import curve, small_frontier
from sparing import FeatureCosts
from sparing.frontier import Frontier
from sparing.system import Stage, System


@pytest.fixture
def frontier():
    return small_frontier()


@pytest.mark.parametrize("accounting", ["stage", "path"])
@pytest.mark.parametrize(
    "costs", [[4, 0, 1], FeatureCosts([4, 0, 1], shared={"draw": (2, [0, 2])}, call_price=(1, 7))]
)
def test_repricing_is_evaluating_again(accounting, costs):
    X, y = table(seed=1)
    weight = np.random.default_rng(0).random(len(y))
    systems = curve(full=Halves(2, 5.0, also=(1,)))
    options = {"accounting": accounting, "sample_weight": weight}
    moved = Frontier.evaluate(systems, X, y, **options).reprice(costs)
    again = Frontier.evaluate([s.with_costs(costs) for s in systems], X, y, **options)
    assert moved.costs == pytest.approx(again.costs)
    assert moved.scores == pytest.approx(again.scores)
    assert moved.full.cost == pytest.approx(again.full.cost)
    np.testing.assert_array_equal(
        moved.points[3].system.acquisition_cost(X), again.points[3].system.acquisition_cost(X)
    )


@pytest.mark.parametrize("alone", [False, True])
def test_a_system_without_full_model_keeps_its_price_per_call(alone):
    costs = FeatureCosts([1, 2, 3], call_price=(3, 20))
    one = System((Stage(Sigmoid(0)),), costs, np.array([0, 1]), has_full=False)
    systems = [one] if alone else [one, *curve(call_price=(3, 20))]
    frontier = Frontier.evaluate(systems, *table(seed=1))
    assert frontier.points[0].cost == 1 + 3
    assert frontier.reprice(costs).costs == pytest.approx(frontier.costs)
    dearer = frontier.reprice(FeatureCosts([1, 2, 3], call_price=(7, 20)))
    assert dearer.points[0].cost == 1 + 7


def test_repricing_chooses_again_where_systems_were_chosen(frontier):
    X, y = table(seed=5)
    test = frontier.on(X, y)
    moved = test.reprice([1, 20, 30])
    assert moved.at(budget=20).system.costs == FeatureCosts([1, 20, 30])
    assert moved.chosen.costs.max() > test.chosen.costs.max()


def test_stored_frontiers_leave_the_rows_behind(frontier):
    X, y = table(seed=1)
    stored = pickle.loads(pickle.dumps(frontier))
    assert stored.costs == pytest.approx(frontier.costs)
    assert stored.reprice([2, 4, 6]).costs == pytest.approx(2 * frontier.costs)
    small = pickle.dumps(Frontier.evaluate(curve(2), *table(2000)))
    assert len(small) < 20_000
    by_path = pickle.loads(pickle.dumps(Frontier.evaluate(curve(), X, y, accounting="path")))
    with pytest.raises(ValueError, match="By path the cost depends on the rows"):
        by_path.reprice([2, 4, 6])
