import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparing._parts import split_rows

labels = st.lists(st.integers(0, 3), min_size=12, max_size=80).map(np.array)


@given(labels, st.floats(0.1, 0.4), st.floats(0.0, 0.4), st.integers(0, 5))
def test_every_row_has_one_part_and_every_class_is_learnt(y, validation, calibration, seed):
    try:
        parts = split_rows(y, validation, calibration, random_state=seed)
    except ValueError as error:
        assert "leaves no row" in str(error)  # noqa: PT017
        return
    rows = np.concatenate([parts.train, parts.validation, parts.calibration])
    assert sorted(rows) == list(range(len(y)))
    assert set(y[parts.train]) == set(y)
    assert len(parts.validation) <= round(validation * len(y)) + 1
    again = split_rows(y, validation, calibration, random_state=seed)
    np.testing.assert_array_equal(again.train, parts.train)


def test_classes_are_in_proportion():
    y = np.repeat([0, 1, 2], [700, 200, 100])
    parts = split_rows(y, 0.2, 0.3, random_state=0)
    for rows, share in ((parts.validation, 0.2), (parts.calibration, 0.3), (parts.train, 0.5)):
        assert np.abs(np.bincount(y[rows]) - share * np.array([700, 200, 100])).max() <= 3


def test_groups_stay_together():
    groups = np.repeat(np.arange(60), 5)
    y = np.arange(300) % 2
    parts = split_rows(y, 0.25, 0.25, groups=groups, random_state=0)
    sets = [set(groups[rows]) for rows in (parts.train, parts.validation, parts.calibration)]
    assert len(set.union(*sets)) == sum(map(len, sets))
    assert 60 <= len(parts.validation) <= 75


def test_what_cannot_be_split():
    y = np.repeat([0, 1], 20)
    with pytest.raises(ValueError, match=r"validation=0\.25 of 40 rows in so few groups"):
        split_rows(y, 0.25, 0.0, groups=np.zeros(40))
    with pytest.raises(ValueError, match=r"classes \[1\] are in no training row"):
        split_rows(y, 0.5, 0.0, groups=y, random_state=3)
    with pytest.raises(ValueError, match="groups has 3 entries for 40 rows"):
        split_rows(y, 0.5, 0.0, groups=[1, 2, 3])
