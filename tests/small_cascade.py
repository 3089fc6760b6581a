"""Rows of which one cheap column decides most, and a cascade for them."""

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from sparing import CascadeClassifier


def make_rows(n=900, seed=0):
    """Column 0 decides most rows, columns 1 and 2 the rest, 3 and 4 are noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    hard = np.abs(X[:, 0]) < 0.6
    return X, (np.where(hard, X[:, 1] + X[:, 2], X[:, 0]) > 0).astype(int)


X, Y = make_rows()
FOREST = RandomForestClassifier(30, random_state=0)
COSTS = [1, 2, 2, 1, 1]


def cascade(**options):
    settings = {"feature_costs": COSTS, "cv": 3, "random_state": 0} | options
    return CascadeClassifier(settings.pop("estimator", FOREST), **settings)
