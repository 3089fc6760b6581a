"""Trees that see differences of columns, and when they get them."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from sparing.cascade import CascadeClassifier, WithDifferences
from sparing.cascade.differences import with_differences_if_better
from sparing.runtime import load, save

RNG = np.random.default_rng(0)
X = RNG.normal(size=(900, 5))
X[:, 4] = RNG.integers(0, 3, 900)
FLIPPED = RNG.random(900) < 0.03
BY_DIFFERENCE = (X[:, 0] > X[:, 1]) ^ FLIPPED
BY_VALUE = (X[:, 0] > 0.3) ^ FLIPPED
FOREST = ExtraTreesClassifier(20, max_features=1.0, random_state=0)


def expected_failures(_):
    return {
        "check_sample_weight_equivalence_on_dense_data": "a forest draws rows, whatever their weight"
    }


@parametrize_with_checks(
    [WithDifferences(RandomForestClassifier(5, random_state=0))],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_pairs_of_numbers_and_not_of_codes():
    model = WithDifferences(FOREST).fit(X, BY_DIFFERENCE)
    assert model.pairs_.tolist() == [[1, 0], [2, 0], [2, 1], [3, 0], [3, 1], [3, 2]]
    seen = model._widened(X)
    assert np.array_equal(seen[:, :5], X)
    assert np.array_equal(seen[:, 5], X[:, 1] - X[:, 0])
    assert np.array_equal(seen[:, 10], X[:, 3] - X[:, 2])


@pytest.mark.parametrize(
    ("share", "tried"), [(1.0, 5), (0.5, 2), (None, 5), ("sqrt", "sqrt"), (3, 3)]
)
def test_a_forest_tries_as_many_columns_as_without(share, tried):
    forest = RandomForestClassifier(3, max_features=share, random_state=0)
    assert WithDifferences(forest).fit(X, BY_VALUE).estimator_.max_features == tried


def test_too_many_columns_are_left_alone():
    model = WithDifferences(FOREST, most=3).fit(X, BY_DIFFERENCE)
    assert len(model.pairs_) == 0
    assert np.array_equal(
        model.predict_proba(X), clone(FOREST).fit(X, BY_DIFFERENCE).predict_proba(X)
    )


def test_out_of_bag_rows_are_those_of_the_forest_and_are_not_served():
    forest = RandomForestClassifier(30, oob_score=True, random_state=0)
    model = WithDifferences(forest).fit(X, BY_DIFFERENCE)
    alone = forest.fit(model._widened(X), BY_DIFFERENCE)
    assert model.oob_score
    assert np.array_equal(model.oob_decision_function_, alone.oob_decision_function_)
    assert not hasattr(model.estimator_, "oob_decision_function_")


def test_importances_go_back_to_the_columns():
    model = WithDifferences(FOREST).fit(X, BY_DIFFERENCE)
    found = model.feature_importances_
    assert found.sum() == pytest.approx(1)
    assert set(np.argsort(-found)[:2]) == {0, 1}


def test_weights_reach_the_model():
    weight = np.where(np.arange(900) < 450, 1.0, 0.0)
    weighted = WithDifferences(FOREST).fit(X, BY_VALUE, sample_weight=weight)
    some = WithDifferences(FOREST).fit(X, BY_VALUE)
    assert not np.array_equal(weighted.predict_proba(X), some.predict_proba(X))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames(frame):
    table = frame(dict(zip("abcde", X.T, strict=True)))
    model = WithDifferences(FOREST).fit(table, BY_DIFFERENCE)
    assert np.array_equal(
        model.predict(table), WithDifferences(FOREST).fit(X, BY_DIFFERENCE).predict(X)
    )


def test_missing_values_stay_missing():
    gaps = X.copy()
    gaps[::7, 0] = np.nan
    model = WithDifferences(FOREST).fit(gaps, BY_DIFFERENCE)
    assert np.isnan(model._widened(gaps)[::7, 5]).all()
    assert np.isfinite(model.predict_proba(gaps)).all()


# -- in a cascade ------------------------------------------------------------------------------------


def automatic(y, estimator=FOREST, **settings):
    settings = {"stages": [[0, 1], [0, 1, 2]], "cv": 3, "random_state": 0} | settings
    return CascadeClassifier(estimator, **settings).fit(X, y)


def test_taken_where_held_out_rows_say_so(tmp_path):
    clf = automatic(BY_DIFFERENCE)
    assert "ExtraTreesClassifier with differences" in clf.stage_kind_ or "shared" in clf.stage_kind_
    own = automatic(BY_DIFFERENCE, stage_estimator=WithDifferences(FOREST))
    assert own.stage_kind_ == "ExtraTreesClassifier with differences"
    save(own, tmp_path / "own.sparing")
    again = load(tmp_path / "own.sparing")
    assert np.array_equal(again.predict_proba(X), own.predict_proba(X))
    assert np.array_equal(again.acquisition_cost(X), own.acquisition_cost(X))


def test_the_stage_pays_for_the_columns_it_subtracts():
    clf = automatic(BY_DIFFERENCE, stage_estimator=WithDifferences(FOREST))
    assert clf.stages_[0].columns.tolist() == [0, 1]


@pytest.mark.parametrize(
    "estimator", [FOREST, LogisticRegression(), make_pipeline(StandardScaler(), FOREST)]
)
def test_not_taken_where_nothing_is_gained_or_nobody_can_say(estimator):
    clf = automatic(BY_VALUE, estimator)
    assert "differences" not in clf.stage_kind_


def test_words_are_left_to_the_model():
    table = pd.DataFrame(X, columns=list("abcde"))
    table["e"] = table["e"].map({0.0: "x", 1.0: "y", 2.0: "z"}).astype("category")

    class Rows:
        y, weight, seed = BY_DIFFERENCE.astype(int), None, 0

    Rows.X = table
    assert with_differences_if_better(FOREST, Rows, np.arange(600), np.arange(600, 900)) is FOREST


def test_asked_for_by_name_they_are_not_tried():
    assert automatic(BY_DIFFERENCE, stage_estimator="own").stage_kind_ == "ExtraTreesClassifier"


@pytest.mark.parametrize("wrong", ["own", None])
def test_what_is_no_classifier_is_named(wrong):
    with pytest.raises(TypeError, match="needs a classifier"):
        WithDifferences(wrong).fit(X, BY_VALUE)
