"""What a stage on any set of columns would be worth, without fitting every one of them properly.

Two judges: networks trained once on random sets of columns, which answer for thousands of sets in no time; and small
copies of the full model, fitted on a few thousand rows for each set asked about, for data on which no network comes
near the full model.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from sparing._full_columns import ColumnUse
from sparing._full_model import fitted
from sparing._full_predictor import FullPredictor, output_of
from sparing.cascade.exits import ByDoubt, StageScores, sorted_by_doubt
from sparing.cascade.network import (
    Booleans,
    Codes,
    Floats,
    MaskedNetwork,
    Singles,
    mean_proba,
)
from sparing.cascade.offers import Offers

_TREES = 60
"""Trees of a small copy of a forest.

With thirty a fit on Forest takes a sixth less time and cascades cost as much on one split, 9 to 28% more on another
(validation rows, within one, half and no point of the full model).
"""
_MIXED = 4000
"""Held-out rows among which values are mixed up, at most: one model is asked once per group."""
_MASKS = 20_000
"""Random sets of columns that a judging network is trained on."""


def random_masks(offers: Offers, seed: int = 0, n: int = _MASKS) -> Booleans:
    """Masks of random sets of offers, of all sizes alike."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, len(offers) + 1, n)
    ranks = rng.random((n, len(offers)), dtype=np.float32).argsort(axis=1).argsort(axis=1)
    return offers.available(ranks < sizes[:, None])


@dataclass(eq=False, kw_only=True)
class Judge(ABC):
    """What a stage on any set of columns would say about held-out rows.

    Attributes
    ----------
    offers : what can be bought.
    y : class codes of the held-out rows.
    full_cost : cost of a row that goes to the full model, for which the judge with all columns stands in: the full
        model itself may be so much better than the judge that all rows would be sent to it.
    weight : weights of the rows.
    patience : sets of columns that may be asked about while searching.
    """

    offers: Offers
    y: Codes
    full_cost: float
    weight: Floats | None = None
    patience: float = np.inf
    _known: dict[bytes, tuple[Floats, Floats, ByDoubt]] = field(default_factory=dict)

    @abstractmethod
    def proba(self, mask: Booleans) -> Floats:
        """Class probabilities of the held-out rows from some columns."""

    @abstractmethod
    def worth(self, mask: Booleans, groups: list[Codes]) -> Floats:
        """How much the log-loss with some columns rises without each group of them."""

    def worth_for_price(self, left: Sequence[int]) -> Floats:
        """How much the log-loss with some offers rises without each of them, for what it adds to their price."""
        offers, mask = self.offers, self.offers.mask(left)
        others = [[o for o in left if o != offer] for offer in left]
        groups = [np.flatnonzero(mask & ~offers.mask(rest)) for rest in others]
        paid = np.array([offers.price(left) - offers.price(rest) for rest in others])
        return self.worth(mask, groups) / np.maximum(paid, 1e-12)

    @property
    def n_asked(self) -> int:
        """Sets of columns asked about so far."""
        return len(self._known)

    @property
    def error(self) -> float:
        """Mean error with all columns."""
        every = np.ones(len(self.offers.costs.columns), dtype=bool)
        return float(np.average(self.stage(every)[0], weights=self.weight))

    def stage(self, mask: Booleans) -> tuple[Floats, Floats, ByDoubt]:
        """Errors and doubts of a stage on some columns, and the rows sorted by doubt."""
        key = np.packbits(mask).tobytes()
        if key not in self._known:
            proba = self.proba(mask)
            error = (proba.argmax(axis=1) != self.y).astype(float)
            doubt = 1.0 - proba.max(axis=1)
            self._known[key] = error, doubt, sorted_by_doubt(doubt)
        return self._known[key]

    def settled(self, mask: Booleans) -> tuple[Floats, Floats, ByDoubt]:
        """Like ``stage``, but rows with the same values in these columns have one doubt, as one model gives them."""
        return self.stage(mask)

    def loss(self, proba: Floats) -> float:
        """Mean log-loss, of the first held-out rows if there are answers for these only.

        What was thought impossible counts as unlikely, as forests say 0 easily.
        """
        n = len(proba)
        right = np.maximum(proba[np.arange(n), self.y[:n]], 0.01)
        return float(
            -np.average(np.log(right), weights=None if self.weight is None else self.weight[:n])
        )

    def scores(
        self, order: Sequence[int], lengths: Sequence[int] | None = None, *, settled: bool = False
    ) -> StageScores:
        """Scores of the cascade with a stage per prefix of an order (of some ``lengths``), and the full model."""
        lengths = range(self.offers.first, len(order) + 1) if lengths is None else lengths
        ask = self.settled if settled else self.stage
        stages = [ask(self.offers.mask(order[:k])) for k in lengths]
        costs = [self.offers.price(order[:k]) for k in lengths]
        last = self.stage(np.ones(len(self.offers.costs.columns), dtype=bool))[0]
        errors = np.array([*(error for error, _, _ in stages), last])
        doubts = np.array([doubt for _, doubt, _ in stages]).reshape(len(stages), len(last))
        return StageScores.of(
            errors,
            doubts,
            np.array([*costs, self.full_cost]),
            self.weight,
            [by_doubt for *_, by_doubt in stages],
        )


@dataclass(eq=False, kw_only=True)
class NetworkJudge(Judge):
    """Judges by networks trained on random sets of columns of other rows, whose answers are averaged.

    Attributes
    ----------
    parts : pairs of networks with the same inputs and held-out rows as these inputs; all rows together are judged.
    """

    parts: tuple[tuple[tuple[MaskedNetwork, ...], Singles], ...]
    _known_settled: dict[bytes, tuple[Floats, Floats, ByDoubt]] = field(default_factory=dict)

    def proba(self, mask: Booleans) -> Floats:
        """Class probabilities of the held-out rows from some columns."""
        return np.concatenate([mean_proba(networks, Z, mask) for networks, Z in self.parts])

    def settled(self, mask: Booleans) -> tuple[Floats, Floats, ByDoubt]:
        """Like ``stage``, but rows with the same values in these columns have one doubt: their mean over the parts."""
        key = np.packbits(mask).tobytes()
        if key not in self._known_settled:
            error, doubt, _ = self.stage(mask)
            there = mask[self.parts[0][0][0].inputs.owner]
            values = np.concatenate([Z[:, there] for _, Z in self.parts])
            group = np.unique(values, axis=0, return_inverse=True)[1].ravel()
            doubt = (np.bincount(group, doubt) / np.bincount(group))[group]
            self._known_settled[key] = error, doubt, sorted_by_doubt(doubt)
        return self._known_settled[key]

    def worth(self, mask: Booleans, groups: list[Codes]) -> Floats:
        """How much the log-loss with some columns rises without each group of them."""
        by_part = [
            np.mean([network.proba_without(Z, mask, groups) for network in networks], axis=0)
            for networks, Z in self.parts
        ]
        without = np.concatenate(by_part, axis=1)
        return np.array([self.loss(proba) for proba in without]) - self.loss(self.proba(mask))


@dataclass(eq=False, kw_only=True)
class RefitJudge(Judge):
    """Judges by small copies of a model, fitted for every set of columns asked about.

    Leaving out a group is judged by mixing up its values among the held-out rows, which needs no further fit.

    Attributes
    ----------
    model : to be cloned.
    X, labels : rows and class codes to fit on.
    held_out : rows judged on.
    n_classes : number of classes.
    fit_weight : weights of the rows to fit on.
    seed : of models and mixing.
    """

    model: Any
    X: Any
    labels: Codes
    held_out: Any
    n_classes: int
    fit_weight: Floats | None = None
    seed: int = 0

    def proba(self, mask: Booleans) -> Floats:
        """Class probabilities of the held-out rows from some columns."""
        return self._fitted(mask).predict_proba(self.held_out)

    def worth(self, mask: Booleans, groups: list[Codes]) -> Floats:
        """How much the log-loss with some columns rises when each group is mixed up, on a part of the held-out rows."""
        predictor, n = self._fitted(mask), min(_MIXED, len(self.y))
        rows = _safe_indexing(self.held_out, np.arange(n))
        places = np.random.default_rng(self.seed).permutation(n)
        losses = [self.loss(predictor.predict_proba(_mixed(rows, g, places))) for g in groups]
        return np.array(losses) - self.loss(predictor.predict_proba(rows))

    def _fitted(self, mask: Booleans) -> FullPredictor:
        columns = np.flatnonzero(mask)
        rows = _safe_indexing(self.X, columns, axis=1)
        model = fitted(self.model, rows, self.labels, self.fit_weight, self.seed)
        use = ColumnUse(len(mask), columns, inputs=columns)
        return FullPredictor(model, output_of(model), np.arange(self.n_classes), use)


def small(model: Any) -> Any:
    """A copy of a model that is fast to fit: fewer trees, no out-of-bag scores.

    None for models without trees, alone or in a pipeline: asked about hundreds of sets of columns, a kernel machine
    would take hours.
    """
    wanted = {"n_estimators": _TREES, "oob_score": False}
    own = model.get_params()
    changes = {
        name: min(wanted[last], value)
        for name, value in own.items()
        if (last := name.rpartition("__")[2]) in wanted and isinstance(value, int)
    }
    if not any(name.endswith("n_estimators") for name in changes):
        return None
    return clone(model).set_params(**changes)


def _mixed(X: Any, group: Codes, order: Codes) -> Any:
    """Rows in which the values of some columns stand in other rows, together."""
    if hasattr(X, "iloc"):
        X = X.copy()
        for column in group:
            X.isetitem(column, X.iloc[order, column].to_numpy())
        return X
    if hasattr(X, "with_columns"):
        return X.with_columns([X[:, int(column)].gather(order) for column in group])
    X = X.copy()
    X[:, group] = X[np.ix_(order, group)]
    return X
