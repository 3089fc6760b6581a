import lightgbm
import numpy as np
import pytest
from exact_cart import boost, forms_of_booster
from scipy.special import expit

from sparing._losses import cheap_loss, cheap_proba, objective
from sparing.costs import FeatureCosts
from sparing.engines.binning import BinnedData
from sparing.engines.boosted_parts import BoostedGate, BoostedPair, BoostedPredictor
from sparing.engines.boosting import BoostingEngine, auto_cost_penalty


def problem(seed=0, n=160, n_classes=2):
    """Rows, classes, an allocation and losses of f0; column 4 and 5 are noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    z = X[:, 0] + X[:, 1] * X[:, 2] + 0.7 * rng.normal(size=n)
    y = np.digitize(z, np.quantile(z, np.arange(1, n_classes) / n_classes))
    q = 0.6 * expit(X[:, 3] + X[:, 1])
    return X, y, q, rng.exponential(0.2, size=n)


def columns_of(grown):
    return sorted(column for column, _ in grown.bought)


def engine_of(X, y, costs=None, n_classes=2, **settings):
    costs = FeatureCosts(np.ones(X.shape[1])) if costs is None else costs
    return BoostingEngine(BinnedData(X), y, n_classes, costs, **settings)


# -- the trees are the paper's ------------------------------------------------------------------------


PRICE_LISTS = {
    "plain": FeatureCosts([1, 1, 2, 1, 1, 1]),
    "items": FeatureCosts(
        [1, 1, 2, 1, 1, 0], shared={"panel": (1.5, [1, 2, 5])}, derived={5: [3, 4]}
    ),
}


@pytest.mark.parametrize("costs", PRICE_LISTS.values(), ids=PRICE_LISTS)
@pytest.mark.parametrize("cost_penalty", [0.0, 0.002, 0.01])
@pytest.mark.parametrize("seed", range(3))
def test_split_by_split_as_an_exact_cart(costs, cost_penalty, seed):
    X, y, q, _ = problem(seed)
    grown = engine_of(
        X,
        y,
        costs,
        newton=False,
        cost_penalty=cost_penalty,
        n_estimators=6,
        max_depth=3,
        learning_rate=0.5,
        params={"min_sum_hessian_in_leaf": 7.5},  # 8 rows; LightGBM's sum may be 7.999…
    ).grow(q)
    forms, purchases, cheap, gate = boost(X, y, q, costs, cost_penalty, 6, 0.5, 3, 8)
    assert forms_of_booster(grown.booster, X) == forms
    assert sorted(grown.bought) == sorted(purchases)
    np.testing.assert_allclose(grown.cheap, cheap, atol=1e-5)
    np.testing.assert_allclose(grown.gate, gate, atol=1e-5)
    assert grown.penalty == pytest.approx(cost_penalty * costs.of(set(columns_of(grown))))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_without_prices_and_gate_it_is_lightgbm(n_classes, weighted):
    X, y, _, _ = problem(n=400, n_classes=n_classes)
    weight = np.random.default_rng(1).integers(1, 4, len(y)).astype(float) if weighted else None
    engine = engine_of(
        X, y, n_classes=n_classes, cost_penalty=0.0, gate=False, sample_weight=weight
    )
    grown = engine.grow(np.zeros(len(y)))
    params = engine._params | {"boost_from_average": True}
    params |= {"objective": "binary"} if n_classes == 2 else {"objective": "multiclass"}
    params |= {"num_class": 1 if n_classes == 2 else n_classes, "metric": "None"}
    binning = {"verbosity": -1, "min_data_in_bin": 1, "feature_pre_filter": False}
    data = lightgbm.Dataset(X, y, weight=weight, params=binning)
    booster = lightgbm.train(params, data, 100)
    np.testing.assert_allclose(
        cheap_proba(grown.cheap)[:, -1],
        booster.predict(X).reshape(len(y), -1)[:, -1],
        rtol=1e-4 if weighted else 1e-9,
    )


# -- LightGBM's wallet ----------------------------------------------------------------------------------


def test_lightgbm_still_adds_the_price_to_gains_of_other_leaves():
    """The defect that makes the engine regrow. When this test fails, upstream has mended it: regrow no more."""
    rng = np.random.default_rng(0)
    side, a, c = (np.sign(rng.permutation(np.arange(400) - 199.5)) for _ in range(3))
    gradient = 20.0 * side + np.where(side < 0, 5.0 * a, 3.1 * c + 1.4 * a)
    X = np.column_stack([side, a, c])
    params = {
        "objective": "none",
        "metric": "None",
        "boost_from_average": False,
        "max_depth": 2,
        "num_leaves": 4,
        "num_threads": 1,
        "verbosity": -1,
        "cegb_tradeoff": 1.0,
        "cegb_penalty_feature_coupled": [0.0, 2000.0, 0.0],
    }
    booster = lightgbm.Booster(params, lightgbm.Dataset(X, np.zeros(400), params={"verbosity": -1}))

    def grow():
        booster.update(fobj=lambda *_: (gradient.astype(np.float32), np.ones(400, np.float32)))
        root = booster.dump_model()["tree_info"][-1]["tree_structure"]
        return [root[child]["split_feature"] for child in ("left_child", "right_child")]

    # Left, column 1 is worth its price. Right, column 2 is free and five times better than column 1, whose gain there
    # is nevertheless shown with the price of 2000 on top.
    assert grow() == [1, 1]
    booster.rollback_one_iter()
    assert grow() == [1, 2]


def test_the_gate_buys_and_the_cheap_model_uses():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    y = (rng.random(2000) < expit(3 * X[:, 0] + 0.5 * X[:, 1])).astype(int)
    q = np.where(X[:, 1] > 0, 0.6, 0.05)
    settings = {"cost_penalty": 0.02, "n_estimators": 30}
    alone = engine_of(X, y, gate=False, **settings).grow(q)
    assert columns_of(alone) == [0]
    both = engine_of(X, y, **settings).grow(q)
    assert columns_of(both) == [0, 1]
    assert 1 in BoostedPredictor(BoostedPair.of(both)).columns


def test_a_shared_item_is_paid_once():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    y = (rng.random(2000) < expit(3 * X[:, 0] + 0.8 * X[:, 1])).astype(int)
    settings = {"cost_penalty": 1.0, "gate": False, "n_estimators": 20}
    apart = FeatureCosts([0.05, 0.05, 0.05])
    panel = FeatureCosts([0.001, 0.001, 0.001], shared={"panel": (0.049, [0, 1, 2])})
    nobody = np.zeros(2000)
    assert columns_of(engine_of(X, y, apart, **settings).grow(nobody)) == [0]
    grown = engine_of(X, y, panel, **settings).grow(nobody)
    assert columns_of(grown)[:2] == [0, 1]
    assert grown.penalty == pytest.approx(0.049 + 0.001 * len(grown.bought))


def test_a_derived_column_brings_its_inputs_and_comes_with_them():
    rng = np.random.default_rng(0)
    a, b, noise = rng.normal(size=(3, 2000))
    X = np.column_stack([a, b, a + b, noise])
    y = (rng.random(2000) < expit(3 * (a + b))).astype(int)
    costs = FeatureCosts([0.02, 0.02, 0, 0.02], derived={2: [0, 1]})
    settings = {"cost_penalty": 1.0, "gate": False, "n_estimators": 20}
    grown = engine_of(X, y, costs, **settings).grow(np.zeros(2000))
    assert grown.bought[0] == (2, 0)
    assert 3 not in columns_of(grown)
    assert grown.penalty == pytest.approx(0.04)
    # Whoever has bought both inputs for 2 × 0.02 pays nothing for their sum.
    y = ((a > 0).astype(int) + 2 * (b > 0)) % 3
    grown = engine_of(X, y, costs, n_classes=3, **settings).grow(np.zeros(2000))
    assert columns_of(grown)[:2] == [0, 1]
    assert grown.penalty == pytest.approx(0.04)


def test_repeating_every_row_buys_the_same_columns():
    X, y, q, full_loss = problem(n=300)
    for cost_penalty in (0.001, 0.003, 0.01, 0.03):
        settings = {"newton": False, "cost_penalty": cost_penalty, "n_estimators": 15}
        once = engine_of(
            X, y, params={"min_sum_hessian_in_leaf": 0, "min_data_in_leaf": 5}, **settings
        )
        twice = engine_of(
            np.tile(X, (2, 1)),
            np.tile(y, 2),
            params={"min_sum_hessian_in_leaf": 0, "min_data_in_leaf": 10},
            **settings,
        )
        assert once.grow(q).bought == twice.grow(np.tile(q, 2)).bought
        one, two = (
            once.grow_one_pass(full_loss, 0.3),
            twice.grow_one_pass(np.tile(full_loss, 2), 0.3),
        )
        assert one.bought == two.bought
        np.testing.assert_allclose(one.cheap, two.cheap[:300], atol=1e-4)


@pytest.mark.parametrize("newton", [False, True])
def test_a_weight_is_a_number_of_rows(newton):
    # LightGBM rounds the rows of every bin: with many rows per bin that cannot be felt.
    X, y, q, full_loss = problem(n=2000)
    X = X.round(1)
    count = np.random.default_rng(0).integers(1, 4, 2000)
    rows = np.repeat(np.arange(2000), count)
    settings = {"newton": newton, "cost_penalty": 0.003, "n_estimators": 8}
    weighted = engine_of(X, y, sample_weight=count, **settings)
    repeated = engine_of(X[rows], y[rows], **settings)
    for one, other in (
        (weighted.grow(q), repeated.grow(q[rows])),
        (weighted.grow_one_pass(full_loss, 0.3), repeated.grow_one_pass(full_loss[rows], 0.3)),
    ):
        assert one.bought == other.bought
        np.testing.assert_allclose(one.cheap[rows], other.cheap, atol=1e-4)
        np.testing.assert_allclose(one.gate[rows], other.gate, atol=1e-4)
        np.testing.assert_allclose(one.history["objective"], other.history["objective"], rtol=1e-5)


@pytest.mark.parametrize("k", [0.01, 7.0, 1000.0])
def test_only_penalty_times_price_counts(k):
    X, y, q, _ = problem(n=300)
    prices = np.array([1.0, 3.0, 1.0, 2.0, 1.0, 1.0])
    one = engine_of(X, y, FeatureCosts(prices), cost_penalty=0.005).grow(q)
    other = engine_of(X, y, FeatureCosts(prices * k), cost_penalty=0.005 / k).grow(q)
    assert one.bought == other.bought
    np.testing.assert_allclose(one.cheap, other.cheap)
    assert one.penalty == pytest.approx(other.penalty)


def test_auto_penalty_does_not_depend_on_the_currency():
    cents, euros = FeatureCosts([100, 200]), FeatureCosts([1, 2])
    assert auto_cost_penalty(cents) * 100 == pytest.approx(auto_cost_penalty(euros))
    assert auto_cost_penalty(FeatureCosts([0, 0])) == 0.0


# -- allocation and gate ----------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
def test_no_full_model_is_greedy_miser_exactly(n_classes):
    X, y, _, full_loss = problem(n=300, n_classes=n_classes)
    settings = {"n_classes": n_classes, "cost_penalty": 0.003, "n_estimators": 20}
    miser = engine_of(X, y, gate=False, **settings).grow(np.full(300, 0.5))
    for grown in (
        engine_of(X, y, **settings).grow_one_pass(full_loss, 0.0),
        engine_of(X, y, **settings).grow(np.zeros(300)),
        engine_of(X, y, gate=False, **settings).grow_one_pass(full_loss, 0.5),
    ):
        np.testing.assert_array_equal(grown.cheap, miser.cheap)
        assert grown.bought == miser.bought
        assert not grown.has_gate
        assert not grown.q.any()
        assert (grown.gate < -10).all()
        per_round = 1 if n_classes == 2 else n_classes
        assert grown.booster.num_trees() == per_round * grown.n_iterations


@pytest.mark.parametrize("full_rate", [0.05, 0.3, 0.9, 1.0])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_one_pass_keeps_the_bound_and_lowers_the_objective(full_rate, n_classes):
    X, y, _, full_loss = problem(n=400, n_classes=n_classes)
    weight = np.random.default_rng(0).exponential(size=400)
    engine = engine_of(X, y, n_classes=n_classes, n_estimators=30, sample_weight=weight)
    grown = engine.grow_one_pass(full_loss, full_rate)
    assert np.average(grown.q, weights=weight) <= full_rate + 1e-9
    assert (
        np.abs(grown.history["mean_q"] - full_rate) <= 0.01 * full_rate
    ).all() or full_rate > 0.5
    exact = objective(cheap_loss(grown.cheap, y), full_loss, grown.gate, grown.q, weight)
    values = grown.history["objective"]
    assert values[-1] == pytest.approx(exact, rel=1e-3)
    # A generalised EM goes down; a Newton step of 0.2 does not overshoot.
    assert (np.diff(values) < 1e-3).all()
    # At 1, all rows go to f0 from the start and nothing is left to learn.
    assert values[-1] < values[0] - 0.05 or full_rate == 1.0
    assert len(values) == grown.n_iterations + 1 == len(grown.history["n_columns"])


def test_fixed_allocation_history_is_the_objective():
    X, y, q, full_loss = problem(n=400)
    grown = engine_of(X, y, n_estimators=20).grow(q, full_loss=full_loss)
    exact = objective(cheap_loss(grown.cheap, y), full_loss, grown.gate, q)
    assert grown.history["objective"][-1] == pytest.approx(exact, rel=1e-9)
    np.testing.assert_allclose(grown.history["mean_q"], q.mean())
    assert grown.history["n_columns"][-1] == len(grown.bought)
    pair = BoostedPair.of(grown)
    for t in (0, 1, 7, 20):
        cheap = BoostedPredictor(pair, t).decision_scores(X)
        value = objective(cheap_loss(cheap, y), full_loss, BoostedGate(pair, t).score(X), q)
        assert grown.history["objective"][t] == pytest.approx(value, rel=1e-9)


# -- any data ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
def test_threads_do_not_change_the_result(n_classes):
    X, y, _, full_loss = problem(n=2000, n_classes=n_classes)
    settings = {"n_classes": n_classes, "n_estimators": 5, "cost_penalty": 0.002}
    one, two = (
        BoostingEngine(
            BinnedData(X, n_jobs=n), y, costs=FeatureCosts(np.ones(6)), n_jobs=n, **settings
        ).grow_one_pass(full_loss, 0.3)
        for n in (1, 2)
    )
    np.testing.assert_array_equal(one.cheap, two.cheap)
    np.testing.assert_array_equal(one.gate, two.gate)
    assert one.bought == two.bought


DEGENERATE = {
    "two rows per class": (
        np.array([[0.0, 5.0], [0.1, 3.0], [1.0, 4.0], [1.1, 1.0]]),
        [0, 0, 1, 1],
    ),
    "one row per class": (np.array([[0.0], [1.0]]), [0, 1]),
    "zeros": (np.zeros((10, 2)), [0, 1] * 5),
    "a constant column": (np.column_stack([np.full(40, 3.0), np.arange(40)]), [0] * 20 + [1] * 20),
    "identical rows": (np.full((10, 3), 2.5), [0, 1, 1, 1, 1] * 2),
    "everything missing": (np.full((8, 2), np.nan), [0, 1] * 4),
    "one class only": (np.arange(20.0)[:, None], [1] * 20),
}


@pytest.mark.parametrize("case", DEGENERATE)
@pytest.mark.parametrize("newton", [False, True])
@pytest.mark.parametrize("cost_penalty", [0.0, 1e-3, 1e6])
def test_degenerate_data_still_predict(case, newton, cost_penalty):
    X, y = DEGENERATE[case]
    y = np.array(y)
    engine = engine_of(X, y, newton=newton, cost_penalty=cost_penalty, n_estimators=5)
    for grown in (
        engine.grow_one_pass(np.full(len(y), 0.1), 0.3),
        engine.grow_one_pass(np.full(len(y), 0.1), 0.0),
        engine.grow(np.linspace(0, 1, len(y))),
        engine.grow(np.ones(len(y))),
    ):
        pair = BoostedPair.of(grown)
        proba = BoostedPredictor(pair).predict_proba(X)
        assert np.isfinite(proba).all()
        assert np.isfinite(BoostedGate(pair).score(X)).all()
        np.testing.assert_allclose(
            BoostedPredictor(pair).decision_scores(X), grown.cheap, atol=1e-9
        )
        assert np.isfinite(grown.history["objective"]).all()
        if cost_penalty == 1e6:
            assert grown.bought == ()
            assert grown.penalty == 0.0
            assert len(BoostedPredictor(pair).columns) == 0


def test_tiny_separable_data_are_learnt():
    X, y = DEGENERATE["two rows per class"]
    grown = engine_of(X, y, cost_penalty=0.0, gate=False, n_estimators=10).grow(np.zeros(4))
    np.testing.assert_array_equal(grown.cheap > 0, np.array(y) == 1)


def test_nothing_bought_predicts_the_prior_of_the_rows_kept():
    X, y, q, _ = problem(n=300, n_classes=3)
    grown = engine_of(X, y, n_classes=3, cost_penalty=1e6).grow(q)
    kept = np.bincount(y, 1 - q) / (1 - q).sum()
    np.testing.assert_allclose(cheap_proba(grown.cheap)[0], kept)
    np.testing.assert_allclose(expit(grown.gate), q.mean())
    assert grown.n_iterations == 0


def test_free_columns_are_used_at_any_penalty():
    X, y, q, _ = problem(n=300)
    grown = engine_of(X, y, FeatureCosts([1, 0, 1, 1, 1, 1]), cost_penalty=1e6).grow(q)
    assert columns_of(grown) == [1]
    assert grown.penalty == 0.0


@pytest.mark.parametrize("columns", [[], [5], [1, 2]])
def test_without_prices_the_columns_given_are_all_there_is(columns):
    X, y, _, _ = problem(n=300)
    engine = engine_of(X, y, cost_penalty=1e6).without_prices(np.array(columns, dtype=int))
    grown = engine.grow(np.full(300, 0.5))
    assert columns_of(grown) == columns
    assert not grown.has_gate
    assert grown.penalty == 0.0
    scores = BoostedPredictor(BoostedPair.of(grown)).decision_scores(X)
    np.testing.assert_allclose(scores, grown.cheap, atol=1e-9)


def test_rows_without_weight_are_scored_but_not_learnt_from():
    X, y, _, _ = problem(n=300)
    weight = np.ones(300)
    weight[::3] = 0.0
    engine = engine_of(X, y, cost_penalty=0.0, gate=False, n_estimators=10)
    lied = engine_of(
        X, np.where(weight == 0, 1 - y, y), cost_penalty=0.0, gate=False, n_estimators=10
    )
    one = engine.reweighted(weight).grow(np.zeros(300))
    np.testing.assert_array_equal(one.cheap, lied.reweighted(weight).grow(np.zeros(300)).cheap)


def test_rare_classes_do_not_run_away():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 5))
    y = np.where(rng.random(5000) < 0.003, 2 + (X[:, 2] > 0), (X[:, 0] > 0).astype(int))
    grown = engine_of(X, y, n_classes=4, cost_penalty=0.0, gate=False, learning_rate=0.3).grow(
        np.zeros(5000)
    )
    assert np.abs(grown.cheap).max() < 60
    assert (np.diff(grown.history["objective"]) < 1e-6).all()


def test_errors():
    X, y, _, _ = problem()
    with pytest.raises(ValueError, match="at least two classes"):
        engine_of(X, y, n_classes=1)
    with pytest.raises(ValueError, match="5 prices for 6 columns"):
        engine_of(X, y, FeatureCosts(np.ones(5)))
    for params in (
        {"objective": "binary"},
        {"cegb_tradeoff": 2.0},
        {"device_type": "cuda"},
        {"tree_learner": "data"},
        {"eta": 0.1},
        {"max_bin": 63},
    ):
        with pytest.raises(ValueError, match=next(iter(params))):
            engine_of(X, y, params=params)
