import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparing._stored import (
    Stored,
    plain_label,
    plain_labels,
    plain_levels,
    read_label,
    read_labels,
    read_levels,
)

LABELS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
)


@given(LABELS)
def test_labels_come_back_with_their_type(label):
    found = read_label(json.loads(json.dumps(plain_label(label, "class"), allow_nan=False)))
    assert type(found) is type(label)
    assert found == label


@pytest.mark.parametrize(
    "labels",
    [
        *(np.array([-1, 1]), np.array([0, 255], dtype=np.uint8), np.array([False, True])),
        *(np.array([0.5, 2.0]), np.array(["a", "beta"]), np.array(["a", "b"], dtype=object)),
        *(np.array([1, "b"], dtype=object), np.array(["x", "y"], dtype=np.dtypes.StringDType())),
        np.array([-1, 1], dtype=np.int8),
    ],
    ids=str,
)
def test_classes_come_back_with_their_dtype(labels):
    found = read_labels(json.loads(json.dumps(plain_labels(labels))))
    assert found.dtype == labels.dtype
    assert found.tolist() == labels.tolist()
    assert [type(v) for v in found.tolist()] == [type(v) for v in labels.tolist()]


@pytest.mark.parametrize(
    "label", [None, (1, 2), b"x", np.nan, np.datetime64("2026-01-01"), object()]
)
def test_what_is_no_label_is_refused(label):
    with pytest.raises(ValueError, match="A bundle stores a level"):
        plain_label(label, "level")


@pytest.mark.parametrize(
    "plain",
    [
        *(None, [], {"dtype": "<i8"}, {"dtype": "<i8", "labels": []}),
        *({"dtype": "O8", "labels": [1, 2]}, {"dtype": "<i8", "labels": ["a", "b"]}),
        *({"dtype": "<U1", "labels": ["ab", "cd"]}, {"dtype": "|b1", "labels": [0, 3]}),
        *({"dtype": "M8[s]", "labels": [1, 2]}, {"dtype": "<i8", "labels": [None, 1]}),
        *({"dtype": "<U999999", "labels": ["a", "b"]}, {"dtype": "i8,i8", "labels": [1, 2]}),
        {"dtype": "<i1", "labels": [0, 3000]},
    ],
)
def test_classes_that_are_none_are_refused(plain):
    with pytest.raises((ValueError, OverflowError)):
        read_labels(plain)


def test_levels_come_back_and_nonsense_is_refused():
    levels = {0: ("a", 1, 2.5, True), 3: ()}
    assert read_levels(json.loads(json.dumps(plain_levels(levels))), 4) == levels
    for plain in (
        None,
        [[0]],
        [[4, []]],
        [[True, []]],
        [[0, []], [0, []]],
        [[0, [None]]],
        [["0", []]],
    ):
        with pytest.raises(ValueError, match=r"Levels|label"):
            read_levels(plain, 4)


def test_a_part_asks_for_what_it_needs_and_is_told_what_there_is():
    stored = Stored(
        "thing",
        settings={"n": 3, "yes": True, "inf": np.inf, "name": "x", "minus": -1},
        arrays={"i": np.array([0, 5]), "f": np.array([1.0, np.nan]), "b": np.array([True])},
        parts={"a": "text"},
    )
    assert (stored.count("n"), stored.number("n"), stored.text("name")) == (3, 3.0, "x")
    assert stored.array("b", kind="b").tolist() == [True]
    assert stored.part("a", str) == "text"
    for ask in (
        *(lambda: stored.count("yes"), lambda: stored.count("minus"), lambda: stored.count("no")),
        *(lambda: stored.number("inf"), lambda: stored.number("yes"), lambda: stored.text("n")),
        *(lambda: stored.array("i", kind="f"), lambda: stored.array("f", kind="f")),
        *(lambda: stored.array("i", kind="i", ndim=2), lambda: stored.array("no", kind="i")),
        *(lambda: stored.positions("i", 5), lambda: stored.part("a", int)),
    ):
        with pytest.raises(ValueError, match="A part of kind 'thing' needs the"):
            ask()
