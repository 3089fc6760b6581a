"""Thresholds of a gate: strictly between distinct scores, from nobody to everybody."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from sparing._cuts import threshold_cuts

FEW_VALUES = st.sampled_from([-1.5, -1.0, 0.0, 0.25, np.nextafter(0.25, 1), 1.0, 3.0])
ANY = st.floats(allow_nan=False, allow_infinity=False)
SCORES = st.one_of(
    npst.arrays(float, st.integers(1, 60), elements=FEW_VALUES),
    npst.arrays(float, st.integers(1, 60), elements=ANY),
)


@given(SCORES, st.integers(2, 40))
@example(np.array([-1.7e308, 1.7e308]), 5)
@example(np.array([0.0, 5e-324, 1e-323]), 5)
def test_from_nobody_to_everybody_between_the_scores(scores, n):
    cuts = threshold_cuts(scores, n)
    assert 2 <= len(cuts) <= n
    assert (cuts[1:] < cuts[:-1]).all()
    assert not (scores > cuts[0]).any()
    assert (scores > cuts[-1]).all()
    sent = [(scores > cut).sum() for cut in cuts]
    assert (np.diff(sent) > 0).all()  # no two thresholds do the same
    for cut in cuts[np.isin(cuts, scores)]:
        above = np.unique(scores[scores > cut])[0]
        assert np.nextafter(cut, np.inf) == above  # nothing stands between them


@given(SCORES, st.integers(2, 40))
def test_shares_are_as_even_as_ties_allow(scores, n):
    sent = np.array([(scores > cut).sum() for cut in threshold_cuts(scores, n)])
    possible = np.array(
        [(scores > cut).sum() for cut in np.unique(np.append(scores, -np.inf))], dtype=float
    )
    for wanted in np.linspace(0, len(scores), n):
        assert np.abs(sent - wanted).min() <= np.abs(possible - wanted).min() + 1e-9


def test_distinct_scores_give_even_steps():
    scores = np.random.default_rng(0).permutation(101) / 7
    cuts = threshold_cuts(scores, 11)
    shares = [(scores > cut).mean() for cut in cuts]
    np.testing.assert_allclose(shares, np.linspace(0, 1, 11), atol=0.01)


def test_few_scores_give_few_cuts():
    np.testing.assert_array_equal(threshold_cuts(np.zeros(50), 100), [np.inf, -np.inf])
    np.testing.assert_array_equal(threshold_cuts(np.array([2.0, 0.0]), 100), [np.inf, 1.0, -np.inf])


def test_scores_that_are_no_numbers_are_left_out():
    odd = np.array([np.nan, np.inf, -np.inf])
    np.testing.assert_array_equal(threshold_cuts(odd, 5), [np.inf, -np.inf])
    np.testing.assert_array_equal(
        threshold_cuts(np.append(odd, [0.0, 1.0]), 5), [np.inf, 0.5, -np.inf]
    )


def test_neighbouring_floats_are_told_apart():
    a, b = 0.1, np.nextafter(0.1, 1)
    cuts = threshold_cuts(np.array([a, b]), 3)
    assert [(np.array([a, b]) > cut).tolist() for cut in cuts] == [
        [False, False],
        [False, True],
        [True, True],
    ]
