import numpy as np
from hypothesis import given

from sparing import FeatureCosts
from sparing.cascade.offers import Offers
from strategies import feature_costs


def chosen_sets(offers, rng):
    return rng.random((20, len(offers))) < rng.random((20, 1))


@given(feature_costs())
def test_a_column_is_there_when_its_priced_items_are(costs):
    offers = Offers.of(costs)
    chosen = chosen_sets(offers, np.random.default_rng(0))
    for row, there in zip(chosen, offers.available(chosen), strict=True):
        bought = offers.items[row].any(axis=0) | (costs.item_prices == 0)
        expected = [not (needs & ~bought).any() for needs in costs.needs]
        assert there.tolist() == expected


@given(feature_costs())
def test_offers_price_what_their_columns_cost(costs):
    offers = Offers.of(costs)
    for row in chosen_sets(offers, np.random.default_rng(1)):
        order = np.flatnonzero(row).tolist()
        assert np.isclose(offers.price(order), costs.of(offers.mask(order)))


@given(feature_costs())
def test_prices_along_an_order_add_up(costs):
    offers = Offers.of(costs)
    order = np.random.default_rng(2).permutation(len(offers)).tolist()
    steps = [offers.marginal(order[:k])[order[k]] for k in range(len(order))]
    assert np.isclose(sum(steps), offers.price(order))
    assert offers.price(offers.closed(order)) == offers.price(order)
    assert all(
        offers.marginal(offers.closed(order)[:k])[o] > 0 for k, o in enumerate(offers.closed(order))
    )


def test_a_panel_is_one_offer_and_free_columns_are_none():
    costs = FeatureCosts([0, 1, 0, 0], shared={"panel": (5.0, [2, 3])})
    offers = Offers.of(costs)
    assert [offers.names(k) for k in range(len(offers))] == [["1"], ["panel"]]
    assert offers.columns([]).tolist() == [0]
    assert offers.columns([1]).tolist() == [0, 2, 3]
