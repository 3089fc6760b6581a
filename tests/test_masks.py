import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given

from sparing.costs import FeatureCosts
from strategies import costs_rows_owned

THYROID = FeatureCosts(
    {"age": 1, "TSH": 20.68, "TT4": 12.41, "T4U": 9.31},
    shared={"blood draw": (2.10, ["TSH", "TT4", "T4U"])},
    derived={"FTI": ["TT4", "T4U"]},
)


@pytest.mark.parametrize(
    ("mask", "error", "message"),
    [
        (["TSH", "T3"], ValueError, "Column 'T3' is not known; known are 'age', 'TSH'"),
        ([0, 1], ValueError, "Column 0, 1 is not known"),
        (np.array(["TSH", "T3"]), ValueError, "Column 'T3' is not known"),
        ("TSH", TypeError, r"a list of columns: \['TSH'\]"),
        (np.zeros(5), TypeError, "boolean, this one has dtype float64"),
        (np.zeros((2, 5), dtype=int), TypeError, "boolean, this one has dtype int"),
        ([[0, 1, 0, 1, 0]], TypeError, "boolean, this one has dtype int"),
        ([True, False], ValueError, r"5 here; this one has shape \(2,\)"),
        (np.zeros((2, 6), dtype=bool), ValueError, r"5 here; this one has shape \(2, 6\)"),
        (np.zeros((1, 2, 5), dtype=bool), ValueError, r"shape \(1, 2, 5\)"),
        (np.array(True), ValueError, r"shape \(\)"),
    ],
)
def test_bad_masks(mask, error, message):
    for method in (THYROID.of, THYROID.items_of, THYROID.mask):
        with pytest.raises(error, match=message):
            method(mask)


@pytest.mark.parametrize(
    ("owned", "error", "message"),
    [
        (np.zeros((3, 5)), TypeError, "owned is boolean, this one has dtype float64"),
        (np.zeros((3, 4), dtype=bool), ValueError, r"owned has shape \(3, 5\).*'age', 'TSH'.*\(3, 4\)"),
        ({"T3": True}, ValueError, "item 'T3' is not known; known are 'age', 'TSH'"),
        (["T3"], ValueError, "item 'T3' is not known; known are 'age', 'TSH'"),
        ("TSH", TypeError, r"owned=\['TSH'\]"),
        ({"TSH": 1}, TypeError, r"owned\['TSH'\] is True or False.*int"),
        ({"TSH": [True], "age": [True] * 3}, ValueError, r"different numbers of rows: \[1, 3\]"),
        ({"TSH": [True] * 2}, ValueError, r"owned has shape \(3, 5\).*\(2, 5\)"),
        (pd.DataFrame([[True] * 2] * 3, columns=["age", "age"]), ValueError, "'age' more than once"),
        (np.zeros((2, 5), dtype=bool), ValueError, r"owned has shape \(3, 5\).*\(2, 5\)"),
        (np.zeros(4, dtype=bool), ValueError, r"This one has shape \(4,\)"),
    ],
)  # fmt: skip
def test_bad_owned(owned, error, message):
    with pytest.raises(error, match=message):
        THYROID.of(np.zeros((3, 5), dtype=bool), owned=owned)


@given(costs_rows_owned())
def test_owned_items_may_be_given_by_name(drawn):
    costs, mask, owned = drawn
    expected = costs.of(mask, owned=owned)
    order = np.arange(len(costs.items))[::-1]
    by_name = {costs.items[j]: owned[:, j] for j in order}
    frame = pd.DataFrame(by_name)
    without_none = {name: cells for name, cells in by_name.items() if cells.any()} or by_name
    for same in (by_name, frame, without_none):
        np.testing.assert_array_equal(costs.of(mask, owned=same), expected)
    np.testing.assert_array_equal(costs.marginal(by_name), costs.marginal(owned))


def test_items_that_all_rows_own():
    mask = np.ones((3, 5), dtype=bool)
    expected = np.full(3, THYROID.total - 2.10)
    for owned in (
        ["blood draw"],
        {"blood draw"},
        np.array(["blood draw"]),
        pd.Index(["blood draw"]),
        {"blood draw": True},
        {"blood draw": np.ones(3, dtype=bool), "age": False},
    ):
        np.testing.assert_allclose(THYROID.of(mask, owned=owned), expected)
    frame = pl.DataFrame({"blood draw": [True] * 3, "age": [False] * 3})
    np.testing.assert_allclose(THYROID.of(mask, owned=frame), expected)
    assert THYROID.of(["TSH"], owned=["TSH"]) == pytest.approx(2.10)


def test_masks_may_be_names_lists_or_frames():
    expected = THYROID.of(["TSH", "FTI"])
    mask = [False, True, False, False, True]
    for same in (
        ("FTI", "TSH"),
        {"TSH", "FTI"},
        (c for c in ["TSH", "FTI", "TSH"]),
        pd.Index(["TSH", "FTI"]),
        pl.Series(["TSH", "FTI"]),
        np.array(["TSH", "FTI"]),
        mask,
        pd.Series(mask),
    ):
        assert THYROID.of(same) == expected
    frame = pd.DataFrame([mask, mask], columns=THYROID.columns)
    assert THYROID.of(frame).tolist() == [expected, expected]
    assert THYROID.of(pl.from_pandas(frame)).tolist() == [expected, expected]
    assert THYROID.of([]) == 0.0
