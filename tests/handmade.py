"""Small systems whose every number can be worked out by hand."""

from dataclasses import dataclass

import numpy as np

from sparing.costs import FeatureCosts
from sparing.system import Stage, System


@dataclass(frozen=True, eq=False)
class Sigmoid:
    """Probability of the second class from one column, and how often it was asked."""

    column: int
    scale: float = 1.0
    also: tuple = ()
    calls: list | None = None

    @property
    def columns(self):
        return np.array([self.column, *self.also])

    def predict_proba(self, X):
        if self.calls is not None:
            self.calls.append(len(X))
        p = 1 / (1 + np.exp(-self.scale * np.asarray(X, dtype=float)[:, self.column]))
        return np.column_stack([1 - p, p])


@dataclass(frozen=True, eq=False)
class Margin:
    """Gate that sends on rows close to 0 on one column."""

    column: int
    reads_predictor = False

    @property
    def columns(self):
        return np.array([self.column])

    def score(self, X, proba):
        return -np.abs(np.asarray(X, dtype=float)[:, self.column])


@dataclass(frozen=True, eq=False)
class Halves(Sigmoid):
    """Reads its other columns only where the first is positive."""

    def columns_read(self, X):
        X = np.asarray(X)
        mask = np.zeros(X.shape, dtype=bool)
        mask[:, self.column] = True
        mask[np.ix_(X[:, self.column] > 0, list(self.also))] = True
        return mask


def table(n=400, seed=0):
    """Three columns; the label is the sign of the first two together, the cheap first column half knows it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    X[:, 2] = X[:, 0] + X[:, 1]
    return X, (X[:, 2] + 0.1 * rng.normal(size=n) > 0).astype(int)


def two_stages(threshold=-0.5, *, prices=(1, 2, 3), call_price=0.0, full=None, accounting="stage"):
    """Column 0 answers; rows with a small column 0 go on to a model of column 2 (and 1)."""
    return System(
        (
            Stage(Sigmoid(0), Margin(0), threshold, name="cheap"),
            Stage(full or Sigmoid(2, 5.0, also=(1,)), name="full"),
        ),
        FeatureCosts(list(prices), call_price=call_price),
        np.array([0, 1]),
        accounting=accounting,
    )
