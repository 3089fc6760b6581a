"""Fitted classifiers of every kind, to be stored; each is fitted once and not changed."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import SVC

import sparing
from sparing import (
    AdaptGbrtClassifier,
    AdaptLinClassifier,
    AdaptLstsqClassifier,
    BudgetPruneClassifier,
    FeatureCosts,
    GreedyMiserClassifier,
    L1GateClassifier,
)
from sparing.runtime import save


def numbers(n=240, seed=0, labels=(0, 1)):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    codes = (X[:, 0] + 0.7 * X[:, 1] * (X[:, 2] > 0) + 0.3 * rng.normal(size=n) > 0).astype(int)
    if len(labels) > 2:
        codes += X[:, 3] > 0.8
    return X, np.array(labels)[codes]


def mixed(n=240, seed=0):
    """A pandas frame with gaps, a category, a text and a boolean column."""
    pandas = pytest.importorskip("pandas")
    X, y = numbers(n, seed)
    frame = pandas.DataFrame(X, columns=["age", "TSH", "T3", "TT4", "weight"])
    frame["sex"] = pandas.Categorical(np.where(X[:, 1] > 0, "f", "m"), categories=["m", "f", "x"])
    frame["where"] = np.where(X[:, 3] > 0, "north", "south")
    frame["smokes"] = X[:, 4] > 0
    frame.loc[::7, "TSH"] = np.nan
    return frame, np.where(y > 0, "sick", "well")


COSTS = FeatureCosts(
    {"age": 1, "TSH": 4, "T3": 0, "TT4": 3, "weight": 0, "sex": 0.1, "where": 0.2, "smokes": 0.1},
    shared={"blood draw": (2.1, ["TSH", "TT4"])},
    derived={"T3": ["TSH"]},
    call_price=0.5,
)

FAST = {"cv": 2, "random_state": 0}
TREES = {"n_estimators": 12, "max_depth": 3}


def raw_pipeline():
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["sex", "where"]), remainder="passthrough"
    )
    return make_pipeline(encoder, HistGradientBoostingClassifier(max_iter=5, max_depth=3))


def same(system, other, X):
    """Everything a system says about rows, exactly."""
    for name in ("predict", "predict_proba", "route"):
        expected, found = getattr(system, name)(X), getattr(other, name)(X)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected, err_msg=name)
    for accounting in (None, "stage", "path"):
        for name in ("acquisition_mask", "acquisition_cost"):
            expected = getattr(system, name)(X, accounting=accounting)
            np.testing.assert_array_equal(getattr(other, name)(X, accounting=accounting), expected)
    assert system.explain(X) == other.explain(X)


CASES = {
    "lin": (AdaptLinClassifier(GaussianNB(), **FAST), numbers),
    "lin three classes": (
        AdaptLinClassifier(SVC(), **FAST),
        lambda: numbers(labels=(-1, 0, 7)),
    ),
    "lin booleans": (
        AdaptLinClassifier(LogisticRegression(), **FAST),
        lambda: numbers(labels=(False, True)),
    ),
    "lin mixed": (AdaptLinClassifier(raw_pipeline(), feature_costs=COSTS, **FAST), mixed),
    "lstsq": (AdaptLstsqClassifier(GaussianNB(), **FAST), numbers),
    "gbrt": (
        AdaptGbrtClassifier(RandomForestClassifier(7), cost_penalty=0.01, **TREES, **FAST),
        numbers,
    ),
    "gbrt joint": (
        AdaptGbrtClassifier(GaussianNB(), gate="joint", cost_penalty=0.01, **TREES, **FAST),
        lambda: numbers(labels=("a", "b", "c")),
    ),
    "gbrt mixed": (
        AdaptGbrtClassifier(
            raw_pipeline(), feature_costs=COSTS, cost_penalty=0.01, **TREES, **FAST
        ),
        mixed,
    ),
    "l1 gate": (L1GateClassifier(LogisticRegression(), **FAST), numbers),
    "miser": (GreedyMiserClassifier(random_state=0, **TREES), numbers),
    "prune": (BudgetPruneClassifier(RandomForestClassifier(7), random_state=0), numbers),
}
"""Every routed classifier, labels of every kind, arrays and frames."""

if hasattr(sparing, "CascadeClassifier"):
    for stage_estimator in ("shared", LogisticRegression()):
        CASES[f"cascade of {stage_estimator}"] = (
            sparing.CascadeClassifier(
                RandomForestClassifier(7), stage_estimator=stage_estimator, **FAST
            ),
            lambda: numbers(labels=("a", "b", "c")),
        )


@cache
def fitted(name):
    """A classifier and its training rows."""
    estimator, data = CASES[name]
    X, y = data()
    return clone(estimator).fit(X, y), X


def store(folder):
    """A stored system with arrays, boosters and a scikit-learn forest in it."""
    path = folder / "stored.sparing"
    path.write_bytes(_stored_bytes())
    return path


@cache
def _stored_bytes():
    with TemporaryDirectory() as folder:
        save(fitted("gbrt")[0], Path(folder, "a"))
        return Path(folder, "a").read_bytes()
