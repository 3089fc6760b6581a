"""The table of methods: how each learns, and its sweep as data.

To add a method, write a function from a problem and a setting to systems (``ours.py``, ``peers/``) and a line here.
Peers are tuned with at least as many fits as Adapt-Gbrt, but where ``datasets.py`` lists fewer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from peers.catboost_gate import catboost_gate
from peers.lightgbm_gate import lightgbm_coupled, lightgbm_lazy
from peers.scikit_fallback import scikit_fallback
from peers.static_subset import static_subset

from paper import ours
from paper.appendix import APPENDIX, Appendix
from paper.datasets import DataSet
from sparing.system import System

LEVELS = ("quick", "standard", "full")
Systems = Mapping[str, list[System]]
Sweep = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Method:
    """How to learn, and with which settings.

    Attributes
    ----------
    learn : from a problem and a setting to systems, by the names of ``gives``.
    gives : methods that come out of it.
    sweep : per level, values of every argument of ``learn``; all combinations are settings.
    appendix : from the paper's appendix on a data set to the sweep of the level "full" there.
    against : why it does not apply to a data set; empty where it does.
    """

    learn: Callable[..., Systems]
    gives: tuple[str, ...]
    sweep: Mapping[str, Sweep]
    appendix: Callable[[Appendix], Sweep] | None = None
    against: Callable[[DataSet], str] | None = None

    def settings(
        self, level: str, family: str = "", own: Sweep | None = None
    ) -> Iterator[dict[str, Any]]:
        """All settings of a level on a family of data sets; ``own`` takes the place of the standard ones."""
        axes = own if level == "standard" and own is not None else self.sweep[level]
        if level == "full" and self.appendix is not None and family in APPENDIX:
            axes = self.appendix(APPENDIX[family])
        for values in product(*axes.values()):
            yield dict(zip(axes, values, strict=True))

    def reason_against(self, data: DataSet) -> str:
        """Why it does not apply to a data set; empty where it does."""
        return "" if self.against is None else self.against(data)


def _no_forest(data: DataSet) -> str:
    is_forest = getattr(data.full_model, "bootstrap", False)
    return "" if is_forest else "the full model is no forest with out-of-bag rows"


def _forest_already(data: DataSet) -> str:
    return "" if _no_forest(data) else "the full model is a forest: see budget-prune"


def _letters_alone(data: DataSet) -> str:
    return (
        ""
        if data.family == "letters"
        else "linear methods are compared on Letters, as in the paper"
    )


def _shares(n: int, low: float = -2.3, high: float = -0.3) -> list[float]:
    return np.logspace(low, high, n).round(5).tolist()


_RATES = np.arange(1, 10).__truediv__(10).tolist()

_GBRT = {
    "quick": {"trees": [0.2], "full_rate": [0.3], "share": _shares(6)},
    "standard": {"trees": [1], "full_rate": [0.3], "share": _shares(11)},
    "full": {"trees": [1], "full_rate": [0.1, 0.3, 0.6], "share": _shares(12)},
}
_PAPER = {
    "quick": {"trees": [0.1], "learning_rate": [0.3], "full_rate": [0.3], "share": _shares(4)},
    "standard": {
        "trees": [0.5],
        "learning_rate": [0.3, 1.0],
        "full_rate": [0.3, 0.6],
        "share": _shares(6),
    },
    "full": {
        "trees": [1],
        "learning_rate": [0.1, 0.3, 1.0],
        "full_rate": [0.1, 0.3, 0.6],
        "share": _shares(10),
    },
}
_MISER = {
    "quick": {"trees": [0.2], "learning_rate": [0.2], "share": _shares(6)},
    "standard": {"trees": [1], "learning_rate": [0.1, 0.2], "share": _shares(6)},
    "full": {"trees": [1], "learning_rate": [0.05, 0.1, 0.2], "share": _shares(12)},
}
_LINEAR = {
    "quick": {"penalties": [5], "full_rate": [0.3, 0.6]},
    "standard": {"penalties": [20], "full_rate": _RATES},
    "full": {"penalties": [20], "full_rate": _RATES},
}
_L1 = {
    "quick": {"Cs": [5], "class_weights": [5]},
    "standard": {"Cs": [20], "class_weights": [19]},
    "full": {"Cs": [20], "class_weights": [39]},
}
_CASCADE = {
    "quick": {"stage_estimator": ["auto"], "cv": [3]},
    "standard": {"stage_estimator": ["auto"], "cv": [5]},
    "full": {"stage_estimator": ["own", "shared", "auto"], "cv": [5]},
}
_BUDGETED = {
    "quick": {"method": ["greedy-miser"]},
    "standard": {"method": ["auto"]},
    "full": {"method": ["auto"]},
}
_PRUNE = {
    "quick": {"shares": [6], "keep_free": [True]},
    "standard": {"shares": [15], "keep_free": [False, True]},
    "full": {"shares": [30], "keep_free": [False, True]},
}

# 31 leaves and a rate of 0.1 are LightGBM's own defaults.
_LIGHTGBM = {
    "quick": {"trees": [0.2], "num_leaves": [31], "learning_rate": [0.1], "share": _shares(6)},
    "standard": {
        "trees": [1],
        "num_leaves": [31, 127],
        "learning_rate": [0.1],
        "share": _shares(6),
    },
    "full": {
        "trees": [1],
        "num_leaves": [16, 31, 127],
        "learning_rate": [0.1],
        "share": _shares(12),
    },
}
# A depth of 6 is CatBoost's own default; its scores are on another scale, see the peer.
_CATBOOST = {
    "quick": {
        "trees": [0.2],
        "depth": [6],
        "per_object": [False, True],
        "share": _shares(3, -1.3, 0.5),
    },
    "standard": {
        "trees": [1],
        "depth": [6],
        "per_object": [False, True],
        "share": _shares(6, -1.3, 0.5),
    },
    "full": {
        "trees": [1],
        "depth": [4, 6, 8],
        "per_object": [False, True],
        "share": _shares(6, -1.3, 0.5),
    },
}
# Prices of the stages, as shares of that of everything.
_STAGES = {
    "quick": [(0.1,), (0.25,), (0.5,), (0.1, 0.3), (0.2, 0.5), (0.05, 0.15)],
    "standard": [
        *((share,) for share in (0.05, 0.1, 0.2, 0.35, 0.5)),
        *((0.05, 0.15), (0.1, 0.2), (0.1, 0.3), (0.2, 0.4), (0.3, 0.6)),
        *((0.05, 0.15, 0.35), (0.15, 0.3, 0.5)),
    ],
}
_FALLBACK = {
    "quick": {"trees": [0.2], "num_leaves": [31], "cuts": [10], "stages": _STAGES["quick"]},
    "standard": {"trees": [0.5], "num_leaves": [31], "cuts": [12], "stages": _STAGES["standard"]},
    "full": {
        "trees": [0.5],
        "num_leaves": [16, 31, 127],
        "cuts": [12],
        "stages": _STAGES["standard"],
    },
}
_RANKINGS = ["shuffled", "trees"]
_SUBSET = {
    "quick": {"share": [0.05, 0.1, 0.2, 0.35, 0.5, 0.75], "ranking": _RANKINGS},
    "standard": {
        "share": [0.03, 0.06, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.75, 0.9],
        "ranking": _RANKINGS,
    },
    "full": {"share": np.linspace(0.025, 0.975, 36).round(3).tolist(), "ranking": _RANKINGS},
}

METHODS = {
    "adapt-gbrt": Method(
        ours.adapt_gbrt,
        (
            "adapt-gbrt",
            "adapt-gbrt-refit",
            "adapt-gbrt-refit-confidence",
            "adapt-gbrt-joint",
            "adapt-gbrt-confidence",
        ),
        _GBRT,
    ),
    "adapt-gbrt-paper": Method(
        ours.adapt_gbrt_paper, ("adapt-gbrt-paper",), _PAPER, Appendix.adapt_gbrt
    ),
    "greedy-miser": Method(ours.greedy_miser, ("greedy-miser",), _MISER, Appendix.greedy_miser),
    "adapt-lin": Method(ours.adapt_lin, ("adapt-lin",), _LINEAR),
    "adapt-lstsq": Method(ours.adapt_lstsq, ("adapt-lstsq",), _LINEAR, against=_letters_alone),
    "l1-gate": Method(ours.l1_gate, ("l1-gate",), _L1, against=_letters_alone),
    "cascade": Method(ours.cascade, ("cascade",), _CASCADE),
    "budgeted": Method(ours.budgeted, ("budgeted",), _BUDGETED),
    "budget-prune": Method(ours.budget_prune, ("budget-prune",), _PRUNE, against=_no_forest),
    "budget-prune-own": Method(
        ours.budget_prune_own,
        ("budget-prune-own",),
        {level: {"trees": [40], **axes} for level, axes in _PRUNE.items()},
        against=_forest_already,
    ),
    "lightgbm-confidence": Method(
        lightgbm_coupled, ("lightgbm-confidence", "lightgbm-alone"), _LIGHTGBM
    ),
    "lightgbm-lazy": Method(
        lightgbm_lazy, ("lightgbm-lazy-confidence", "lightgbm-lazy-alone"), _LIGHTGBM
    ),
    "catboost": Method(catboost_gate, ("catboost-confidence", "catboost-alone"), _CATBOOST),
    "scikit-fallback": Method(scikit_fallback, ("scikit-fallback",), _FALLBACK),
    "static-subset": Method(static_subset, ("static-subset",), _SUBSET),
}

PEERS = tuple(
    name
    for key in (
        "lightgbm-confidence",
        "lightgbm-lazy",
        "catboost",
        "scikit-fallback",
        "static-subset",
    )
    for name in METHODS[key].gives
)
"""What one would use instead."""
