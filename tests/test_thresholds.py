import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from handmade import table, two_stages
from sparing.frontier import stage_alone, threshold_systems


@given(
    hnp.arrays(float, st.integers(1, 60), elements=st.integers(-5, 5).map(float)),
    st.integers(2, 30),
)
def test_thresholds_cut_between_scores(values, n):
    X = np.column_stack([values, values, values])
    system = two_stages()
    systems = threshold_systems(system, X, n=n)
    shares = [s.route(X).mean() for s in systems]
    assert shares[0] == 0
    assert shares[-1] == 1
    assert (np.diff(shares) > 0).all()
    assert len(systems) <= n
    scores = np.unique(system.exit_scores(X))
    assert not np.isin([s.thresholds[0] for s in systems], scores).any()
    if n > len(scores):
        assert len(systems) <= len(scores) + 1
    if n > 2 * len(values):
        assert len(systems) == len(scores) + 1


def test_neighbouring_floats_are_told_apart():
    value = 1.0
    X = np.array([[value] * 3, [np.nextafter(value, 2)] * 3])
    shares = [s.route(X).mean() for s in threshold_systems(two_stages(), X, n=10)]
    assert shares == [0, 0.5, 1]


def test_thresholds_are_at_even_shares():
    X, _ = table(1000)
    shares = [s.route(X).mean() for s in threshold_systems(two_stages(), X, n=11)]
    np.testing.assert_allclose(shares, np.linspace(0, 1, 11), atol=1e-3)


def test_thresholds_say_what_is_wrong():
    X, _ = table()
    with pytest.raises(ValueError, match="one gate; this system has 0"):
        threshold_systems(stage_alone(two_stages()), X)
    with pytest.raises(ValueError, match="n is at least 2"):
        threshold_systems(two_stages(), X, n=1)
