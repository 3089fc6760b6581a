"""What stands in columns that a full model does not use is never seen in its answers."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    StandardScaler,
)
from sklearn.svm import LinearSVC

from sparing._full_columns import column_use
from sparing._full_gaps import gaps_of
from sparing._full_predictor import DecidingPredictor, FullPredictor, output_of

rng = np.random.default_rng(0)
X = np.abs(rng.normal(size=(300, 5))) + 0.1
Y = (X[:, 0] + X[:, 3] > 1.5).astype(int)
WORDS = np.where(rng.random(300) < 0.9, np.where(Y == 1, "yes", "no"), "maybe")
JOBS = rng.choice(["clerk", "smith"], 300)
NAMES = ["age", "TSH", "T3", "TT4", "sex"]


def lasso():
    return LogisticRegression(C=0.05, l1_ratio=1.0, solver="saga", max_iter=5000)


def two_best():
    return make_pipeline(SelectKBest(k=2), LogisticRegression())


def predictor(model, table):
    return FullPredictor(model, output_of(model), np.unique(Y), column_use(model, table))


MODELS = {
    "chosen columns": two_best(),
    "scaled": make_pipeline(StandardScaler(), lasso()),
    "logarithms": make_pipeline(PowerTransformer("box-cox"), SelectKBest(k=2), lasso()),
    "lasso": lasso(),
    "decision values": make_pipeline(SelectKBest(k=2), LinearSVC()),
    "boosted": GradientBoostingClassifier(n_estimators=3, max_depth=1),
    "searched": GridSearchCV(two_best(), {"selectkbest__k": [2]}, cv=2),
}

TABLES = {
    "array": lambda a: a,
    "objects": lambda a: a.astype(object),
    "frame": lambda a: pd.DataFrame(a, columns=NAMES),
    "frame of several types": lambda a: pd.DataFrame(a, columns=NAMES).astype({"sex": object}),
    "frame of objects": lambda a: pd.DataFrame(a, columns=NAMES).astype(object),
    "polars": lambda a: pl.DataFrame(a, schema=NAMES),
}


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("name", MODELS)
def test_answers_are_those_of_the_whole_row(name, kind):
    make = TABLES[kind]
    model = MODELS[name].fit(X if kind in ("array", "objects") else make(X), Y)
    asked = predictor(model, make(X))
    unused = np.setdiff1d(np.arange(5), asked.columns)
    assert len(unused)
    expected = asked.predict_proba(make(X[:20]))
    gaps = X[:20].copy()
    gaps[np.ix_(np.arange(3, 20), unused)] = np.nan
    table = make(gaps)
    np.testing.assert_array_equal(asked.predict_proba(table), expected)
    np.testing.assert_array_equal(
        np.asarray(table)[:, unused].astype(float), gaps[:, unused]
    )  # the caller's table stays as it is
    np.testing.assert_array_equal(asked.columns_read(table), asked.columns_read(make(X[:20])))
    gaps[5, asked.columns[0]] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        asked.predict_proba(make(gaps))


@pytest.mark.parametrize("dtype", [object, "category", "string"])
def test_text_that_is_not_read(dtype):
    frame = pd.DataFrame({"word": WORDS, "job": JOBS}).astype(dtype)
    model = make_pipeline(OrdinalEncoder(), SelectKBest(k=1), LogisticRegression()).fit(frame, Y)
    asked = predictor(model, frame)
    assert asked.columns.tolist() == [0]
    row = frame[:1].copy()
    row["job"] = pd.Series([None], dtype=dtype)
    np.testing.assert_array_equal(asked.predict_proba(row), asked.predict_proba(frame[:1]))


def test_the_only_text_of_a_row_is_not_read():
    """The row is an array of numbers then."""
    table = np.column_stack([JOBS.astype(object), (WORDS == "yes").astype(float)])
    model = make_pipeline(OrdinalEncoder(), SelectKBest(k=1), LogisticRegression()).fit(table, Y)
    row = np.array([[np.nan, table[0, 1]]], dtype=float)
    asked = predictor(model, table)
    np.testing.assert_array_equal(asked.predict_proba(row), asked.predict_proba(table[:1]))


def test_models_that_take_missing_cells_get_them():
    names = pd.DataFrame(X, columns=NAMES)
    models = [
        HistGradientBoostingClassifier(max_iter=2),
        make_pipeline(SimpleImputer(), lasso()),
        make_pipeline(make_column_transformer((OneHotEncoder(), ["sex"])), LogisticRegression()),
        LogisticRegression(),
    ]
    for model in models:
        model.fit(names, Y)
        assert gaps_of(model, column_use(model, names)) is None


def test_columns_that_the_model_is_not_given_stay_as_they_are():
    model = two_best().fit(pd.DataFrame(X[:, :4], columns=NAMES[:4]), Y)
    wide = pd.DataFrame(X, columns=NAMES)[NAMES[::-1]]
    gaps = gaps_of(FrozenEstimator(model), column_use(model, wide))
    assert [wide.columns[j] for j in gaps.places] == ["TSH", "T3"]
    assert gaps.filled(wide) is wide


def test_a_model_that_decides():
    model = FixedThresholdClassifier(FrozenEstimator(two_best().fit(X, Y)), threshold=0.7).fit(X, Y)
    use = column_use(two_best().fit(X, Y), X)
    asked = DecidingPredictor(model, "predict_proba", np.unique(Y), use)
    gaps = X.copy()
    gaps[:, [1, 2, 4]] = np.nan
    np.testing.assert_array_equal(asked.decide(gaps), asked.decide(X))
