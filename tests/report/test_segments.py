from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handmade import table, two_stages
from sparing.report import summarise
from sparing.report._segments import grouped

X, Y = table(300, seed=1)


def by_name(summary):
    return {segment["column"]: segment for segment in summary["segments"]}


def test_groups_have_the_numbers_of_their_rows():
    system = two_stages()
    region = np.where(X[:, 1] > 0, "north", "south")
    segment = by_name(summarise(system, X, Y, segments={"region": region}))["region"]
    for group in segment["groups"]:
        here = region == group["name"]
        assert group["n"] == here.sum()
        assert group["mean_cost"] == pytest.approx(system.acquisition_cost(X)[here].mean())
        assert group["right"] == pytest.approx((system.predict(X) == Y)[here].mean())
        rates = np.bincount(system.route(X)[here], minlength=2) / here.sum()
        assert group["stage_rates"] == pytest.approx(rates)


def test_the_true_class_is_always_there_however_rare():
    labels = Y.copy()
    labels[0] = 7
    segment = summarise(two_stages(), X, labels, segments=[])["segments"]
    assert [s["column"] for s in segment] == ["true class"]
    assert [g["name"] for g in segment[0]["groups"]] == ["0", "1", "7"]


def test_columns_that_decide_the_cost_are_found():
    # The gate reads column 0 alone, far from 0 is cheap: by quartile the cost differs.
    found = by_name(summarise(two_stages(), X, Y))
    assert list(found)[1] == "0"
    assert found["0"]["kind"] == "quartiles"
    shown = by_name(summarise(two_stages(np.inf), X, Y))
    assert list(shown) == ["true class"]  # everybody pays the same


def test_a_column_may_be_named_alone_or_in_a_list():
    one, several = (summarise(two_stages(), X, Y, segments=s) for s in (1, [1]))
    assert one["segments"] == several["segments"]


def test_unknown_columns_are_named_with_the_fix():
    with pytest.raises(ValueError, match=r"'region'; it has 0, 1, 2.*segments=\{'region'"):
        summarise(two_stages(), X, Y, segments="region")
    with pytest.raises(ValueError, match=r"segments\['region'\] has 2 values for 300 rows"):
        summarise(two_stages(), X, Y, segments={"region": ["a", "b"]})


@given(
    st.lists(
        st.one_of(st.none(), st.floats(allow_infinity=False, width=32), st.integers(0, 3)),
        min_size=1,
        max_size=80,
    )
)
def test_numbers_are_cut_into_ordered_groups(values):
    array = np.array([np.nan if v is None else v for v in values], dtype=float)
    groups = grouped(array)
    assert len(groups.codes) == len(array)
    counts = np.bincount(groups.codes, minlength=len(groups.names))
    assert (counts > 0).all()
    assert ("missing" in groups.names) == bool(np.isnan(array).any())
    if groups.kind == "quartiles":
        known = ~np.isnan(array)
        parts = [array[groups.codes == code] for code in np.unique(groups.codes[known])]
        ends = [(part.min(), part.max()) for part in parts]
        assert all(high < low for (_, high), (low, _) in pairwise(ends))
        assert len(ends) <= 4


@given(st.lists(st.sampled_from(["a", "b", "c", "", "nan", "<x>"]), min_size=1, max_size=60))
def test_small_categories_are_never_named(values):
    groups = grouped(np.array(values))
    counts = np.bincount(groups.codes, minlength=len(groups.names))
    for name, count in zip(groups.names, counts, strict=True):
        assert count >= 5 or name == "missing" or name.startswith("others (")


def test_objects_that_are_numbers_with_gaps_are_numbers():
    pandas = pytest.importorskip("pandas")
    column = pandas.Series([*range(40), None], dtype="Int64")
    groups = grouped(column)
    assert groups.kind == "quartiles"
    assert groups.names[-1] == "missing"
    assert grouped(np.array([True] * 9 + [False] * 8)).names == ["True", "False"]
    many = pandas.Series([f"name {i}" for i in range(50)])
    assert grouped(many).names == ["others (50 values)"]
