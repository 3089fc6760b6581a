"""The resampling of promises, on a population and a number of draws small enough for every day."""

import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks" / "speed"


@pytest.fixture(scope="module")
def promises():
    sys.path.insert(0, str(FOLDER))
    try:
        import promises
    finally:
        sys.path.remove(str(FOLDER))
    return promises


@pytest.mark.parametrize("name", ["cost ≤ 3", "error of the kept ≤ 0.15"])
def test_a_small_resampling(promises, name):
    stages, guarantee = promises.PROMISES[name]
    row = promises.resample(promises.population(20_000, stages), guarantee, 15)
    # Three or more of fifteen broken would be an accident of one in thirty at 5 %.
    assert row["broken"] < 0.2
    assert row["none"] < 0.5
    assert 1 <= row["cost"] <= 6


def test_the_other_test_is_a_p_value(promises):
    import numpy as np

    values = np.zeros(500)
    assert promises.hoeffding_bentkus(values, 0.2) < 0.01
    assert promises.hoeffding_bentkus(values, 0.0) == 1
