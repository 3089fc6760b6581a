import numpy as np
import pandas as pd
import pytest

from sparing.costs import FeatureCosts, resolve_costs

THYROID = FeatureCosts(
    {"age": 1, "TSH": 20.68, "TT4": 12.41, "T4U": 9.31},
    shared={"blood draw": (2.10, ["TSH", "TT4", "T4U"])},
    derived={"FTI": ["TT4", "T4U"]},
)


@pytest.mark.parametrize(
    ("derived", "circle"),
    [
        ({"a": ["a"]}, "a -> a"),
        ({"a": ["b"], "b": ["a"]}, "a -> b -> a"),
        ({"d": ["a"], "a": ["b"], "b": ["c"], "c": ["a"]}, "a -> b -> c -> a"),
    ],
)
def test_circles_of_derived_columns(derived, circle):
    with pytest.raises(ValueError, match=f"circle: {circle}$"):
        FeatureCosts({"a": 1, "b": 1, "c": 1, "d": 1}, derived=derived)


@pytest.mark.parametrize(
    ("given", "columns", "message"),
    [
        ([1, 2], 3, "prices 2 columns, X has 3"),
        ([1, 2], ["a", "b", "c"], "prices 2 columns, X has 3"),
        (THYROID, 4, "prices 5 columns, X has 4"),
        ([[1, 2]], 2, r"shape \(1, 2\)"),
        ({"a": 1}, 1, "X has no column names"),
        ({"a": 1}, ["a", "b"], "no price for 'b'"),
        ({"a": 1, "tsh": 2}, ["a"], "a price for 'tsh', which X does not have"),
        ({"a": 1, "tsh": 2}, ["a", "TSH"], "no price for 'TSH'; a price for 'tsh'"),
        (THYROID, ["age", "TSH", "TT4", "T4U"], "a price for 'FTI'"),
        ([1, 2, 3], ["a", "b", "a"], "more than one column named 'a'"),
        ({"a": 1, "b": 1}, ["a", "b", "b"], "more than one column named 'b'"),
        ({f"c{i}": 1 for i in range(20)}, ["a"], r"'c6', \.\.\. 20 in all"),
    ],
)
def test_prices_that_do_not_fit_the_table(given, columns, message):
    with pytest.raises(ValueError, match=message):
        resolve_costs(given, columns)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[prices\na = 1", "is not valid TOML"),
        ("[prices]\na = -1", "price of column 'a' is -1"),
        ('[prices]\na = "1"', "price of column 'a' is '1': give a number"),
        ("[prices]\na = true", "price of column 'a' is True: give a number"),
        ("call_price = 1", r"needs the table \[prices\]"),
        ("[prices]\na = 1\n[price]\nb = 1", "Entry 'price' is not known; known are 'prices'"),
        ("[prices]\na = 1\n[shared.x]\nprice = 1", "'x' needs exactly `price` and `columns`"),
        ("shared = 3\n[prices]\na = 1", "shared is a mapping by name, not 3"),
        ('derived = ["a"]\n[prices]\na = 1', "derived is a mapping by name"),
        ("[prices]\na = 1\n[derived]\nb = 3", "Derived column 'b' is a list of columns"),
    ],
)
def test_invalid_toml_names_the_file_and_the_culprit(tmp_path, text, message):
    file = tmp_path / "my_costs.toml"
    file.write_text(text)
    with pytest.raises(ValueError, match=message) as raised:
        FeatureCosts.from_toml(file)
    assert "my_costs.toml" in str(raised.value)


def test_a_file_that_is_no_text(tmp_path):
    file = tmp_path / "costs.toml"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match=r"costs\.toml is not valid TOML"):
        FeatureCosts.from_toml(file)


@pytest.mark.parametrize("price", [-1, np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["prices", "array", "shared", "call", "calls"])
def test_a_price_is_finite_and_not_negative(where, price):
    arguments, culprit = {
        "prices": ({"prices": {"a": 1, "TSH": price}}, "column 'TSH'"),
        "array": ({"prices": [1, 2, price]}, "column 2"),
        "shared": ({"prices": {"a": 1}, "shared": {"draw": (price, ["a"])}}, "shared item 'draw'"),
        "call": ({"prices": {"a": 1}, "call_price": price}, "call_price"),
        "calls": ({"prices": {"a": 1}, "call_price": [0, price]}, r"stage 1 \(call_price\)"),
    }[where]
    with pytest.raises(ValueError, match=f"price of .*{culprit}.* is {price}"):
        FeatureCosts(**arguments)


@pytest.mark.parametrize("price", ["cheap", "1.5", None, [1], True, 1j])
def test_a_price_is_a_number(price):
    with pytest.raises(ValueError, match=r"price of column 'TSH' is .*: give a number"):
        FeatureCosts({"a": 1, "TSH": price})
    with pytest.raises(ValueError, match=r"price of column 1 is .*: give a number"):
        FeatureCosts([1, price])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"prices": []}, "prices is empty"),
        ({"prices": {}}, "prices is empty"),
        ({"prices": 3}, r"shape \(\)"),
        ({"prices": [[1, 2]]}, r"shape \(1, 2\)"),
        ({"prices": THYROID}, r"shape \(\)"),
        ({"prices": pd.Series([1, 2], index=["a", "a"])}, "names a column twice"),
        ({"shared": {"draw": (1, ["a", "tsh"])}}, "'draw': column 'tsh' is not known"),
        ({"shared": {"draw": (1, [])}}, "'draw' has no columns"),
        ({"shared": {"draw": 1}}, r"'draw' is \(price, columns\)"),
        ({"shared": {"draw": (1, 2)}}, r"'draw' is \(price, columns\)"),
        ({"shared": {"draw": (1, [["a"]])}}, r"'draw' is \(price, columns\)"),
        ({"shared": {"b": (1, ["a"])}}, "'b' has the name of a column"),
        ({"shared": ["draw"]}, r"shared is a mapping by name, \{'blood draw': \(2\.10, "),
        (
            {"shared": {"draw": {"price": 1, "columns": ["a"]}}},
            r"give .*\(1, \['a'\]\), or .*from_dict",
        ),
        (
            {"shared": {"draw": {"a": 1, "b": 2}}},
            r"'draw' is \(price, columns\).*\(2\.10, \['a', 'b'\]\)",
        ),
        ({"shared": {"draw": ["a", "b"]}}, r"'draw' is \(price, columns\)"),
        ({"shared": {"draw": "a"}}, r"'draw' is \(price, columns\)"),
        ({"shared": {"draw": (["a", "b"], 2.1)}}, r"'draw' is \(price, columns\)"),
        ({"shared": {"draw": ()}}, r"'draw' is \(price, columns\)"),
        ({"derived": {"FTI": ["TT4"]}}, "'FTI': column 'TT4' is not known"),
        ({"derived": {"FTI": []}}, "'FTI' names no inputs"),
        ({"derived": {"FTI": 3}}, "'FTI' is a list of columns"),
        ({"derived": 5}, "derived is a mapping by name"),
        ({"derived": {"x": ["a"]}, "shared": {"x": (1, ["a"])}}, "'x' has the name of a column"),
        ({"prices": [1, 2], "derived": {2: [0]}}, "Derived column 2: column 2 is not known"),
    ],
)
def test_bad_price_lists_name_the_culprit(arguments, message):
    with pytest.raises(ValueError, match=message):
        FeatureCosts(**{"prices": {"a": 1, "b": 1}, **arguments})
