import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from sparing.engines.group_levels import Level, lengths_of, levels_of, quotient


@st.composite
def group_lists(draw):
    n_rows = draw(st.integers(1, 7))
    rows = st.frozensets(st.integers(0, n_rows - 1), min_size=1)
    found = sorted(draw(st.sets(rows, max_size=7)), key=lambda g: (len(g), sorted(g)))
    return [np.array(sorted(g)) for g in found], n_rows


@given(group_lists())
def test_every_group_stands_on_one_level_above_the_smaller_ones_it_meets(case):
    groups, n_rows = case
    weights = 1.0 + np.arange(len(groups))
    levels, tangled = levels_of(tuple(groups), weights, n_rows)
    height = {}
    for h, level in enumerate(levels):
        for g, weight in enumerate(level.weights[:-1]):
            height[float(weight)] = h
            assert_array_equal(np.flatnonzero(level.label == g), groups[int(weight) - 1])
    assert len(height) == len(groups)
    crossing = False
    for i, small in enumerate(groups):
        for j in range(i + 1, len(groups)):
            common = np.intersect1d(small, groups[j])
            if len(common):
                assert height[1.0 + i] < height[1.0 + j]
            if 0 < len(common) < len(small):
                crossing = True
                assert tangled[small].all()
                assert tangled[groups[j]].all()
    assert tangled.any() == crossing


@pytest.fixture
def level():
    return Level(np.array([0, 0, 1, 2]), np.array([1.0, 10.0, 0.0]))


def test_norms_of_groups_from_lengths_of_rows(level):
    W = np.array([[3.0, 0.0], [0.0, 4.0], [1.0, 0.0], [7.0, 0.0]])
    assert_allclose(level.norms(lengths_of(W)), [5.0, 1.0, 7.0])


def test_what_is_taken_is_the_weight_of_the_group_at_most_everything(level):
    assert_allclose(level.taken(np.array([3.0, 4.0, 1.0, 7.0])), [0.2, 0.2, 1.0, 0.0])
    assert_allclose(level.taken(np.zeros(4)), [1.0, 1.0, 1.0, 0.0])


def test_parts_and_multiples_of_a_level(level):
    lengths = np.array([3.0, 4.0, 1.0, 7.0])
    assert_allclose(level.times(2.0).taken(lengths), [0.4, 0.4, 1.0, 0.0])
    assert_allclose(level.at(np.array([1, 3])).taken(lengths[[1, 3]]), [0.25, 0.0])
    assert_allclose(level.with_free_rows(2).taken(np.append(lengths, [5.0, 5.0]))[-2:], 0.0)


def test_a_quotient_by_zero_is_zero():
    assert_allclose(quotient(np.array([1.0, 2.0]), np.array([0.0, 4.0])), [0.0, 0.5])
