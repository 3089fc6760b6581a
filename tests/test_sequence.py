import numpy as np
import pytest

from handmade import table, two_stages
from sparing import Guarantee
from sparing._sequence import safest_first
from sparing.frontier import Frontier, threshold_systems

X, Y = table(600, seed=1)
FRONTIER = Frontier.evaluate(threshold_systems(two_stages(), X, n=40), X, Y)


@pytest.mark.parametrize(
    "wishes",
    [
        {"tolerance": 0.05},
        {"max_error": 0.15},
        {"min_recall": {1: 0.9}},
        {"tolerance": 0.1, "budget": 5},
    ],
)
def test_every_step_is_cheaper(wishes):
    order = safest_first(FRONTIER, Guarantee(**wishes), 500, 50)
    assert len(order) == len(set(order)) > 1
    assert (np.diff(FRONTIER.costs[order]) < 0).all()
    # Sending all rows on promises nothing.
    assert all(FRONTIER.points[i].stage_rates[0] > 0 for i in order)


def test_a_budget_alone_is_approached_from_below():
    order = safest_first(FRONTIER, Guarantee(budget=3), 500, 50)
    assert order[0] == FRONTIER.costs.argmin()
    assert (np.diff(FRONTIER.costs[order]) > 0).all()
    assert (np.diff(FRONTIER.scores[order]) > 0).all()
    assert FRONTIER.costs[order[-1]] < 3.5


def test_systems_that_clearly_fail_are_left_out():
    order = safest_first(FRONTIER, Guarantee(tolerance=0.02), 500, 50)
    full = FRONTIER.full.score
    assert (full - FRONTIER.scores[order] < 0.1).all()
    assert safest_first(FRONTIER, Guarantee(budget=0.5), 500, 50) == []
    assert (
        safest_first(FRONTIER, Guarantee(max_error=0.0001, tolerance=0.0, budget=1), 500, 50) == []
    )


def test_few_rows_start_where_there_is_something_to_see():
    # With few kept rows no error rate can be proven: the first system keeps more of them.
    few, many = (safest_first(FRONTIER, Guarantee(max_error=0.2), n, 50) for n in (50, 5000))
    kept = [FRONTIER.points[order[0]].stage_rates[0] for order in (few, many)]
    assert min(kept) > 0.1


def test_long_frontiers_are_thinned():
    every = safest_first(FRONTIER, Guarantee(tolerance=0.2), 500, 1000)
    some = safest_first(FRONTIER, Guarantee(tolerance=0.2), 500, 5)
    assert len(some) == 5 < len(every)
    assert some[0] == every[0]
    assert some[-1] == every[-1]
    assert set(some) <= set(every)
