from types import SimpleNamespace

import numpy as np
import pytest

from handmade import table, two_stages
from sparing._wishes import Wishes
from sparing.frontier import Frontier, threshold_systems

X, Y = table(seed=1)
FRONTIER = Frontier.evaluate(threshold_systems(two_stages(), X, n=20), X, Y)


def test_each_wish_is_the_frontiers():
    assert Wishes(budget=3).choose(FRONTIER) is FRONTIER.at(budget=3)
    careful = FRONTIER.at(tolerance=0.05, caution=0.5)
    assert Wishes(tolerance=0.05).choose(FRONTIER) is careful
    assert Wishes().choose(FRONTIER) is FRONTIER.at(tolerance=0.0, caution=0.5)
    assert careful.cost > FRONTIER.at(tolerance=0.05).cost


def test_both_wishes_are_kept_or_contradict_each_other():
    wanted = FRONTIER.at(tolerance=0.05)
    assert Wishes(budget=wanted.cost, tolerance=0.05).choose(FRONTIER) is wanted
    careful = FRONTIER.at(tolerance=0.05, caution=0.5)
    assert Wishes(budget=careful.cost, tolerance=0.05).choose(FRONTIER) is careful
    with pytest.raises(ValueError, match="contradict each other") as error:
        Wishes(budget=wanted.cost - 0.5, tolerance=0.05).choose(FRONTIER)
    assert f"costs {wanted.cost:.4g}" in str(error.value)
    assert f"the best scores {FRONTIER.at(budget=wanted.cost - 0.5).score:.4g}" in str(error.value)
    with pytest.raises(ValueError, match="the cheapest system of all costs 1"):
        Wishes(budget=0.1, tolerance=0.05).choose(FRONTIER)


@pytest.mark.parametrize("weighted", [False, True])
def test_floors_of_recall(weighted):
    weight = np.random.default_rng(0).random(len(Y)) if weighted else None
    rows = SimpleNamespace(X=X, y=Y, weight=weight)
    wishes = Wishes(min_recall={1: 0.9, 0: 0.5})
    systems = [point.system for point in FRONTIER]
    recalls = wishes.recalls(systems, rows)
    for j, system in enumerate(systems):
        for i, label in enumerate((1, 0)):
            mine = label == Y
            expected = np.average(
                system.predict(X[mine]) == label, weights=weight[mine] if weighted else None
            )
            assert recalls[i, j] == pytest.approx(expected)
    keeps = wishes.keeps_floors(recalls)
    assert 0 < keeps.sum() < len(keeps)
    np.testing.assert_array_equal(keeps, (recalls[0] >= 0.9) & (recalls[1] >= 0.5))
    assert Wishes().keeps_floors(Wishes().recalls(systems, rows)).all()
    with pytest.raises(ValueError, match="no validation row has the class 7"):
        Wishes(min_recall={7: 0.1}).recalls(systems, rows)
