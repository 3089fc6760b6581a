import numpy as np
import pytest
from sklearn.model_selection import GroupKFold

from handmade import table
from sparing._parts import Rows
from sparing._preparation import Preparation, check_share_or_rows


def preparation(*, n=200, validation=0.25, calibration=None, groups=None, cv=3, weight=None):
    X, y = table(n)
    rows = Rows(X, y, weight, groups)
    return Preparation(rows, validation, calibration, cv, 0, np.asarray)


def test_parts_share_no_row_and_keep_what_belongs_to_it():
    number = np.arange(200.0)
    given = preparation(calibration=0.2, weight=number)
    prepared = given.divided()
    parts = [prepared.train, prepared.validation.weight, prepared.calibration.weight]
    assert sorted(np.concatenate(parts)) == number.tolist()
    assert [len(part) for part in parts] == [110, 50, 40]
    for part in (prepared.validation, prepared.calibration):
        at = part.weight.astype(int)
        np.testing.assert_array_equal(part.X, given.rows.X[at])
        np.testing.assert_array_equal(part.y, given.rows.y[at])
    assert preparation().divided().calibration is None


def test_rows_of_their_own_leave_all_others_to_learn_from():
    X, y = table(30, seed=5)
    prepared = preparation(validation=(X, y), calibration=(X[:7], y[:7])).divided()
    np.testing.assert_array_equal(prepared.train, np.arange(200))
    assert prepared.validation.X is X
    assert len(prepared.calibration.y) == 7
    with pytest.raises(ValueError, match="calibration rows have labels that y has not: 2, 3"):
        preparation(calibration=(X[:2], [2, 3])).divided()


def test_groups_are_on_one_side_of_every_split():
    groups = np.arange(200) // 4
    prepared = preparation(groups=groups, calibration=0.2).divided()
    learnt = groups[prepared.train]
    aside = [set(prepared.validation.groups), set(prepared.calibration.groups), set(learnt)]
    assert sum(map(len, aside)) == len(set.union(*aside)) == 50
    assert len(prepared.folds) == 3
    for train, test in prepared.folds:
        assert not set(learnt[train]) & set(learnt[test])
    few = preparation(groups=np.arange(200) // 50, cv=5, validation=0.3).divided()
    assert len(few.folds) == len(set((np.arange(200) // 50)[few.train]))


@pytest.mark.parametrize("given", [0, 1, 1.5, -0.1, True, float("nan"), "half", {0.5}, (1,)])
def test_what_is_neither_a_share_nor_rows(given):
    with pytest.raises(ValueError, match="validation"):
        check_share_or_rows("validation", given)


def test_shares_and_rows_are_taken():
    for given in (0.2, np.float64(0.2), (1, 2), [1, 2], None):
        check_share_or_rows("validation", given)
    with pytest.raises(ValueError, match="not a NoneType"):
        check_share_or_rows("calibration", None)


def test_a_splitter_gets_the_groups():
    groups = np.arange(200) // 4
    prepared = preparation(groups=groups, cv=GroupKFold(4)).divided()
    learnt = groups[prepared.train]
    assert len(prepared.folds) == 4
    for train, test in prepared.folds:
        assert not set(learnt[train]) & set(learnt[test])
