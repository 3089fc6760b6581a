import numpy as np
import pytest

from handmade import table, two_stages
from report.models import frontier_of, learnt, three_stages
from sparing.frontier import Frontier
from sparing.report import summarise
from sparing.runtime import load, save

X, Y = table(300, seed=1)


def test_a_gate_without_a_frontier_is_shown_at_several_thresholds():
    system = two_stages()
    frontier = summarise(system, X, Y)["frontier"]
    costs = [s["cost"] for s in frontier["systems"]]
    assert costs == sorted(costs)
    assert len(costs) > 10
    assert costs[0] == system.with_thresholds(np.inf).acquisition_cost(X).mean()
    assert costs[-1] == system.with_thresholds(-np.inf).acquisition_cost(X).mean()
    assert "without a look at their labels" in frontier["note"]


def test_several_gates_are_shown_by_the_last_stage_a_row_may_reach():
    system = three_stages()
    frontier = summarise(system, X, Y)["frontier"]
    assert len(frontier["systems"]) == 3
    cheapest, middle, whole = (
        [stage["share"] for stage in shown["stages"]] for shown in frontier["systems"]
    )
    assert cheapest == [1, 0, 0]
    assert middle[2] == 0
    assert middle[0] == whole[0] == frontier["systems"][frontier["chosen"]]["stages"][0]["share"]


def test_thresholds_do_not_depend_on_labels():
    one, other = (summarise(two_stages(), X, y)["frontier"] for y in (Y, 1 - Y))
    assert [s["cost"] for s in one["systems"]] == [s["cost"] for s in other["systems"]]


def test_a_frontier_keeps_the_choice_of_the_rows_it_was_chosen_on():
    known = frontier_of(two_stages())
    summary = summarise(known, X, Y)
    chosen = known.at(tolerance=0.0).system
    assert summary["headline"]["cost"]["value"] == pytest.approx(chosen.acquisition_cost(X).mean())
    measured = known.on(X, Y)
    assert sorted(s["cost"] for s in summary["frontier"]["systems"]) == sorted(measured.costs)
    assert summary["frontier"]["full"]["score"] == measured.full.score


def test_a_frontier_where_every_system_loses_is_reported_by_its_best():
    known = frontier_of(two_stages())
    worse = Frontier(
        tuple(p for p in known.points if p.score < known.full.score),
        known.full,
        known.scoring,
        known.accounting,
        known.n_rows,
    )
    best = worse.pareto().points[-1].system
    assert summarise(worse, X, Y)["headline"]["cost"]["value"] == pytest.approx(
        best.acquisition_cost(X).mean()
    )


def test_many_systems_are_thinned_and_the_reported_one_stays():
    known = frontier_of(two_stages())
    system = known.points[3].system
    frontier = summarise(known.points[3], X, Y)["frontier"]
    reported = frontier["systems"][frontier["chosen"]]
    assert reported["cost"] == pytest.approx(system.acquisition_cost(X).mean())
    few = summarise(known, X, Y, max_systems=3)["frontier"]
    assert 2 <= len(few["systems"]) <= 4
    assert "are shown" in few["note"]
    with pytest.raises(ValueError, match="max_systems is at least 2"):
        summarise(known, X, Y, max_systems=1)


def test_the_frontier_says_how_to_score():
    known = frontier_of(two_stages(), scoring="balanced_accuracy")
    assert summarise(known, X, Y)["headline"]["scoring"] == "balanced_accuracy"
    matrix = summarise(two_stages(), X, Y, scoring=[[0, 1], [5, 0]])["headline"]
    answers = two_stages().predict(X)
    cost = np.mean((answers != Y) * np.where(Y == 1, 5, 1))
    assert matrix["score"]["value"] == pytest.approx(-cost)


def test_a_scoring_known_by_name_only_must_be_given_again(tmp_path):
    def share_right(y_true, y_pred):
        return float(np.mean(y_true == y_pred))

    clf, rows, y = learnt()
    known = Frontier.evaluate([clf.system_], rows, y, scoring=share_right)
    save(clf, tmp_path / "clf.sparing", frontier=known)
    bundle = load(tmp_path / "clf.sparing")
    with pytest.raises(ValueError, match=r"scored by 'share_right'.*scoring="):
        summarise(bundle, rows, y)
    head = summarise(bundle, rows, y, scoring=share_right)["headline"]
    assert head["scoring"] == "share_right"
    assert head["score"]["value"] == pytest.approx(np.mean(clf.predict(rows) == y))
