"""The cheap stage learnt again on what was bought: honest scores, a gate that orders, nothing read unpaid."""

import pickle

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from sparing._folds import folds_of
from sparing.costs import FeatureCosts
from sparing.engines import refit as module
from sparing.engines.binning import BinnedData
from sparing.engines.boosting import BoostingEngine
from sparing.engines.refit import _confidence, refit, weighted_quantile
from sparing.system import ReadsByRow


def piecewise(n=600, seed=0, n_columns=5):
    """Column 0 settles the rows with a small column 1; the others need column 2, which was not bought."""
    X = np.random.default_rng(seed).normal(size=(n, n_columns))
    return X, np.where(X[:, 1] > 0.3, X[:, 2] > 0, X[:, 0] > 0).astype(int)


X, Y = piecewise()
NEW, NEW_Y = piecewise(500, seed=1)
BOUGHT = np.array([0, 1])
NEVER_WRONG = np.zeros(len(Y))


def again(
    X=X, y=Y, columns=BOUGHT, full_wrong=NEVER_WRONG, full_rate=0.5, weight=None, n_folds=5, **options
):  # fmt: skip
    settings = {"n_estimators": 20, "random_state": 0, **options}
    engine = BoostingEngine(
        BinnedData(X), y, y.max() + 1, FeatureCosts(np.ones(X.shape[1])), sample_weight=weight, **settings
    )  # fmt: skip
    folds = [rows for _, rows in folds_of(n_folds, y, 0).split(X, y)]
    return refit(engine, X, columns, full_wrong, full_rate, folds=folds)


def score(stage, X):
    return stage.gate.score(X, stage.predictor.predict_proba(X))


@pytest.fixture(scope="module")
def stage():
    return again()


def test_the_gate_finds_what_the_cheap_model_gets_wrong(stage):
    wrong = stage.predictor.predict_proba(NEW).argmax(axis=1) != NEW_Y
    assert 0.05 < wrong.mean() < 0.4
    assert roc_auc_score(wrong, score(stage, NEW)) > 0.8
    hard = NEW[:, 1] > 0.3
    goes_on = score(stage, NEW) > 0
    assert goes_on[hard].mean() > goes_on[~hard].mean() + 0.5


def test_a_full_model_that_errs_on_the_same_rows_is_not_asked():
    hard = X[:, 1] > 0.3
    as_bad = again(full_wrong=np.where(hard, 0.5, 0.0))
    goes_on = score(as_bad, NEW) > 0
    assert goes_on.mean() < (score(again(), NEW) > 0).mean()
    hopeless = again(full_wrong=np.ones(len(Y)))
    assert (score(hopeless, NEW) > 0).mean() < 0.02


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("full_rate", [0.05, 0.2, 0.5, 1.0])
def test_no_more_than_the_rate_is_above_zero(full_rate, weighted):
    weight = np.random.default_rng(3).exponential(size=len(Y)) if weighted else None
    stage = again(full_rate=full_rate, weight=weight)
    above = np.average(stage.scores > 0, weights=weight)
    assert above <= full_rate + 1e-9
    assert above > 0.5 * min(full_rate, 0.35)
    assert (score(stage, X) > 0).mean() <= full_rate + 0.1


def test_scores_are_out_of_fold(monkeypatch):
    """Labels that mean nothing: on its own rows f1 knows them by heart, out of fold it knows nothing."""
    rng = np.random.default_rng(0)
    noise, labels = rng.normal(size=(400, 3)), rng.integers(2, size=400)
    seen = {}

    def spy(features, excess, weight, n_jobs):
        seen["wrong"] = excess.copy()
        return module_trees(features, excess, weight, n_jobs)

    module_trees = module._excess_trees
    monkeypatch.setattr(module, "_excess_trees", spy)
    stage = again(noise, labels, np.arange(3), np.zeros(400), n_estimators=30, max_depth=6)
    on_its_own = (stage.predictor.predict_proba(noise).argmax(axis=1) != labels).mean()
    assert on_its_own < 0.15
    assert 0.42 < seen["wrong"].mean() < 0.58


def test_a_fold_is_scored_by_the_other_folds(monkeypatch):
    seen = {}
    monkeypatch.setattr(
        module, "_confidence", lambda proba: seen.setdefault("proba", proba) * 0 + 1.0
    )
    monkeypatch.setattr(module, "_SCORES", 2)
    monkeypatch.setattr(module, "_excess_trees", lambda *_: _NoTrees())
    again(X[:200], Y[:200], full_wrong=NEVER_WRONG[:200])
    rows = next(iter(folds_of(5, Y[:200], 0).split(X[:200], Y[:200])))[1]
    flipped = Y[:200].copy()
    flipped[rows] = 1 - flipped[rows]
    first = seen.pop("proba")
    fold_list = [r for _, r in folds_of(5, Y[:200], 0).split(X[:200], Y[:200])]
    engine = BoostingEngine(
        BinnedData(X[:200]), flipped, 2, FeatureCosts(np.ones(5)), n_estimators=20, random_state=0
    )
    refit(engine, X[:200], BOUGHT, NEVER_WRONG[:200], 0.5, folds=fold_list)
    second = seen.pop("proba")
    np.testing.assert_array_equal(first[rows], second[rows])  # their own labels do not matter
    assert not np.allclose(first, second)


class _NoTrees:
    def scores(self, rows, n_iteration):
        return np.zeros((len(rows), 1))


def test_the_stage_pickles_small_and_says_the_same(stage):
    for part in (stage.gate, pickle.loads(pickle.dumps(stage.gate))):
        proba = stage.predictor.predict_proba(NEW)
        np.testing.assert_array_equal(part.score(NEW, proba), score(stage, NEW))
        np.testing.assert_array_equal(part.columns_read(NEW), stage.gate.columns_read(NEW))
    assert len(pickle.dumps(stage.gate)) < 60_000


def test_no_cell_of_a_training_row_is_in_the_gate(stage):
    text = stage.gate.trees.model
    assert "feature_infos=none none" in text
    for j in BOUGHT:
        for cell in (X[:, j].min(), X[:, j].max()):
            assert f"{cell:.17g}" not in text


def test_columns_read_are_among_its_own(stage):
    read = stage.gate.columns_read(NEW)
    assert isinstance(stage.gate, ReadsByRow)
    assert read.shape == NEW.shape
    assert set(np.flatnonzero(read.any(axis=0))) <= set(stage.gate.columns.tolist()) == {0, 1}
    assert set(stage.predictor.columns.tolist()) <= {0, 1}


@pytest.mark.parametrize("placeholder", [0.0, -1e9, np.nan])
def test_other_columns_may_hold_anything(stage, placeholder):
    hidden = np.full(NEW.shape, placeholder)
    hidden[:, BOUGHT] = NEW[:, BOUGHT]
    np.testing.assert_array_equal(score(stage, hidden), score(stage, NEW))


def test_columns_need_not_be_the_first_ones():
    order = np.array([4, 3, 0, 2, 1])
    moved = again(X[:, order], columns=np.array([2, 4]))
    np.testing.assert_allclose(score(moved, NEW[:, order]), score(again(), NEW), atol=1e-12)


def test_three_classes():
    y3, new3 = np.where(X[:, 0] > 1, 2, Y), np.where(NEW[:, 0] > 1, 2, NEW_Y)
    stage = again(y=y3)
    wrong = stage.predictor.predict_proba(NEW).argmax(axis=1) != new3
    assert roc_auc_score(wrong, score(stage, NEW)) > 0.7


def test_threads_change_nothing(stage):
    other = again(n_jobs=2)
    np.testing.assert_array_equal(score(other, NEW), score(stage, NEW))


@pytest.mark.parametrize("y", [np.arange(4) % 2, np.arange(6) % 3], ids=["2 x 2", "3 x 2"])
@pytest.mark.parametrize("spread", [0.0, 1.0], ids=["identical rows", "different rows"])
def test_two_rows_per_class(y, spread):
    few = np.ones((len(y), 2)) + spread * np.random.default_rng(0).normal(size=(len(y), 2))
    stage = again(few, y, np.array([0, 1]), np.zeros(len(y)), n_estimators=5)
    assert np.isfinite(stage.scores).all()
    assert np.isfinite(score(stage, few)).all()


def test_a_fold_that_holds_all_the_weight():
    rows = next(iter(folds_of(5, Y, 0).split(X, Y)))[1]
    weight = np.zeros(len(Y))
    weight[rows] = 1.0
    assert np.isfinite(again(weight=weight).scores).all()


def test_confidence_features():
    proba = np.array([[0.1, 0.7, 0.2], [0.5, 0.5, 0.0]])
    np.testing.assert_allclose(_confidence(proba), [[0.3, 0.5, 1], [0.5, 0.0, 0]])
    np.testing.assert_allclose(_confidence(np.array([[0.2, 0.8]])), [[0.2, 0.6, 1]])


def testweighted_quantile():
    values = np.array([3.0, 1.0, 2.0, 4.0])
    ones = np.ones(4)
    assert [weighted_quantile(values, ones, s) for s in (0.0, 0.25, 0.5, 0.6, 1.0)] == [
        1,
        1,
        2,
        3,
        4,
    ]
    assert weighted_quantile(values, np.array([1.0, 0, 0, 1]), 0.5) == 3.0


def test_parameters_of_the_user_hold_in_the_refit(monkeypatch):
    """Enough rows for the stronger engine, and a label that goes up and down with column 0."""
    monkeypatch.setattr(module, "_MANY_ROWS", 100)
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, size=(1500, 3))
    y = (rng.uniform(size=1500) < 1 / (1 + np.exp(-4 * np.sin(5 * rows[:, 0])))).astype(int)
    line = np.zeros((100, 3))
    line[:, 0] = np.linspace(-1, 1, 100)
    options = {"X": rows, "y": y, "full_wrong": np.zeros(1500)}

    def falls(**more):
        stage = again(**options, **more)
        return max(0.0, -np.diff(stage.predictor.predict_proba(line)[:, 1]).min())

    assert falls() > 0.1
    for n_estimators in (3, 60):  # where the stronger engine is chosen, and where it need not be
        rising = {"monotone_constraints": [1, 0, 0]}
        assert falls(params=rising, n_estimators=n_estimators) == 0


def test_columns_that_may_not_meet_do_not_meet_in_the_refit(monkeypatch):
    grown = []
    cross_fitted = module._cross_fitted

    def watched(*given):
        grown.append(cross_fitted(*given)[0])
        return cross_fitted(*given)

    monkeypatch.setattr(module, "_cross_fitted", watched)
    for groups in ([[0, 3], [1, 2, 4]], "[0,3],[1,2,4]"):
        again(params={"interaction_constraints": groups})
        for tree in grown.pop().booster.trees_to_dataframe().groupby("tree_index"):
            used = set(tree[1]["split_feature"].dropna())
            assert used <= {"Column_0"} or used <= {"Column_1"}


def test_the_seed_reaches_the_refit(monkeypatch):
    monkeypatch.setattr(module, "_MANY_ROWS", 100)
    some = {"bagging_fraction": 0.5, "bagging_freq": 1}
    # With a single tree to choose columns the stronger engine is the better one.
    one, same, other = (again(random_state=seed, params=some, n_estimators=1) for seed in (0, 0, 1))
    assert np.array_equal(one.doubt, same.doubt)
    assert not np.array_equal(one.doubt, other.doubt)
