import pickle
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from sparing._rows import ScoredRows
from sparing.costs import FeatureCosts
from sparing.system import Stage, System
from strategies import price_lists
from three_stages import (
    CLASSES,
    COLUMNS,
    BranchingGate,
    ColumnGate,
    Linear,
    everything,
    rows,
    three_stages,
)


@dataclass(frozen=True, eq=False)
class Cautious:
    """Says the second class from a third of its probability on."""

    model: Linear

    @property
    def columns(self):
        return self.model.columns

    def predict_proba(self, X):
        return self.model.predict_proba(X)

    def decide(self, X):
        proba = self.model.predict_proba(X)
        return np.where(proba[:, 1] > 1 / 3, 1, proba.argmax(axis=1))


def test_a_predictor_with_labels_of_its_own_keeps_them():
    system, X = three_stages(), rows()
    cautious = Cautious(system.stages[-1].predictor)
    other = replace(system, stages=(*system.stages[:-1], Stage(cautious, name="full")))
    np.testing.assert_array_equal(other.predict_proba(X), system.predict_proba(X))
    last = system.route(X) == 2
    np.testing.assert_array_equal(other.predict(X)[~last], system.predict(X)[~last])
    np.testing.assert_array_equal(other.predict(X)[last], CLASSES[cautious.decide(X[last])])
    assert (other.predict(X) != system.predict(X)).any()
    np.testing.assert_array_equal(other.predict(ScoredRows(X)), other.predict(X))
    assert [row["prediction"] for row in other.explain(X)] == other.predict(X).tolist()


# -- money: a slow till that sells one item at a time -------------------------------------------------


def till(system, x, accounting, owned):
    """What one row pays, and the columns it pays for."""
    costs = system.costs
    data = costs.to_dict()
    wallet, paid, columns = set(owned), 0.0, set()

    def buy(position):
        nonlocal paid
        columns.add(position)
        need(costs.columns[position])

    def need(column):
        nonlocal paid
        for source in data["derived"].get(column, ()):
            need(source)
        offers = {column: data["prices"][column]}
        offers |= {
            name: item["price"]
            for name, item in data["shared"].items()
            if column in item["columns"]
        }
        for item, price in offers.items():
            if item not in wallet:
                wallet.add(item)
                paid += price

    def read(part):
        by_row = accounting == "path" and hasattr(part, "columns_read")
        for position in np.flatnonzero(part.columns_read(x[None])[0]) if by_row else part.columns:
            buy(int(position))

    calls = costs.call_price if isinstance(costs.call_price, tuple) else (0, 0, costs.call_price)
    for stage, call in zip(system.stages, calls, strict=True):
        paid += call
        proba, goes_on = None, False
        if stage.gate is not None:
            read(stage.gate)
            if stage.gate.reads_predictor or accounting == "stage":
                read(stage.predictor)
                proba = stage.predictor.predict_proba(x[None])
            score = stage.gate.score(x[None], proba if stage.gate.reads_predictor else None)
            goes_on = score[0] > stage.threshold
        if not goes_on:
            read(stage.predictor)
            return paid, columns
    raise AssertionError


@st.composite
def priced_systems(draw):
    content = draw(price_lists(named=True, n_columns=6))
    content["call_price"] = draw(
        st.one_of(st.just(0.0), st.just(7.5), st.just([0.5, 0.0, 3.0]), st.just([1.0, 2.0, 4.0]))
    )
    first_gate = draw(st.sampled_from([ColumnGate(np.array([0])), BranchingGate(np.array([0, 2]))]))
    thresholds = draw(st.lists(st.floats(-1, 1), min_size=2, max_size=2))
    return three_stages(thresholds, FeatureCosts.from_dict(content), first_gate=first_gate)


@pytest.mark.parametrize("accounting", ["stage", "path"])
@given(
    system=priced_systems(), X=npst.arrays(float, (5, 6), elements=st.floats(-2, 2)), data=st.data()
)
def test_every_row_pays_what_the_till_says(accounting, system, X, data):
    items = system.costs.items
    owned = data.draw(npst.arrays(bool, (len(X), len(items))))
    nothing = np.zeros(len(items), dtype=bool)
    for own in (None, owned, owned[0]):
        per_row = np.broadcast_to(nothing if own is None else own, (len(X), len(items)))
        bills = [
            till(system, x, accounting, [items[j] for j in np.flatnonzero(o)])
            for x, o in zip(X, per_row, strict=True)
        ]
        paid = system.acquisition_cost(X, accounting=accounting, owned=own)
        np.testing.assert_allclose(paid, [bill for bill, _ in bills], atol=1e-9)
    mask = system.acquisition_mask(X, accounting=accounting)
    assert [set(np.flatnonzero(row)) for row in mask] == [columns for _, columns in bills]


def test_paths_never_cost_more_than_stages():
    system, X = three_stages(), rows(200)
    by_stage, by_path = (system.acquisition_mask(X, accounting=a) for a in ("stage", "path"))
    assert (by_path <= by_stage).all()
    assert (system.acquisition_cost(X, accounting="path") < system.acquisition_cost(X)).any()


def test_the_accounting_of_the_system_is_the_default():
    X = rows()
    system = three_stages(accounting="path")
    np.testing.assert_array_equal(
        system.acquisition_cost(X), system.acquisition_cost(X, accounting="path")
    )
    np.testing.assert_array_equal(
        system.acquisition_mask(X), system.acquisition_mask(X, accounting="path")
    )
    assert (system.acquisition_cost(X) < system.acquisition_cost(X, accounting="stage")).any()


def test_columns_bought_so_far():
    expected = [[1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 1, 0], [1, 1, 1, 1, 1, 1]]
    np.testing.assert_array_equal(three_stages().stage_columns(), np.array(expected, dtype=bool))


def test_a_system_without_the_full_model_does_not_call_it():
    X = rows()
    cheap = Stage(Linear(np.array([0])), name="cheap")
    for call_price, with_full, without in ((9.0, 10, 1), ([2.0, 9.0], None, 3), ([2.0], 3, None)):
        costs = FeatureCosts(np.ones(6), call_price=call_price)
        for has_full, expected in ((True, with_full), (False, without)):
            if expected is None:
                with pytest.raises(ValueError, match="call_price has"):
                    System((cheap,), costs, CLASSES, has_full=has_full)
            else:
                system = System((cheap,), costs, CLASSES, has_full=has_full)
                np.testing.assert_array_equal(system.acquisition_cost(X), expected)


@pytest.mark.parametrize("placeholder", [0.0, -1e9, np.nan])
@pytest.mark.parametrize("accounting", ["stage", "path"])
def test_answers_need_only_what_was_bought(accounting, placeholder):
    system, X = three_stages(), rows()
    served = np.where(system.acquisition_mask(X, accounting=accounting), X, placeholder)
    np.testing.assert_array_equal(system.route(served), system.route(X))
    np.testing.assert_allclose(system.predict_proba(served), system.predict_proba(X))
    np.testing.assert_array_equal(
        system.acquisition_mask(served, accounting=accounting),
        system.acquisition_mask(X, accounting=accounting),
    )


# -- explain ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("accounting", ["stage", "path"])
def test_explain_agrees_with_everything_else(accounting):
    costs = FeatureCosts(
        dict.fromkeys(COLUMNS, 1.0),
        shared={"draw": (2.1, ["TSH", "T3"])},
        call_price=[0, 0.5, 4],
    )
    system, X = three_stages(costs=costs, accounting=accounting), rows()
    explained = system.explain(X)
    assert [row["stage"] for row in explained] == system.route(X).tolist()
    assert [row["prediction"] for row in explained] == system.predict(X).tolist()
    np.testing.assert_allclose([row["cost"] for row in explained], system.acquisition_cost(X))
    items, scores = costs.items_of(system.acquisition_mask(X)), system.exit_scores(X)
    for i, row in enumerate(explained):
        assert row["name"] == ["cheap", "more", "full"][row["stage"]]
        assert row["items"] == {
            item: price
            for item, price, bought in zip(costs.items, costs.item_prices, items[i], strict=True)
            if bought
        }
        assert row["call_price"] == [0, 0.5, 4.5][row["stage"]]
        assert row["cost"] == pytest.approx(sum(row["items"].values()) + row["call_price"])
        assert [e["stage"] for e in row["exits"]] == list(range(min(row["stage"] + 1, 2)))
        for e in row["exits"]:
            assert e["score"] == scores[i, e["stage"]]
            assert e["threshold"] == system.thresholds[e["stage"]]
            assert e["goes_on"] == (e["score"] > e["threshold"]) == (row["stage"] > e["stage"])


@dataclass(frozen=True)
class OnlyLogs:
    columns = np.arange(6)
    available = False

    def predict_proba(self, X):
        raise RuntimeError("cannot be asked")


def test_explain_without_a_full_model_that_can_be_asked():
    system, X = three_stages(), rows()
    logs = replace(system, stages=(*system.stages[:2], Stage(OnlyLogs(), name="full")))
    expected = [
        None if stage == 2 else label
        for stage, label in zip(system.route(X), system.predict(X).tolist(), strict=True)
    ]
    assert [row["prediction"] for row in logs.explain(X)] == expected
    with pytest.raises(RuntimeError, match="cannot be asked"):
        logs.predict(X)
    here = logs.route(X) < 2
    np.testing.assert_array_equal(logs.predict(X[here]), system.predict(X[here]))


# -- frames -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [pd.DataFrame, lambda X, columns: pl.DataFrame(X, schema=columns)])
def test_frames(make):
    system, X = three_stages(), rows()
    frame = make(X, columns=list(COLUMNS))
    np.testing.assert_equal(everything(system, frame), everything(system, X))
    np.testing.assert_equal(everything(system, ScoredRows(frame)), everything(system, X))


# -- the same system, otherwise -----------------------------------------------------------------------


def test_other_prices_change_costs_and_nothing_else():
    system, X = three_stages(), rows()
    prices = dict(zip(COLUMNS, [1, 2, 4, 8, 16, 32], strict=True))
    dear = system.with_costs(dict(reversed(prices.items())))
    assert dear.costs == FeatureCosts(prices)
    assert dear.stages is system.stages
    np.testing.assert_array_equal(dear.predict_proba(X), system.predict_proba(X))
    bought = system.acquisition_mask(X)
    np.testing.assert_allclose(dear.acquisition_cost(X), bought @ list(prices.values()))
    np.testing.assert_allclose(system.acquisition_cost(X), bought.sum(axis=1))
    assert system.with_costs(None).costs == system.costs
    assert system.with_costs(list(prices.values())).costs == dear.costs
    with pytest.raises(ValueError, match="no price for 'FTI'"):
        system.with_costs(dict.fromkeys(COLUMNS[:-1], 1))
    with pytest.raises(ValueError, match="2 prices for 3 stages"):
        system.with_costs(FeatureCosts(prices, call_price=[1, 2]))


def test_prices_of_a_system_without_names():
    system = three_stages(costs=FeatureCosts(np.ones(6)))
    assert system.with_costs([1, 2, 3, 4, 5, 6]).costs.total == 21
    with pytest.raises(ValueError, match="X has no column names"):
        system.with_costs(dict.fromkeys(COLUMNS, 1))


def test_other_thresholds():
    system, X = three_stages(), rows()
    scores = three_stages((-np.inf, -np.inf)).exit_scores(X)
    for thresholds in ([0.2, 0.3], [-0.5, 0.7], (0.1, 0.1)):
        moved = system.with_thresholds(thresholds)
        assert moved.thresholds == tuple(thresholds)
        on = scores > thresholds
        np.testing.assert_array_equal(moved.route(X), on.cumprod(axis=1).sum(axis=1))
    assert system.with_thresholds(0.25).thresholds == (0.25, 0.25)
    assert system.with_thresholds([np.inf, 0]).route(X).max() == 0
    assert system.with_thresholds([-np.inf, -np.inf]).route(X).min() == 2
    assert system.thresholds == (0.0, 0.5)


@pytest.mark.parametrize(
    "thresholds", [[0.1], [0.1, 0.2, 0.3], [[0.1, 0.2]], [0.1, np.nan], np.nan]
)
def test_thresholds_that_do_not_fit(thresholds):
    with pytest.raises(ValueError, match="one threshold per gate, 2 here"):
        three_stages().with_thresholds(thresholds)


def test_a_single_stage():
    system = System((Stage(Linear(np.array([2]))),), FeatureCosts([1, 2, 4]), CLASSES)
    X = rows()[:, :3]
    assert not system.route(X).any()
    assert system.exit_scores(X).shape == (60, 0)
    np.testing.assert_array_equal(system.acquisition_cost(X), 4.0)
    assert system.explain(X)[0]["exits"] == []
    assert system.with_thresholds([]).thresholds == ()
    assert system.with_thresholds(1.0).thresholds == ()


# -- systems that cannot be ---------------------------------------------------------------------------


END = Stage(Linear(np.array([0])), name="full")


GATED = Stage(Linear(np.array([0])), ColumnGate(np.array([1])), name="cheap")


@pytest.mark.parametrize(
    ("stages", "options", "message"),
    [
        ((), {}, "at least one stage"),
        ((END, END), {}, "Every stage but the last needs a gate"),
        ((GATED,), {}, "the last has none"),
        ((GATED, GATED), {}, "the last has none"),
        ((Stage(Linear(np.array([6]))),), {}, r"Stage 0 \(stage\) reads column 6.*6 columns"),
        ((replace(GATED, gate=ColumnGate(np.array([-1]))), END), {}, "reads column -1"),
        ((replace(GATED, threshold=np.nan), END), {}, r"threshold of stage 0 \(cheap\) is NaN"),
        ((END,), {"accounting": "leaf"}, "'stage' or 'path', not 'leaf'"),
        ((END,), {"costs": FeatureCosts(np.ones(6), call_price=[1, 2])}, "2 prices for 1 stages"),
    ],
)
def test_invalid_systems(stages, options, message):
    with pytest.raises(ValueError, match=message):
        System(stages, **{"costs": FeatureCosts(np.ones(6)), "classes": CLASSES, **options})


def test_unknown_accounting():
    for method in (three_stages().acquisition_cost, three_stages().acquisition_mask):
        with pytest.raises(ValueError, match="'stage' or 'path', not 'tree'"):
            method(rows(), accounting="tree")


def test_owned_that_does_not_fit_the_rows():
    with pytest.raises(ValueError, match=r"owned has shape \(60, 6\)"):
        three_stages().acquisition_cost(rows(), owned=np.zeros((59, 6), dtype=bool))


# -- the object itself --------------------------------------------------------------------------------


def test_pickle():
    system, X = three_stages(), rows()
    np.testing.assert_equal(
        everything(pickle.loads(pickle.dumps(system)), X), everything(system, X)
    )


def test_systems_are_compared_by_identity():
    system = three_stages()
    same = replace(system)
    assert system == system
    assert system != same
    assert len({system, same}) == 2


def test_repr():
    system = three_stages(costs=FeatureCosts(dict.fromkeys(COLUMNS, 1.5), call_price=10))
    assert repr(system).splitlines() == [
        "System: 3 stages, 3 classes, by stage",
        "  0 cheap: 3 columns, 4.5, goes on above 0",
        "  1 more: 5 columns, 7.5, goes on above 0.5",
        "  2 full: 6 columns, 19",
    ]
    extremes = repr(system.with_thresholds([-np.inf, np.inf])).splitlines()
    assert extremes[1].endswith(", sends everything on")
    assert extremes[2].endswith(", answers everything")
    assert extremes[3].endswith(", nobody comes this far")


def test_a_frame_with_other_columns_is_refused_with_the_difference():
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame({"a": [0.0, 1.0], "b": [1.0, 0.0], "c": [2.0, 2.0]})
    y = np.array([0, 1])
    from sparing import GreedyMiserClassifier

    system = GreedyMiserClassifier(n_estimators=2).fit(X, y).system_
    assert system.predict(X).shape == (2,)
    assert system.predict(X.to_numpy()).shape == (2,)
    with pytest.raises(ValueError, match="the same in another order"):
        system.predict(X[["b", "a", "c"]])
    with pytest.raises(ValueError, match=r"missing are \['c'\]; not known are \['d'\]"):
        system.acquisition_cost(X.rename(columns={"c": "d"}))
    with pytest.raises(ValueError, match="X has 2 columns, the system was fitted on 3"):
        system.route(X.to_numpy()[:, :2])


@pytest.mark.parametrize("accounting", ["stage", "path"])
def test_answers_are_label_stage_and_cost_at_once(accounting):
    system = three_stages(accounting=accounting)
    X = np.random.default_rng(0).normal(size=(50, 6))
    labels, stage, cost = system.answers(X)
    np.testing.assert_array_equal(labels, system.predict(X))
    np.testing.assert_array_equal(stage, system.route(X))
    np.testing.assert_allclose(cost, system.acquisition_cost(X))
    asked = three_stages(accounting="stage")
    asked.answers(X)
    assert len(asked.stages[0].gate.log) == 1
