"""Small routed classifiers, quick to fit: what is tested with them does not depend on how well they learn."""

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from sparing import AdaptGbrtClassifier, AdaptLinClassifier, FeatureCosts

FOREST = RandomForestClassifier(10, oob_score=True, random_state=0)
TREE = DecisionTreeClassifier(max_depth=3, random_state=0)
COLUMNS = ["a", "b", "c", "d"]
COSTS = FeatureCosts(
    {"a": 1.0, "b": 2.0, "c": 4.0, "d": 0.0}, shared={"panel": (3.0, ["c", "d"])}, call_price=0.5
)
PRICES = FeatureCosts([1.0, 2.0, 4.0, 0.0], shared={"panel": (3.0, [2, 3])}, call_price=0.5)


def lin(estimator=TREE, **options):
    quick = {"full_rate": 0.5, "random_state": 0, "n_init": 1, "max_iter": 8, "cv": 3}
    return AdaptLinClassifier(estimator, **{**quick, **options})


def gbrt(estimator=TREE, **options):
    quick = {"full_rate": 0.5, "random_state": 0, "n_estimators": 12, "cv": 3}
    return AdaptGbrtClassifier(estimator, **{**quick, **options})


def is_hard(X):
    return X[:, 1] > 0.3


def rows(n=160, seed=0):
    """The cheap first column settles the rows with a small second one; the others need the dear third."""
    X = np.random.default_rng(seed).normal(size=(n, 4))
    return X, np.where(is_hard(X), X[:, 2] > 0, X[:, 0] > 0).astype(int)


def three_classes(n=160, seed=0):
    X, y = rows(n, seed)
    return X, np.where(is_hard(X) & (X[:, 2] > 0), 2, y)


X, Y = rows()
NEW, NEW_Y = rows(90, seed=1)


def with_cells(value, *places):
    array = X.copy()
    for i, j in places:
        array[i, j] = value
    return array


def as_frame(X):
    return pd.DataFrame(X, columns=COLUMNS)


HOLES = with_cells(np.nan, (3, 1), (4, 1), (5, 3))
