import numpy as np
import pytest

from handmade import Halves, table, two_stages
from sparing import Guarantee, certify
from sparing.guarantees import check_drift


def promised(accounting="stage", n=600, **options):
    system = two_stages(accounting=accounting, **options)
    X, y = table(n, seed=1)
    return system, certify([system], X, y, Guarantee(budget=10)).certificate


def test_false_alarms_are_as_rare_as_stated():
    level, alarms = 0.1, 0
    for seed in range(150):
        system = two_stages()
        X, y = table(200, seed=seed)
        certificate = certify([system], X, y, Guarantee(budget=10)).certificate
        alarms += check_drift(
            certificate, system, table(150, seed=1000 + seed)[0], level=level
        ).moved
    assert alarms <= 150 * level + 3 * np.sqrt(150 * level)


def test_routing_that_moved_is_seen():
    system, certificate = promised()
    X, _ = table(600, seed=2)
    same, moved = (check_drift(certificate, system, rows) for rows in (X, 3 * X))
    assert not same.moved
    assert "Nothing shows" in repr(same)
    assert moved.moved
    assert moved.cost_now < moved.cost_before
    assert moved.shares_now[0] > moved.shares_before[0]
    assert max(moved.stage_p_values) < 0.005
    assert moved.text.count("moved") > 2
    assert "recalibrate" in moved.text


def test_costs_by_path_move_without_the_routing():
    # The full model reads a column more where another one is positive; the gate reads neither.
    system, certificate = promised("path", full=Halves(2, 5.0, also=(1,)))
    X, _ = table(600, seed=2)
    X[:, 2] = np.abs(X[:, 2])
    drift = check_drift(certificate, system, X)
    assert min(drift.stage_p_values) > 0.05
    assert drift.cost_p_value < 0.005
    assert drift.moved


def test_what_cannot_be_compared():
    system, certificate = promised()
    X, _ = table()
    with pytest.raises(ValueError, match="about another system"):
        check_drift(certificate, system.with_thresholds(0.0), X)
    with pytest.raises(ValueError, match="no rows"):
        check_drift(certificate, system, X[:0])
    with pytest.raises(ValueError, match="level is between 0 and 1"):
        check_drift(certificate, system, X, level=0)


def test_one_price_never_moves():
    system, certificate = promised(prices=(0, 0, 0))
    assert check_drift(certificate, system, table(50)[0]).cost_p_value == 1
