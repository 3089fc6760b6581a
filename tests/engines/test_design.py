import datetime
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from sparing.engines.design import Design

COLUMNS = {
    "age": [30.0, 40.0, None, 50.0, 20.0, 60.0],
    "sex": ["f", "m", "f", None, "m", "f"],
    "member": [True, False, True, True, False, False],
    "visits": [1, 2, 3, 4, 5, 9],
}


def frames():
    return {"pandas": pd.DataFrame(COLUMNS), "polars": pl.DataFrame(COLUMNS)}


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_mixed_frame(kind):
    X = frames()[kind]
    design = Design.fit(X)
    # age, member, visits; the flag of age; levels f and m and missing of sex.
    assert_array_equal(design.owner, [0, 2, 3, 0, 1, 1, 1])
    Z = design.transform(X)
    assert Z.dtype == np.float64
    assert Z.shape == (6, 7)
    assert_allclose(Z[:, :3].mean(axis=0), 0.0, atol=1e-12)
    assert_allclose(Z[:, :3].std(axis=0), 1.0)
    assert Z[2, 0] == 0.0
    assert_array_equal(Z[:, 3], [0, 0, 1, 0, 0, 0])
    assert_array_equal(Z[:, 4:], np.eye(3)[[0, 1, 0, 2, 1, 0]])


def test_pandas_polars_and_arrays_agree():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 3))
    X[3, 1] = np.nan
    names = ["a", "b", "c"]
    tables = [
        X,
        X.tolist(),
        X.astype(object),
        pd.DataFrame(X, columns=names),
        pd.DataFrame(X, columns=names).convert_dtypes(),
        pl.DataFrame(X, schema=names),
        pl.DataFrame(
            {n: [None if np.isnan(v) else v for v in X[:, j]] for j, n in enumerate(names)}
        ),
    ]
    expected = Design.fit(X).transform(X)
    for table in tables:
        design = Design.fit(table)
        assert_array_equal(design.owner, [0, 1, 2, 1])
        for other in tables:
            assert_allclose(design.transform(other), expected, atol=1e-12)


@settings(deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 40),
    weighted=st.booleans(),
    missing=st.booleans(),
    shift=st.sampled_from([0.0, 1e8, -3.0]),
    scale=st.sampled_from([1.0, 1e-150, 1e150]),
)
def test_moments_and_no_nan(seed, n, weighted, missing, shift, scale):
    rng = np.random.default_rng(seed)
    X = (rng.integers(-3, 4, size=(n, 4)) + shift) * scale
    if missing:
        X[rng.uniform(size=X.shape) < 0.3] = np.nan
    w = rng.integers(0, 3, size=n).astype(float) if weighted else None
    if weighted:
        w[0] = 1.0
    design = Design.fit(X, sample_weight=w)
    Z = design.transform(X)
    assert np.isfinite(Z).all()
    numbers = Z[:, :4]
    assert_allclose(np.average(numbers, axis=0, weights=w), 0.0, atol=1e-6)
    deviation = np.sqrt(np.average(numbers**2, axis=0, weights=w))
    assert (np.isclose(deviation, 1.0, atol=1e-6) | (deviation == 0.0)).all()


def test_weights_are_repeated_rows():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((30, 3))
    X[::7, 2] = np.nan
    w = rng.integers(0, 4, size=30)
    weighted = Design.fit(X, sample_weight=w)
    repeated = Design.fit(np.repeat(X, w, axis=0))
    assert_array_equal(weighted.owner, repeated.owner)
    assert_allclose(weighted.transform(X), repeated.transform(X))


@pytest.mark.parametrize("value", [0.0, 0.1, -7e20])
def test_constant_columns_become_zero(value):
    X = np.column_stack([np.full(1001, value), np.arange(1001.0), np.full(1001, np.nan)])
    design = Design.fit(X)
    assert_array_equal(design.owner, [0, 1, 2])
    other = np.array([[5.0, 1.0, 3.0]])
    assert_array_equal(design.transform(X)[:, [0, 2]], 0.0)
    assert_array_equal(design.transform(other)[:, [0, 2]], 0.0)


def test_own_units_are_only_centred():
    X = np.array([[1.0, 7.0], [3.0, 7.0], [np.nan, 7.0]])
    design = Design.fit(X, standardize=False)
    assert_array_equal(design.transform(X), [[-1, 0, 0], [1, 0, 0], [0, 0, 1]])


def test_missing_only_later_is_the_mean():
    X = np.arange(6.0).reshape(3, 2)
    design = Design.fit(X)
    assert_array_equal(design.owner, [0, 1])
    assert design.transform(np.array([[np.nan, 1.0]]))[0, 0] == 0.0


def test_levels_are_bounded_and_unknown_ones_go_with_the_rest():
    texts = ["a"] * 5 + ["b"] * 4 + ["c"] * 3 + ["d", "e"]
    X = pd.DataFrame({"letter": texts})
    design = Design.fit(X, max_levels=2)
    new = pd.DataFrame({"letter": ["a", "b", "c", "zebra", None]})
    assert_array_equal(
        design.transform(new), [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1], [0, 0, 0]]
    )
    # Weights rank the levels too: a and c have none, d the most.
    weight = np.array([0.0] * 5 + [1.0] * 4 + [0.0] * 3 + [9.0, 1.0])
    heavy = Design.fit(X, sample_weight=weight, max_levels=2)
    assert_array_equal(
        heavy.transform(pd.DataFrame({"letter": ["d", "b", "e", "a"]})),
        [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]],
    )


def test_without_a_rest_unknown_levels_are_all_zero():
    design = Design.fit(pd.DataFrame({"letter": ["a", "b", None]}))
    assert_array_equal(
        design.transform(pd.DataFrame({"letter": ["z", None, "b"]})),
        [[0, 0, 0], [0, 0, 1], [0, 1, 0]],
    )


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["u", "v", None, "u"], dtype="category"),
        pd.Series(["u", "v", None, "u"], dtype="string"),
        pd.Series(["u", "v", None, "u"], dtype=object),
        pd.Series([1, 2, None, 1], dtype="category"),
        pl.Series(["u", "v", None, "u"], dtype=pl.Categorical),
        pl.Series(["u", "v", None, "u"], dtype=pl.Enum(["u", "v"])),
    ],
)
def test_kinds_of_text(column):
    X = column.to_frame("c")
    assert_array_equal(Design.fit(X).transform(X), np.eye(3)[[0, 1, 2, 0]])


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([1, None, 3], dtype="Int64"),
        pd.Series([True, None, False], dtype="boolean"),
        pd.Series([1.5, None, 3], dtype=object),
        pl.Series([1, None, 3]),
        pl.Series([True, None, False]),
        pl.Series([1, None, 3], dtype=pl.Decimal(10, 2)),
    ],
)
def test_kinds_of_numbers(column):
    X = column.to_frame("c")
    Z = Design.fit(X).transform(X)
    assert Z.shape == (3, 2)
    assert_array_equal(Z[:, 1], [0, 1, 0])
    assert abs(Z[0, 0]) == pytest.approx(np.sqrt(1.5))


def test_object_array_with_text():
    X = np.array([["f", 1.0], ["m", None], ["f", 3]], dtype=object)
    design = Design.fit(X)
    assert_array_equal(design.owner, [1, 1, 0, 0])
    assert_array_equal(design.transform(X)[:, 2:], [[1, 0], [0, 1], [1, 0]])
    words = np.array([["f"], ["m"]])
    assert_array_equal(Design.fit(words).transform(words), np.eye(2))


@pytest.mark.parametrize("kind", ["pandas", "polars"])
@pytest.mark.parametrize("columns", [[0], [1, 3], [3, 1], [], [0, 1, 2, 3]])
def test_restricted_is_a_slice(kind, columns):
    X = frames()[kind]
    design = Design.fit(X)
    small = design.restricted(columns)
    kept = np.isin(design.owner, columns)
    assert_array_equal(small.owner, design.owner[kept])
    assert_allclose(small.transform(X), design.transform(X)[:, kept])
    mask = np.zeros(4, dtype=bool)
    mask[columns] = True
    assert_array_equal(design.restricted(mask).owner, small.owner)
    again = small.restricted(columns[:1])
    assert_array_equal(again.owner, design.restricted(columns[:1]).owner)


def test_restricted_reads_nothing_else():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 3))
    X[4, 0] = np.nan
    small = Design.fit(X).restricted([0])
    garbage = X.copy()
    garbage[:, 1:] = [np.nan, np.inf]
    assert_array_equal(small.transform(garbage), small.transform(X))
    mixed = pd.DataFrame(
        {"a": X[:, 0], "b": [datetime.date(2020, 1, 1)] * 20, "c": [object()] * 20}
    )
    assert_array_equal(small.transform(mixed), small.transform(X))

    class Trap:
        shape = (20, 3)

        def __getitem__(self, key):
            rows, columns = key
            assert rows == slice(None)
            assert set(np.atleast_1d(columns).tolist()) <= {0}
            return X[key]

    assert_array_equal(small.transform(Trap()), small.transform(X))


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (pd.DataFrame({"income": [1.0, np.inf]}), ValueError, "'income'.*NaN"),
        (pl.DataFrame({"income": [1.0, -np.inf]}), ValueError, "'income'.*NaN"),
        (np.array([[1.0, np.inf]]), ValueError, "Column 1 .*NaN"),
        (pd.DataFrame({"when": pd.to_datetime(["2020", "2021"])}), TypeError, "'when'.*numbers"),
        (pl.DataFrame({"when": [datetime.date(2020, 1, 1)]}), TypeError, "'when'.*numbers"),
        (pd.DataFrame({"when": [datetime.date(2020, 1, 1)]}), TypeError, "'when'.*date"),
        (pl.DataFrame({"list": [[1], [2]]}), TypeError, "'list'"),
        (pd.DataFrame({"both": ["a", 1]}), TypeError, "'both'.*str"),
        (np.array([[1j]]), TypeError, "Column 0"),
        (csr_array(np.eye(2)), TypeError, "toarray"),
        (np.ones(3), ValueError, "rows and columns"),
        (np.ones((0, 3)), ValueError, "0 rows"),
    ],
)
def test_what_it_cannot_read(X, error, message):
    with pytest.raises(error, match=message):
        Design.fit(X)


def test_what_it_cannot_read_later():
    design = Design.fit(pd.DataFrame({"a": [1.0, 2.0], "t": ["x", "y"]}))
    with pytest.raises(ValueError, match=r"'a'.*infinite"):
        design.transform(pd.DataFrame({"a": [np.inf], "t": ["x"]}))
    with pytest.raises(TypeError, match=r"'a'.*str"):
        design.transform(pd.DataFrame({"a": ["one"], "t": ["x"]}))
    with pytest.raises(TypeError, match=r"'t'.*text"):
        design.transform(pd.DataFrame({"a": [1.0], "t": [7]}))
    numbers = Design.fit(pl.DataFrame({"a": [1.0, 2.0], "b": [3, 4]}))
    with pytest.raises(TypeError, match=r"'b'.*datetime"):
        numbers.transform(pl.DataFrame({"a": [1.0], "b": [datetime.date(2020, 1, 1)]}))
    with pytest.raises(ValueError, match="3 columns"):
        design.transform(np.ones((1, 3)))


def test_wrong_weights():
    for weight in ([0.0, 0.0], [1.0], [-1.0, 1.0]):
        with pytest.raises(ValueError, match="weight"):
            Design.fit(np.ones((2, 1)), sample_weight=weight)


def test_it_pickles_small():
    X = np.random.default_rng(0).standard_normal((1000, 10))
    data = pickle.dumps(Design.fit(X))
    assert len(data) < 2000
    assert_array_equal(pickle.loads(data).transform(X), Design.fit(X).transform(X))


def test_no_rows_to_transform():
    assert Design.fit(np.eye(3)).transform(np.empty((0, 3))).shape == (0, 3)


def test_input_is_left_alone():
    X = np.random.default_rng(0).standard_normal((10, 3))
    before = X.copy()
    Design.fit(X).transform(X)
    assert_array_equal(X, before)
