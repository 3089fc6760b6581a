"""Settings that may be one number or several."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparing._settings import numbers, penalties

RATE = st.floats(0, 1)


@given(st.lists(RATE, min_size=1, max_size=6))
def test_sequences_of_any_kind_keep_their_order(rates):
    for sequence in (rates, tuple(rates), np.array(rates)):
        assert numbers("full_rate", sequence, upper=1.0) == rates


@given(RATE)
def test_one_number_is_a_sequence_of_one(rate):
    for number in (rate, np.float64(rate), np.array(rate)):
        assert numbers("full_rate", number, upper=1.0) == [rate]


@pytest.mark.parametrize(
    "wrong", [-0.1, 1.5, np.nan, np.inf, [], [0.2, 1.5], [0.2, np.nan], [[0.2]], "x", ["x"], None, {}, [0.1, [0.2]]],
    ids=repr,
)  # fmt: skip
def test_what_is_no_rate_is_refused_by_name(wrong):
    with pytest.raises(ValueError, match=r"full_rate is a number from 0 to 1, or a seq.*; got "):
        numbers("full_rate", wrong, upper=1.0)


@pytest.mark.parametrize("wrong", [-1e-9, np.nan, np.inf, [], [0.1, -1], [np.inf]], ids=repr)
def test_what_is_no_penalty_is_refused_by_name(wrong):
    with pytest.raises(ValueError, match="cost_penalty is a number 0 or more, or a sequence"):
        penalties(wrong, 0.5)


def test_penalties_come_largest_first():
    assert penalties([0.1, 3.0, 0.0, 0.2], 0.5) == [3.0, 0.2, 0.1, 0.0]
    assert penalties(0.3, 0.5) == [0.3]
    assert penalties("auto", 0.5) == [0.5]
