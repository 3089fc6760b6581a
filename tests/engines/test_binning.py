import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest

from sparing.costs import FeatureCosts
from sparing.engines.binning import BinnedData, ColumnEncoder
from sparing.engines.boosted_parts import BoostedPair, BoostedPredictor
from sparing.engines.boosting import BoostingEngine


def test_numbers_pass_untouched():
    for dtype in (np.float32, np.float64):
        X = np.array([[1.0, np.nan], [2.0, 3.0]], dtype=dtype)
        assert ColumnEncoder.learn(X).encode(X) is X
    X = np.array([[1, 0], [2, 3]])
    assert ColumnEncoder.learn(X).encode(X).dtype == float


def test_pandas_columns():
    frame = pd.DataFrame(
        {
            "float": [1.0, None, 3.0],
            "nullable": pd.array([1, None, 3], dtype="Int64"),
            "flag": [True, False, True],
            "nullable flag": pd.array([True, None, False], dtype="boolean"),
            "category": pd.Categorical(["b", None, "a"]),
            "numbered category": pd.Categorical([30, 10, None]),
            "text": ["u", None, "v"],
            "string": pd.array(["s", None, "t"], dtype="string"),
            "nothing": [None, None, None],
        }
    )
    encoder = ColumnEncoder.learn(frame)
    assert encoder.levels == {4: ("a", "b"), 5: (10, 30), 6: ("u", "v"), 7: ("s", "t")}
    nan = np.nan
    np.testing.assert_array_equal(
        encoder.encode(frame),
        [
            [1, 1, 1, 1, 1, 1, 0, 0, nan],
            [nan, nan, 0, nan, nan, 0, nan, nan, nan],
            [3, 3, 1, 0, 0, nan, 1, 1, nan],
        ],
    )


def test_polars_columns():
    frame = pl.DataFrame(
        {
            "int": [1, None, 3],
            "flag": [True, False, None],
            "text": ["b", None, "a"],
            "category": pl.Series(["u", None, "v"], dtype=pl.Categorical),
            "enum": pl.Series(["y", "x", None], dtype=pl.Enum(["y", "x"])),
        }
    )
    encoder = ColumnEncoder.learn(frame)
    nan = np.nan
    np.testing.assert_array_equal(
        encoder.encode(frame), [[1, 1, 1, 0, 1], [nan, 0, nan, nan, 0], [3, nan, 0, 1, nan]]
    )
    as_objects = np.array(frame.rows(), dtype=object)
    np.testing.assert_array_equal(encoder.encode(as_objects), encoder.encode(frame))


def test_levels_do_not_depend_on_the_order_of_rows():
    values = np.array([["b"], ["a"], ["c"], [None]], dtype=object)
    assert ColumnEncoder.learn(values).levels == ColumnEncoder.learn(values[::-1]).levels


def test_only_columns_that_are_read_need_to_make_sense():
    encoder = ColumnEncoder.learn(pd.DataFrame({"x": [1.0, 2.0], "c": ["a", "b"]}))
    served = np.array([["not bought", "b"]], dtype=object)
    np.testing.assert_array_equal(encoder.encode(served, columns=[1]), [[np.nan, 1.0]])
    with pytest.raises(ValueError, match="Column 0 held numbers"):
        encoder.encode(served)


def test_errors_name_the_column():
    with pytest.raises(ValueError, match="'day' holds dates"):
        BinnedData(pd.DataFrame({"day": pd.to_datetime(["2020-01-01", "2020-01-02"])}))
    with pytest.raises(ValueError, match="'list' holds neither"):
        BinnedData(pd.DataFrame({"list": [[1], [2]]}))
    with pytest.raises(ValueError, match="3 columns, the model was fitted on 2"):
        ColumnEncoder(2).encode(np.zeros((1, 3)))


def test_missing_infinite_and_unknown_values_are_predicted_as_they_were_learnt():
    rng = np.random.default_rng(0)
    n = 600
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "c": rng.choice(["red", "green", "blue", "grey", "pink", "teal"], size=n),
        }
    )
    y = ((frame["x"] > 0.5) | frame["c"].isin(["red", "teal"])).to_numpy().astype(int)
    frame.loc[::7, "x"] = np.nan
    frame.loc[1::50, "x"] = np.inf
    frame.loc[2::50, "x"] = -np.inf
    frame.loc[3::20, "c"] = None
    engine = BoostingEngine(BinnedData(frame), y, 2, FeatureCosts([1, 1]), cost_penalty=0.0)
    grown = engine.grow(np.full(n, 0.1))
    assert "cat_threshold" in grown.booster.model_to_string()
    predictor = BoostedPredictor(BoostedPair.of(grown))
    np.testing.assert_allclose(predictor.decision_scores(frame), grown.cheap, atol=1e-9)
    assert ((grown.cheap > 0) == y).mean() > 0.9
    np.testing.assert_array_equal(
        predictor.decision_scores(pl.from_pandas(frame)),
        predictor.decision_scores(frame),
    )
    served = pd.DataFrame({"x": [0.1, 0.1], "c": ["never seen", None]})
    assert len(set(predictor.decision_scores(served))) == 1


def test_categories_of_a_small_table_are_split():
    X = np.array([[c] for c in "aabbccddee" * 4], dtype=object)
    y = np.isin(X[:, 0], ["a", "d"]).astype(int)
    engine = BoostingEngine(BinnedData(X), y, 2, FeatureCosts([1]), gate=False, cost_penalty=0.001)
    grown = engine.grow(np.zeros(40))
    np.testing.assert_array_equal(grown.cheap > 0, y == 1)


def test_encoder_pickles():
    encoder = ColumnEncoder(2, {1: ("a", "b")})
    again = pickle.loads(pickle.dumps(encoder))
    X = np.array([[1, "b"]], dtype=object)
    np.testing.assert_array_equal(again.encode(X), encoder.encode(X))
