import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handmade import table, two_stages
from sparing.report import summarise
from sparing.report._charts import bar, frontier_chart, reliability_chart, ticks

X, Y = table(300, seed=1)


@given(st.floats(-1e5, 1e5), st.floats(1e-3, 1e5), st.integers(2, 8))
def test_ticks_are_round_numbers_inside(low, width, n):
    found = ticks(low, low + width, n)
    numbers = [number for number, _ in found]
    assert 1 <= len(found) <= n + 1
    assert all(low - 1e-6 * width <= v <= low + width + 1e-6 * width for v in numbers)
    assert len({text for _, text in found}) == len(found)
    assert all(float(text.replace(",", "")) == pytest.approx(v) for v, text in found)


def test_points_lie_in_the_frame_dearer_to_the_right_and_better_above():
    frontier = summarise(two_stages(), X, Y)["frontier"]
    chart = frontier_chart(frontier, 400, 300)
    xs, ys = (np.array([p[axis] for p in chart["points"]]) for axis in "xy")
    assert ((chart["left"] <= xs) & (xs <= chart["right"])).all()
    assert ((chart["top"] <= ys) & (ys <= chart["bottom"])).all()
    costs, scores = (np.array([s[name] for s in frontier["systems"]]) for name in ("cost", "score"))
    assert np.corrcoef(xs, costs)[0, 1] == pytest.approx(1, abs=1e-4)
    assert np.corrcoef(ys, scores)[0, 1] == pytest.approx(-1, abs=1e-4)


def test_one_free_system_still_has_a_picture():
    free = {"cost": 0.0, "score": 0.5}
    chart = frontier_chart({"systems": [free], "full": None, "chosen": 0}, 400, 300)
    assert chart["points"] == [chart["chosen"]]
    assert len(chart["up"]) >= 1


def test_honest_bins_lie_on_the_line():
    bins = [{"said": v, "right": v, "low": v - 0.1, "high": min(1, v + 0.1)} for v in (0.7, 0.9, 1)]
    chart = reliability_chart(bins, 300, 300)
    (a, b), points = chart["agree"], chart["points"]
    for point in points:
        along = (point["x"] - a["x"]) / (b["x"] - a["x"])
        assert a["y"] + along * (b["y"] - a["y"]) == pytest.approx(point["y"], abs=0.05)
        assert point["low"] >= point["y"] >= point["high"]


def test_a_bar_is_as_wide_as_its_shares():
    assert bar([0.25, 0.0, 0.75]) == [
        {"stage": 0, "x": 0.0, "width": 25.0},
        {"stage": 2, "x": 25.0, "width": 75.0},
    ]
