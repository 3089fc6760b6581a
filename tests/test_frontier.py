import pickle
import sys
from dataclasses import replace

import numpy as np
import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import balanced_accuracy_score, log_loss

from handmade import Halves, Sigmoid, table, two_stages
from sparing import AdaptLinClassifier, FeatureCosts
from sparing._choice import best_within_budget, cheapest_within_tolerance
from sparing._rows import ScoredRows
from sparing.datasets import make_synthetic1
from sparing.frontier import Frontier, Point, pareto_order, stage_alone, threshold_systems
from sparing.metrics import (
    bootstrap_interval,
    mean_acquisition_cost,
    ndcg_at_k,
    saving_at_tolerance,
)
from sparing.system import ConfidenceGate, Stage, System


def curve(n=9, **options):
    X, _ = table()
    return threshold_systems(two_stages(**options), X, n=n)


@pytest.fixture
def frontier():
    X, y = table(seed=1)
    return Frontier.evaluate(curve(), X, y)


# -- the Pareto set --------------------------------------------------------------------------------

pairs = st.integers(1, 25).flatmap(
    lambda n: st.tuples(
        hnp.arrays(float, n, elements=st.integers(0, 6).map(float)),
        hnp.arrays(float, n, elements=st.integers(0, 6).map(float)),
    )
)


def beats(cost, score, other_cost, other_score):
    return (
        cost <= other_cost and score >= other_score and (cost < other_cost or score > other_score)
    )


@given(pairs)
def test_pareto_keeps_the_first_of_every_non_dominated_pair(systems):
    costs, scores = systems
    n = len(costs)
    expected = [
        i
        for i in range(n)
        if not any(beats(costs[j], scores[j], costs[i], scores[i]) for j in range(n))
        and not any(costs[j] == costs[i] and scores[j] == scores[i] for j in range(i))
    ]
    kept = pareto_order(costs, scores)
    assert sorted(kept) == expected
    assert (np.diff(costs[kept]) > 0).all()
    assert (np.diff(scores[kept]) > 0).all()


def test_pareto_of_nothing_and_of_hopeless_scores():
    assert len(pareto_order([], [])) == 0
    assert pareto_order([2, 1], [-np.inf, -np.inf]).tolist() == [1]


@given(pairs, st.integers(-1, 7))
def test_best_within_a_budget(systems, budget):
    costs, scores = systems
    allowed = [i for i in range(len(costs)) if costs[i] <= budget]
    if not allowed:
        with pytest.raises(ValueError, match="The cheapest costs"):
            best_within_budget(costs, scores, budget)
        return
    index = best_within_budget(costs, scores, budget)
    assert (-scores[index], costs[index]) == min((-scores[i], costs[i]) for i in allowed)
    assert index in pareto_order(costs, scores) or any(
        costs[j] == costs[index] and scores[j] == scores[index] for j in range(index)
    )


@given(pairs, st.integers(0, 6), st.integers(-1, 7))
def test_cheapest_within_a_tolerance(systems, full_score, tolerance):
    costs, scores = systems
    allowed = [i for i in range(len(costs)) if scores[i] >= full_score - tolerance]
    if not allowed:
        with pytest.raises(ValueError, match="the best scores"):
            cheapest_within_tolerance(costs, scores, full_score, tolerance)
        return
    index = cheapest_within_tolerance(costs, scores, full_score, tolerance)
    assert (costs[index], -scores[index]) == min((costs[i], -scores[i]) for i in allowed)


# -- evaluating ------------------------------------------------------------------------------------


@pytest.mark.parametrize("accounting", ["stage", "path"])
@pytest.mark.parametrize("weighted", [False, True])
def test_numbers_are_those_of_the_systems(accounting, weighted):
    X, y = table(seed=1)
    weight = np.random.default_rng(0).random(len(y)) if weighted else None
    systems = curve(full=Halves(2, 5.0, also=(1,)), call_price=2)
    frontier = Frontier.evaluate(
        systems, X, y, accounting=accounting, sample_weight=weight, labels=["a"] * len(systems)
    )
    for system, point in zip(systems, frontier, strict=True):
        assert point.system is system
        assert point.label == "a"
        cost = mean_acquisition_cost(system, X, accounting=accounting, sample_weight=weight)
        assert point.cost == pytest.approx(cost)
        assert point.score == pytest.approx(np.average(system.predict(X) == y, weights=weight))
        sent = np.average(system.route(X), weights=weight)
        assert point.stage_rates == pytest.approx((1 - sent, sent))
    last = stage_alone(systems[0])
    assert frontier.full.cost == pytest.approx(
        mean_acquisition_cost(last, X, accounting=accounting, sample_weight=weight)
    )
    assert frontier.full.score == pytest.approx(np.average(last.predict(X) == y, weights=weight))


def test_parts_in_common_are_asked_once():
    X, y = table(seed=1)
    calls = []
    full = Sigmoid(2, 5.0, also=(1,), calls=calls)
    first, second = two_stages(full=full), two_stages(full=full)
    mixed = [
        s
        for pair in zip(*(threshold_systems(s, X, n=20) for s in (first, second)), strict=True)
        for s in pair
    ]
    Frontier.evaluate(mixed, X, y)
    assert calls == [len(X)]


def test_cascades_of_many_stages():
    X, y = table(seed=1)
    calls = []
    stages = tuple(
        Stage(Sigmoid(0, s + 1.0, calls=calls), ConfidenceGate(), 0.4) for s in range(12)
    )
    cascade = System((*stages, Stage(Sigmoid(2, 5.0))), FeatureCosts([1, 1, 1]), np.array([0, 1]))
    systems = [cascade.with_thresholds(t) for t in np.linspace(0, 0.5, 15)]
    frontier = Frontier.evaluate(systems, X, y)
    assert calls == [len(X)] * 12
    for point in frontier:
        assert point.score == np.mean(point.system.predict(X) == y)
        assert len(point.stage_rates) == 13


@pytest.mark.parametrize("scoring", ["neg_log_loss", balanced_accuracy_score, [[0, 1], [9, 0]]])
def test_scoring(scoring):
    X, y = table(seed=1)
    systems = curve()
    scores = Frontier.evaluate(systems, X, y, scoring=scoring).scores
    for system, score in zip(systems, scores, strict=True):
        said = system.predict(X)
        if scoring == "neg_log_loss":
            assert score == pytest.approx(-log_loss(y, system.predict_proba(X)))
        elif scoring is balanced_accuracy_score:
            assert score == pytest.approx(balanced_accuracy_score(y, said))
        else:
            assert score == pytest.approx(-np.mean(np.array(scoring)[y, said]))


def test_scorers_see_the_rows_themselves():
    X, y = table(seed=1)
    seen = []

    def scorer(estimator, rows, labels):
        seen.append(rows is X)
        return float((estimator.predict(rows) == labels).mean())

    frontier = Frontier.evaluate(curve(), X, y, scoring=scorer)
    assert all(seen)
    assert frontier.scores == pytest.approx(Frontier.evaluate(curve(), X, y).scores)


def test_ranking_needs_the_queries_of_the_rows_at_hand():
    (X, y), (X_test, y_test) = table(seed=1), table(300, seed=2)
    query, query_test = np.arange(400) % 20, np.arange(300) % 30
    frontier = Frontier.evaluate(curve(), X, y, scoring=ndcg_at_k, groups=query)
    test = frontier.on(X_test, y_test, groups=query_test)
    last = test.points[-1]
    expected = ndcg_at_k(y_test, last.system.predict_proba(X_test)[:, 1], query_test)
    assert last.score == pytest.approx(expected)


def test_labels_of_the_full_model_are_its_own():
    class Cautious(Sigmoid):
        def decide(self, X):
            return (self.predict_proba(X)[:, 1] > 0.9).astype(int)

    X, y = table(seed=1)
    systems = curve(full=Cautious(2, 5.0))
    frontier = Frontier.evaluate(systems, X, y)
    for point in [*frontier, frontier.full]:
        assert point.score == np.mean(point.system.predict(X) == y)


def test_frames_and_string_labels():
    X, y = table(seed=1)
    names = np.array(["no", "yes"])
    systems = [replace(system, classes=names) for system in curve()]
    frame = polars.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})
    named = Frontier.evaluate(systems, frame, names[y])
    assert named.scores == pytest.approx(Frontier.evaluate(curve(), X, y).scores)
    again = Frontier.evaluate(systems, ScoredRows(frame), polars.Series(names[y]))
    assert again.scores == pytest.approx(named.scores)


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
    ("call_price", "cheap", "full"), [(0, 1, 5), (10, 1, 15), ((2.0, 10.0), 3, 15)]
)
def test_stage_alone_pays_its_own_call(call_price, cheap, full):
    system = two_stages(call_price=call_price)
    X, _ = table()
    assert set(stage_alone(system, 0).acquisition_cost(X)) == {cheap}
    assert set(stage_alone(system).acquisition_cost(X)) == {full}
    np.testing.assert_array_equal(
        stage_alone(system, 0).predict(X), system.with_thresholds(np.inf).predict(X)
    )


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


def test_accountings_are_not_mixed():
    X, y = table(seed=1)
    systems = [two_stages(), two_stages(accounting="path")]
    with pytest.raises(ValueError, match="costs counted differently"):
        Frontier.evaluate(systems, X, y)
    assert Frontier.evaluate(systems, X, y, accounting="path").accounting == "path"


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


@pytest.mark.parametrize("wish", [{}, {"budget": 1, "tolerance": 0}])
def test_one_wish_at_a_time(frontier, wish):
    with pytest.raises(ValueError, match="Give budget or tolerance"):
        frontier.at(**wish)


def test_wishes_that_are_not_numbers(frontier):
    with pytest.raises(ValueError, match="budget is a number"):
        frontier.at(budget=np.nan)
    with pytest.raises(ValueError, match="tolerance is a finite number"):
        frontier.at(tolerance=np.nan)


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


def test_merging(frontier):
    X, y = table(seed=1)
    other = Frontier.evaluate([stage_alone(two_stages(), 0)], X, y, labels=["alone"])
    both = frontier + other
    assert len(both) == len(frontier) + 1
    assert both.full is frontier.full
    assert (other + frontier).full is frontier.full
    again = both.merged(frontier)
    assert len(again.pareto()) == len(both.pareto())
    test = frontier.on(X, y) + frontier.on(X, y)
    assert test.at(budget=2.0).system is frontier.at(budget=2.0).system
    with pytest.raises(TypeError):
        frontier + 3


def test_only_comparable_frontiers_merge(frontier):
    X, y = table(seed=1)
    with pytest.raises(ValueError, match="different numbers of rows"):
        frontier + Frontier.evaluate(curve(), X[:50], y[:50])
    with pytest.raises(ValueError, match="different scorings"):
        frontier + Frontier.evaluate(curve(), X, y, scoring="f1")
    with pytest.raises(ValueError, match="different accountings"):
        frontier + Frontier.evaluate(curve(), X, y, accounting="path")
    with pytest.raises(ValueError, match="different ways of choosing"):
        frontier + frontier.on(X, y)


def test_merging_methods_by_name(frontier):
    X, y = table(seed=1)
    alone = Frontier.evaluate([stage_alone(two_stages(), 0)], X, y, labels=["alone"])
    both = Frontier.merge({"gated": frontier, "cheap": alone})
    assert [p.label["method"] for p in both] == ["gated"] * len(frontier) + ["cheap"]
    assert both.points[-1].label["label"] == "alone"
    assert len(Frontier.merge([frontier, alone])) == len(both)
    assert Frontier.merge([frontier]) is frontier
    test = Frontier.merge({"gated": frontier.on(*table(seed=5))})
    assert test.chosen.points[0].label == {"method": "gated"}
    with pytest.raises(ValueError, match="no frontier to merge"):
        Frontier.merge({})


# -- a few numbers ---------------------------------------------------------------------------------


@given(st.floats(1.0, 5.9))
def test_area_is_the_average_over_budgets(low):
    X, y = table(seed=1)
    validated = Frontier.evaluate(curve(), X, y)
    for judged in (validated, validated.on(*table(seed=5))):
        budgets = np.linspace(low, 6, 4001)[:-1]
        scores = [judged.at(budget=b).score for b in budgets[::50]]
        assert judged.area(low, 6) == pytest.approx(np.mean(scores), abs=0.01)


def test_area_has_plain_ends(frontier):
    assert frontier.area() == frontier.area(frontier.costs.min(), frontier.full.cost)
    with pytest.raises(ValueError, match="Nothing can be bought for 0"):
        frontier.area(0.0)
    with pytest.raises(ValueError, match="high must be larger"):
        frontier.area(3, 2)
    alone = Frontier.evaluate(curve(2)[:1], *table(seed=1), full=stage_alone(two_stages()))
    assert alone.area() == alone.scores[0]


def test_summary(frontier):
    summary = frontier.summary([0.0, 0.05], level=0.9)
    assert summary["saving"] == {0.0: frontier.saving(0.0), 0.05: frontier.saving(0.05)}
    assert summary["full"]["cost"] == frontier.full.cost
    assert summary["best"]["score"] == frontier.scores.max()
    for number, (low, high) in [
        (summary["area"], summary["area_interval"]),
        (summary["saving"][0.05], summary["saving_interval"][0.05]),
    ]:
        assert low < number < high
    bare = Frontier.evaluate([stage_alone(s, 0) for s in curve(2)], *table(seed=1), labels="ab")
    assert bare.full is None
    with pytest.raises(ValueError, match="high must be larger"):
        bare.summary()
    assert bare.summary(high=5)["saving"] == {}


# -- intervals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_intervals_are_those_of_the_metrics(weighted):
    X, y = table(300, seed=1)
    weight = np.random.default_rng(0).random(len(y)) if weighted else None
    systems = curve(4)
    frontier = Frontier.evaluate(systems, X, y, sample_weight=weight)
    drawn = frontier.intervals(0.9, n_resamples=4000)
    full = (frontier.full.system.predict(X) == y).astype(float)
    for i, system in enumerate(systems):
        right = (system.predict(X) == y).astype(float)
        options = {"level": 0.9, "sample_weight": weight, "random_state": 1, "n_resamples": 4000}
        expected = bootstrap_interval(right, **options)
        assert drawn.score[i] == pytest.approx(expected[1:], abs=0.01)
        expected = bootstrap_interval(full, other=right, **options)
        assert drawn.loss[i] == pytest.approx(expected[1:], abs=0.01)
        expected = bootstrap_interval(system.acquisition_cost(X), **options)
        assert drawn.cost[i] == pytest.approx(expected[1:], abs=0.05)
    assert drawn.saving == pytest.approx(1 - drawn.cost[:, ::-1] / frontier.full.cost)


def test_intervals_of_a_matrix_and_of_a_scorer_agree():
    X, y = table(200, seed=1)
    systems, matrix = curve(3), [[0, 1], [4, 0]]

    def scorer(estimator, rows, labels):
        return -float(np.array(matrix)[labels, estimator.predict(rows)].mean())

    fast, slow = (
        Frontier.evaluate(systems, X, y, scoring=scoring).intervals(0.8, n_resamples=600)
        for scoring in (matrix, scorer)
    )
    assert fast.score == pytest.approx(slow.score, abs=0.05)
    assert fast.cost == pytest.approx(slow.cost, abs=0.1)


def test_intervals_of_rankings_draw_whole_queries():
    X, y = table(200, seed=1)
    query = np.arange(200) % 10
    frontier = Frontier.evaluate(curve(3), X, y, scoring=ndcg_at_k, groups=query)
    drawn = frontier.intervals(n_resamples=40)
    assert (drawn.score[:, 0] <= frontier.scores).all()
    assert (drawn.score[:, 1] >= frontier.scores).all()
    # One query only: every resample is the same.
    one = Frontier.evaluate(curve(3), X, y, scoring=ndcg_at_k, groups=np.zeros(200))
    assert np.ptp(one.intervals(n_resamples=5).resampled_scores, axis=0).max() < 1e-12


def test_intervals_say_what_is_wrong(frontier):
    with pytest.raises(ValueError, match="level is between 0 and 1"):
        frontier.intervals(1.0)
    with pytest.raises(ValueError, match="n_resamples is at least 1"):
        frontier.intervals(n_resamples=0)
    with pytest.raises(ValueError, match="this frontier has none any more"):
        pickle.loads(pickle.dumps(frontier)).intervals()


def test_errors_among_the_rows_kept(frontier):
    X, y = table(seed=1)
    for point in frontier:
        kept = point.system.route(X) == 0
        wrong = np.mean(point.system.predict(X)[kept] != y[kept]) if kept.any() else np.nan
        assert point.kept_error == pytest.approx(wrong, nan_ok=True)


# -- other prices ----------------------------------------------------------------------------------


@pytest.mark.parametrize("accounting", ["stage", "path"])
@pytest.mark.parametrize(
    "costs", [[4, 0, 1], FeatureCosts([4, 0, 1], shared={"draw": (2, [0, 2])}, call_price=(1, 7))]
)
def test_repricing_is_evaluating_again(accounting, costs):
    X, y = table(seed=1)
    weight = np.random.default_rng(0).random(len(y))
    systems = curve(full=Halves(2, 5.0, also=(1,)))
    options = {"accounting": accounting, "sample_weight": weight}
    moved = Frontier.evaluate(systems, X, y, **options).reprice(costs)
    again = Frontier.evaluate([s.with_costs(costs) for s in systems], X, y, **options)
    assert moved.costs == pytest.approx(again.costs)
    assert moved.scores == pytest.approx(again.scores)
    assert moved.full.cost == pytest.approx(again.full.cost)
    np.testing.assert_array_equal(
        moved.points[3].system.acquisition_cost(X), again.points[3].system.acquisition_cost(X)
    )


def test_repricing_chooses_again_where_systems_were_chosen(frontier):
    X, y = table(seed=5)
    test = frontier.on(X, y)
    moved = test.reprice([1, 20, 30])
    assert moved.at(budget=20).system.costs == FeatureCosts([1, 20, 30])
    assert moved.chosen.costs.max() > test.chosen.costs.max()


def test_stored_frontiers_leave_the_rows_behind(frontier):
    X, y = table(seed=1)
    stored = pickle.loads(pickle.dumps(frontier))
    assert stored.costs == pytest.approx(frontier.costs)
    assert stored.reprice([2, 4, 6]).costs == pytest.approx(2 * frontier.costs)
    small = pickle.dumps(Frontier.evaluate(curve(2), *table(2000)))
    assert len(small) < 20_000
    by_path = pickle.loads(pickle.dumps(Frontier.evaluate(curve(), X, y, accounting="path")))
    with pytest.raises(ValueError, match="By path the cost depends on the rows"):
        by_path.reprice([2, 4, 6])


def test_merged_frontiers_remember_common_rows():
    X, y = table(seed=1)
    options = {"accounting": "path", "sample_weight": np.ones(len(y))}
    one, two = (Frontier.evaluate(curve(), X, y, **options) for _ in range(2))
    assert (one + two).reprice([2, 4, 6]).costs == pytest.approx(2 * (one + two).costs)
    other = Frontier.evaluate(curve(), X.copy(), y, **options)
    with pytest.raises(ValueError, match="merged from different rows"):
        (one + other).reprice([2, 4, 6])
    unweighted = Frontier.evaluate(curve(), X, y, accounting="path")
    with pytest.raises(ValueError, match="merged from different rows"):
        (one + unweighted).reprice([2, 4, 6])


# -- looking at it ---------------------------------------------------------------------------------


def test_frame():
    X, y = table(seed=1)
    labels = [{"method": "hand", "cost": i} for i in range(9)]
    frontier = Frontier.evaluate(curve(), X, y, labels=labels)
    mixed = frontier + Frontier.evaluate([stage_alone(two_stages(), 0)], X, y, labels=["alone"])
    frame = mixed.frame()
    assert list(frame) == [
        "cost", "score", "saving", "pareto", "stage_0", "stage_1", "method", "label_cost", "label",
    ]  # fmt: skip
    assert frame["pareto"].sum() == len(mixed.pareto())
    assert frame["saving"].tolist() == pytest.approx((1 - mixed.costs / 5).tolist())
    assert np.isnan(frame["stage_1"].iloc[-1])
    tested = frontier.on(*table(seed=5)).frame()
    assert tested["chosen_score"].tolist() == frontier.pareto().scores.tolist()
    assert tested["pareto"].all()


def test_frame_without_pandas(frontier, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"sparing\[bench\]"):
        frontier.frame()


def test_repr():
    X, y = table(seed=1)
    many = curve(60)
    frontier = Frontier.evaluate(many, X, y, labels=[{"threshold": s.thresholds[0]} for s in many])
    text = repr(frontier).splitlines()
    assert text[0].startswith("Frontier: 60 systems, ")
    assert "accuracy on 400 rows, cost by stage" in text[0]
    assert len(text) == 13
    assert "threshold=inf" in text[2]
    assert text[-1].endswith("0%  full model")
    assert repr(frontier.points[0]) == (
        f"Point(cost=1, score={frontier.points[0].score:.4g}, stages 1.00 0.00, threshold=inf)"
    )
    free = frontier.reprice([0, 0, 0])
    assert "%" not in repr(free)
    assert "saving" not in free.frame()


# -- thresholds ------------------------------------------------------------------------------------


@given(
    hnp.arrays(float, st.integers(1, 60), elements=st.integers(-5, 5).map(float)),
    st.integers(2, 30),
)
def test_thresholds_cut_between_scores(values, n):
    X = np.column_stack([values, values, values])
    system = two_stages()
    systems = threshold_systems(system, X, n=n)
    shares = [s.route(X).mean() for s in systems]
    assert shares[0] == 0
    assert shares[-1] == 1
    assert (np.diff(shares) > 0).all()
    assert len(systems) <= n
    scores = np.unique(system.exit_scores(X))
    assert not np.isin([s.thresholds[0] for s in systems], scores).any()
    if n > len(scores):
        assert len(systems) <= len(scores) + 1
    if n > 2 * len(values):
        assert len(systems) == len(scores) + 1


def test_neighbouring_floats_are_told_apart():
    value = 1.0
    X = np.array([[value] * 3, [np.nextafter(value, 2)] * 3])
    shares = [s.route(X).mean() for s in threshold_systems(two_stages(), X, n=10)]
    assert shares == [0, 0.5, 1]


def test_thresholds_are_at_even_shares():
    X, _ = table(1000)
    shares = [s.route(X).mean() for s in threshold_systems(two_stages(), X, n=11)]
    np.testing.assert_allclose(shares, np.linspace(0, 1, 11), atol=1e-3)


def test_thresholds_say_what_is_wrong():
    X, _ = table()
    with pytest.raises(ValueError, match="one gate; this system has 0"):
        threshold_systems(stage_alone(two_stages()), X)
    with pytest.raises(ValueError, match="n is at least 2"):
        threshold_systems(two_stages(), X, n=1)


def test_a_wish_is_a_number(frontier):
    with pytest.raises(TypeError, match="budget is a number, not '3'"):
        frontier.at(budget="3")


def test_a_fitted_classifier_stands_for_its_systems():
    X, y = make_synthetic1()
    clf = AdaptLinClassifier(cv=2, random_state=0).fit(X[:300], y[:300])
    frontier = Frontier.evaluate(clf, X[300:500], y[300:500])
    assert len(frontier) == len(clf.staged_systems())
