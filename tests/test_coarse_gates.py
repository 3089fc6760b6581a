import numpy as np

from handmade import Margin, Sigmoid, two_stages
from sparing import FeatureCosts
from sparing._coarse_gates import moved_cuts
from sparing.system import Stage, System


def three_stages(thresholds, first=0):
    stages = (
        Stage(Sigmoid(first), Margin(first), thresholds[0]),
        Stage(Sigmoid(1), Margin(1), thresholds[1]),
        Stage(Sigmoid(2), name="full"),
    )
    return System(stages, FeatureCosts([1, 2, 3]), np.array([0, 1]))


def rows(n=400):
    """Column 0 has the three scores -2, -1 and 0 (of a quarter, a quarter and half of the rows), the others many."""
    X = np.random.default_rng(0).normal(size=(n, 3))
    X[:, 0] = np.repeat([2.0, 1.0, 0.0], [n // 4, n // 4, n // 2])
    return X


def test_a_cut_is_moved_across_one_score_of_a_coarse_gate():
    X = rows()
    system = three_stages((-1.4, -0.5))
    assert np.mean(system.route(X) > 0) == 0.75
    moved = moved_cuts([system], X)
    assert [origin for origin, _ in moved] == [0, 0]
    assert [s.thresholds for _, s in moved] == [(-np.inf, -0.5), (-0.5, -0.5)]
    assert [np.mean(s.route(X) > 0) for _, s in moved] == [1.0, 0.5]


def test_a_gate_that_stops_everybody_is_opened():
    X = rows()
    ((_, opened),) = moved_cuts([three_stages((np.inf, -0.5))], X)
    assert np.mean(opened.route(X) > 0) == 0.5
    ((_, closed),) = moved_cuts([three_stages((-np.inf, -0.5))], X)
    assert np.mean(closed.route(X) == 0) == 0.25


def test_gates_with_many_scores_are_left_alone():
    X = rows()
    assert moved_cuts([three_stages((-0.7, -0.5), first=1)], X) == []
    assert moved_cuts([two_stages()], X) == []
    assert moved_cuts([], X) == []


def test_the_full_models_own_gates_are_left_alone():
    X = rows()
    # Two gates of which the second belongs to the full model: one gate is left, whose cuts are all there already.
    assert moved_cuts([three_stages((-1.4, -0.5))], X, n_full=2) == []


def test_the_same_thresholds_are_tried_once():
    X = rows()
    system = three_stages((-1.4, -0.5))
    twice = [system, system.with_thresholds((-1.3, -0.5))]
    assert len(moved_cuts(twice, X)) == 2
