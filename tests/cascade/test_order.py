from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from small_judge import judge_of
from sparing import FeatureCosts
from sparing.cascade import order as order_module
from sparing.cascade.exits import StageScores
from sparing.cascade.judges import _TREES, small
from sparing.cascade.order import (
    annealed,
    best_order,
    bought,
    candidate_lengths,
    drop_stages,
    eliminated,
    improved,
    searched,
)


@pytest.fixture(scope="module")
def judge():
    return judge_of(FeatureCosts([1, 1, 1, 1, 1]))


def test_what_matters_most_comes_first(judge):
    order, prices = best_order(judge)
    assert order[:2] == [0, 2]
    assert sorted(order) == [0, 1, 2, 3, 4]
    assert prices
    assert eliminated(judge)[:2] == [0, 2]
    assert bought(judge, range(5))[:2] == [0, 2]


def test_small_copies_of_a_forest_judge_too():
    judge = judge_of(FeatureCosts([1, 1, 1, 1, 1]), refit=True)
    assert judge.model.n_estimators == _TREES
    assert not judge.model.oob_score
    order, _ = best_order(judge)
    assert order[:2] == [0, 2]
    assert judge.n_asked <= 60 + 10
    assert judge.error < 0.15


def test_mixing_up_a_column_is_like_not_having_it():
    judge = judge_of(FeatureCosts([1, 1, 1, 1, 1]), refit=True)
    every = np.ones(5, dtype=bool)
    worth = judge.worth(every, [np.array([0]), np.array([3])])
    assert worth[0] > 0.3 > 10 * abs(worth[1])


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_frames_are_mixed_up_like_arrays(library):
    judge = judge_of(FeatureCosts([1, 1, 1, 1, 1]), n=300, refit=True)
    names = list("abcde")
    frames = replace(
        judge,
        X=library(judge.X, schema=names)
        if library is pl.DataFrame
        else library(judge.X, columns=names),
        held_out=library(judge.held_out, schema=names)
        if library is pl.DataFrame
        else library(judge.held_out, columns=names),
    )
    every, groups = np.ones(5, dtype=bool), [np.array([0, 2]), np.array([4])]
    np.testing.assert_array_equal(judge.worth(every, groups), frames.worth(every, groups))


def test_a_high_price_moves_a_column_back():
    order, _ = best_order(judge_of(FeatureCosts([1, 1, 100, 1, 1])))
    assert order.index(0) < order.index(2)


def test_the_search_is_not_worse_than_its_starts(judge):
    order, prices = best_order(judge)
    found = judge.scores(order).value(prices)
    assert found <= judge.scores(eliminated(judge)).value(prices) + 1e-9
    assert found <= judge.scores(bought(judge, range(5))).value(prices) + 1e-9


class Pair:
    """An order is good when 4 and 5 both come first, and a little worse than others when one of them does."""

    places = 6
    judge = SimpleNamespace(n_asked=0, patience=np.inf)

    def __call__(self, order):
        return (1.0, 1.004, 0.8)[len({4, 5} & set(order[:2]))]


def test_a_walk_leaves_orders_that_no_single_move_makes_better():
    start = list(range(6))
    assert improved(Pair(), start) == (1.0, start)
    found = annealed(Pair(), start)
    assert set(found[:2]) == {4, 5}
    assert sorted(found) == start
    assert annealed(Pair(), start) == found


@pytest.mark.parametrize(
    ("n_rows", "refit", "walks"), [(2000, False, True), (1500, False, False), (2000, True, False)]
)
def test_a_walk_needs_many_rows_and_a_judge_of_any_number_of_sets(
    monkeypatch, n_rows, refit, walks
):
    walked = []
    monkeypatch.setattr(order_module, "_WALKED", 1000)
    monkeypatch.setattr(order_module, "annealed", lambda value, order: walked.append(1) or order)
    judge = judge_of(FeatureCosts([1, 1, 1, 1, 1]), n=n_rows, refit=refit)
    value, order = searched(judge, [0, 1, 2, 3, 4], 5, [0.1])
    assert value == judge.scores(order).value([0.1])
    assert bool(walked) == walks


def test_a_panel_is_bought_once():
    costs = FeatureCosts([1, 0, 0, 1, 0], shared={"panel": (2.0, [1, 2, 4])})
    order, _ = best_order(judge_of(costs))
    assert len(order) == 3


def test_a_single_offer():
    costs = FeatureCosts([0, 0, 0, 0, 0], shared={"all": (2.0, [0, 1, 2, 3, 4])})
    order, prices = best_order(judge_of(costs))
    assert order == [0]
    assert prices


def test_stages_that_earn_nothing_are_dropped(judge):
    scores = judge.scores([0, 2, 1, 3, 4])
    kept = drop_stages(scores, [0.05], n_stages=10)
    assert 0 in kept
    assert kept[-1] == 5
    assert len(kept) < 6
    assert len(drop_stages(scores, [0.05], n_stages=1)) <= 2


@pytest.mark.parametrize("price", [10.0, 100.0])
def test_dear_round_trips_are_made_by_fewer_rows(judge, price):
    scores = judge.scores([0, 2, 1, 3, 4])

    def trips(stages):
        part = scores.only(stages)
        return part.weight @ part.answering(part.thresholds(0.05))

    usual, fewer = (drop_stages(scores, [0.05], 10, p) for p in (0.0, price))
    assert trips(fewer) < trips(usual) - 0.1
    # What is kept is worth as much as any single stage and any two, waiting counted.
    value = scores.only(fewer).value([0.05], price)
    others = [[k, 5] for k in range(5)] + [[j, k, 5] for k in range(5) for j in range(k)]
    assert value <= min(scores.only(o).value([0.05], price) for o in others) * 1.003


def test_lengths_are_all_of_the_short_ones_and_few_of_the_long():
    assert candidate_lengths(5, 0) == [0, 1, 2, 3, 4, 5]
    long = candidate_lengths(400, 1)
    assert long[:16] == list(range(1, 17))
    assert long[-1] == 400
    assert len(long) < 45


def test_small_copies_have_few_trees_wherever_the_trees_are():
    forest = RandomForestClassifier(200, oob_score=True)
    assert (small(forest).n_estimators, small(forest).oob_score) == (_TREES, False)
    assert small(RandomForestClassifier(10)).n_estimators == 10
    inside = small(make_pipeline(StandardScaler(), forest))[-1]
    assert inside.n_estimators == _TREES
    assert forest.n_estimators == 200
    assert small(make_pipeline(StandardScaler(), SVC())) is None


def test_of_stages_that_are_worth_the_same_the_dearest_goes():
    errors = np.array([[1.0, 0, 0, 0], *([[0.0] * 4] * 6)])
    doubts = np.tile([0.4, 0.1, 0.2, 0.3], (6, 1))
    scores = StageScores.of(errors, doubts, np.array([1.0, 15, 36, 50, 60, 70, 76]))
    assert drop_stages(scores, [0.1], n_stages=3, earns=-np.inf) == [0, 1, 2, 6]
