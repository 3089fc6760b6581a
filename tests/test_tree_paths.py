import lightgbm
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from sparing import _tree_paths
from sparing._tree_paths import BoosterPaths, forest_columns, forest_columns_read, unpack_columns


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(_tree_paths, "_CHUNK_CELLS", 1000)


def table(n=300, n_columns=70, seed=0, missing=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_columns))
    y = (X[:, 0] + X[:, -1] * X[:, 1] > 0).astype(int) + (X[:, 2] > 1)
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


# -- scikit-learn: decision_path is the oracle ------------------------------------------------------


def slow_forest_columns_read(forest, X):
    trees = getattr(forest, "estimators_", [forest])
    mask = np.zeros(X.shape, dtype=bool)
    for tree in np.ravel(trees):
        passed = tree.decision_path(X)
        for i in range(len(X)):
            for node in passed.indices[passed.indptr[i] : passed.indptr[i + 1]]:
                if tree.tree_.children_left[node] >= 0:
                    mask[i, tree.tree_.feature[node]] = True
    return mask


@pytest.mark.parametrize(
    "forest",
    [
        DecisionTreeClassifier(random_state=0),
        DecisionTreeRegressor(max_leaf_nodes=12, random_state=0),
        RandomForestClassifier(7, random_state=0),
        RandomForestRegressor(7, max_depth=4, random_state=0),
        ExtraTreesClassifier(7, max_depth=4, random_state=0),
        ExtraTreesRegressor(7, random_state=0),
        GradientBoostingClassifier(n_estimators=4, random_state=0),
    ],
    ids=lambda forest: type(forest).__name__,
)
def test_forest_agrees_with_decision_path(forest):
    X, y = table()
    forest.fit(X, y)
    expected = slow_forest_columns_read(forest, X)
    np.testing.assert_array_equal(forest_columns_read(forest, X), expected)
    # Every node of a fitted tree is reached by a training row of that tree.
    assert set(np.flatnonzero(expected.any(axis=0))) <= set(forest_columns(forest))
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    np.testing.assert_array_equal(forest_columns_read(forest, frame), expected)


def test_forest_with_missing_values():
    X, y = table(n_columns=6, missing=0.2)
    forest = RandomForestClassifier(5, max_depth=5, random_state=0).fit(X, y)
    expected = slow_forest_columns_read(forest, X)
    np.testing.assert_array_equal(forest_columns_read(forest, X), expected)


def test_forest_goes_through_float32():
    # The threshold lies between two numbers that are one and the same in float32.
    X = np.array([[0.0], [1.0]])
    tree = DecisionTreeClassifier().fit(X, [0, 1])
    close = np.array([[0.5], [0.5 + 1e-12]])
    assert len(set(tree.apply(close))) == 1
    np.testing.assert_array_equal(forest_columns_read(tree, close), [[True], [True]])


def test_forest_of_single_leaves():
    forest = RandomForestClassifier(3).fit(np.zeros((5, 2)), [0, 1, 0, 1, 0])
    assert len(forest_columns(forest)) == 0
    assert not forest_columns_read(forest, np.zeros((4, 2))).any()


# -- LightGBM: a slow walk of the dumped trees is the oracle ------------------------------------------


def goes_left(node, value):
    missing = node["missing_type"]
    if node["decision_type"] == "==":
        levels = {int(level) for level in node["threshold"].split("||")}
        return not np.isnan(value) and int(value) in levels
    if np.isnan(value) and missing != "NaN":
        value = 0.0
    if np.isnan(value) or (missing == "Zero" and abs(value) <= 1e-35):
        return node["default_left"]
    return value <= node["threshold"]


def slow_booster_columns_read(booster, X, outputs=None, n_iteration=None):
    n_outputs = booster.num_model_per_iteration()
    mask = np.zeros(X.shape, dtype=bool)
    for tree in booster.dump_model(num_iteration=-1)["tree_info"]:
        iteration, output = divmod(tree["tree_index"], n_outputs)
        if n_iteration is not None and iteration >= n_iteration:
            continue
        if outputs is not None and output not in outputs:
            continue
        for i, row in enumerate(X):
            node = tree["tree_structure"]
            while "split_feature" in node:
                mask[i, node["split_feature"]] = True
                side = "left" if goes_left(node, row[node["split_feature"]]) else "right"
                node = node[f"{side}_child"]
    return mask


SETTINGS = {"verbose": -1, "num_threads": 1, "num_leaves": 8, "min_data_in_leaf": 5, "seed": 0}


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("zero_as_missing", [False, True])
def test_booster_agrees_with_a_slow_walk(missing, zero_as_missing):
    X, y = table(n=200, missing=missing)
    X[np.abs(X) < 0.2] = 0.0
    params = SETTINGS | {"objective": "multiclass", "num_class": 3}
    params["zero_as_missing"] = zero_as_missing
    booster = lightgbm.train(params, lightgbm.Dataset(X, y), 6)
    paths = BoosterPaths(booster)
    for outputs in (None, [0], [2, 1]):
        for n_iteration in (None, 0, 1, 4, 99):
            expected = slow_booster_columns_read(booster, X, outputs, n_iteration)
            read = paths.columns_read(X, outputs, n_iteration)
            np.testing.assert_array_equal(read, expected)
            used = np.flatnonzero(expected.any(axis=0))
            np.testing.assert_array_equal(paths.columns(outputs, n_iteration), used)


def test_booster_with_categorical_splits():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 30, 400), rng.normal(size=(400, 2))]).astype(float)
    y = np.isin(X[:, 0], [3, 7, 8, 20]) ^ (X[:, 1] > 0.5)
    X[::9, 0] = np.nan
    params = SETTINGS | {"objective": "binary", "cat_smooth": 1, "min_data_per_group": 5}
    data = lightgbm.Dataset(X, y, categorical_feature=[0])
    booster = lightgbm.train(params, data, 8)
    assert "cat_threshold" in booster.model_to_string()
    unseen = np.array([[99.0, 0.0, 0.0], [-1.0, 1.0, 0.0], [np.nan, 0.0, 0.0]])
    for rows in (X, unseen):
        expected = slow_booster_columns_read(booster, rows)
        np.testing.assert_array_equal(BoosterPaths(booster).columns_read(rows), expected)


def test_booster_reads_every_iteration_even_after_early_stopping():
    X, y = table(n_columns=5)
    booster = lightgbm.train(SETTINGS | {"objective": "regression"}, lightgbm.Dataset(X, y), 6)
    booster.best_iteration = 2
    assert BoosterPaths(booster).n_iterations == 6
    expected = slow_booster_columns_read(booster, X)
    np.testing.assert_array_equal(BoosterPaths(booster).columns_read(X), expected)


def test_booster_of_single_leaves():
    X, y = np.zeros((30, 2)), np.arange(30) % 2
    booster = lightgbm.train(SETTINGS | {"objective": "binary"}, lightgbm.Dataset(X, y), 3)
    paths = BoosterPaths(booster)
    assert len(paths.columns()) == 0
    assert not paths.columns_read(X).any()


def test_linear_trees_are_refused():
    X, y = table(n_columns=3)
    params = SETTINGS | {"objective": "regression", "linear_tree": True}
    booster = lightgbm.train(params, lightgbm.Dataset(X, y, params={"linear_tree": True}), 2)
    with pytest.raises(ValueError, match="linear tree"):
        BoosterPaths(booster)


@pytest.mark.parametrize("n_columns", [1, 63, 64, 65, 200])
def test_sets_are_packed_into_words(n_columns):
    mask = np.random.default_rng(0).random((20, n_columns)) < 0.3
    words = np.zeros((20, (n_columns + 63) // 64), dtype=np.uint64)
    for i, j in zip(*np.nonzero(mask), strict=True):
        words[i, j // 64] |= np.uint64(1) << np.uint64(j % 64)
    np.testing.assert_array_equal(unpack_columns(words, n_columns), mask)
