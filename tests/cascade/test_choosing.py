"""Kinds of models compared on held-out rows."""

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from small_cascade import X, Y, cascade
from sparing.cascade import choosing
from sparing.cascade.stage_models import OwnModels

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
    assert clf.stage_kind_ in ("LGBMClassifier", "RandomForestClassifier")
    if kind == "boosted":
        assert clf.stage_kind_ == "LGBMClassifier"
