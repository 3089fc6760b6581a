"""A system of three stages, its parts small enough to follow by hand."""

from dataclasses import dataclass, field

import numpy as np
from scipy.special import softmax

from sparing.costs import FeatureCosts
from sparing.system import Stage, System

CLASSES = np.array(["healthy", "hyper", "hypo"])
COLUMNS = ("age", "TSH", "T3", "TT4", "T4U", "FTI")


@dataclass(frozen=True, eq=False)
class Part:
    """Columns, and a log of the rows it was shown."""

    columns: np.ndarray
    log: list = field(default_factory=list)

    def look(self, X):
        cells = np.asarray(X, dtype=float)
        self.log.append(cells)
        return cells


class Linear(Part):
    """Three classes from the sum of its columns."""

    def predict_proba(self, X):
        total = self.look(X)[:, self.columns].sum(axis=1)
        return softmax(np.column_stack([total, -total, 0.1 + 0 * total]), axis=1)


class Branching(Part):
    """Looks at its other columns only where the first is above 0."""

    def predict_proba(self, X):
        cells = self.look(X)
        first, others = cells[:, self.columns[0]], cells[:, self.columns[1:]]
        total = np.where(first > 0, np.where(first[:, None] > 0, others, 0).sum(axis=1), first)
        return softmax(np.column_stack([total, 0.3 - total, 0 * total]), axis=1)

    def columns_read(self, X):
        cells = np.asarray(X, dtype=float)
        mask = np.zeros(cells.shape, dtype=bool)
        mask[:, self.columns[0]] = True
        mask[np.ix_(cells[:, self.columns[0]] > 0, self.columns[1:])] = True
        return mask


class ColumnGate(Part):
    """Its one column is the score."""

    reads_predictor = False

    def score(self, X, proba):
        assert proba is None
        return self.look(X)[:, self.columns[0]].copy()


class DoubtGate(Part):
    """How unsure the predictor is, and one column."""

    reads_predictor = True

    def score(self, X, proba):
        return self.look(X)[:, self.columns[0]] + 1 - proba.max(axis=1)


class BranchingGate(Branching):
    """The second column only where the first is above 0."""

    reads_predictor = False

    def score(self, X, proba):
        return self.predict_proba(X)[:, 0]


def three_stages(thresholds=(0.0, 0.5), costs=None, accounting="stage", first_gate=None):
    return System(
        (
            Stage(
                Branching(np.array([1, 2])),
                first_gate or ColumnGate(np.array([0])),
                thresholds[0],
                "cheap",
            ),
            Stage(Branching(np.array([3, 1, 4])), DoubtGate(np.array([2])), thresholds[1], "more"),
            Stage(Linear(np.array([5, 4])), name="full"),
        ),
        costs or FeatureCosts(dict.fromkeys(COLUMNS, 1.0)),
        CLASSES,
        accounting,
    )


def parts_of(system):
    return [
        part
        for stage in system.stages
        for part in (stage.predictor, stage.gate)
        if part is not None
    ]


def rows(n=60, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, size=(n, 6))


def everything(system, X):
    return {
        "proba": system.predict_proba(X),
        "label": system.predict(X),
        "route": system.route(X),
        "scores": system.exit_scores(X),
        "explain": system.explain(X),
        **{f"mask {a}": system.acquisition_mask(X, accounting=a) for a in ("stage", "path")},
        **{f"cost {a}": system.acquisition_cost(X, accounting=a) for a in ("stage", "path")},
    }
