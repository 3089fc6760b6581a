import numpy as np
import pytest

from handmade import Halves, table, two_stages
from sparing._calibration import Calibration
from sparing._promises import (
    BoundedTolerance,
    Budget,
    MissedRows,
    PairedTolerance,
    WrongRows,
)
from sparing.frontier import stage_alone

DELTA = 0.05
FULL = stage_alone(two_stages())


def facts(n=400, accounting="stage", scoring="accuracy", threshold=-1.2, **options):
    X, y = table(n, seed=4)
    return Calibration(X, y, scoring, accounting, FULL).facts(two_stages(threshold, **options))


PROMISES = [
    (PairedTolerance(0.06), {}),
    (BoundedTolerance(0.2, 3.0), {"scoring": [[0, 1], [3, 0]]}),
    (Budget(5.6), {}),
    (Budget(5.6), {"accounting": "path", "full": Halves(2, 5.0, also=(1,))}),
    (WrongRows(0.2), {}),
    (MissedRows(0.1, 1), {}),
]


@pytest.mark.parametrize(("promise", "options"), PROMISES)
def test_bounds_are_inverted_tests(promise, options):
    known = facts(**options)
    bound = promise.bound(known, DELTA)
    assert promise.estimate(known) < bound
    below, above = (type(promise)(**vars(promise) | {"limit": bound + d}) for d in (-1e-3, 1e-3))
    assert above.p_value(known, DELTA) <= DELTA < below.p_value(known, DELTA)


@pytest.mark.parametrize(("promise", "options"), PROMISES)
def test_as_many_rows_as_advised_would_do(promise, options):
    known = facts(60, **options)
    needed = promise.rows_needed(known, DELTA)
    if needed is None:
        assert promise.estimate(known) >= promise.limit
        return
    assert needed >= 60
    assert promise.p_value(known, DELTA, scale=needed / 60) <= DELTA
    if needed > 60:
        assert promise.p_value(known, DELTA) > DELTA


def test_no_number_of_rows_proves_what_is_not_so():
    known = facts()
    assert PairedTolerance(0.0).rows_needed(known, DELTA) is None
    assert Budget(1.0).rows_needed(known, DELTA) is None


def test_facts_do_not_depend_on_the_order_of_stages_asked():
    X, y = table(300, seed=4)
    calibration = Calibration(X, y, "accuracy", "stage", FULL)
    system = two_stages(-1.2)
    first, again = calibration.facts(system), calibration.facts(system)
    np.testing.assert_array_equal(first.loss, again.loss)
    assert first.loss.mean() == pytest.approx(np.mean(system.predict(X) != y))
    assert first.full_loss.mean() == pytest.approx(np.mean(FULL.predict(X) != y))
    assert first.cost.mean() == pytest.approx(system.acquisition_cost(X).mean())
    assert (first.least, first.most) == (1.0, 6.0)
    assert first.kept.mean() == pytest.approx(np.mean(system.route(X) == 0))
