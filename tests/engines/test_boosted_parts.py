import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from sparing.costs import FeatureCosts
from sparing.engines import boosted_parts
from sparing.engines.binning import BinnedData
from sparing.engines.boosted_parts import BoostedGate, BoostedPair, BoostedPredictor, BoostedTrees
from sparing.engines.boosting import BoostingEngine
from sparing.system import ReadsByRow, Stage, System


@pytest.fixture(scope="module", params=[2, 3], ids=["two classes", "three classes"])
def scene(request):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 8))
    z = X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=1500)
    y = np.digitize(z, np.quantile(z, np.arange(1, request.param) / request.param))
    engine = BoostingEngine(BinnedData(X), y, request.param, FeatureCosts(np.ones(8)))
    grown = engine.grow_one_pass(rng.exponential(0.2, 1500), 0.3)
    return X, y, grown, BoostedPair.of(grown)


def test_parts_predict_what_was_grown(scene):
    X, _, grown, pair = scene
    np.testing.assert_allclose(BoostedPredictor(pair).decision_scores(X), grown.cheap, atol=1e-9)
    np.testing.assert_allclose(BoostedGate(pair).score(X), grown.gate, atol=1e-9)
    proba = BoostedPredictor(pair).predict_proba(X)
    assert proba.shape == (len(X), grown.n_classes)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)


@pytest.mark.parametrize("n_iteration", [0, 1, 13, 100, 500, None])
def test_every_prefix_is_a_model_of_its_own(scene, n_iteration):
    X, _, grown, pair = scene
    predictor, gate = BoostedPredictor(pair, n_iteration), BoostedGate(pair, n_iteration)
    whole = np.tile(grown.base, (len(X), 1))
    if n_iteration != 0:
        whole += grown.booster.predict(X, raw_score=True, num_iteration=n_iteration or -1)
    cheap = predictor.decision_scores(X).reshape(len(X), -1)
    np.testing.assert_allclose(cheap, whole[:, :-1], atol=1e-9)
    np.testing.assert_allclose(gate.score(X), whole[:, -1], atol=1e-9)
    for part in (predictor, gate):
        assert isinstance(part, ReadsByRow)
        read = part.columns_read(X)
        assert read.shape == X.shape
        np.testing.assert_array_equal(np.flatnonzero(read.any(axis=0)), part.columns)
    assert predictor.pair is gate.pair


@pytest.mark.parametrize("n_iteration", [0, 1, 13, None])
def test_many_rows_are_answered_like_few(scene, n_iteration, monkeypatch):
    X, _, _, pair = scene
    predictor, gate = BoostedPredictor(pair, n_iteration), BoostedGate(pair, n_iteration)
    few = predictor.decision_scores(X), gate.score(X)
    monkeypatch.setattr(boosted_parts, "_MANY_ROWS", 1)
    monkeypatch.setattr(BoostedTrees, "_walked", None)  # tables, not LightGBM
    np.testing.assert_array_equal(predictor.decision_scores(X), few[0])
    np.testing.assert_array_equal(gate.score(X), few[1])


def test_columns_not_read_do_not_matter(scene):
    X, _, _, pair = scene
    predictor = BoostedPredictor(pair, 3)
    read = predictor.columns_read(X)
    placeholders = np.where(read, X, 1e9)
    np.testing.assert_array_equal(
        predictor.decision_scores(placeholders), predictor.decision_scores(X)
    )


def test_bought_columns_are_the_parts_columns(scene):
    _, _, grown, pair = scene
    used = np.union1d(BoostedPredictor(pair).columns, BoostedGate(pair).columns)
    np.testing.assert_array_equal(used, sorted(column for column, _ in grown.bought))


def test_single_rows_and_no_rows(scene):
    X, _, _, pair = scene
    predictor, gate = BoostedPredictor(pair), BoostedGate(pair)
    one_by_one = np.concatenate([predictor.predict_proba(X[i : i + 1]) for i in range(5)])
    np.testing.assert_array_equal(one_by_one, predictor.predict_proba(X)[:5])
    assert predictor.predict_proba(X[:0]).shape == (0, predictor.predict_proba(X).shape[1])
    assert gate.score(X[:0]).shape == (0,)
    assert predictor.columns_read(X[:0]).shape == (0, 8)


def test_pickles_are_small_and_predict_the_same(scene):
    X, _, grown, pair = scene
    parts = BoostedPredictor(pair, 50), BoostedGate(pair)
    expected = parts[0].predict_proba(X), parts[1].score(X), parts[0].columns_read(X)
    blob = pickle.dumps(parts)
    predictor, gate = pickle.loads(blob)
    np.testing.assert_array_equal(predictor.predict_proba(X), expected[0])
    np.testing.assert_array_equal(gate.score(X), expected[1])
    np.testing.assert_array_equal(predictor.columns_read(X), expected[2])
    assert predictor.pair is gate.pair
    assert len(blob) < 0.25 * len(grown.booster.model_to_string())
    # Nothing of the training rows: the size is that of the trees.
    assert len(blob) < 400 * grown.booster.num_trees()


def test_parts_make_a_system(scene):
    X, y, grown, pair = scene
    stage = Stage(BoostedPredictor(pair), BoostedGate(pair), name="cheap")
    system = System(
        (stage, Stage(BoostedPredictor(pair))), FeatureCosts(np.ones(8)), np.arange(grown.n_classes)
    )
    np.testing.assert_array_equal(system.route(X), grown.gate > 0)
    assert (system.predict(X) == y).mean() > 0.6
    by_path = system.acquisition_cost(X, accounting="path")
    assert (by_path <= system.acquisition_cost(X, accounting="stage")).all()


def test_without_gate_trees_nobody_is_sent():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    engine = BoostingEngine(BinnedData(X), X[:, 0] > 0, 2, FeatureCosts([1, 1]), gate=False)
    pair = BoostedPair.of(engine.grow(np.zeros(200)))
    assert (BoostedGate(pair).score(X) < -10).all()
    assert len(BoostedGate(pair).columns) == 0
    assert not BoostedGate(pair).columns_read(X).any()


@pytest.mark.parametrize("by_path", [False, True])
def test_threads_may_ask_for_different_prefixes(scene, by_path):
    X, _, _, pair = scene
    parts = [BoostedPredictor(pair, n) for n in (2, 40, None)]

    def asked(part):
        return part.columns_read(X[:600]) if by_path else part.decision_scores(X[:600])

    alone = [asked(part) for part in parts]
    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(lambda i: asked(parts[i % 3]), range(150)))
        mixed = list(
            pool.map(
                lambda i: parts[i % 3].columns_read(X[:600]) if i % 2 else asked(parts[i % 3]),
                range(60),
            )
        )
    assert all(np.array_equal(told, alone[i % 3]) for i, told in enumerate(together))
    assert all(np.array_equal(mixed[i], alone[i % 3]) for i in range(0, 60, 2))
