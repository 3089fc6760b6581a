"""Data sets: rows, splits, prices and a full model f0 that is fixed before anything is tuned.

To add one, write a line in ``DATASETS``. f0 is fitted once per split and its honest probabilities on the training rows
are cross-fitted once; every method gets the same ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils import Bunch

from paper.features import cifar10_features
from paper.store import Store
from sparing import AdaptGbrtClassifier, FeatureCosts
from sparing.datasets import fetch_forest, fetch_miniboone, fetch_thyroid, load_letters
from sparing.frontier import stage_alone
from sparing.system import System


@dataclass(frozen=True)
class DataSet:
    """One line of the table below.

    Attributes
    ----------
    load : gives a Bunch of ``data``, ``target``, ``costs``, ``split``, ``DESCR``.
    full_model : f0, unfitted.
    trees : rounds of boosting of the cheap models, for every method the same.
    splits : 0 is the split of the loader; any other number draws parts of the same sizes from all its rows.
    family : name of these rows in ``authors.csv`` and ``published.csv``.
    same_as_authors : whether the authors' code was run with this f0 on these parts.
    thinned : methods that take too long here, and the largest level of their sweep.
    """

    load: Callable[[], Bunch]
    full_model: Any
    trees: int
    splits: tuple[int, ...] = (0,)
    family: str = ""
    same_as_authors: bool = False
    thinned: Mapping[str, str] = field(default_factory=dict)


def _letters() -> Bunch:
    return load_letters(binary=True)


def _forest_attributes() -> Bunch:
    return fetch_forest(items="attributes")


def _svm(C: float, gamma: float | str) -> Any:
    return make_pipeline(StandardScaler(), SVC(C=C, gamma=gamma))


def _forest(trees: int, max_features: float | str = "sqrt") -> Any:
    return RandomForestClassifier(trees, max_features=max_features, random_state=0)


def _extra_trees(max_features: float) -> Any:
    return ExtraTreesClassifier(200, max_features=max_features, random_state=0)


# Five splits where methods with several gates are compared: thresholds fit one validation part better than another.
_FIVE = (0, 1, 2, 3, 4)

DATASETS = {
    "letters-svm": DataSet(_letters, _svm(5, 0.5), 500, family="letters"),
    "letters-svm-authors": DataSet(
        _letters, _svm(10, 0.2), 500, family="letters", same_as_authors=True
    ),
    "letters-rf": DataSet(_letters, _forest(500), 500, family="letters"),
    "forest-rf40": DataSet(
        fetch_forest, _forest(40), 200, family="forest", thinned={"adapt-lin": "quick"}
    ),
    "forest-et": DataSet(
        fetch_forest,
        _extra_trees(1.0),
        200,
        splits=_FIVE,
        family="forest",
        thinned={"adapt-lin": "quick"},
    ),
    "forest-et-attributes": DataSet(
        _forest_attributes, _extra_trees(1.0), 200, splits=_FIVE, thinned={"adapt-lin": "quick"}
    ),
    "thyroid": DataSet(fetch_thyroid, _forest(500, max_features=0.5), 200, splits=_FIVE),
    "cifar-svm": DataSet(
        cifar10_features,
        _svm(3, "scale"),
        200,
        splits=_FIVE,
        family="cifar",
        thinned={"adapt-lin": "quick"},
    ),
    "miniboone-rf40": DataSet(
        fetch_miniboone,
        _forest(40),
        100,
        splits=(0, 1, 2, 3, 4, 5),
        family="miniboone",
        same_as_authors=True,
    ),
}


@dataclass(frozen=True, eq=False)
class Part:
    """Rows and labels."""

    X: np.ndarray
    y: np.ndarray


@dataclass(frozen=True, eq=False)
class Problem:
    """One split of a data set, as every method gets it.

    Attributes
    ----------
    train, validation, test : the three parts.
    full_model : f0, fitted on ``train`` and frozen.
    full_proba : f0's out-of-fold probabilities on ``train``.
    full : f0 alone as a system; its stage is the last one of every system compared.
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
    about: dict[str, Any] = field(default_factory=dict)

    def fit(self, estimator: Any) -> Any:
        """Fit one of our classifiers to the training rows, with the f0 they all share."""
        estimator.set_params(feature_costs=self.costs, random_state=0)
        # GreedyMiser, which has no full model, has neither of these settings.
        if {"full_rate", "stage_estimator"} & set(estimator.get_params()):
            estimator.set_params(estimator=self.full_model)
            return estimator.fit(self.train.X, self.train.y, full_proba=self.full_proba)
        return estimator.fit(self.train.X, self.train.y)


def prepare(name: str, data: DataSet, split: int, store: Store) -> Problem:
    """Load, split, and fit f0 unless it is in the store."""
    bunch = data.load()
    parts = _parts(bunch, split)
    train = parts[0]
    full_model, proba = store.get(
        (name, f"split{split}", "full-model"),
        {"model": repr(data.full_model), "rows": [len(part.y) for part in parts]},
        lambda: _fit_full_model(data.full_model, train.X, train.y),
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
    }
    return Problem(*parts, bunch.costs, frozen, proba, full, data.trees, about)


def _parts(bunch: Bunch, split: int) -> tuple[Part, Part, Part]:
    rows = [bunch.split.train, bunch.split.validation, bunch.split.test]
    if split:
        drawn = np.random.default_rng(split).permutation(np.concatenate(rows))
        rows = np.split(drawn, np.cumsum([len(part) for part in rows])[:2])
    train, validation, test = (Part(bunch.data[part], bunch.target[part]) for part in rows)
    return train, validation, test


def _fit_full_model(model: Any, X: np.ndarray, y: np.ndarray) -> tuple[Any, np.ndarray]:
    """f0 on all training rows, and its out-of-fold probabilities."""
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    if hasattr(model, "predict_proba"):
        proba = cross_val_predict(model, X, y, cv=folds, method="predict_proba")
    else:
        values = cross_val_predict(model, X, y, cv=folds, method="decision_function")
        proba = _calibrated(values, y)
    return model.fit(X, y), proba


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
