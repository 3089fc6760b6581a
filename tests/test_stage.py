import numpy as np

from sparing.costs import FeatureCosts
from sparing.system import ConfidenceGate, Stage, System, columns_read
from three_stages import CLASSES, ColumnGate, DoubtGate, Linear, rows


def test_confidence_gate_sends_the_unsure_on():
    system = System(
        (Stage(Linear(np.array([0])), ConfidenceGate(), 0.3), Stage(Linear(np.array([0, 1])))),
        FeatureCosts([1, 5]),
        CLASSES,
    )
    X = rows()[:, :2] * 4
    sure = system.stages[0].predictor.predict_proba(X).max(axis=1)
    np.testing.assert_array_equal(system.route(X), sure < 0.7)
    np.testing.assert_array_equal(system.acquisition_cost(X), np.where(sure < 0.7, 6, 1))


def test_columns_read_of_a_part_that_reads_the_same_on_every_row():
    mask = columns_read(Linear(np.array([2, 0])), rows(4), 6)
    np.testing.assert_array_equal(mask, np.tile([True, False, True, False, False, False], (4, 1)))


def test_stage_columns_are_sorted_and_unique_even_when_empty():
    nothing = Linear(np.array([]))
    assert Stage(nothing).columns.dtype == np.intp
    assert Stage(nothing, ColumnGate(np.array([3]))).columns.tolist() == [3]
    assert Stage(Linear(np.array([4, 1])), DoubtGate(np.array([1]))).columns.tolist() == [1, 4]
