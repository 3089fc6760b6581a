import numpy as np
import pytest

from small_judge import judge_of
from sparing import FeatureCosts
from sparing.cascade.exits import StageScores
from sparing.cascade.offers import Offers
from sparing.cascade.order import best_order
from sparing.cascade.paths import (
    cheaper_order,
    cheaper_path,
    cheaper_prices,
    judged_paths,
    only_path,
)


@pytest.fixture(scope="module")
def judge():
    return judge_of(FeatureCosts([1, 1, 1, 1, 1]))


def test_the_best_path_comes_first_and_both_have_stages(judge):
    heard = []
    best, cheaper = judged_paths(judge, 3, 0.0, heard.append)
    assert best.order[:2] == [0, 2]
    assert best.prices == ()
    assert len(cheaper.prices) == 1
    for path in (best, cheaper):
        assert 0 < len(path.few) <= 3
        assert set(path.few) <= set(path.every)
    assert "half the cost" in heard[-1]


def test_a_single_purchase_is_its_own_path():
    path = only_path(Offers.of(FeatureCosts([0, 2])))
    assert (path.order, path.few) == ([0], [0, 1])


def test_an_order_for_half_the_cost_is_better_there(judge):
    best = [1, 3, 4, 0, 2]
    _, prices = best_order(judge)
    order, low = cheaper_order(judge, best, prices, lambda _: None)
    assert sorted(order) == sorted(best)
    assert order[0] == 0
    assert min(low) >= min(prices)
    assert judge.scores(order).value(low) < judge.scores(best).value(low)
    path = cheaper_path(judge, order, low, 10)
    assert path.prices == low
    assert set(path.few) <= set(path.every)
    assert 0 < len(path.few) <= 4


def test_copies_are_asked_about_few_sets_for_it():
    judge = judge_of(FeatureCosts([1, 1, 1, 1, 1]), n=300, refit=True)
    order, prices = best_order(judge)
    before = judge.n_asked
    cheaper_order(judge, order, prices, lambda _: None)
    assert judge.n_asked <= before + 40


def test_half_the_cost_is_that_of_a_price():
    rng = np.random.default_rng(0)
    doubt = rng.random((1, 2000))
    errors = np.array([rng.random(2000) < doubt[0], np.zeros(2000)], dtype=float)
    scores = StageScores.of(errors, doubt, np.array([1.0, 11.0]))

    def cost(price):
        return scores.cost_and_error(scores.thresholds(price))[0]

    (half,) = cheaper_prices(scores, [0.001])
    assert cost(0.001) > 10
    assert 0.5 * cost(0.001) <= cost(half) < 0.7 * cost(0.001)


def test_where_cost_falls_in_one_step_the_price_is_that_of_the_step():
    # Half of the rows are wrong without the second stage, and the gate cannot tell them apart.
    errors = np.array([np.tile([0.0, 1.0], 100), np.zeros(200)])
    scores = StageScores.of(errors, np.zeros((1, 200)), np.array([1.0, 11.0]))
    (price,) = cheaper_prices(scores, [0.001])
    assert 0.05 / 1.3 < price <= 0.05
