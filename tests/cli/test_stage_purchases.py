import pytest

from sparing import FeatureCosts
from sparing.cli.stage_purchases import purchases, purchases_text


@pytest.fixture
def costs():
    return FeatureCosts(
        {"age": 0, "TSH": 20, "T3": 9},
        shared={"draw": (2, ["TSH", "T3"])},
        derived={"ratio": ["TSH", "T3"]},
        call_price=5,
    )


def test_what_is_bought_adds_up_to_the_price(costs):
    stages = [("a", ["age"]), ("b", ["T3"]), ("full", ["age", "ratio"])]
    found = purchases(costs, stages, has_full=True, shares=[0.5, 0.3, 0.2])
    assert [list(stage["buys"]) for stage in found] == [["age"], ["T3", "draw"], ["TSH"]]
    paid = 0.0
    for stage in found:
        paid += sum(stage["buys"].values())
        assert stage["price"] == paid + 5 * (stage["name"] == "full")
    assert found[-1]["price"] == costs.total + 5
    without = purchases(costs, stages, has_full=False)
    assert without[-1]["price"] == costs.total


def test_the_text_names_dear_things_first_and_counts_the_rest(costs):
    text = purchases_text(purchases(costs, [("full", costs.columns)], has_full=True), most=2)
    assert text.splitlines()[-1].endswith("TSH (20), and 2 more, 1 free")
    nothing = purchases(costs, [("a", ["T3"]), ("b", ["T3"])], has_full=False)
    assert purchases_text(nothing).splitlines()[-1].endswith("nothing new")


def test_hundreds_of_columns_are_one_short_line():
    costs = FeatureCosts({f"measurement {i}": 1 + i for i in range(400)})
    text = purchases_text(purchases(costs, [("full", costs.columns)], has_full=True))
    assert text.endswith("measurement 393 (394), and 393 more")
