import sys

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex, to_rgb
from sklearn.linear_model import LogisticRegression

from handmade import Sigmoid, table, two_stages
from small_frontier import curve, small_frontier
from sparing import AdaptLinClassifier, FeatureCosts
from sparing.displays import ConvergenceDisplay, Curve, FrontierDisplay, RoutingDisplay
from sparing.displays._style import BEIGE, COLOURS
from sparing.frontier import Frontier, stage_alone, threshold_systems
from sparing.system import ConfidenceGate, Stage, System

mpl.use("Agg")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture
def frontier():
    X, y = table(seed=1)
    return Frontier.evaluate(threshold_systems(two_stages(), X, n=12), X, y)


def texts(ax):
    return [text.get_text() for text in ax.texts]


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def line(ax, label):
    return next(line for line in ax.lines if line.get_label() == label)


def at_point(ax, cost, score):
    return [
        line.get_marker()
        for line in ax.lines
        if len(line.get_xdata()) == 1
        and (line.get_xdata()[0], line.get_ydata()[0]) == (cost, score)
    ]


# -- FrontierDisplay -------------------------------------------------------------------------------


def test_frontier_is_drawn(frontier):
    display = FrontierDisplay.from_frontier(frontier, name="hand-made", tolerance=0.02)
    ax = display.ax_
    assert display.figure_ is ax.figure
    drawn, best = line(ax, "hand-made"), frontier.pareto()
    assert drawn.get_drawstyle() == "steps-post"
    np.testing.assert_allclose(drawn.get_xdata()[:-1], best.costs)
    np.testing.assert_allclose(drawn.get_ydata()[:-1], best.scores)
    assert "*" in at_point(ax, frontier.full.cost, frontier.full.score)
    assert "D" in at_point(ax, 1, frontier.points[0].score)
    chosen = frontier.at(tolerance=0.02)
    assert "o" in at_point(ax, chosen.cost, chosen.score)
    assert f"full model: {frontier.full.score:.4g} at 5" in texts(ax)
    assert "best cheap model alone" in texts(ax)
    assert any(text.endswith("saved, score within 0.02") for text in texts(ax))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("average cost per row", "accuracy")
    assert legend(ax) == ["hand-made"]
    display.figure_.canvas.draw()


def test_several_curves_with_names(frontier):
    X, y = table(seed=1)
    other = Frontier.evaluate(
        [stage_alone(two_stages(), 0), two_stages(-0.2)], X, y, full=frontier.full.system
    )
    display = FrontierDisplay.from_frontier(
        {"ours": frontier, "theirs": other}, tolerance=0.02, budget=2.5
    )
    ours, theirs = legend(display.ax_)
    assert ours == f"ours: {frontier.saving(0.02):.0%} saved"
    assert theirs.startswith("theirs: ")
    assert {"budget 2.5", "within 0.02 of the full model"} <= set(texts(display.ax_))
    assert any(list(line.get_xdata()) == [2.5, 2.5] for line in display.ax_.lines)
    colours = {to_hex(line(display.ax_, name).get_color()) for name in (ours, theirs)}
    assert colours == {c.lower() for c in COLOURS[:2]}
    display.figure_.canvas.draw()


def test_intervals_are_bands(frontier):
    names = {"one": frontier, "two": frontier}
    display = FrontierDisplay.from_frontier(names, level=0.9, budget=2.5)
    bands = [c for c in display.ax_.collections if c.get_paths()]
    assert len(bands) == 2
    for drawn in display.curves:
        assert drawn.band.shape == (len(drawn.costs), 2)
        assert (drawn.band[:, 0] <= drawn.scores).all()
        assert (drawn.band[:, 1] >= drawn.scores).all()
    low, high = display.ax_.get_ylim()
    assert low <= display.curves[0].band.min()
    assert high >= display.curves[0].band.max()
    assert FrontierDisplay.from_frontier(frontier).curves[0].band is None


def test_dominated_systems_are_faint():
    X, y = table(seed=1)
    wasteful = two_stages(-0.5, prices=(1, 2, 30))
    good = two_stages(-0.5)
    frontier = Frontier.evaluate([good, wasteful], X, y, full=stage_alone(good))
    display = FrontierDisplay.from_frontier(frontier)
    assert display.curves[0].other_costs == pytest.approx([frontier.points[1].cost])
    assert display.ax_.get_legend() is None
    assert display.curves[0].cheap is None


def test_reported_frontiers_show_the_rows_they_report(frontier):
    test = frontier.on(*table(seed=7))
    display = FrontierDisplay.from_frontier(test, tolerance=0.02)
    curve = display.curves[0]
    assert sorted(curve.costs) == curve.costs.tolist() == sorted(test.costs)
    assert curve.marked == (test.at(tolerance=0.02).cost, test.at(tolerance=0.02).score)
    assert curve.saving == test.saving(0.02)


def test_nothing_saved_is_not_marked(frontier):
    display = FrontierDisplay.from_frontier(frontier, name="a", tolerance=-0.5)
    assert display.curves[0].marked is None
    assert display.curves[0].saving == 0


def test_frontier_without_full_model():
    X, y = table(seed=1)
    frontier = Frontier.evaluate([stage_alone(two_stages(), 0)], X, y)
    display = FrontierDisplay.from_frontier(frontier, tolerance=0.1)
    assert display.full is None
    assert texts(display.ax_) == []


def test_frontier_of_arrays():
    _, ax = plt.subplots()
    display = FrontierDisplay.from_predictions(
        [1, 2, 4, 3],
        [0.8, 0.9, 0.95, 0.85],
        full=(8, 0.96),
        cheap=(1, 0.8),
        tolerance=0.02,
        score_name="precision",
        ax=ax,
    )
    assert display.ax_ is ax
    curve = display.curves[0]
    assert curve.costs.tolist() == [1, 2, 4]
    assert curve.other_costs.tolist() == [3]
    assert curve.marked == (4, 0.95)
    assert curve.saving == pytest.approx(0.5)
    assert "50% saved, score within 0.02" in texts(ax)
    assert ax.get_ylabel() == "precision"
    hopeless = FrontierDisplay.from_predictions([1], [0.1], full=(8, 0.96), tolerance=0.0)
    assert hopeless.curves[0].marked is None


def test_frontier_of_an_estimator(frontier):
    X, y = table(200)
    clf = AdaptLinClassifier(LogisticRegression(), cv=2, random_state=0).fit(X, y)
    display = FrontierDisplay.from_estimator(clf, X, y, n_thresholds=5, scoring="f1")
    assert legend(display.ax_) == ["AdaptLinClassifier"]
    assert display.ax_.get_ylabel() == "f1"
    clf.frontier_ = frontier
    kept = FrontierDisplay.from_estimator(clf, X, y, name="kept")
    np.testing.assert_allclose(kept.curves[0].costs, np.sort(frontier.on(X, y).costs))


def test_drawing_again_on_other_axes(frontier):
    display = FrontierDisplay.from_frontier(frontier)
    first = display.ax_
    assert display.plot() is display
    assert display.ax_ is not first
    _, ax = plt.subplots()
    assert display.plot(ax=ax).ax_ is ax


def test_many_curves_and_points():
    rng = np.random.default_rng(0)
    curves = [
        Curve(np.sort(rng.random(60)), np.sort(rng.random(60)), name=str(i)) for i in range(9)
    ]
    display = FrontierDisplay(curves).plot()
    assert len(legend(display.ax_)) == 9
    display.figure_.canvas.draw()


def test_no_frontier():
    other = Frontier.evaluate(curve(), *table(seed=1), scoring="neg_log_loss")
    with pytest.raises(ValueError, match="scorings have no axis in common: accuracy, neg_log_loss"):
        FrontierDisplay.from_frontier({"a": small_frontier(), "b": other})
    with pytest.raises(ValueError, match="no frontier to draw"):
        FrontierDisplay.from_frontier({})


# -- ConvergenceDisplay ----------------------------------------------------------------------------


def test_convergence_of_an_estimator():
    X, y = table(200)
    clf = AdaptLinClassifier(LogisticRegression(), cv=2, random_state=0).fit(X, y)
    display = ConvergenceDisplay.from_estimator(clf)
    labels = [ax.get_ylabel() for ax in display.axes_]
    assert labels == ["objective", "allocation to\nthe full model", "columns bought"]
    assert display.axes_[-1].get_xlabel() == "iteration"
    drawn = np.concatenate([line.get_ydata() for line in display.axes_[0].lines])
    np.testing.assert_allclose(drawn, clf.history_["objective"])
    display.figure_.canvas.draw()


def test_every_run_of_a_path_is_a_line():
    history = {"iteration": [1, 2, 3, 1, 2], "objective": [3, 2, 1.5, 1, 0.9]}
    display = ConvergenceDisplay.from_history(history)
    earlier, last = display.axes_[0].lines
    assert earlier.get_ydata().tolist() == [3, 2, 1.5]
    assert last.get_ydata().tolist() == [1, 0.9]
    assert earlier.get_alpha() < last.get_alpha()


def test_rounding_is_not_shown_as_change():
    history = {
        "iteration": [1, 2],
        "objective": [0.5, 0.5 + 1e-14],
        "allocation_rate": [0.3, 0.3 + 1e-13],
        "n_columns": [0, 0],
    }
    for ax in ConvergenceDisplay.from_history(history).axes_:
        low, high = ax.get_ylim()
        assert high - low > 1e-4


def test_convergence_on_given_axes():
    history = {"iteration": [1, 2], "objective": [1, 2], "n_columns": [3, 3]}
    _, axes = plt.subplots(1, 2)
    assert ConvergenceDisplay.from_history(history, ax=axes).axes_ == list(axes)
    with pytest.raises(ValueError, match="2 panels need as many axes, not 1"):
        ConvergenceDisplay.from_history(history, ax=axes[0])


def test_convergence_says_what_is_wrong():
    with pytest.raises(TypeError, match="LogisticRegression has no history_"):
        ConvergenceDisplay.from_estimator(LogisticRegression())
    with pytest.raises(ValueError, match=r"this one has \['loss'\]"):
        ConvergenceDisplay.from_history({"loss": [1]})


# -- RoutingDisplay --------------------------------------------------------------------------------


def plane(threshold=-0.5):
    """Two columns: the sign of the first answers, rows near 0 go on to the second."""
    from handmade import Margin

    return System(
        (Stage(Sigmoid(0), Margin(0), threshold), Stage(Sigmoid(1))),
        FeatureCosts([1, 1]),
        np.array(["no", "yes"]),
    )


def colour_at(display, x, y):
    mesh = display.ax_.collections[0]
    i = np.abs(display.second - y).argmin()
    j = np.abs(display.first - x).argmin()
    value = np.asarray(mesh.get_array()).reshape(display.goes_on.shape)[i, j]
    return to_hex(mesh.cmap(mesh.norm(value)))


def test_regions():
    X = np.random.default_rng(0).uniform(-2, 2, size=(200, 2))
    y = np.where(X[:, 1] > 0, "yes", "no")
    display = RoutingDisplay.from_estimator(plane(), X, y, resolution=81)
    no, yes, beyond = (colour_at(display, x, 1.0) for x in (-1.5, 1.5, 0.2))
    assert beyond == to_hex(BEIGE)
    assert len({no, yes, beyond}) == 3
    blue, vermilion = to_rgb(no), to_rgb(yes)
    assert blue[2] > blue[0]
    assert vermilion[0] > vermilion[2]
    assert legend(display.ax_) == [
        "cheap model says no",
        "cheap model says yes",
        "goes to the full model",
        "gate",
        "cheap model's boundary",
    ]
    points = [
        c
        for c in display.ax_.collections
        if len(c.get_offsets()) in ((y == "no").sum(), (y == "yes").sum())
    ]
    assert len(points) >= 2
    display.figure_.canvas.draw()


@pytest.mark.parametrize("frame", [pd.DataFrame, polars.DataFrame])
def test_frames_name_the_axes(frame):
    X = np.random.default_rng(0).uniform(-2, 2, size=(50, 2))
    rows = frame({"age": X[:, 0], "pulse": X[:, 1]})
    display = RoutingDisplay.from_estimator(plane(), rows, resolution=20)
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("age", "pulse")


def test_lines_that_are_outside_are_left_out():
    X = np.random.default_rng(0).uniform(1, 2, size=(50, 2))
    display = RoutingDisplay.from_estimator(plane(), X, resolution=20)
    assert legend(display.ax_)[-1] == "goes to the full model"


def test_three_classes():
    class Three:
        columns = np.array([0, 1])

        def predict_proba(self, X):
            score = np.column_stack([X[:, 0], X[:, 1], -X[:, 0] - X[:, 1]])
            return np.exp(score) / np.exp(score).sum(axis=1, keepdims=True)

    system = System(
        (Stage(Three(), ConfidenceGate(), 0.5), Stage(Three())), FeatureCosts([1, 1]), np.arange(3)
    )
    X = np.random.default_rng(0).uniform(-2, 2, size=(50, 2))
    display = RoutingDisplay.from_estimator(system, X, np.arange(50) % 4, resolution=20)
    assert len(legend(display.ax_)) == 6
    display.figure_.canvas.draw()


def test_routing_on_given_axes_and_a_fitted_classifier():
    X, y = table(200)
    clf = AdaptLinClassifier(LogisticRegression(), cv=2, random_state=0).fit(X[:, :2], y)
    _, ax = plt.subplots()
    assert RoutingDisplay.from_estimator(clf, X[:, :2], y, resolution=20, ax=ax).ax_ is ax


def test_routing_says_what_is_wrong():
    X, _ = table(20)
    with pytest.raises(TypeError, match="not LogisticRegression"):
        RoutingDisplay.from_estimator(LogisticRegression(), X)
    with pytest.raises(ValueError, match=r"two columns, X has shape \(20, 3\)"):
        RoutingDisplay.from_estimator(two_stages(), X)
    with pytest.raises(ValueError, match="this system has none"):
        RoutingDisplay.from_estimator(stage_alone(plane()), X[:, :2])


# -- without matplotlib ----------------------------------------------------------------------------


def test_matplotlib_is_asked_for_by_the_name_of_its_extra(monkeypatch, frontier):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    X = np.random.default_rng(0).uniform(-2, 2, size=(50, 2))
    for draw in (
        lambda: FrontierDisplay.from_frontier(frontier),
        lambda: ConvergenceDisplay.from_history({"iteration": [1], "objective": [1]}),
        lambda: RoutingDisplay.from_estimator(plane(), X),
    ):
        with pytest.raises(ImportError, match=r"pip install 'sparing\[plot\]'"):
            draw()


def test_lists_are_no_curves(frontier):
    with pytest.raises(TypeError, match=r"several by name .* not list"):
        FrontierDisplay.from_frontier([frontier])
