import numpy as np
import pytest

from handmade import table, two_stages
from small_frontier import curve, small_frontier
from sparing.frontier import Frontier, stage_alone


@pytest.fixture
def frontier():
    return small_frontier()


def test_merging(frontier):
    X, y = table(seed=1)
    other = Frontier.evaluate([stage_alone(two_stages(), 0)], X, y, labels=["alone"])
    both = frontier + other
    assert len(both) == len(frontier) + 1
    assert both.full is frontier.full
    assert (other + frontier).full is frontier.full
    again = both.merged(frontier)
    assert len(again.pareto()) == len(both.pareto())
    test = frontier.on(X, y) + frontier.on(X, y)
    assert test.at(budget=2.0).system is frontier.at(budget=2.0).system
    with pytest.raises(TypeError):
        frontier + 3


def test_only_comparable_frontiers_merge(frontier):
    X, y = table(seed=1)
    with pytest.raises(ValueError, match="different numbers of rows"):
        frontier + Frontier.evaluate(curve(), X[:50], y[:50])
    with pytest.raises(ValueError, match="different scorings"):
        frontier + Frontier.evaluate(curve(), X, y, scoring="f1")
    with pytest.raises(ValueError, match="different accountings"):
        frontier + Frontier.evaluate(curve(), X, y, accounting="path")
    with pytest.raises(ValueError, match="different ways of choosing"):
        frontier + frontier.on(X, y)
    with pytest.raises(ValueError, match=r"different rows .* the same rows"):
        frontier + Frontier.evaluate(curve(), X, y[::-1])
    with pytest.raises(ValueError, match=r"different prices .* reprice\(costs\)"):
        frontier + frontier.reprice([2, 4, 6])
    assert len(frontier + frontier.reprice(frontier.points[0].system.costs)) == 2 * len(frontier)


def test_what_is_no_frontier_does_not_merge(frontier):
    with pytest.raises(TypeError, match="several frontiers"):
        frontier.merge(frontier)
    for wrong in ({"a": frontier, "b": curve()}, [frontier, 3]):
        with pytest.raises(TypeError, match="merge takes frontiers, not"):
            Frontier.merge(wrong)


def test_merging_methods_by_name(frontier):
    X, y = table(seed=1)
    alone = Frontier.evaluate([stage_alone(two_stages(), 0)], X, y, labels=["alone"])
    both = Frontier.merge({"gated": frontier, "cheap": alone})
    assert [p.label["method"] for p in both] == ["gated"] * len(frontier) + ["cheap"]
    assert both.points[-1].label["label"] == "alone"
    assert len(Frontier.merge([frontier, alone])) == len(both)
    assert Frontier.merge([frontier]) is frontier
    test = Frontier.merge({"gated": frontier.on(*table(seed=5))})
    assert test.chosen.points[0].label == {"method": "gated"}
    again = Frontier.merge({"a": both, "gated": frontier})
    assert again.points[0].label == {"method": "a", "of": "gated"}
    assert Frontier.merge({"gated": both}).points[0].label == {"method": "gated"}
    with pytest.raises(ValueError, match="no frontier to merge"):
        Frontier.merge({})


def test_merged_frontiers_remember_common_rows():
    X, y = table(seed=1)
    options = {"accounting": "path", "sample_weight": np.ones(len(y))}
    one, two = (Frontier.evaluate(curve(), X, y, **options) for _ in range(2))
    assert (one + two).reprice([2, 4, 6]).costs == pytest.approx(2 * (one + two).costs)
    other = Frontier.evaluate(curve(), X.copy(), y, **options)
    with pytest.raises(ValueError, match="merged from different rows"):
        (one + other).reprice([2, 4, 6])
    unweighted = Frontier.evaluate(curve(), X, y, accounting="path")
    with pytest.raises(ValueError, match="merged from different rows"):
        (one + unweighted).reprice([2, 4, 6])
