import lightgbm
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparing import _tree_tables
from sparing._tree_tables import tree_tables


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(_tree_tables, "_ROWS", 97)
    tree_tables.cache_clear()


def grown(n=600, n_columns=8, n_rounds=12, seed=0, classes=1, missing=0.0, words=0, **params):
    """A booster, and rows with values that training never saw."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_columns)).round(2)
    y = X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=n)
    X[rng.random(X.shape) < missing] = np.nan
    codes = list(range(n_columns - words, n_columns))
    X[:, codes] = rng.integers(0, 40, size=(n, words))
    y += np.isin(X[:, codes], [3, 5, 8, 33]).sum(axis=1) if words else 0
    if classes > 1:
        y = np.digitize(y, np.quantile(y, np.linspace(0, 1, classes + 1)[1:-1]))
    how = {"objective": "multiclass", "num_class": classes} if classes > 1 else {}
    few = {"min_data_per_group": 5, "cat_smooth": 1.0, "verbose": -1, "num_threads": 1}
    how = {"objective": "regression", "seed": seed} | few | how | params
    data = lightgbm.Dataset(X, y, categorical_feature=codes, params={"verbose": -1})
    booster = lightgbm.train(how, data, n_rounds)
    rows = np.concatenate([X, 3 * rng.normal(size=(200, n_columns))])
    odd = [np.nan, 0.0, -0.0, 1e-36, -1e-36, 1e-30, 1e30, -1e30, np.inf, -np.inf, 39.7, -0.5, -1]
    places = rng.random(rows.shape) < 0.1
    rows[places] = rng.choice(odd, size=places.sum())
    return booster, rows


def same(booster, rows, n_iteration=None):
    tables = tree_tables(booster.model_to_string(num_iteration=-1))
    assert tables is not None
    told = booster.predict(rows, raw_score=True, num_iteration=n_iteration, num_threads=1)
    got = tables.scores(rows, n_iteration)
    np.testing.assert_array_equal(got, np.reshape(told, (len(rows), -1)))


@pytest.mark.parametrize("num_leaves", [2, 8, 9, 16, 17, 32, 33, 63, 64])
def test_words_of_every_length(num_leaves):
    same(*grown(num_leaves=num_leaves, min_data_in_leaf=3))


@pytest.mark.parametrize("num_leaves", [2, 13, 64])
def test_a_single_tree_has_more_leaves_than_nodes(num_leaves):
    same(*grown(n_rounds=1, num_leaves=num_leaves, min_data_in_leaf=3))


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("words", [0, 2])
@pytest.mark.parametrize("classes", [1, 5])
def test_equal_to_the_last_bit(missing, words, classes):
    booster, rows = grown(missing=missing, words=words, classes=classes, min_data_in_leaf=5)
    assert ("\ncat_threshold=" in booster.model_to_string()) == bool(words)
    same(booster, rows)
    same(booster, rows.astype(np.float32))
    same(booster, np.asfortranarray(rows))


@pytest.mark.parametrize("n_iteration", [1, 5, 12, 100])
def test_first_iterations(n_iteration):
    same(*grown(classes=3, num_leaves=6), n_iteration)


def test_default_left_and_right():
    # Missing values are told apart by the label: some nodes send them left, others right.
    booster, rows = grown(missing=0.3, num_leaves=20, min_data_in_leaf=3, n_rounds=30)
    kinds = set(booster.model_to_string().split("decision_type=")[1].split("\n")[0].split())
    assert kinds & {"8", "10"}
    same(booster, rows)


def test_single_leaves_add_their_value():
    # Of the last class there is no row: its trees do not grow.
    booster, rows = grown(classes=3, num_class=4)
    assert "num_leaves=1\n" in booster.model_to_string()
    same(booster, rows)
    nothing, _ = grown(min_data_in_leaf=10_000)
    assert tree_tables(nothing.model_to_string()) is None


@pytest.mark.parametrize(
    "params",
    [
        {"num_leaves": 65, "min_data_in_leaf": 1},
        {"zero_as_missing": True},
        {"linear_tree": True},
    ],
    ids=["65 leaves", "zeros missing", "linear"],
)
def test_other_trees_are_left_to_lightgbm(params):
    booster, _ = grown(n=2000, **params)
    assert tree_tables(booster.model_to_string()) is None


def test_large_tables_are_left_to_lightgbm(monkeypatch):
    booster, _ = grown()
    monkeypatch.setattr(_tree_tables, "_MOST_BYTES", 1000)
    assert tree_tables(booster.model_to_string()) is None


def test_many_categories_are_left_to_lightgbm(monkeypatch):
    booster, _ = grown(words=2, min_data_in_leaf=3)
    monkeypatch.setattr(_tree_tables, "_MOST_CATEGORIES", 16)
    assert tree_tables(booster.model_to_string()) is None


def test_no_rows():
    booster, rows = grown(classes=3)
    tables = tree_tables(booster.model_to_string())
    assert tables.scores(rows[:0]).shape == (0, 3)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 1000),
    num_leaves=st.integers(2, 64),
    max_depth=st.integers(-1, 6),
    classes=st.sampled_from([1, 3]),
    missing=st.sampled_from([0.0, 0.1]),
    words=st.integers(0, 2),
)
def test_any_model(seed, num_leaves, max_depth, classes, missing, words):
    booster, rows = grown(
        n=300,
        n_rounds=5,
        seed=seed,
        num_leaves=num_leaves,
        max_depth=max_depth,
        classes=classes,
        missing=missing,
        words=words,
        min_data_in_leaf=2,
    )
    same(booster, rows)
