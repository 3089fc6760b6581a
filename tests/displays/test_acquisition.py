import sys

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle
from sklearn.linear_model import LogisticRegression

from handmade import Halves, Margin, Sigmoid, table, two_stages
from sparing import AcquisitionDisplay, AdaptLinClassifier, FeatureCosts
from sparing.displays._style import COLOURS
from sparing.frontier import stage_alone
from sparing.system import ACCOUNTINGS, ConfidenceGate, Stage, System

mpl.use("Agg")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def three_stages(call_price=0.0):
    """Column 0, then 1 with a shared item, then a model that reads column 2 on some rows alone."""
    return System(
        (
            Stage(Sigmoid(0), Margin(0), -0.8, name="questions"),
            Stage(Sigmoid(1, also=(0,)), ConfidenceGate(), 0.4, name="blood"),
            Stage(Halves(0, also=(1, 2)), name="full"),
        ),
        FeatureCosts([1, 2, 4], shared={"draw": (0.5, [1, 2])}, call_price=call_price),
        np.array([0, 1]),
    )


def labels(display):
    return [label.get_text() for label in display.ax_.get_yticklabels()]


def bars(display, name):
    """Lengths of the parts of one line's bar."""
    place = labels(display).index(name)
    parts = [p for p in display.ax_.patches if isinstance(p, Rectangle)]
    return [p.get_width() for p in parts if abs(p.get_y() + p.get_height() / 2 - place) < 0.1]


def texts(display):
    return [text.get_text() for text in display.ax_.texts]


@pytest.mark.parametrize("accounting", [None, *ACCOUNTINGS])
@pytest.mark.parametrize("call_price", [0.0, 3.0, (0.5, 0.0, 2.0)])
def test_the_numbers_are_the_systems_own(accounting, call_price):
    X, y = table(seed=2)
    system = three_stages(call_price)
    display = AcquisitionDisplay.from_system(system, X, y, accounting=accounting)
    route, cost = system.route(X), system.acquisition_cost(X, accounting=accounting)
    assert set(route) == {0, 1, 2}
    right = system.predict(X) == y
    items = system.costs.items_of(system.acquisition_mask(X, accounting=accounting))
    for stage in range(3):
        here = route == stage
        assert display.answered[stage] == pytest.approx(here.mean())
        assert display.entered[stage] == pytest.approx((route >= stage).mean())
        assert display.stage_costs[stage] == pytest.approx(cost[here].mean())
        assert display.scores[stage] == pytest.approx(right[here].mean())
        np.testing.assert_allclose(display.paid[stage], items[here].sum(axis=0) / len(X))
    assert display.mean_cost == pytest.approx(cost.mean())
    # What the lines say each row pays for adds up to what it pays.
    lines = [line for line in display._lines() if line.is_bar]
    assert sum(line.price * line.shares.sum() for line in lines) == pytest.approx(cost.mean())


def test_items_stand_below_the_stage_that_buys_them():
    X, _ = table(seed=2)
    display = AcquisitionDisplay.from_system(three_stages(call_price=3), X)
    assert labels(display) == [
        "0  questions", "column 0", "1  blood", "column 1", "draw", "2  full", "column 2", "its call",
        "all together",
    ]  # fmt: skip
    np.testing.assert_allclose(bars(display, "column 0"), display.answered)
    np.testing.assert_allclose(bars(display, "draw"), [0, *display.answered[1:]])
    np.testing.assert_allclose(bars(display, "its call"), [0, 0, display.answered[2]])
    first, *_ = [text for text in texts(display) if text.startswith("answers")]
    assert first == f"answers {display.answered[0]:.0%} of the rows, 1 each"
    assert {"1.0", "2.0", "0.5", "4.0", "3.0"} <= set(texts(display))
    last = [to_hex(p.get_facecolor()) for p in display.ax_.patches][-1]
    assert last == COLOURS[1].lower()
    display.figure_.canvas.draw()


def test_everything_is_inside_the_picture():
    X, y = table(seed=2)
    display = AcquisitionDisplay.from_system(three_stages(call_price=123456.5), X, y)
    display.figure_.canvas.draw()
    box, whole = display.ax_.get_tightbbox(), display.figure_.bbox
    assert whole.x0 <= box.x0 < box.x1 <= whole.x1 + 1
    assert whole.y0 <= box.y0 < box.y1 <= whole.y1 + 1


@pytest.mark.parametrize("accounting", ACCOUNTINGS)
@pytest.mark.parametrize("max_items", [0, 1, 3, 100])
def test_many_items_are_put_together(accounting, max_items):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 60))
    prices = rng.integers(1, 9, 60)
    system = System(
        (Stage(Sigmoid(0, also=(1,)), Margin(0), -0.5), Stage(Halves(0, also=tuple(range(1, 50))))),
        FeatureCosts(prices),
        np.array([0, 1]),
    )
    display = AcquisitionDisplay.from_system(system, X, accounting=accounting, max_items=max_items)
    lines = [line for line in display._lines() if line.is_bar]
    spent = [line.price * line.shares.sum() for line in lines]
    assert sum(spent) == pytest.approx(system.acquisition_cost(X, accounting=accounting).mean())
    assert sum(line.price for line in lines) == pytest.approx(prices.sum())
    assert len(lines) <= max_items + 4
    assert lines[-1].name == "never bought: 10 items"
    display.figure_.canvas.draw()


def test_the_dearest_are_shown():
    system = System(
        (Stage(Sigmoid(0, also=tuple(range(1, 6)))),),
        FeatureCosts({"a": 1, "b": 9, "c": 2, "d": 8, "e": 1, "f": 0}),
        np.array([0, 1]),
    )
    X = pd.DataFrame(np.zeros((4, 6)), columns=list("abcdef"))
    display = AcquisitionDisplay.from_system(system, X, max_items=2)
    assert labels(display) == ["stage", "b", "d", "4 others", "all together"]
    assert texts(display)[-1 - len(("price", "per row"))] == "21.00"


def test_every_stage_shows_its_dearest_item():
    paid = [[0.5] * 20 + [0] * 20, [0.5] * 40]
    display = AcquisitionDisplay(
        ["a", "b"], [0.5, 0.5], [20, 40], range(40), np.ones(40), np.repeat([0, 1], 20), paid,
        max_items=4,
    ).plot()  # fmt: skip
    assert labels(display) == [
        "0  a", "column 0", "column 1", "18 others", "1  b", "column 20", "column 21", "18 others",
        "all together",
    ]  # fmt: skip


def test_one_stage_and_no_full_model():
    X, y = table()
    alone = stage_alone(two_stages(), 0)
    display = AcquisitionDisplay.from_system(alone, X, y)
    assert display.answered.tolist() == [1.0]
    assert labels(display) == ["cheap", "column 0", "never bought: 2 items", "all together"]
    # The full model has a colour of its own only when there is one besides others.
    assert COLOURS[1].lower() not in {to_hex(p.get_facecolor()) for p in display.ax_.patches}


def test_a_stage_that_answers_nothing():
    X, y = table()
    display = AcquisitionDisplay.from_system(two_stages(np.inf), X, y)
    assert display.answered.tolist() == [1.0, 0.0]
    assert np.isnan(display.stage_costs[1])
    assert np.isnan(display.scores[1])
    assert display.mean_cost == 1.0
    assert "answers no row" in texts(display)


def test_small_shares_are_not_rounded_to_nothing():
    display = AcquisitionDisplay(
        ["a", "b"], [0.998, 0.002], [1, 2], ["x"], [0.0], [0], [[0.998], [0.002]]
    ).plot()
    answers = [text for text in texts(display) if text.startswith("answers")]
    assert answers[0].startswith("answers over 99%")
    assert answers[1].startswith("answers under 1%")


def test_names_are_shown_as_they_are():
    names = ["$x^2$", "a" * 100, "50% <b>", "new\nline"]
    display = AcquisitionDisplay(
        ["$s_1$"], [1.0], [4.0], names, np.ones(4), np.zeros(4), np.ones((1, 4))
    ).plot()
    shown = labels(display)
    assert shown[:2] == ["$s_1$", "$x^2$"]
    assert shown[2] == "a" * 27 + "…"
    assert shown[4] == "new line"
    assert not any(label.get_parse_math() for label in display.ax_.get_yticklabels())
    display.figure_.canvas.draw()


def test_a_fitted_classifier_and_given_axes():
    X, y = table(200)
    clf = AdaptLinClassifier(LogisticRegression(), cv=2, random_state=0).fit(X, y)
    _, ax = plt.subplots()
    display = AcquisitionDisplay.from_estimator(clf, X, ax=ax)
    assert display.ax_ is ax
    assert display.scores is None
    assert display.mean_cost == pytest.approx(clf.acquisition_cost(X).mean())
    assert display.plot() is display
    assert display.ax_ is not ax


def test_what_is_wrong_is_said():
    X, _ = table(20)
    with pytest.raises(TypeError, match="not LogisticRegression"):
        AcquisitionDisplay.from_estimator(LogisticRegression(), X)
    with pytest.raises(ValueError, match="X has no rows"):
        AcquisitionDisplay.from_system(two_stages(), X[:0])
    with pytest.raises(ValueError, match="y has 3 labels, X has 20 rows"):
        AcquisitionDisplay.from_system(two_stages(), X, [0, 1, 0])


def test_matplotlib_is_asked_for_by_the_name_of_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'sparing\[plot\]'"):
        AcquisitionDisplay.from_system(two_stages(), table(20)[0])
