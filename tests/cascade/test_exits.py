from itertools import product

import numpy as np
import pytest

from sparing.cascade.exits import Choice, StageScores, telling_prices, trace, unbeaten


def random_scores(seed=0, n=60, n_stages=3, weight=None):
    rng = np.random.default_rng(seed)
    difficulty = rng.random(n)
    doubts = np.clip(difficulty + rng.normal(0, 0.2, (n_stages - 1, n)), 0, 1).round(2)
    errors = (
        rng.random((n_stages, n)) < difficulty * np.linspace(0.8, 0.1, n_stages)[:, None]
    ).astype(float)
    return StageScores.of(errors, doubts, np.linspace(1, 5, n_stages), weight)


def lagrangian(scores, thresholds, price):
    cost, error = scores.cost_and_error(thresholds)
    return error + price * cost


def cuts(scores, gate):
    values = np.unique(scores.doubts[gate])
    return [-np.inf, *((values[1:] + values[:-1]) / 2), np.inf]


@pytest.mark.parametrize("price", [0.3, 0.05, 0.01, 0.001])
def test_one_gate_is_solved_exactly(price):
    scores = random_scores(n_stages=2)
    best = min(lagrangian(scores, (cut,), price) for cut in cuts(scores, 0))
    assert lagrangian(scores, scores.thresholds(price), price) == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_two_gates_come_close_to_trying_everything(seed):
    scores = random_scores(seed)
    every = list(product(cuts(scores, 0), cuts(scores, 1)))
    for price in (0.1, 0.03, 0.01):
        best = min(lagrangian(scores, pair, price) for pair in every)
        found = lagrangian(scores, scores.thresholds(price), price)
        assert best - 1e-12 <= found <= best + 0.02


def test_no_row_stops_when_cost_is_free_and_only_the_last_stage_is_right():
    errors = np.array([np.ones(9), np.zeros(9)])
    scores = StageScores.of(errors, np.linspace(0, 1, 9)[None], np.array([1.0, 2.0]))
    assert scores.thresholds(0.0) == (-np.inf,)
    assert scores.thresholds(2.0) == (np.inf,)
    assert scores.cost_and_error((-np.inf,)) == pytest.approx((2.0, 0.0))


def test_a_weight_is_as_good_as_copies():
    rng = np.random.default_rng(3)
    weight = rng.integers(0, 4, 60).astype(float)
    weighted = random_scores(3, weight=weight)
    rows = np.repeat(np.arange(60), weight.astype(int))
    copied = StageScores.of(weighted.errors[:, rows], weighted.doubts[:, rows], weighted.costs)
    for price in (0.1, 0.02):
        assert lagrangian(weighted, weighted.thresholds(price), price) == pytest.approx(
            lagrangian(copied, copied.thresholds(price), price)
        )


def test_the_frontier_rises_in_cost_and_falls_in_error():
    choices = trace(random_scores(n=500, n_stages=4))
    costs, errors = (np.array([getattr(c, name) for c in choices]) for name in ("cost", "error"))
    assert (np.diff(costs) >= 0).all()
    falls = errors < np.minimum.accumulate([np.inf, *errors[:-1]])
    assert falls.sum() > 5
    # The others are careful ones: near the frontier, or behind its best.
    best = int(np.argmin(errors))
    assert (errors[:best] <= np.minimum.accumulate(errors)[:best] + 0.02).all()


def test_careful_systems_count_losses_alone():
    rng = np.random.default_rng(0)
    doubt = rng.random((1, 1000))
    full = np.zeros(1000)
    full[doubt[0] < 0.3] = rng.random((doubt[0] < 0.3).sum()) < 0.2
    cheap = np.where(full > 0, 0.0, rng.random(1000) < 0.5 * doubt[0])
    scores = StageScores.of(np.array([cheap, full]), doubt, np.array([1.0, 5.0]))
    harmful = [
        float(((scores.answering(c.thresholds) == 0) & (cheap > full)).mean())
        for c in trace(scores)
    ]
    # What makes up for its losses by the full model's errors looks best; one without any loss is there too.
    best = min(trace(scores), key=lambda c: c.error)
    assert ((scores.answering(best.thresholds) == 0) & (cheap > full)).any()
    safe = [c for c, loss in zip(trace(scores), harmful, strict=True) if loss == 0]
    assert min(c.cost for c in safe) < 5


def test_behind_the_best_system_stand_more_careful_ones_up_to_the_full_model():
    scores = random_scores(n=500, n_stages=3)
    # A full model that is worse than the stage before it.
    scores = StageScores.of(np.flip(scores.errors, axis=0), scores.doubts, scores.costs)
    choices = trace(scores)
    best = int(np.argmin([c.error for c in choices]))
    assert len(choices) > best + 3
    assert choices[-1].cost == pytest.approx(scores.costs[-1])
    assert choices[-1].error == pytest.approx(scores.errors[-1].mean())


def test_the_frontier_of_a_single_stage_is_a_point():
    scores = random_scores(n_stages=1)
    (choice,) = trace(scores)
    assert choice.thresholds == ()
    assert choice.cost == pytest.approx(scores.costs[0])


def test_points_between_the_corners_fill_gaps():
    scores = random_scores(n=2000, n_stages=3)
    prices = np.logspace(0.5, -4, 60) / scores.costs[-1]
    corners = {scores.thresholds(float(price)) for price in prices}
    assert len(trace(scores)) > 0.7 * len(corners)
    assert any(choice.thresholds not in corners for choice in trace(scores))


def test_cuts_stand_strictly_between_scores():
    for choice in trace(random_scores(n=300)):
        for gate, cut in enumerate(choice.thresholds):
            assert cut not in random_scores(n=300).doubts[gate]


def test_only_some_stages():
    scores = random_scores(n_stages=4)
    part = scores.only([1, 3])
    assert part.errors.tolist() == scores.errors[[1, 3]].tolist()
    assert part.cost_and_error((0.4,)) == scores.cost_and_error((-np.inf, 0.4, -np.inf))


def test_telling_prices_are_those_at_which_something_is_lost():
    scores = random_scores(n=4000, n_stages=3)
    errors = [scores.cost_and_error(scores.thresholds(p))[1] for p in telling_prices(scores)]
    best = scores.cost_and_error(scores.thresholds(1e-6))[1]
    assert all(best <= error <= best + 0.03 for error in errors)


def test_where_all_is_lost_at_once_the_prices_lie_below_that_step():
    # Half of the rows are wrong without the second stage, and the gate cannot tell them apart.
    errors = np.array([np.tile([0.0, 1.0], 100), np.zeros(200)])
    scores = StageScores.of(errors, np.zeros((1, 200)), np.array([1.0, 11.0]))
    step = 0.5 / 10
    assert all(step / 10 < price < step / 1.2 for price in telling_prices(scores))


def test_stages_that_know_nothing_look_good_where_they_are_tuned_and_less_so_in_the_fair_value():
    rng = np.random.default_rng(0)
    n, n_stages = 200, 30
    errors = np.array([*(rng.random((n_stages, n)) < 0.5), np.zeros(n)], dtype=float)
    scores = StageScores.of(errors, rng.random((n_stages, n)), np.arange(1.0, n_stages + 2))
    alone = scores.only([n_stages])
    prices = [0.02]
    flattered = alone.value(prices) - scores.value(prices)
    assert flattered > 0
    assert abs(alone.fair_value(prices) - scores.fair_value(prices)) < 0.5 * flattered
    assert alone.fair_value(prices) == pytest.approx(alone.value(prices))


def test_weights_count_in_the_fair_value_too():
    scores = random_scores(1, n=80)
    # Every row twice in a row: both halves are the rows themselves, and nothing is left to chance.
    twice = StageScores.of(
        np.repeat(scores.errors, 2, axis=1), np.repeat(scores.doubts, 2, axis=1), scores.costs
    )
    assert twice.fair_value([0.05]) == pytest.approx(scores.value([0.05]))
    weight = np.repeat(np.random.default_rng(0).random(80), 2)
    weighted = StageScores.of(twice.errors, twice.doubts, twice.costs, weight)
    expected = StageScores.of(scores.errors, scores.doubts, scores.costs, weight[::2])
    assert weighted.fair_value([0.05]) == pytest.approx(expected.value([0.05]))


def test_far_neighbours_have_points_in_between():
    rng = np.random.default_rng(0)
    doubt = rng.random((1, 4000))
    # Every row gains as much for the next stage's price: the corners are nobody and everybody.
    errors = np.array([rng.random(4000) < 0.3, np.zeros(4000)], dtype=float)
    scores = StageScores.of(errors, doubt, np.array([1.0, 50.0]))
    costs = np.array([choice.cost for choice in trace(scores)])
    assert len(costs) > 60
    assert np.diff(costs).max() < 2.5


def test_of_other_systems_those_stay_that_nobody_beats():
    def choice(cost, error):
        return Choice((), cost, error, (), 0.0)

    known = [choice(2.0, 0.2), choice(4.0, 0.1), choice(5.0, 0.3)]
    others = [choice(1.0, 0.4), choice(2.0, 0.2), choice(3.0, 0.15), choice(3.5, 0.18)]
    assert unbeaten(others, known) == [others[0], others[2]]


def test_the_frontier_begins_with_everybody_answered_by_the_first_stage():
    # The first stage is hardly better than chance, so no price of cost asks for it.
    rng = np.random.default_rng(0)
    errors = rng.random((3, 400)) < np.array([[0.9], [0.1], [0.05]])
    scores = StageScores.of(errors.astype(float), rng.random((2, 400)), np.array([1.0, 1.5, 50.0]))
    choices = trace(scores)
    assert (choices[0].cost, choices[0].shares) == (pytest.approx(1), (1.0, 0.0, 0.0))
    # And goes on in small steps.
    assert any(1.05 < choice.cost < 1.45 for choice in choices)
