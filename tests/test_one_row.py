"""Single rows get the bits of a batch, in every thread."""

from concurrent.futures import ThreadPoolExecutor

import lightgbm
import numpy as np
import pytest

from sparing._one_row import OneRowScores


def booster(n_classes, X):
    rng = np.random.default_rng(1)
    y = rng.integers(0, n_classes, len(X))
    params = {"verbosity": -1, "num_threads": 1, "min_data_in_leaf": 5}
    if n_classes > 2:
        params |= {"objective": "multiclass", "num_class": n_classes}
    else:
        params["objective"] = "binary"
    return lightgbm.train(params, lightgbm.Dataset(X, y), 15)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_same_bits_as_a_batch(n_classes):
    X = np.random.default_rng(0).normal(size=(300, 5))
    X[::3, 1] = np.nan
    X[::4, 2] = 0.0
    trees = booster(n_classes, X)
    one = OneRowScores(trees.model_to_string(), 5)
    expected = trees.predict(X, raw_score=True).reshape(len(X), -1)
    assert np.array_equal([one(X[i : i + 1]) for i in range(len(X))], expected)
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda i: one(X[i : i + 1]), list(range(300)) * 5))
    assert np.array_equal(together, np.tile(expected, (5, 1)))


def test_rows_of_other_shapes():
    X = np.random.default_rng(0).normal(size=(100, 5))
    trees = booster(2, X)
    one = OneRowScores(trees.model_to_string(), 5)
    expected = trees.predict(X[:1].astype(np.float32), raw_score=True)
    assert np.array_equal(one(X[:1].astype(np.float32)), expected)
    assert np.array_equal(one(np.asfortranarray(X)[:1]), trees.predict(X[:1], raw_score=True))
    with pytest.raises(ValueError, match=r"shape \(1, 4\), the trees know \(1, 5\)"):
        one(X[:1, :4])
    first = one(X[:1])
    one(X[1:2])
    assert np.array_equal(first, trees.predict(X[:1], raw_score=True))  # not overwritten
