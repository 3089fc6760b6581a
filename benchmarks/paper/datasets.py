"""Data sets: rows, splits, prices, a full model f0, and what is counted. To add one, write a line in ``DATASETS``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils import Bunch

from paper.features import cifar10_features
from paper.kernel_machine import KernelMachine
from paper.rankings import mslr, yahoo
from paper.scores import Accuracy, RunPrecision, Score
from sparing import FeatureCosts
from sparing.datasets import fetch_forest, fetch_miniboone, fetch_thyroid, load_letters


@dataclass(frozen=True)
class DataSet:
    """One line of the table below.

    Attributes
    ----------
    load : gives a Bunch of ``data``, ``target``, ``costs``, ``split``, ``DESCR``; of rankings ``query``, ``grade``.
    full_model : f0, unfitted.
    trees : rounds of boosting of the cheap models, for every method the same.
    splits : 0 is the split of the loader; any other number draws parts of the same sizes from all its rows.
    family : name of these rows in ``authors.csv`` and ``published.csv``, and of the sweeps in ``appendix.py``.
    same_as_authors : whether the authors' code was run with this f0 on these parts.
    thinned : methods that take too long here, and the largest level of their sweep.
    sweeps : methods whose standard sweep is another one here.
    without : methods that are left out here, and why.
    score : what is counted.
    note : how these rows differ from those of the paper.
    """

    load: Callable[[], Bunch]
    full_model: Any
    trees: int
    splits: tuple[int, ...] = (0,)
    family: str = ""
    same_as_authors: bool = False
    thinned: Mapping[str, str] = field(default_factory=dict)
    sweeps: Mapping[str, Mapping[str, Sequence[Any]]] = field(default_factory=dict)
    without: Mapping[str, str] = field(default_factory=dict)
    score: Score = field(default_factory=Accuracy)
    note: str = ""


def _letters() -> Bunch:
    return load_letters(binary=True)


def _digits() -> Bunch:
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    train, validation, test = np.split(order, [900, 1300])
    return Bunch(
        data=digits.data,
        target=digits.target,
        costs=FeatureCosts(np.ones(digits.data.shape[1])),
        split=Bunch(train=train, validation=validation, test=test),
        DESCR="Handwritten digits 1797 pictures of the ten digits, 64 numbers of dark pixels in blocks of 4 x 4, as "
        "they come with scikit-learn (UCI 80, CC BY 4.0).",
    )


def _forest_attributes() -> Bunch:
    return fetch_forest(items="attributes")


def _svm(C: float, gamma: float) -> Any:
    return make_pipeline(StandardScaler(), SVC(C=C, gamma=gamma))


def _forest(trees: int, max_features: float | str = "sqrt") -> Any:
    return RandomForestClassifier(trees, max_features=max_features, random_state=0)


def _extra_trees(max_features: float) -> Any:
    return ExtraTreesClassifier(200, max_features=max_features, random_state=0)


# Five splits where methods with several gates are compared: thresholds fit one validation part better than another.
_FIVE = (0, 1, 2, 3, 4)
# 500 trees as in the paper, and few settings: with a fifth of the trees it saves half as much on Forest.
_FOREST_PAPER = {
    "rounds": [500],
    "learning_rate": [1.0],
    "full_rate": [0.3, 0.6],
    "share": [0.001, 0.0025, 0.005, 0.01],
}
_FOREST_ET = {"adapt-gbrt-paper": {**_FOREST_PAPER, "share": [0.0025, 0.005]}}
_FOREST_LAZY = {
    "trees": [1],
    "num_leaves": [31],
    "learning_rate": [0.1],
    "share": [0.00501, 0.01259, 0.03162, 0.07943, 0.19953, 0.50119],
}
# 400 columns are slow: few settings.
_CIFAR_LIGHTGBM = {
    "trees": [1],
    "num_leaves": [31],
    "learning_rate": [0.1],
    "share": [0.005, 0.02, 0.05, 0.12, 0.3],
}
# Large data: three folds for the cascade, few penalties for Adapt-Lin.
_SLOW = {"adapt-lin": "quick", "cascade": "quick"}

DATASETS = {
    "letters-svm": DataSet(_letters, _svm(5, 0.5), 500, splits=_FIVE, family="letters"),
    "letters-svm-authors": DataSet(
        _letters, _svm(10, 0.2), 500, family="letters", same_as_authors=True
    ),
    "letters-rf": DataSet(_letters, _forest(500), 500, family="letters"),
    "forest-rf40": DataSet(
        fetch_forest,
        _forest(40),
        200,
        family="forest",
        thinned={"adapt-lin": "quick"},
        sweeps={"adapt-gbrt-paper": _FOREST_PAPER, "lightgbm-lazy": _FOREST_LAZY},
    ),
    "forest-et": DataSet(
        fetch_forest,
        _extra_trees(1.0),
        200,
        splits=_FIVE,
        family="forest",
        thinned=_SLOW,
        sweeps=_FOREST_ET,
        note="A stronger full model than the paper's.",
    ),
    "forest-et-attributes": DataSet(
        _forest_attributes,
        _extra_trees(1.0),
        200,
        splits=_FIVE,
        thinned=_SLOW,
        sweeps={**_FOREST_ET, "lightgbm-lazy": _FOREST_LAZY},
    ),
    # Classes 1 and 2 are sick, 93 of 100 patients are in class 3.
    "thyroid": DataSet(
        fetch_thyroid,
        _forest(500, max_features=0.5),
        200,
        splits=_FIVE,
        score=Accuracy(watched=(1, 2)),
    ),
    "cifar-svm": DataSet(
        cifar10_features,
        make_pipeline(StandardScaler(), KernelMachine(C=3)),
        200,
        splits=_FIVE,
        family="cifar",
        thinned=_SLOW,
        # For the paper's method its trees and depth.
        sweeps={
            "adapt-gbrt": {"trees": [1], "full_rate": [0.3], "share": [0.05, 0.12, 0.3, 0.7]},
            "greedy-miser": {"trees": [1], "learning_rate": [0.2], "share": [0.02, 0.1, 0.4]},
            "lightgbm-confidence": _CIFAR_LIGHTGBM,
            "lightgbm-lazy": _CIFAR_LIGHTGBM,
            "catboost": {
                "trees": [1],
                "depth": [6],
                "per_object": [False, True],
                "share": [0.05, 0.4, 3.16],
            },
            # A race of all methods takes hours here.
            "budgeted": {"method": ["cascade"]},
            "adapt-gbrt-paper": {
                "rounds": [200],
                "max_depth": [5],
                "learning_rate": [0.3, 1.0],
                "full_rate": [0.3, 0.6],
                "share": [0.0025, 0.005],
            },
        },
    ),
    "digits": DataSet(
        _digits,
        make_pipeline(StandardScaler(), SVC(C=5)),
        100,
        splits=_FIVE,
        thinned={"adapt-lin": "quick"},  # ten classes: a fit takes a minute and a half
        note="Added when the cascade was there; one later change to it was prompted by results on these rows.",
    ),
    "miniboone-rf40": DataSet(
        fetch_miniboone,
        _forest(40),
        100,
        splits=_FIVE,
        family="miniboone",
        same_as_authors=True,
        note="The paper has 45523 rows to learn from.",
    ),
    "mslr": DataSet(
        mslr,
        _forest(140),
        100,
        splits=_FIVE,
        family="ranking",
        thinned={"adapt-lin": "quick"},
        score=RunPrecision(),
        note="Other documents than the paper's, which are Yahoo!'s; prices by a rule of ours, see README.md. "
        "13 queries choose: nothing can be told.",
    ),
    "yahoo": DataSet(
        yahoo,
        _forest(140),
        100,
        family="ranking",
        thinned={"adapt-lin": "quick"},
        score=RunPrecision(),
    ),
}
