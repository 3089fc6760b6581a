from hypothesis import given
from hypothesis import strategies as st

from sparing.report._numbers import amount, difference, percent, plain, score


@given(st.floats(0.001, 1e9))
def test_amounts_can_be_read_back_to_three_digits(value):
    read = float(amount(value).replace(",", ""))
    assert abs(read - value) <= 0.006 * value


@given(st.floats(-10, 10))
def test_differences_say_their_sign_and_nothing_else_is_signed_by_a_hyphen(value):
    text = difference(value)
    assert text == "0.0000" or text[0] == ("+" if value > 0 else "−")
    assert "-" not in text + score(value) + percent(value)


def test_what_is_not_known_is_a_dash():
    assert amount(None) == score(None) == difference(None) == percent(None) == "–"
    assert plain({"a": None, "b": [1, 0.25]}) == "a: none; b: 1, 0.25"
