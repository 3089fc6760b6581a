"""The linear f1 and g as served: same scores as while learning, own columns only, nothing else inside."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest

from sparing.engines.design import Design
from sparing.engines.linear import LinearFit, LinearProblem
from sparing.engines.linear_parts import LinearGate, LinearPredictor, LinearScores

RNG = np.random.default_rng(0)


def table(n=60):
    """Numbers with holes, text, and a column that is never used."""
    X = pd.DataFrame(RNG.normal(size=(n, 3)), columns=["a", "b", "c"])
    X.loc[:4, "b"] = np.nan
    X["colour"] = RNG.choice(["red", "green", "blue"], size=n)
    return X


def served(n_outputs, used):
    """Random coefficients on the design columns of some columns of X."""
    X = table()
    design = Design.fit(X)
    coef = RNG.normal(size=(len(design.owner), n_outputs))
    coef[~np.isin(design.owner, used)] = 0.0
    intercept = RNG.normal(size=n_outputs)
    return X, design, coef, intercept


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("used", [[0, 1, 2, 3], [1], [3], [0, 3], []], ids=str)
def test_the_scores_are_those_of_the_whole_design(n_outputs, used):
    X, design, coef, intercept = served(n_outputs, used)
    scores = LinearScores.of(design, coef, intercept)
    expected = design.transform(X) @ coef + intercept
    assert scores.columns.tolist() == used
    assert scores(X).shape == (60, n_outputs)
    np.testing.assert_allclose(scores(X), expected, atol=1e-12)
    np.testing.assert_allclose(scores(pl.from_pandas(X)), expected, atol=1e-12)


def test_columns_that_are_not_used_may_hold_anything():
    X, design, coef, intercept = served(1, [1, 3])
    scores = LinearScores.of(design, coef, intercept)
    hidden = X.assign(a=np.inf, c="not bought")
    np.testing.assert_array_equal(scores(hidden), scores(X))
    assert not np.array_equal(scores(X.assign(b=0.0)), scores(X))


def test_a_column_stays_whole():
    # Only the flag of missing values has a coefficient, or one level out of three: the column is read all the same.
    X = table()
    design = Design.fit(X)
    coef = np.zeros((len(design.owner), 1))
    flag = np.flatnonzero(design.owner == 1)[1]
    coef[flag] = 2.0
    scores = LinearScores.of(design, coef, np.zeros(1))
    assert scores.columns.tolist() == [1]
    np.testing.assert_array_equal(scores(X)[:, 0], 2.0 * X["b"].isna())
    level = np.flatnonzero(design.owner == 3)[1]
    coef[:] = 0.0
    coef[level] = 1.0
    scores = LinearScores.of(design, coef, np.zeros(1))
    assert scores.columns.tolist() == [3]
    assert len(np.unique(X["colour"][scores(X)[:, 0] == 1.0])) == 1


def test_without_columns_every_row_gets_the_intercept():
    X, design, coef, _ = served(2, [])
    answer = LinearScores.of(design, coef, np.array([0.5, -1.0]))(X)
    assert (answer == [0.5, -1.0]).all()
    answer[0] = 7.0  # a copy of the intercept, not a view of it
    assert answer[1, 0] == 0.5


def test_arrays():
    X = RNG.normal(size=(20, 3))
    design = Design.fit(X)
    scores = LinearScores.of(design, np.array([[0.0], [2.0], [0.0]]), np.array([1.0]))
    standardised = (X[:, 1] - X[:, 1].mean()) / X[:, 1].std()
    np.testing.assert_allclose(scores(X)[:, 0], 1.0 + 2.0 * standardised)


def test_two_classes_have_one_logit():
    X, design, coef, intercept = served(1, [0, 1])
    scores = LinearScores.of(design, coef, intercept)
    predictor = LinearPredictor(scores)
    proba, logit = predictor.predict_proba(X), scores(X)[:, 0]
    assert proba.shape == (60, 2)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.log(proba[:, 1] / proba[:, 0]), logit)
    assert predictor.columns.tolist() == [0, 1]


def test_more_classes_have_one_logit_each():
    X, design, coef, intercept = served(3, [0, 1])
    scores = LinearScores.of(design, coef, intercept)
    proba = LinearPredictor(scores).predict_proba(X)
    expected = np.exp(scores(X))
    np.testing.assert_allclose(proba, expected / expected.sum(axis=1, keepdims=True))


def test_the_gate_is_one_number_per_row_and_needs_no_predictor():
    X, design, coef, intercept = served(1, [2])
    gate = LinearGate(LinearScores.of(design, coef, intercept))
    np.testing.assert_array_equal(gate.score(X, None), gate.scores(X)[:, 0])
    assert gate.columns.tolist() == [2]
    assert not gate.reads_predictor


@pytest.mark.parametrize("n_classes", [2, 3])
def test_served_parts_say_what_was_learnt(n_classes):
    X = table()
    design = Design.fit(X)
    y = RNG.integers(n_classes, size=len(X))
    rows = LinearProblem(design.transform(X), y, n_classes)
    fit = rows.solve(RNG.random(len(X)), None, ridge=1e-2)
    assert isinstance(fit, LinearFit)
    cheap, gate = rows.scores(fit)
    scores = LinearScores.of(design, fit.coef[:, :-1], fit.intercept[:-1])
    np.testing.assert_allclose(np.squeeze(scores(X)), cheap, atol=1e-12)
    served = LinearGate(LinearScores.of(design, fit.coef[:, -1:], fit.intercept[-1:]))
    np.testing.assert_allclose(served.score(X, None), gate, atol=1e-12)


def test_parts_are_small_and_can_be_stored():
    X = RNG.normal(size=(5000, 200))
    design = Design.fit(X)
    coef = np.zeros((200, 1))
    coef[[3, 7]] = 1.0
    part = LinearPredictor(LinearScores.of(design, coef, np.zeros(1)))
    written = pickle.dumps(part)
    assert len(written) < 2000
    np.testing.assert_array_equal(
        pickle.loads(written).predict_proba(X[:9]), part.predict_proba(X[:9])
    )
