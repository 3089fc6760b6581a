"""Which model the stages get, and what is refused before anything is searched."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from small_cascade import X, Y, cascade
from sparing import FeatureCosts
from sparing.cascade import learning


def test_auto_takes_one_of_the_four():
    clf = cascade(n_stages=3).fit(X, Y)
    kinds = "RandomForestClassifier", "shared network"
    assert clf.stage_kind_ in ("boosted trees", *kinds, " and ".join(kinds))
    assert len(clf.stages_) <= 3


def test_a_list_takes_the_better_one():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(900, 3))
    y = (Z[:, 0] * Z[:, 1] > 0).astype(int)  # no line separates them
    clf = cascade(
        feature_costs=None,
        stage_estimator=[LogisticRegression(), ExtraTreesClassifier(30, random_state=0)],
    ).fit(Z, y)
    assert clf.stage_kind_ == "ExtraTreesClassifier"


def test_a_stage_must_say_how_sure_it_is():
    class LabelsOnly(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.classes_ = np.unique(y)
            return self

        def predict(self, X):
            return self.classes_[(X[:, 0] > 0).astype(int)]

    with pytest.raises(TypeError, match="labels only"):
        cascade(stage_estimator=LabelsOnly()).fit(X, Y)
    with pytest.raises(TypeError, match="'auto', 'own', 'boosted', 'shared', 'both'"):
        cascade(stage_estimator=[3]).fit(X, Y)


def test_a_legacy_model_that_cannot_be_fitted_again():
    class Service:
        classes_ = np.array([0, 1])

        def predict_proba(self, X):
            p = 1 / (1 + np.exp(-3 * X[:, 0]))
            return np.column_stack([1 - p, p])

    clf = cascade(estimator=Service()).fit(X, Y)
    assert clf.stage_kind_ in ("boosted trees", "shared network")
    with pytest.raises(TypeError, match="cannot be fitted again"):
        cascade(estimator=Service(), stage_estimator="own").fit(X, Y)


def test_a_pipeline_that_names_its_columns_leaves_the_stages_to_others():
    frame = pd.DataFrame(X, columns=list("abcde"))
    pipeline = make_pipeline(
        ColumnTransformer([("all", StandardScaler(), list("abcde"))]), LogisticRegression()
    )
    clf = cascade(estimator=pipeline, feature_costs=None).fit(frame, Y)
    assert clf.stage_kind_ in ("boosted trees", "shared network")
    with pytest.raises(ValueError, match="cannot be fitted on"):
        cascade(estimator=pipeline, feature_costs=None, stage_estimator="own").fit(frame, Y)


@pytest.mark.parametrize(
    ("options", "n_stages"),
    [
        ({"n_stages": 1}, 1),
        ({"n_stages": 1, "stages": [[0]]}, 1),
        ({"feature_costs": FeatureCosts([0] * 5, shared={"all": (3, range(5))})}, 1),
        ({"feature_costs": FeatureCosts([0] * 5, shared={"most": (3, range(1, 5))})}, 2),
        ({"feature_costs": FeatureCosts([0] * 5, call_price=4)}, 2),
    ],
    ids=["one stage", "one stage, given", "one item", "one item and a free column", "calls alone"],
)
def test_nothing_is_searched_where_there_is_one_order(monkeypatch, options, n_stages):
    monkeypatch.setattr(learning, "judge_for", None)
    clf = cascade(stage_estimator="own", **options).fit(X, Y)
    assert len(clf.stages_) == n_stages


def test_estimators_that_cannot_do_are_refused_before_the_search(monkeypatch):
    monkeypatch.setattr(learning, "judge_for", None)
    for wrong, match in (
        (LogisticRegression, r"is a class, give LogisticRegression\(\)"),
        (LinearRegression(), "is a regressor"),
        ("best", "not 'best'"),
        ([], "empty list"),
    ):
        with pytest.raises((TypeError, ValueError), match=match):
            cascade(stage_estimator=wrong).fit(X, Y)
    holes = X.copy()
    holes[::7] = np.nan
    forest = ExtraTreesClassifier(10, random_state=0)  # takes missing values
    with pytest.raises(ValueError, match="LogisticRegression cannot be fitted on columns 0: ") as e:
        cascade(estimator=forest, stage_estimator=LogisticRegression()).fit(holes, Y)
    assert "names its columns" not in str(e.value)
    assert "NaN" in str(e.value)


def test_of_a_list_those_that_cannot_be_fitted_are_left_out(capsys):
    holes = X.copy()
    holes[::7] = np.nan
    forest = ExtraTreesClassifier(10, random_state=0)
    kinds = [LogisticRegression(), "own"]
    clf = cascade(estimator=forest, stage_estimator=kinds, verbose=1).fit(holes, Y)
    assert clf.stage_kind_ == "ExtraTreesClassifier"
    assert "LogisticRegression cannot be fitted" in capsys.readouterr().err


def test_missing_values_in_a_late_column_are_heard_of_before_the_search(monkeypatch):
    monkeypatch.setattr(learning, "judge_for", None)
    holes = X.copy()
    holes[::7, 4] = np.nan
    forest = ExtraTreesClassifier(10, random_state=0)
    with pytest.raises(
        ValueError, match="LogisticRegression cannot be fitted on columns 0, 1, 2, 3, 4"
    ):
        cascade(estimator=forest, stage_estimator=LogisticRegression()).fit(holes, Y)
