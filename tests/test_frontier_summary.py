import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handmade import table, two_stages
from small_frontier import curve, small_frontier
from sparing.frontier import Frontier, stage_alone


@pytest.fixture
def frontier():
    return small_frontier()


@given(st.floats(1.0, 5.9))
def test_area_is_the_average_over_budgets(low):
    X, y = table(seed=1)
    validated = Frontier.evaluate(curve(), X, y)
    for judged in (validated, validated.on(*table(seed=5))):
        budgets = np.linspace(low, 6, 4001)[:-1]
        scores = [judged.at(budget=b).score for b in budgets[::50]]
        assert judged.area(low, 6) == pytest.approx(np.mean(scores), abs=0.01)


def test_area_has_plain_ends(frontier):
    assert frontier.area() == frontier.area(frontier.costs.min(), frontier.full.cost)
    with pytest.raises(ValueError, match="Nothing can be bought for 0"):
        frontier.area(0.0)
    with pytest.raises(ValueError, match="high must be larger"):
        frontier.area(3, 2)
    alone = Frontier.evaluate(curve(2)[:1], *table(seed=1), full=stage_alone(two_stages()))
    assert alone.area() == alone.scores[0]


def test_summary(frontier):
    summary = frontier.summary([0.0, 0.05], level=0.9)
    assert summary["saving"] == {0.0: frontier.saving(0.0), 0.05: frontier.saving(0.05)}
    assert summary["full"]["cost"] == frontier.full.cost
    assert summary["best"]["score"] == frontier.scores.max()
    for number, (low, high) in [
        (summary["area"], summary["area_interval"]),
        (summary["saving"][0.05], summary["saving_interval"][0.05]),
    ]:
        assert low < number < high
    bare = Frontier.evaluate([stage_alone(s, 0) for s in curve(2)], *table(seed=1), labels="ab")
    assert bare.full is None
    with pytest.raises(ValueError, match="high must be larger"):
        bare.summary()
    assert bare.summary(high=5)["saving"] == {}
