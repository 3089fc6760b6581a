import json

import numpy as np
import pytest
from bundle_cases import COSTS, fitted, mixed

from sparing.runtime import BundleError, inspect, load, save
from sparing.runtime._types import check_types, empty_table, plain_types

pandas = pytest.importorskip("pandas")


def again(frame):
    types = json.loads(json.dumps(plain_types(frame, frame.shape[1])))
    check_types(types, frame.shape[1])
    return empty_table(types, tuple(frame.columns))


def test_the_types_of_a_pandas_frame_come_back():
    frame = mixed()[0]
    frame["grade"] = pandas.Categorical([2, 3] * 120, categories=[3, 2, 1], ordered=True)
    frame["count"] = pandas.array([1, None] * 120, dtype="Int32")
    frame["old text"] = np.array(["a", "b"] * 120, dtype=object)
    frame["small"] = np.float32(1)
    frame["plain"] = frame["where"].astype(object).astype("category")
    found = again(frame)
    assert len(found) == 0
    assert found.columns.tolist() == frame.columns.tolist()
    assert found.dtypes.tolist() == frame.dtypes.tolist()
    assert found["sex"].cat.categories.tolist() == ["m", "f", "x"]


def test_the_types_of_a_polars_frame_come_back():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(
        {"a": [1.0], "b": ["x"], "c": [True], "d": [3]},
        schema={
            "a": polars.Float32,
            "b": polars.Enum(["x", "y"]),
            "c": polars.Boolean,
            "d": polars.Int8,
        },
    )
    assert again(frame).schema == frame.schema


def test_arrays_have_no_types_and_odd_types_are_refused():
    assert plain_types(np.zeros((2, 3)), 3) is None
    assert empty_table(None, (0, 1, 2)) is None
    with pytest.raises(BundleError, match="shape"):
        plain_types(np.zeros((2, 3)), 4)
    with pytest.raises(BundleError, match="Column 'when' of like has type datetime64"):
        plain_types(pandas.DataFrame({"when": pandas.to_datetime(["2026-01-01"])}), 1)


@pytest.mark.parametrize(
    "column",
    [
        *(None, "float64", {}, {"dtype": 1}, {"dtype": "datetime64[ns]"}, {"dtype": "Float32(os)"}),
        *(
            {"dtype": "float64", "more": 1},
            {"dtype": "category"},
            {"dtype": "Enum", "categories": []},
        ),
        {"dtype": "category", "categories": 1, "of": "str", "ordered": False},
        {"dtype": "category", "categories": [[]], "of": "str", "ordered": False},
        {"dtype": "category", "categories": ["a", "a"], "of": "str", "ordered": False},
        {"dtype": "category", "categories": ["a"], "of": "M8[ns]", "ordered": False},
        {"dtype": "category", "categories": ["a"], "of": "str", "ordered": "no"},
    ],
)
def test_types_that_are_none_are_refused(column):
    with pytest.raises(BundleError, match="type of column 0"):
        check_types({"frame": "pandas", "columns": [column]}, 1)


def test_forms_that_are_none_are_refused():
    for types in ([], {"frame": "os", "columns": []}, {"frame": "pandas", "columns": [{}, {}]}):
        with pytest.raises(BundleError, match="types are a frame"):
            check_types(types, 1)


def test_a_bundle_brings_its_types_along(tmp_path):
    clf, frame = fitted("gbrt mixed")
    save(clf, tmp_path / "a.sparing", like=frame)
    system = load(tmp_path / "a.sparing")
    assert system.like.dtypes.tolist() == frame.dtypes.tolist()
    assert inspect(tmp_path / "a.sparing")["types"]["columns"][5]["categories"] == ["m", "f", "x"]
    save(system, tmp_path / "b.sparing")
    assert (tmp_path / "a.sparing").read_bytes() == (tmp_path / "b.sparing").read_bytes()
    save(clf, tmp_path / "c.sparing")
    assert load(tmp_path / "c.sparing").like is None
    assert tuple(system.like.columns) == COSTS.columns
