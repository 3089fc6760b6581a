import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from handmade import table, two_stages
from small_frontier import curve, small_frontier
from sparing import AdaptLinClassifier
from sparing.datasets import make_synthetic1
from sparing.frontier import Frontier, Point, stage_alone
from sparing.metrics import (
    mean_acquisition_cost,
    saving_at_tolerance,
)


@pytest.fixture
def frontier():
    return small_frontier()


def test_fitted_classifiers_are_systems_too():
    X, y = table(200)
    clf = AdaptLinClassifier(RandomForestClassifier(5, random_state=0), cv=2, random_state=0).fit(
        X, y
    )
    frontier = Frontier.evaluate([clf], X, y)
    assert frontier.points[0].cost == pytest.approx(mean_acquisition_cost(clf, X))
    assert frontier.points[0].score == clf.score(X, y)
    assert frontier.full.score == clf.estimator_.score(X, y)


def test_full_model_by_hand_and_none_at_all():
    X, y = table(seed=1)
    cheap = stage_alone(two_stages(), 0)
    alone = Frontier.evaluate([cheap], X, y)
    assert alone.full is None
    for ask in (lambda: alone.at(tolerance=0), lambda: alone.saving(0)):
        with pytest.raises(ValueError, match="no full model to compare with"):
            ask()
    given = Frontier.evaluate([cheap], X, y, full=stage_alone(two_stages()))
    assert given.full.cost == 5
    assert given.saving(1.0) == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"systems": []}, ValueError, "at least one system"),
        ({"systems": [3]}, TypeError, "A system or a fitted routed classifier is needed, not int"),
        ({"labels": ["a"]}, ValueError, "labels has 1 entries for 9 systems"),
        ({"accounting": "row"}, ValueError, "accounting is 'stage' or 'path'"),
        ({"y": ["a"] * 400}, ValueError, "y has none of the classes"),
        ({"y": [0]}, ValueError, "inconsistent numbers"),
        ({"scoring": lambda y, p: np.nan}, ValueError, "gave NaN"),
        ({"groups": [0] * 400}, ValueError, "does not rank"),
    ],
)
def test_evaluate_says_what_is_wrong(change, error, message):
    X, y = table(seed=1)
    arguments = {"systems": curve(), "X": X, "y": y} | change
    with pytest.raises(error, match=message):
        Frontier.evaluate(**arguments)


# -- choosing --------------------------------------------------------------------------------------


def test_at(frontier):
    assert frontier.at(budget=6).score == frontier.scores.max()
    chosen = frontier.at(tolerance=0.02)
    assert isinstance(chosen, Point)
    assert chosen.score >= frontier.full.score - 0.02
    assert frontier.saving(0.02) == pytest.approx(1 - chosen.cost / 5)
    assert saving_at_tolerance(frontier, tolerance=0.02) == frontier.saving(0.02)
    arrays = saving_at_tolerance(
        frontier.costs, frontier.scores, tolerance=0.02, full_cost=5, full_score=frontier.full.score
    )
    assert arrays == pytest.approx(frontier.saving(0.02))
    assert frontier.at(budget=np.inf).score == frontier.scores.max()


def test_impossible_wishes_name_what_there_is(frontier):
    cheapest, best = frontier.points[0], frontier.at(budget=np.inf)
    message = (
        f"The cheapest costs {cheapest.cost:.4g} and scores {cheapest.score:.4g}; the best scores "
        f"{best.score:.4g} and costs {best.cost:.4g}."
    )
    with pytest.raises(ValueError, match=r"No system costs at most 0\.5 on average") as error:
        frontier.at(budget=0.5)
    assert message in str(error.value)
    with pytest.raises(
        ValueError, match=r"No system scores within -0\.5 of the full model"
    ) as error:
        frontier.at(tolerance=-0.5)
    assert message in str(error.value)
    assert frontier.saving(-0.5) == 0


def test_validation_chooses_and_test_reports(frontier):
    X, y = table(seed=5)
    test = frontier.on(X, y)
    assert [p.system for p in test] == [p.system for p in frontier.pareto()]
    assert test.pareto().points == test.points
    for wish in [{"budget": 2.0}, {"budget": 3.0}, {"tolerance": 0.02}, {"tolerance": 0.1}]:
        chosen, reported = frontier.at(**wish), test.at(**wish)
        assert reported.system is chosen.system
        assert reported.score == np.mean(chosen.system.predict(X) == y)
    assert test.saving(0.02) == pytest.approx(1 - test.at(tolerance=0.02).cost / test.full.cost)
    third = test.on(*table(seed=6))
    assert third.at(budget=2.0).system is frontier.at(budget=2.0).system


def test_a_saving_on_other_rows_is_told_as_it_is():
    """The cheap column is dear and the full model needs it not: only rows that stay save, and there all go on."""
    X, y = table(seed=1)
    frontier = Frontier.evaluate([two_stages(prices=(3, 2, 3))], X, y)
    hard = np.abs(X[:, 0]) < 0.5
    assert frontier.saving(0.1) == pytest.approx(1 - frontier.points[0].cost / 5)
    assert frontier.on(X[hard], y[hard]).saving(0.1) == pytest.approx(1 - (3 + 2 + 3) / 5)


def test_a_fitted_classifier_stands_for_its_systems():
    X, y = make_synthetic1()
    clf = AdaptLinClassifier(cv=2, random_state=0).fit(X[:300], y[:300])
    frontier = Frontier.evaluate(clf, X[300:500], y[300:500])
    assert len(frontier) == len(clf.staged_systems())
