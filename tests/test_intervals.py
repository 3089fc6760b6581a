import pickle

import numpy as np
import pytest

from handmade import table
from small_frontier import curve, small_frontier
from sparing.frontier import Frontier
from sparing.metrics import (
    bootstrap_interval,
    ndcg_at_k,
)


@pytest.fixture
def frontier():
    return small_frontier()


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
