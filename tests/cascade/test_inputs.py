import numpy as np
import pandas as pd
import pytest

from sparing.cascade.inputs import NetworkInputs


def test_long_tails_are_spread_and_others_standardised():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(5, 2, 2000), np.exp(3 * rng.normal(size=2000))])
    inputs = NetworkInputs.fit(X)
    Z = inputs.transform(X)
    assert inputs.spread.tolist() == [1]
    assert np.allclose(Z[:, 0], (X[:, 0] - X[:, 0].mean()) / X[:, 0].std(), atol=1e-4)
    assert abs(Z[:, 1].std() - 1) < 0.05
    order = np.argsort(X[:, 1])
    assert (np.diff(Z[order, 1]) >= 0).all()


def test_a_value_that_most_rows_share_goes_to_the_middle_of_its_ranks():
    x = np.zeros(1000)
    x[:5] = 1e6
    inputs = NetworkInputs.fit(x[:, None])
    Z = inputs.transform(x[:, None])[:, 0]
    assert abs(Z[-1]) < 0.1
    assert (Z[:5] > 2).all()


def test_only_the_columns_of_the_mask_are_read():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {"a": rng.normal(size=50), "b": np.exp(5 * rng.normal(size=50)), "c": ["x", "y"] * 25}
    )
    inputs = NetworkInputs.fit(frame)
    mask = np.array([False, True, False])
    spoilt = frame.assign(a=np.nan, c=None)
    expected = np.where(mask[inputs.owner], inputs.transform(frame), 0)
    assert np.array_equal(inputs.transform(spoilt, mask), expected)


def test_stored_and_restored():
    X = np.exp(4 * np.random.default_rng(2).normal(size=(100, 3)))
    inputs = NetworkInputs.fit(X)
    again = NetworkInputs.restored(inputs.stored())
    assert np.array_equal(again.transform(X), inputs.transform(X))
    stored = inputs.stored()
    arrays = {**stored.arrays, "knots": stored.arrays["knots"][:, ::-1]}
    with pytest.raises(ValueError, match="rising knots"):
        NetworkInputs.restored(type(stored)(stored.kind, arrays=arrays, parts=stored.parts))
