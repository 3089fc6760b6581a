"""One split of a data set as every method gets it: three parts, prices, a full model fixed before anything is tuned.

f0 is fitted once per split and its honest probabilities on the training rows are cross-fitted once. Where rows belong
to queries, no part and no fold cuts a query.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GroupKFold, StratifiedKFold, cross_val_predict
from sklearn.utils import Bunch

from paper.datasets import DataSet
from paper.scores import Score
from paper.store import Store
from sparing import AdaptGbrtClassifier, FeatureCosts
from sparing.frontier import stage_alone
from sparing.system import System

QUICK_ROWS = (1200, 1000, 1500)
"""Rows to learn, choose and test of a quick run, at most."""


@dataclass(frozen=True, eq=False)
class Part:
    """Rows and labels; for rankings also the query of each row and its grade."""

    X: np.ndarray
    y: np.ndarray
    query: np.ndarray | None = None
    grade: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Problem:
    """One split of a data set.

    Attributes
    ----------
    train, validation, test : the three parts.
    full_model : f0, fitted on ``train`` and frozen.
    full_proba : f0's out-of-fold probabilities on ``train``.
    full : f0 alone as a system; its stage is the last one of every system compared.
    trees : rounds of boosting of the cheap models.
    score : what is counted.
    about : what the loader says about the data, and the sizes.
    """

    train: Part
    validation: Part
    test: Part
    costs: FeatureCosts
    full_model: FrozenEstimator
    full_proba: np.ndarray
    full: System
    trees: int
    score: Score
    about: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def kept(self) -> dict[str, Any]:
        """What methods compute once for all their settings, by name."""
        return {}

    def once(self, name: str, compute: Callable[[], Any]) -> Any:
        """Compute something of this problem unless it is known."""
        if name not in self.kept:
            self.kept[name] = compute()
        return self.kept[name]

    def prices(self) -> np.ndarray:
        """Price of each column alone."""
        return self.costs.of(np.eye(len(self.costs.columns), dtype=bool))

    def folds(self, n: int) -> Any:
        """Folds of the training rows: a number, or pairs of positions where queries must stay whole."""
        return folds(self.train, n)

    def fit(self, estimator: Any) -> Any:
        """Fit one of our classifiers to the training rows, with the f0 they all share."""
        estimator.set_params(feature_costs=self.costs, random_state=0)
        settings = estimator.get_params()
        if isinstance(settings.get("cv"), int):
            estimator.set_params(cv=self.folds(settings["cv"]))
        # GreedyMiser, which has no full model, has neither of these settings.
        if {"full_rate", "stage_estimator"} & set(settings):
            estimator.set_params(estimator=self.full_model)
            return estimator.fit(self.train.X, self.train.y, full_proba=self.full_proba)
        return estimator.fit(self.train.X, self.train.y)


def folds(part: Part, n: int) -> Any:
    """Folds: a number, or pairs of positions where queries must stay whole."""
    if part.query is None:
        return n
    return list(GroupKFold(n).split(part.X, part.y, part.query))


def prepare(name: str, data: DataSet, split: int, store: Store, level: str = "standard") -> Problem:
    """Load, split, and fit f0 unless it is in the store."""
    bunch = data.load()
    parts = parts_of(bunch, split, QUICK_ROWS if level == "quick" else None)
    train = parts[0]
    full_model, proba = store.get(
        (name, folder_of(split, level), "full-model"),
        {"model": repr(data.full_model), "rows": [len(part.y) for part in parts]},
        lambda: _fit_full_model(data.full_model, train),
    )
    frozen = FrozenEstimator(full_model)
    # The smallest system there is, only to have f0 as a stage.
    smallest = AdaptGbrtClassifier(frozen, feature_costs=bunch.costs, n_estimators=1, gate="joint")
    full = stage_alone(smallest.fit(train.X, train.y, full_proba=proba).system_)
    about = {
        "data": " ".join(bunch.DESCR.replace("#", "").split("\n\n")[:2]).replace("\n", " ").strip(),
        "columns": train.X.shape[1],
        "classes": len(full.classes),
        "train rows": len(train.y),
        "validation rows": len(parts[1].y),
        "test rows": len(parts[2].y),
        "full model": " ".join(repr(data.full_model).split()),
        "family": data.family,
        "same as authors": data.same_as_authors,
        "score": data.score.name,
        "unit": data.score.unit,
        "note": data.note,
    }
    if train.query is not None:
        about |= {
            f"{part_name} queries": len(np.unique(part.query))
            for part_name, part in zip(("train", "validation", "test"), parts, strict=True)
        }
    return Problem(*parts, bunch.costs, frozen, proba, full, data.trees, data.score, about)


def folder_of(split: int, level: str) -> str:
    """Folder of a split in the store; quick runs see fewer rows, so theirs is another."""
    return f"split{split}-of-{QUICK_ROWS[0]}" if level == "quick" else f"split{split}"


def parts_of(
    bunch: Bunch, split: int, limits: tuple[int, ...] | None = None
) -> tuple[Part, Part, Part]:
    """The loader's parts, or parts of the same sizes drawn from all rows; units are rows or whole queries."""
    query = bunch.get("query")
    unit = np.arange(len(bunch.target)) if query is None else query
    rows = [bunch.split.train, bunch.split.validation, bunch.split.test]
    if split:
        units = [np.unique(unit[part]) for part in rows] if query is not None else rows
        drawn = np.random.default_rng(split).permutation(np.concatenate(units))
        drawn = np.split(drawn, np.cumsum([len(part) for part in units])[:2])
        rows = drawn if query is None else [np.flatnonzero(np.isin(unit, d)) for d in drawn]
    if limits is not None:
        rows = [_thinned(part, unit, limit) for part, limit in zip(rows, limits, strict=True)]
    train, validation, test = (
        Part(
            bunch.data[part],
            bunch.target[part],
            None if query is None else query[part],
            bunch.grade[part] if "grade" in bunch else None,
        )
        for part in rows
    )
    return train, validation, test


def _thinned(rows: np.ndarray, unit: np.ndarray, limit: int) -> np.ndarray:
    """At most so many rows, drawn by whole units; at least one unit."""
    if len(rows) <= limit:
        return rows
    units, code, sizes = np.unique(unit[rows], return_inverse=True, return_counts=True)
    order = np.random.default_rng(0).permutation(len(units))
    kept = order[: max(1, np.searchsorted(np.cumsum(sizes[order]), limit, side="right"))]
    return rows[np.isin(code, kept)]


def _fit_full_model(model: Any, train: Part) -> tuple[Any, np.ndarray]:
    """f0 on all training rows, and its out-of-fold probabilities."""
    cv = (
        StratifiedKFold(5, shuffle=True, random_state=0) if train.query is None else folds(train, 5)
    )
    if hasattr(model, "predict_proba"):
        proba = cross_val_predict(model, train.X, train.y, cv=cv, method="predict_proba")
    else:
        values = cross_val_predict(model, train.X, train.y, cv=cv, method="decision_function")
        proba = _calibrated(values, train.y)
    return model.fit(train.X, train.y), proba


def _calibrated(values: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Probabilities from decision values by one temperature, which changes no decision."""
    if values.ndim == 1:
        values = np.column_stack([-values / 2, values / 2])
    code = np.searchsorted(np.unique(y), y)

    def loss(log_temperature: float) -> float:
        logs = log_softmax(values / np.exp(log_temperature), axis=1)
        return -float(logs[np.arange(len(y)), code].mean())

    best = minimize_scalar(loss, bounds=(-8, 8), method="bounded")
    return softmax(values / np.exp(best.x), axis=1)
