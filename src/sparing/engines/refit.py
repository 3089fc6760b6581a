"""A better cheap stage on the columns that were bought: f1 without prices, and a gate that learns where it is wrong.

The joint gate of Adapt-Gbrt is fitted to an allocation made from f1's losses on its own training rows, which look
better than they are; f1's plain confidence often gates better. So once the columns are chosen, both are learnt again:
f1 on all rows without penalty, with the trees it had or with more and deeper ones, whichever has the smaller loss
on a fold left out; its scores on every row by cross-fitting; and the gate as a model of the **excess
error** 1[f1 wrong] − 1[f0 wrong] on those scores and the columns already paid for. f1's scores are free for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sparing._lightgbm import lightgbm
from sparing._losses import cheap_loss, cheap_proba
from sparing._stored import Stored
from sparing.engines.binning import ColumnEncoder
from sparing.engines.boosted_parts import BoostedPair, BoostedPredictor, BoostedTrees, _model_of
from sparing.engines.boosting import BoostingEngine, Grown

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

_ROUNDS = 120
_MANY_ROWS = 1000
"""Rows from which more and deeper trees are worth trying."""
_TIE = 0.01
"""Weight of f1's doubt beside the predicted excess error: enough to order rows the trees do not tell apart."""
_SCORES = 3
"""Features made of f1's probabilities, see :func:`_confidence`."""


@dataclass(frozen=True, eq=False)
class ExitGate:
    """Predicted excess error of f1 over f0, minus an offset: above 0 a row goes on.

    Attributes
    ----------
    trees : on the bought columns followed by f1's confidence features.
    columns : columns of X it may read.
    encoder : how to read them.
    offset : predicted excess error at which a row starts to go on.
    """

    trees: BoostedTrees
    columns: NDArray[np.intp]
    encoder: ColumnEncoder
    offset: float
    reads_predictor = True

    def score(self, X: Any, proba: Floats | None) -> Floats:
        """Predicted excess error above the offset."""
        assert proba is not None
        features = _features(self.encoder.encode(X, self.columns), self.columns, proba)
        return _scores(self.trees, features) - self.offset

    def columns_read(self, X: Any) -> Booleans:
        """Columns on the paths of each row; f1's own are counted with f1."""
        read = np.zeros((X.shape[0], self.encoder.n_columns), dtype=bool)
        # f1's scores decide which paths are taken; all columns the trees use is an upper bound.
        used = self.trees.columns(None)
        read[:, self.columns[used[used < len(self.columns)]]] = True
        return read

    def stored(self) -> Stored:
        """Trees, encoder, columns and offset."""
        return Stored(
            "exit gate",
            settings={"offset": float(self.offset)},
            arrays={"columns": self.columns},
            parts={"trees": self.trees, "encoder": self.encoder},
        )

    @classmethod
    def restored(cls, stored: Stored) -> Self:
        """The gate again."""
        trees, encoder = stored.part("trees", BoostedTrees), stored.part("encoder", ColumnEncoder)
        columns = stored.positions("columns", encoder.n_columns)
        if trees.n_columns != len(columns) + _SCORES or len(trees.base) != 1:
            raise ValueError(
                f"The trees of an exit gate on {len(columns)} columns have {len(columns) + _SCORES} inputs and one "
                f"output, not {trees.n_columns} and {len(trees.base)}."
            )
        return cls(trees, columns, encoder, stored.number("offset"))


@dataclass(frozen=True)
class Refitted:
    """A cheap stage learnt again.

    Attributes
    ----------
    predictor : f1 on the columns bought.
    gate : model of its excess error.
    scores : the gate's scores on the training rows, f1's probabilities out of fold.
    doubt : one minus f1's largest probability on them, out of fold.
    """

    predictor: BoostedPredictor
    gate: ExitGate
    scores: Floats
    doubt: Floats


def refit(
    engine: BoostingEngine,
    X: Any,
    columns: NDArray[np.intp],
    full_wrong: Floats,
    full_rate: float,
    *,
    folds: list[NDArray[np.intp]],
    n_jobs: int = 1,
) -> Refitted:
    """Learn f1 and its gate again on columns that are already paid for.

    Parameters
    ----------
    engine : the engine that chose the columns; its sizes, rates and parameters are used, its prices are not.
    X : the training rows.
    columns : columns bought.
    full_wrong : honest probability that f0 is wrong per row (0 or 1 from out-of-fold answers).
    full_rate : largest share of the training rows above the gate's offset; fewer when f0 has nothing to add.
    folds : rows of each fold, for f1's out-of-fold scores.
    """
    small = engine.without_prices(columns)
    weight = small.weight
    engines = [small]
    if len(small.y) >= _MANY_ROWS:
        engines.append(_strong(small, columns, n_jobs))
    # One fold tells which engine is better; only that one is fitted for the others.
    first = [_left_out(each, folds[0]) for each in engines]
    best = 0
    if len(engines) > 1:
        there = weight[folds[0]] if weight[folds[0]].any() else None
        losses = [cheap_loss(scores, small.y[folds[0]]) for scores in first]
        best = int(np.argmin([np.average(loss, weights=there) for loss in losses]))
    final, honest = _cross_fitted(engines[best], folds, first[best])
    pair = BoostedPair.of(final, n_jobs)
    proba = cheap_proba(honest)
    excess = (proba.argmax(axis=1) != small.y) - full_wrong
    features = _features(small.data.encoder.encode(X, columns), columns, proba)
    trees = _excess_trees(features, excess, weight, n_jobs)
    predicted = _scores(trees, features)
    offset = max(0.0, weighted_quantile(predicted, weight, 1.0 - full_rate))
    gate = ExitGate(trees, columns, final.encoder, offset)
    doubt = 1.0 - proba.max(axis=1)
    return Refitted(BoostedPredictor(pair), gate, predicted - offset, doubt)


def _strong(engine: BoostingEngine, columns: NDArray[np.intp], n_jobs: int) -> BoostingEngine:
    """More and deeper trees than the engine that had to choose columns: what is paid for may be used well."""
    outputs = 1 if engine.n_classes == 2 else engine.n_classes
    strong = BoostingEngine(
        engine.data,
        engine.y,
        engine.n_classes,
        engine.costs,
        sample_weight=engine.weight,
        n_estimators=max(50, 800 // (outputs + 1)),
        max_depth=10,
        cost_penalty=0.0,
        gate=False,
        random_state=0,
        n_jobs=n_jobs,
        # What the user asked of LightGBM holds here too.
        params={"num_leaves": 64, "learning_rate": 0.1, "seed": engine.seed, **engine.params},
    )
    return strong.without_prices(columns)


def _cross_fitted(
    engine: BoostingEngine, folds: list[NDArray[np.intp]], first: Floats
) -> tuple[Grown, Floats]:
    """f1 on all rows, and its scores on every row by models that did not see it (those of the first fold are given)."""
    final = engine.grow(np.zeros(len(engine.y)))
    honest = np.empty_like(final.cheap)
    for i, rows in enumerate(folds):
        honest[rows] = _left_out(engine, rows) if i else first
    return final, honest


def _left_out(engine: BoostingEngine, rows: NDArray[np.intp]) -> Floats:
    """Scores of one fold's rows by a model of the others."""
    # Rows without weight grow no trees but are scored by them: the binned rows serve every fold.
    outside = engine.weight.copy()
    outside[rows] = 0.0
    # A fold that holds all the weight has nothing outside to learn from.
    learner = engine.reweighted(outside) if outside.any() else engine
    return learner.grow(np.zeros(len(engine.y))).cheap[rows]


def _scores(trees: BoostedTrees, features: Floats) -> Floats:
    """Predicted excess error; rows in the same leaves are told apart by how unsure f1 is."""
    unsure = features[:, -_SCORES]
    return trees.scores(features, None)[:, 0] + _TIE * unsure


def _excess_trees(features: Floats, excess: Floats, weight: Floats, n_jobs: int) -> BoostedTrees:
    n, n_features = features.shape
    params = {
        "objective": "regression",
        "num_leaves": 16,
        "max_depth": 5,
        "learning_rate": 0.05,
        "min_data_in_leaf": min(30, max(1, n // 20)),
        "lambda_l2": 5.0,
        # The less sure f1 is, the more likely it is wrong; the trees may only refine that.
        "monotone_constraints": [0] * (n_features - _SCORES) + [1, 0, 0],
        "verbosity": -1,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": n_jobs,
    }
    model = lightgbm.train(params, lightgbm.Dataset(features, excess, weight=weight), _ROUNDS)
    # LightGBM's own text also holds the smallest and largest cell of every column.
    slim = _model_of(model.model_to_string(), [0], 1, n_features)
    return BoostedTrees(slim, np.zeros(1), n_features, n_jobs)


def _features(rows: NDArray[np.floating], columns: NDArray[np.intp], proba: Floats) -> Floats:
    # Filled in place: a served row would pay more for stacking than for its trees.
    scores = _confidence(proba)
    features = np.empty((len(rows), len(columns) + scores.shape[1]))
    features[:, : len(columns)] = rows[:, columns]
    features[:, len(columns) :] = scores
    return features


def _confidence(proba: Floats) -> Floats:
    """One minus the largest probability, its lead over the second largest, and the class it stands for."""
    top = np.partition(proba, -2, axis=1)[:, -2:]
    out = np.empty((len(proba), _SCORES))
    out[:, 0] = 1.0 - top[:, 1]
    out[:, 1] = top[:, 1] - top[:, 0]
    out[:, 2] = proba.argmax(axis=1)
    return out


def weighted_quantile(values: Floats, weight: Floats, share: float) -> float:
    """The value that this share of the weight does not pass."""
    order = np.argsort(values)
    below = np.cumsum(weight[order]) / weight.sum()
    place = min(int(np.searchsorted(below, share)), len(values) - 1)
    return float(values[order[place]])
