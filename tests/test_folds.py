"""Folds that a user asks for or gives."""

import warnings

import numpy as np
import pytest
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    ShuffleSplit,
    StratifiedGroupKFold,
)

from sparing._folds import checked_folds, folds_of


def test_folds():
    y = np.repeat([0, 1], 50)
    assert folds_of(4, y, 0).get_n_splits() == 4
    unshuffled = KFold(3)
    assert folds_of(unshuffled, y, 0) is unshuffled
    assert folds_of(np.int64(3), y, 0).get_n_splits() == 3
    with pytest.raises(ValueError, match=r"cv is 1: .* at least 2 folds"):
        folds_of(1, y, 0)
    drawn = ShuffleSplit(3, test_size=0.5, random_state=0)
    with pytest.raises(
        ValueError, match=r"cv must put every row .* in (no fold|\d folds), \d+ such rows of 100"
    ):
        checked_folds(drawn, y, 0)


def test_a_rare_class_does_not_cost_the_others_their_folds():
    y = np.repeat([0, 1, 2], [60, 39, 1])
    folds = list(folds_of(5, y, 0).split(y, y))
    assert len(folds) == 5
    for _, test in folds:
        np.testing.assert_allclose(np.bincount(y[test])[:2], [12, 7.5], atol=1)


@pytest.mark.parametrize("cv", [GroupKFold(3), StratifiedGroupKFold(3), LeaveOneGroupOut()])
def test_folds_by_groups_are_to_be_given(cv):
    y = np.arange(20) % 2
    with pytest.raises(ValueError, match=r"cv=list\(\w+\(\.\.\.\)\.split\(X, y, groups\)\)"):
        folds_of(cv, y, 0)


FIRST = np.arange(20) < 10
LABELS = np.arange(20) % 2


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        ([], "row 0 is in no fold, 20 such rows"),
        ([1, 2, 3], "cv is no list of folds: cannot unpack"),
        ([(np.arange(10), np.arange(10, 25))], "cv is no list of folds: index 20 is out of bounds"),
        ([(FIRST, ~FIRST)], "row 0 is in no fold, 10 such rows of 20"),
        ([(FIRST, ~FIRST), (~FIRST, FIRST), ([0], [1])], "row 1 is in 2 folds, 1 such rows"),
    ],
)
def test_folds_that_are_none(cv, message):
    with pytest.raises(ValueError, match=message) as caught:
        checked_folds(cv, LABELS, 0)
    assert "(train, test) of positions" in str(caught.value)


def test_folds_may_be_booleans():
    found = checked_folds([(FIRST, ~FIRST), (~FIRST, FIRST)], LABELS, 0)
    np.testing.assert_array_equal(found[0][1], np.arange(10, 20))
    np.testing.assert_array_equal(found[1][0], np.arange(10, 20))


def test_a_fold_that_lacks_a_class_is_told():
    labels = np.repeat([0, 1], 10)
    with pytest.warns(UserWarning, match="of cv learns from no row of class"):
        checked_folds(KFold(2), labels, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # A number of folds: nobody could share out a single row better.
        checked_folds(3, np.repeat([0, 1], [19, 1]), 0)
