"""Kinds of models compared on held-out rows."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from small_cascade import X, Y, cascade
from sparing import FeatureCosts
from sparing.cascade import choosing
from sparing.cascade.stage_models import OwnModels
from sparing.runtime import MappingSource, Session, load, save

STAGES = [[0], [0, 1, 2]]


class Counted(LogisticRegression):
    """Remembers how many columns it was fitted on."""

    fits: list = []  # noqa: RUF012 - shared by clones on purpose

    def fit(self, X, y, sample_weight=None):
        Counted.fits.append(X.shape)
        return super().fit(X, y, sample_weight)


class Guessing(DummyClassifier):
    """Never any better."""

    fits: list = []  # noqa: RUF012

    def fit(self, X, y, sample_weight=None):
        Guessing.fits.append(X.shape[1])
        return super().fit(X, y, sample_weight)


def test_a_kind_far_behind_is_not_tried_on_the_stages(capsys):
    Guessing.fits.clear()
    guess = Guessing(strategy="stratified", random_state=0)
    clf = cascade(stages=STAGES, stage_estimator=["own", guess], verbose=1).fit(X, Y)
    assert clf.stage_kind_ == "RandomForestClassifier"
    assert "Guessing errs" in capsys.readouterr().err
    # On a few rows for either mask, and once with all columns of the last stage.
    assert Guessing.fits == [1, 3, 3]


def test_folds_are_added_until_there_are_rows_enough(monkeypatch):
    tested = {}

    def honest(self, training, masks, fold, n_jobs=None):
        tested.setdefault(self.name, []).append((len(masks), len(fold[1])))
        return np.full((len(masks), len(fold[1]), len(training.classes)), 0.5)

    monkeypatch.setattr(OwnModels, "honest", honest)
    kinds = [RandomForestClassifier(10, random_state=0), LogisticRegression()]
    for least, n_folds in ((1, 1), (len(Y) // 2, 2), (10 * len(Y), 3)):
        tested.clear()
        monkeypatch.setattr(choosing, "_ROWS", least)
        cascade(stages=STAGES, stage_estimator=kinds, cv=3).fit(X, Y)
        for asked in tested.values():
            assert [n for n, _ in asked] == [1] + [2] * n_folds


def test_a_model_is_fitted_once_for_a_stage_and_a_fold(monkeypatch):
    Counted.fits.clear()
    monkeypatch.setattr(choosing, "_ROWS", 1)
    monkeypatch.setattr(choosing, "_BEHIND", 1.0)
    kinds = [Counted(), RandomForestClassifier(10, random_state=0)]
    clf = cascade(stages=STAGES, stage_estimator=kinds, cv=3).fit(X, Y)
    fits = [columns for rows, columns in Counted.fits if rows > 500]
    # Compared on one fold; if it is the best, fitted for either stage on all rows and in the other folds.
    assert fits[:2] == [3, 1]
    assert len(fits) == (8 if clf.stage_kind_ == "Counted" else 2)


@pytest.mark.parametrize("kind", ["boosted", ["boosted", "own"]])
def test_boosted_stages(kind):
    clf = cascade(stages=STAGES, stage_estimator=kind).fit(X, Y)
    assert clf.stage_kind_ in ("boosted trees", "RandomForestClassifier")
    if kind == "boosted":
        assert clf.stage_kind_ == "boosted trees"


def mixed_table(make):
    table = {f"c{j}": X[:, j] for j in range(3)}
    return make({**table, "job": np.where(X[:, 3] > 0, "baker", "pilot")})


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_text_never_reaches_lightgbm(make):
    # It ends the process when it gets a polars frame with text.
    table = mixed_table(make)
    model = make_pipeline(
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
        RandomForestClassifier(10, random_state=0),
    )
    stages = [["c0"], ["c0", "job"]]
    clf = cascade(estimator=model, stages=stages, feature_costs=None).fit(table, Y)
    assert clf.stage_kind_ != "boosted trees"
    with pytest.raises(ValueError, match="numbers only"):
        cascade(estimator=model, stages=stages, feature_costs=None, stage_estimator="boosted").fit(
            table, Y
        )


def test_every_kind_that_fails_says_why():
    kinds = ["boosted", LogisticRegression()]
    model = make_pipeline(
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
        RandomForestClassifier(10, random_state=0),
    )
    stages = [["c0"], ["c0", "job"]]
    clf = cascade(estimator=model, stages=stages, feature_costs=None, stage_estimator=kinds)
    with pytest.raises(ValueError, match=r"(?s)boosted trees cannot.*LogisticRegression cannot"):
        clf.fit(mixed_table(pd.DataFrame), Y)


def test_boosted_stages_are_stored_and_answer_value_by_value(tmp_path):
    table = pd.DataFrame(X, columns=list("abcde"))
    clf = cascade(stages=[["a"], ["a", "b", "c"]], feature_costs=None, stage_estimator="boosted")
    clf.fit(table, Y)
    save(clf, tmp_path / "boosted.sparing")
    bundle = load(tmp_path / "boosted.sparing")
    assert np.allclose(bundle.predict_proba(table), clf.predict_proba(table))
    with Session(bundle, [MappingSource(table, list("abcde"), name="table")]) as session:
        answers = [session.predict(row).prediction for row in table.index[:20]]
    assert answers == clf.predict(table.head(20)).tolist()


@pytest.mark.parametrize("prices", [[1], [1, 2], [1, 2, 3, 4]])
def test_a_price_of_calls_for_every_stage_or_none(prices):
    costs = FeatureCosts([1, 2, 2, 1, 1], call_price=prices)
    with pytest.raises(ValueError, match="for 3 stages"):
        cascade(stages=STAGES, feature_costs=costs, stage_estimator="own").fit(X, Y)


@pytest.mark.parametrize(
    ("stages", "error", "match"),
    [
        ({"full": [0, 1]}, ValueError, "name of the last one"),
        (
            [0, 1],
            TypeError,
            r"Stage 0 of stages .* is 0: .* a list of columns for every stage, \[\[0\]",
        ),
        (["a", "b"], TypeError, r"Stage 0 of stages .* is 'a': .* \[\['a'\]"),
    ],
)
def test_stages_that_cannot_be(stages, error, match):
    with pytest.raises(error, match=match):
        cascade(stages=stages).fit(X, Y)
