import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from small_frontier import small_frontier
from sparing._choice import best_within_budget, cheapest_within_tolerance
from sparing.frontier import pareto_order


@pytest.fixture
def frontier():
    return small_frontier()


pairs = st.integers(1, 25).flatmap(
    lambda n: st.tuples(
        hnp.arrays(float, n, elements=st.integers(0, 6).map(float)),
        hnp.arrays(float, n, elements=st.integers(0, 6).map(float)),
    )
)


def beats(cost, score, other_cost, other_score):
    return (
        cost <= other_cost and score >= other_score and (cost < other_cost or score > other_score)
    )


@given(pairs)
def test_pareto_keeps_the_first_of_every_non_dominated_pair(systems):
    costs, scores = systems
    n = len(costs)
    expected = [
        i
        for i in range(n)
        if not any(beats(costs[j], scores[j], costs[i], scores[i]) for j in range(n))
        and not any(costs[j] == costs[i] and scores[j] == scores[i] for j in range(i))
    ]
    kept = pareto_order(costs, scores)
    assert sorted(kept) == expected
    assert (np.diff(costs[kept]) > 0).all()
    assert (np.diff(scores[kept]) > 0).all()


def test_pareto_of_nothing_and_of_hopeless_scores():
    assert len(pareto_order([], [])) == 0
    assert pareto_order([2, 1], [-np.inf, -np.inf]).tolist() == [1]


@given(pairs, st.integers(-1, 7))
def test_best_within_a_budget(systems, budget):
    costs, scores = systems
    allowed = [i for i in range(len(costs)) if costs[i] <= budget]
    if not allowed:
        with pytest.raises(ValueError, match="The cheapest costs"):
            best_within_budget(costs, scores, budget)
        return
    index = best_within_budget(costs, scores, budget)
    assert (-scores[index], costs[index]) == min((-scores[i], costs[i]) for i in allowed)
    assert index in pareto_order(costs, scores) or any(
        costs[j] == costs[index] and scores[j] == scores[index] for j in range(index)
    )


@given(pairs, st.integers(0, 6), st.integers(-1, 7))
def test_cheapest_within_a_tolerance(systems, full_score, tolerance):
    costs, scores = systems
    allowed = [i for i in range(len(costs)) if scores[i] >= full_score - tolerance]
    if not allowed:
        with pytest.raises(ValueError, match="the best scores"):
            cheapest_within_tolerance(costs, scores, full_score, tolerance)
        return
    index = cheapest_within_tolerance(costs, scores, full_score, tolerance)
    assert (costs[index], -scores[index]) == min((costs[i], -scores[i]) for i in allowed)


@pytest.mark.parametrize("wish", [{}, {"budget": 1, "tolerance": 0}])
def test_one_wish_at_a_time(frontier, wish):
    with pytest.raises(ValueError, match="Give budget or tolerance"):
        frontier.at(**wish)


def test_wishes_that_are_not_numbers(frontier):
    with pytest.raises(ValueError, match="budget is a number"):
        frontier.at(budget=np.nan)
    with pytest.raises(ValueError, match="tolerance is a finite number"):
        frontier.at(tolerance=np.nan)


def test_a_wish_is_a_number(frontier):
    with pytest.raises(TypeError, match="budget is a number, not '3'"):
        frontier.at(budget="3")


@given(
    pairs,
    st.integers(0, 6),
    st.integers(-1, 7),
    st.lists(st.integers(0, 3), min_size=8, max_size=8),
)
def test_doubts_ask_for_more_than_the_tolerance(systems, full_score, tolerance, doubts):
    costs, scores = systems
    doubts = np.resize(np.array(doubts, dtype=float), len(costs))
    allowed = [i for i in range(len(costs)) if scores[i] >= full_score - tolerance]
    if not allowed:
        return
    index = cheapest_within_tolerance(costs, scores, full_score, tolerance, doubts)
    low = scores - doubts
    sure = [i for i in range(len(costs)) if low[i] >= full_score - tolerance]
    if sure:
        assert costs[index] == min(costs[i] for i in sure)
    else:
        assert low[index] == max(low[i] for i in allowed)
