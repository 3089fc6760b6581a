import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparing.tables.content import MISSING, NotANumberError, kind_of, numbers, texts


@given(st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_numbers_come_back_from_the_text_python_writes(values):
    words = [MISSING[i % len(MISSING)] if v is None else repr(v) for i, v in enumerate(values)]
    expected = np.array([np.nan if v is None else v for v in values])
    np.testing.assert_array_equal(numbers(pa.array(words)), expected)
    assert kind_of(pa.array(words)) == "number"


@given(st.lists(st.sampled_from(["a", "b c", "ü", "7x", *MISSING]), min_size=1))
def test_texts_are_the_words_or_none(words):
    expected = [None if w in MISSING else w for w in words]
    assert texts(pa.array(words)).tolist() == expected
    assert texts(pa.chunked_array([words, words])).tolist() == expected * 2


def test_truth_values_are_one_and_zero():
    np.testing.assert_array_equal(numbers(pa.array(["True", "false", "?"])), [1, 0, np.nan])
    np.testing.assert_array_equal(numbers(pa.array([True, None, False])), [1, np.nan, 0])


@pytest.mark.parametrize(
    ("words", "value", "place"),
    [
        (["1", "x", "3"], "x", 1),
        (["1", "2", "inf"], "inf", 2),
        (["true", "1", "false"], "1", 1),
        (["1", "true", "x"], "x", 2),
        (["1", "true", "3"], "true", 1),
    ],
)
def test_what_is_no_number_is_named_with_its_place(words, value, place):
    with pytest.raises(NotANumberError) as caught:
        numbers(pa.array(words))
    assert (caught.value.value, caught.value.place) == (value, place)


def test_kinds():
    assert kind_of(pa.array(["1", "inf"])) == "number"  # refused later, with its row
    assert kind_of(pa.array(["1", "one"])) == "text"
    assert kind_of(pa.array(["", "NA"])) == "number"
    assert kind_of(pa.array([1, None])) == "number"
    assert kind_of(pa.array(["a", "b"]).dictionary_encode()) == "text"
    assert kind_of(pa.array([0], pa.date32())) is None


def test_typed_columns_read_as_text_have_the_words_of_csv():
    assert texts(pa.array([1.0, None, 3.0])).tolist() == ["1", None, "3"]
    assert texts(pa.array([1.5])).tolist() == ["1.5"]
    assert texts(pa.array([7, 8])).tolist() == ["7", "8"]
    assert texts(pa.array(["a", None]).dictionary_encode()).tolist() == ["a", None]
