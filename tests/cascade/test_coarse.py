"""Stages that cannot tell many rows apart."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

from small_cascade import cascade
from sparing.cascade.coarse import settled


class Says:
    """A stage that doubts by its first column."""

    def predict_proba(self, X):
        doubt = 0.1 + 0.1 * np.asarray(X)[:, 0].astype(float)
        return np.column_stack([1 - doubt, doubt])


ROWS = np.column_stack([np.arange(400) % 3, np.linspace(0, 1, 400), np.repeat([1.0, np.nan], 200)])
EVERY = np.arange(400)


def doubts(mask, X=ROWS, rows=EVERY):
    noise = np.random.default_rng(0).random((1, len(rows))) / 2
    return settled(noise, [Says()], [np.array(mask)], X, rows)[0], noise[0]


@pytest.mark.parametrize("mask", [[True, False, False], [True, False, True]])
def test_rows_with_the_same_values_have_the_doubt_of_the_fitted_stage(mask):
    for X in (ROWS, pd.DataFrame(ROWS), pl.DataFrame(ROWS), ROWS.astype(object)):
        found, _ = doubts(mask, X)
        np.testing.assert_allclose(found, 0.1 + 0.1 * ROWS[:, 0])


def test_rows_with_values_of_their_own_keep_theirs():
    found, noise = doubts([True, True, False])
    assert np.array_equal(found, noise)


def test_of_rare_values_only_the_others_are_settled():
    X = ROWS.copy()
    X[:3, 0] = [7, 8, 9]
    found, noise = doubts([True, False, False], X)
    assert np.array_equal(found[:3], noise[:3])
    np.testing.assert_allclose(found[3:], 0.1 + 0.1 * X[3:, 0])


def test_of_some_rows():
    rows = np.arange(100, 400)
    found, _ = doubts([True, False, False], rows=rows)
    np.testing.assert_allclose(found, 0.1 + 0.1 * ROWS[rows, 0])


def test_text_is_a_value_too():
    frame = pd.DataFrame({"a": np.arange(400) % 2, "b": np.where(np.arange(400) < 9, None, "x")})
    found, _ = doubts([True, True], frame)
    np.testing.assert_allclose(found, 0.1 + 0.1 * (np.arange(400) % 2))


@pytest.mark.parametrize("kind", ["own", "shared"])
def test_a_budget_is_kept_behind_a_single_question(kind):
    rng = np.random.default_rng(0)

    def rows(n):
        x = rng.normal(size=(n, 2))
        flag = rng.integers(0, 4, n)
        x = np.column_stack([flag, x])
        return x, (x[:, 1] + 0.6 * x[:, 2] + 0.3 * (flag - 1.5) > 0.3).astype(int)

    X, y = rows(800)
    clf = cascade(
        estimator=LogisticRegression(),
        feature_costs=[1, 10, 10],
        stages=[[0], [0, 1]],
        stage_estimator=kind,
    ).fit(X, y)
    others, _ = rows(4000)
    for point in clf.frontier_.pareto():
        cost = clf.at(budget=point.cost).acquisition_cost(others).mean()
        assert cost == pytest.approx(point.cost, rel=0.15)
