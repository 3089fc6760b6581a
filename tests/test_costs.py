import json
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparing.costs import FeatureCosts, _chunks, resolve_costs
from strategies import costs_and_masks, costs_rows_owned, feature_costs, price_lists

THYROID = FeatureCosts(
    {"age": 1, "TSH": 20.68, "TT4": 12.41, "T4U": 9.31},
    shared={"blood draw": (2.10, ["TSH", "TT4", "T4U"])},
    derived={"FTI": ["TT4", "T4U"]},
    call_price=50,
)


# -- the rule: the union of the items, each paid once -------------------------------------------------


def bill(costs, mask):
    """Items needed by a set of columns, looked up in the plain data one by one."""
    data = costs.to_dict()
    columns = [c for c, chosen in zip(costs.columns, mask, strict=True) if chosen]
    while True:
        needed = [i for c in columns for i in data["derived"].get(c, ()) if i not in columns]
        if not needed:
            break
        columns += needed
    items = {c: data["prices"][c] for c in columns}  # by name or by position
    for name, entry in data["shared"].items():
        if set(entry["columns"]) & set(columns):
            items[name] = entry["price"]
    return items


@given(costs_and_masks())
def test_cost_is_the_sum_over_a_set_of_items(drawn):
    costs, mask = drawn
    items = bill(costs, mask)
    assert costs.of(mask) == pytest.approx(sum(items.values()), abs=1e-9)
    bought = {i for i, needed in zip(costs.items, costs.items_of(mask), strict=True) if needed}
    # Columns at 0 that come with another item have no item of their own.
    assert bought == {item for item in items if item in costs.items}


@given(costs_and_masks(n_masks=2))
def test_union_rule(drawn):
    costs, a, b = drawn
    both = costs.items_of(a) & costs.items_of(b)
    assert costs.of(a | b) <= costs.of(a) + costs.of(b) + 1e-9
    assert costs.of(a | b) == pytest.approx(
        costs.of(a) + costs.of(b) - both @ costs.item_prices, abs=1e-9
    )
    np.testing.assert_array_equal(costs.items_of(a | b), costs.items_of(a) | costs.items_of(b))


@given(costs_and_masks(n_masks=2))
def test_more_columns_never_cost_less(drawn):
    costs, a, b = drawn
    assert costs.of(a & b) <= costs.of(a) + 1e-9
    assert costs.of(a) <= costs.total + 1e-9
    assert costs.of(np.ones_like(a)) == pytest.approx(costs.total, abs=1e-9)
    assert costs.of(np.zeros_like(a)) == 0.0


@given(costs_rows_owned())
def test_a_matrix_costs_what_its_rows_cost(drawn):
    costs, masks, owned = drawn
    np.testing.assert_allclose(costs.of(masks), [costs.of(m) for m in masks], atol=1e-9)
    one_by_one = [costs.of(m, owned=o) for m, o in zip(masks, owned, strict=True)]
    np.testing.assert_allclose(costs.of(masks, owned=owned), one_by_one, atol=1e-9)
    for m in masks[:1]:
        same_mask = [costs.of(m, owned=o) for o in owned]
        np.testing.assert_allclose(costs.of(m, owned=owned), same_mask, atol=1e-9)
    for o in owned[:1]:
        same_owned = [costs.of(m, owned=o) for m in masks]
        np.testing.assert_allclose(costs.of(masks, owned=o), same_owned, atol=1e-9)


@given(costs_rows_owned())
def test_owned_items_are_free_and_only_those(drawn):
    costs, masks, owned = drawn
    saved = (costs.items_of(masks) & owned) @ costs.item_prices
    np.testing.assert_allclose(costs.of(masks, owned=owned), costs.of(masks) - saved, atol=1e-9)
    assert not costs.of(masks, owned=np.ones_like(owned)).any()


@given(costs_rows_owned())
def test_marginal_price_of_a_column_is_what_it_adds(drawn):
    costs, masks, owned = drawn
    single = np.eye(len(costs.columns), dtype=bool)
    for o, row in zip(owned, costs.marginal(owned), strict=True):
        np.testing.assert_allclose(costs.marginal(o), row)
        np.testing.assert_allclose(row, costs.of(single, owned=o), atol=1e-9)
    # Whoever owns what a set needs pays for one more column what the larger set costs more.
    for mask in masks:
        more = [costs.of(mask | column) - costs.of(mask) for column in single]
        np.testing.assert_allclose(costs.marginal(costs.items_of(mask)), more, atol=1e-9)


def test_large_matrices_are_taken_in_pieces(monkeypatch):
    monkeypatch.setattr("sparing.costs._CHUNK_CELLS", 20)
    rng = np.random.default_rng(0)
    mask = rng.random((23, 5)) < 0.5
    owned = rng.random((23, len(THYROID.items))) < 0.5
    assert len(list(_chunks(23, 10))) == 12
    expected = [THYROID.of(m, owned=o) for m, o in zip(mask, owned, strict=True)]
    np.testing.assert_allclose(THYROID.of(mask, owned=owned), expected)
    np.testing.assert_array_equal(THYROID.items_of(mask), [THYROID.items_of(m) for m in mask])


def test_a_mask_is_never_written_to():
    mask = np.ones((2, 3), dtype=bool)
    FeatureCosts([1, 2, 3]).of(mask, owned=[True, True, True])
    assert mask.all()


# -- panels and derived columns -----------------------------------------------------------------------


def test_panel_with_and_without_private_prices():
    one_hot = FeatureCosts([0, 0, 0, 4], shared={"soil": (2.5, [0, 1, 2])})
    assert one_hot.items == (3, "soil")
    assert one_hot.of([0]) == one_hot.of([0, 1, 2]) == 2.5
    assert one_hot.of([1, 3]) == 6.5
    discounts = FeatureCosts([1, 2, 0], shared={"panel": (5, [0, 1])})
    assert discounts.items == (0, 1, 2, "panel")  # a free column without a panel keeps its own item
    assert discounts.of([0, 1]) == 8.0


def test_derived_of_derived_needs_what_its_inputs_need():
    costs = FeatureCosts(
        {"a": 1, "b": 2, "ratio": 0, "score": 0.5},
        derived={"score": ["ratio", "b"], "ratio": ["a", "b"], "copy": "score"},
    )
    assert costs.columns == ("a", "b", "ratio", "score", "copy")
    assert costs.items == ("a", "b", "score")
    assert costs.of(["ratio"]) == 3.0
    assert costs.of(["score"]) == costs.of(["copy"]) == 3.5
    assert costs.of(["copy", "a", "ratio"]) == 3.5


def test_a_long_chain_of_derived_columns_is_walked_once():
    # Each from the two before it: walked again for every mention, this would take 2^60 steps.
    derived = {i: [i - 2, i - 1] for i in range(2, 60)}
    assert FeatureCosts([1, 2] + [0] * 58, derived=derived).of([59]) == 3.0


# P. D. Turney, "Cost-sensitive classification: empirical evaluation of a hybrid genetic decision tree induction
# algorithm", JAIR 2, 1995; the pairs (price, price after another test of the group) are those of the files
# ann-thyroid.expense and heart-disease.expense that UCI distributes with the data.
THYROID_GROUP = {
    "TSH": (22.78, 20.68),
    "T3": (11.41, 9.31),
    "TT4": (14.51, 12.41),
    "T4U": (11.41, 9.31),
}


HEART_GROUPS = {
    "blood draw": {"chol": (7.27, 5.17), "fbs": (5.20, 3.10)},
    "thallium scan": {"thalach": (102.90, 1.00), "thal": (102.90, 1.00)},
    "exercise": {"exang": (87.30, 1.00), "oldpeak": (87.30, 1.00), "slope": (87.30, 1.00)},
}


@pytest.mark.parametrize("groups", [{"blood draw": THYROID_GROUP}, HEART_GROUPS])
def test_turneys_discounts_are_private_plus_shared(groups):
    pairs = {test: pair for group in groups.values() for test, pair in group.items()}
    shared = {}
    for name, group in groups.items():
        differences = {round(full - discounted, 2) for full, discounted in group.values()}
        assert len(differences) == 1  # or a group could not be written as one shared item
        shared[name] = (differences.pop(), list(group))
    costs = FeatureCosts({"age": 1.0} | {t: d for t, (_, d) in pairs.items()}, shared=shared)
    for group in groups.values():
        for first, (full, _) in group.items():
            assert costs.of([first]) == pytest.approx(full)
            assert costs.of(["age", first]) == pytest.approx(1 + full)
            for second, (_, discounted) in group.items():
                if second != first:
                    assert costs.of([first, second]) == pytest.approx(full + discounted)


# -- tables -------------------------------------------------------------------------------------------


@given(price_lists(named=True))
def test_aligned_keeps_the_price_of_every_set(content):
    costs = FeatureCosts.from_dict(content)
    turned = costs.aligned(costs.columns[::-1])
    assert turned.columns == costs.columns[::-1]
    assert turned.call_price == costs.call_price
    for column in costs.columns:
        assert turned.of([column]) == pytest.approx(costs.of([column]))
    some = costs.columns[::2]
    assert turned.of(some) == pytest.approx(costs.of(some))
    assert turned.aligned(costs.columns) == costs


@given(price_lists(named=False))
def test_prices_without_names_take_the_names_of_the_table(content):
    costs = FeatureCosts.from_dict(content)
    names = [f"name {i}" for i in range(len(costs.columns))]
    named = costs.aligned(names)
    assert named.columns == tuple(names)
    for i, name in enumerate(names):
        assert named.of([name]) == pytest.approx(costs.of([i]))
    assert costs.aligned(len(names)) is costs


@given(price_lists(named=False), st.randoms(use_true_random=False))
def test_numbers_are_the_columns_of_a_table_in_any_order(content, random):
    costs = FeatureCosts.from_dict(content)
    entries = list(enumerate(content["prices"]))
    random.shuffle(entries)
    shuffled = FeatureCosts.from_dict({**content, "prices": dict(entries)})
    n = len(costs.columns)
    for table in (n, [f"name {i}" for i in range(n)]):
        found, expected = shuffled.aligned(table), costs.aligned(table)
        assert found.columns == expected.columns
        for column in expected.columns:
            assert found.of([column]) == pytest.approx(expected.of([column]))


def test_a_derived_column_may_have_a_number_between_others():
    costs = resolve_costs(FeatureCosts({0: 1, 2: 4}, derived={1: [0]}), 3)
    assert [costs.of([j]) for j in range(3)] == [1, 1, 4]
    assert resolve_costs({1: 10, 0: 1}, 2) == FeatureCosts([1, 10])


def test_resolve_costs():
    assert resolve_costs(None, 3) == FeatureCosts([1, 1, 1])
    assert resolve_costs([1, 2], ["a", "b"]) == FeatureCosts({"a": 1, "b": 2})
    assert resolve_costs({"b": 2, "a": 1}, ["a", "b"]) == FeatureCosts({"a": 1, "b": 2})
    assert resolve_costs(THYROID, THYROID.columns) is THYROID
    with pytest.warns(
        UserWarning, match="'FTI' in derived alone, which is taken for the last of X"
    ):
        assert resolve_costs(THYROID, 5) is THYROID
    series = pd.Series([2.0, 1.0], index=["b", "a"])
    assert resolve_costs(series, ["a", "b"]) == FeatureCosts({"a": 1, "b": 2})
    assert resolve_costs(pd.Series([2.0, 1.0]), 2) == FeatureCosts([2, 1])
    assert resolve_costs(pl.Series([2.0, 1.0]), 2) == FeatureCosts([2, 1])


def test_call_prices():
    assert FeatureCosts([1], call_price=3).call_prices(3).tolist() == [0, 0, 3]
    assert FeatureCosts([1], call_price=[1, 0, 3]).call_prices(3).tolist() == [1, 0, 3]
    with pytest.raises(ValueError, match="2 prices for 3 stages"):
        FeatureCosts([1], call_price=[1, 2]).call_prices(3)


# -- reading and writing ------------------------------------------------------------------------------


def toml_of(content):
    """A price list as a person would write it; JSON's strings, numbers and lists are TOML's too."""
    lines = [f"call_price = {json.dumps(content['call_price'])}"]
    if isinstance(content["prices"], list):
        lines.append(f"prices = {json.dumps(content['prices'])}")
    else:
        lines.append("[prices]")
        lines += [f"{json.dumps(c)} = {price}" for c, price in content["prices"].items()]
    for name, entry in content["shared"].items():
        lines.append(f"[shared.{json.dumps(name)}]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in entry.items()]
    lines.append("[derived]")
    lines += [f"{json.dumps(str(c))} = {json.dumps(i)}" for c, i in content["derived"].items()]
    return "\n".join(lines)


@given(price_lists())
def test_round_trips(tmp_path_factory, content):
    costs = FeatureCosts.from_dict(content)
    assert costs.to_dict() == content
    assert FeatureCosts.from_dict(costs.to_dict()) == costs
    assert FeatureCosts.from_dict(json.loads(json.dumps(costs.to_dict()))) == costs
    file = tmp_path_factory.mktemp("toml") / "costs.toml"
    file.write_text(toml_of(content))
    assert FeatureCosts.from_toml(file) == costs
    again = pickle.loads(pickle.dumps(costs))
    assert again == costs
    assert hash(again) == hash(costs)


def test_from_dict_needs_prices_only():
    assert FeatureCosts.from_dict({"prices": [1, 2]}) == FeatureCosts([1, 2])


def test_to_dict_is_plain_data_whatever_the_arrays_given():
    costs = FeatureCosts(
        np.array([1, 2], dtype=np.float32),
        shared={"panel": (np.float64(3), np.array([0, 1]))},
        derived={1: np.array([0])},
        call_price=np.array([1, 2]),
    )
    assert json.loads(json.dumps(costs.to_dict())) == {
        "prices": [1.0, 2.0],
        "shared": {"panel": {"price": 3.0, "columns": [0, 1]}},
        "derived": {"1": [0]},
        "call_price": [1.0, 2.0],
    }


# -- the object itself --------------------------------------------------------------------------------


def test_equality_knows_the_order_of_columns():
    assert FeatureCosts({"a": 1, "b": 2}) == FeatureCosts({"a": 1, "b": 2})
    assert FeatureCosts({"a": 1, "b": 2}) != FeatureCosts({"b": 2, "a": 1})
    assert FeatureCosts({"a": 1}) != FeatureCosts({"a": 1}, call_price=1)
    assert FeatureCosts({"a": 1}) != {"a": 1}
    assert len({FeatureCosts([1.0, 0.0]), FeatureCosts([1, -0.0])}) == 1


@given(feature_costs())
def test_equal_costs_have_equal_hashes(costs):
    other = FeatureCosts.from_dict(costs.to_dict())
    assert other == costs
    assert hash(other) == hash(costs)


def test_prices_cannot_be_changed_behind_its_back():
    with pytest.raises(ValueError, match="read-only"):
        THYROID.item_prices[0] = 0
    with pytest.raises(ValueError, match="read-only"):
        THYROID.needs[0] = True


def test_repr_shows_what_costs_what():
    assert repr(THYROID).splitlines() == [
        "FeatureCosts: 5 columns, 5 items, all together 45.5",
        "  age         1",
        "  TSH         20.68  + blood draw",
        "  TT4         12.41  + blood draw",
        "  T4U         9.31   + blood draw",
        "  FTI         -      derived from TT4, T4U",
        "  blood draw  2.1    shared",
        "  call        50     per row routed there",
    ]
    both = FeatureCosts({"a": 1, "b": 2}, shared={"s": (3, ["b"])}, derived={"b": ["a"]})
    assert "  b  2  + s derived from a" in repr(both)
    assert "call  1, 2  per row" in repr(FeatureCosts([1], call_price=[1, 2]))
    long = repr(FeatureCosts(np.arange(500.0))).splitlines()
    assert len(long) == 25
    assert long[13].strip() == "..."
    assert long[-1].split() == ["499", "499"]


def test_a_hundred_thousand_rows_of_fifty_columns():
    # The figure is benchmarks/speed/costs.py's; here it only has to be right and not to take for ever.
    rng = np.random.default_rng(0)
    prices, mask = rng.random(50), rng.random((100_000, 50)) < 0.3
    plain, panel = FeatureCosts(prices), FeatureCosts(prices, shared={"panel": (2, range(25))})
    np.testing.assert_allclose(plain.of(mask), mask @ prices)
    np.testing.assert_allclose(panel.of(mask), mask @ prices + 2 * mask[:, :25].any(axis=1))


def test_a_derived_column_without_a_place_is_told():
    costs = FeatureCosts({"a": 1, "b": 2, "z": 3}, derived={"ab": ["a", "b"]})
    with pytest.warns(UserWarning, match="names 'ab' in derived alone"):
        assert costs.aligned(4).columns[-1] == "ab"
    assert costs.aligned(["a", "b", "ab", "z"]).columns == ("a", "b", "ab", "z")
    placed = FeatureCosts({"a": 1, "b": 2, "ab": 0, "z": 3}, derived={"ab": ["a", "b"]})
    assert placed.aligned(4) is placed
    assert FeatureCosts([1, 2, 0], derived={2: [0, 1]}).aligned(3).total == 3
