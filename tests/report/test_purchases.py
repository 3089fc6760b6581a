from itertools import pairwise

import numpy as np
import pytest

from handmade import table, two_stages
from report.models import three_stages
from sparing.report import summarise

X, Y = table(300, seed=1)


def test_stages_buy_each_item_once_and_their_prices_add_up():
    stages = summarise(three_stages(), X, Y)["stages"]
    names = [item["name"] for stage in stages for item in stage["items"]]
    assert sorted(names) == ["0", "1", "2"]
    assert [[item["price"] for item in stage["items"]] for stage in stages] == [[1], [2], [3]]
    assert np.cumsum([s["price"] for s in stages]) == pytest.approx(
        [s["price_so_far"] for s in stages]
    )


def test_calls_are_part_of_the_price():
    stages = summarise(two_stages(call_price=10.0), X, Y)["stages"]
    assert [stage["call_price"] for stage in stages] == [0, 10]
    assert stages[1]["price"] == 10 + sum(item["price"] for item in stages[1]["items"])


def test_everybody_reaches_the_first_stage_and_who_is_not_answered_goes_on():
    stages = summarise(three_stages(), X, Y)["stages"]
    assert stages[0]["reached"] == 1
    for here, after in pairwise(stages):
        assert here["reached"] - here["answered"] == pytest.approx(after["reached"])


def test_by_path_fewer_rows_buy_what_only_some_need():
    by_stage, by_path = (
        {item["name"]: item for item in summarise(three_stages(accounting=a), X, Y)["items"]}
        for a in ("stage", "path")
    )
    assert by_path["1"]["share"] <= by_stage["1"]["share"]
    assert by_path["0"]["share"] == by_stage["0"]["share"] == 1


def test_what_is_never_bought_is_said_so():
    items = summarise(two_stages(np.inf), X, Y)["items"]
    assert [item["share"] for item in items] == [1, 0, 0]
    assert [item["stage"] for item in items] == ["cheap", "full", "full"]
