"""Stages that two kinds of model answer together."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from small_cascade import X, Y, cascade
from sparing._stored import Stored
from sparing.cascade import choosing, mixed, shared_network, stage_models
from sparing.cascade.mixed import MeanPredictor
from sparing.runtime import load, save
from sparing.system import ConfidenceGate

STAGES = [[0], [0, 1, 2]]


@pytest.fixture(scope="module")
def both():
    return cascade(stages=STAGES, stage_estimator="both").fit(X, Y)


def test_a_stage_answers_with_the_mean_of_both(both):
    assert both.stage_kind_ == "RandomForestClassifier and shared network"
    for stage, columns in zip(both.stages_[:-1], STAGES, strict=True):
        mean = stage.predictor
        assert stage.columns.tolist() == columns
        own, shared = mean.own.predict_proba(X), mean.shared.predict_proba(X)
        assert np.allclose(mean.predict_proba(X), (own + shared) / 2)
        assert not np.allclose(own, shared)


def test_what_is_out_of_fold_is_the_mean_too(monkeypatch):
    seen = {}

    def watched(name, fit):
        def fitted(self, *args):
            seen[name] = fit(self, *args)
            return seen[name]

        return fitted

    for kind in (stage_models.OwnModels, shared_network.SharedNetwork, mixed.MixedModels):
        monkeypatch.setattr(kind, "fit", watched(kind.__name__, kind.fit))
    cascade(stages=STAGES, stage_estimator="both").fit(X, Y)
    alone = seen["OwnModels"].proba, seen["SharedNetwork"].proba
    assert np.allclose(seen["MixedModels"].proba, np.mean(alone, axis=0))


def test_it_is_chosen_by_held_out_rows_like_any_other():
    clf = cascade(stages=STAGES, stage_estimator=["own", "shared", "both"]).fit(X, Y)
    kinds = "RandomForestClassifier", "shared network"
    assert clf.stage_kind_ in (*kinds, " and ".join(kinds))


def test_it_is_stored_and_read_again(both, tmp_path):
    save(both, tmp_path / "both.sparing")
    again = load(tmp_path / "both.sparing")
    assert np.allclose(again.predict_proba(X), both.predict_proba(X), rtol=1e-12)


@pytest.mark.parametrize("found", [False, True])
def test_both_are_kept_where_they_cannot_be_told_apart(monkeypatch, found):
    fits = []

    def counted(self, *args):
        fits.append(args[1].tolist())
        return one_stage(self, *args)

    one_stage = stage_models.OwnModels._stage
    monkeypatch.setattr(stage_models.OwnModels, "_stage", counted)
    monkeypatch.setattr(choosing, "_TOLD_APART", 5.0)
    stages = None if found else STAGES
    clf = cascade(stages=stages, stage_estimator=["own", "both"], n_stages=4).fit(X, Y)
    # Two kinds averaged must earn it; that they are close is enough to stand on the frontier beside the better one.
    own = "RandomForestClassifier"
    kinds = {}
    for system in clf.staged_systems():
        other = clf._with_system(system)
        if len(system.stages) > 1:
            is_mean = isinstance(system.stages[0].predictor, MeanPredictor)
            kinds[other.stage_kind_] = is_mean
            assert len(other.history_["score"]) == len(system.stages)
    assert kinds == {own: False, f"{own} and shared network": True}
    # Models are fitted once, whatever they are part of.
    assert len(fits) == len(set(map(tuple, fits)))


def test_what_can_be_told_apart_is_one_kind(monkeypatch):
    monkeypatch.setattr(choosing, "_TOLD_APART", -1.0)
    clf = cascade(stages=STAGES, stage_estimator=["own", "both"]).fit(X, Y)
    kinds = {type(s.stages[0].predictor) for s in clf.staged_systems() if len(s.stages) > 1}
    assert len(kinds) == 1


def test_an_interrupt_leaves_the_kind_that_is_ready(monkeypatch):
    def interrupted(self, *args):
        raise KeyboardInterrupt

    monkeypatch.setattr(choosing, "_TOLD_APART", 5.0)
    monkeypatch.setattr(shared_network.SharedNetwork, "fit", interrupted)
    for stages in (STAGES, None):
        clf = cascade(stages=stages, stage_estimator=["own", "both"], n_stages=3)
        with pytest.warns(UserWarning, match="without the networks"):
            clf.fit(X, Y)
        assert clf.stage_kind_ == "RandomForestClassifier"
        assert clf.score(X, Y) > 0.85


def test_a_part_that_cannot_answer_is_refused(both):
    stored = both.stages_[0].predictor.stored()
    wrong = Stored(stored.kind, parts={**stored.parts, "own": ConfidenceGate()})
    with pytest.raises(ValueError, match="ConfidenceGate cannot answer"):
        MeanPredictor.restored(wrong)


def test_a_full_model_that_cannot_be_fitted_again_has_no_stages_of_its_own():
    class Service:
        classes_ = np.array([0, 1])

        def predict_proba(self, X):
            p = 1 / (1 + np.exp(-3 * X[:, 0]))
            return np.column_stack([1 - p, p])

    with pytest.raises(TypeError, match="cannot be fitted again"):
        cascade(estimator=Service(), stage_estimator="both").fit(X, Y)


def test_interrupted_networks_leave_the_models_of_the_stages(monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(shared_network, "train_network", interrupted)
    with pytest.warns(UserWarning, match="without the networks"):
        clf = cascade(stages=STAGES, stage_estimator="both").fit(X, Y)
    assert clf.stage_kind_ == "RandomForestClassifier"
    assert len(clf.stages_) == 3


def test_interrupted_models_stand_alone():
    class Slow(LogisticRegression):
        fits = 0

        def fit(self, X, y, sample_weight=None):
            Slow.fits += 1
            if Slow.fits > 11:
                raise KeyboardInterrupt
            return super().fit(X, y, sample_weight)

    with pytest.warns(UserWarning, match="1 of 2 stages"):
        clf = cascade(estimator=Slow(), stages=STAGES, stage_estimator="both").fit(X, Y)
    assert clf.stage_kind_ == "Slow"
    assert len(clf.stages_) == 2
