"""Methods: functions from a problem and a setting to systems; sweeps are data.

A method gives systems and no thresholds: the objective cuts every gate at the same shares of validation rows. Systems
of several gates keep the thresholds they come with. One fit may serve several methods, such as the same cheap model
behind two gates. To add a method, write a function and a line in ``METHODS``.

Penalties are given as shares: the price of buying everything, in units of mean loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from peers.lightgbm_gate import fit_lightgbm, gated_systems

from paper.datasets import Problem
from sparing import (
    AdaptGbrtClassifier,
    AdaptLinClassifier,
    BudgetPruneClassifier,
    CascadeClassifier,
    GreedyMiserClassifier,
)
from sparing.system import ConfidenceGate, Stage, System

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
    """

    learn: Callable[..., Systems]
    gives: tuple[str, ...]
    sweep: Mapping[str, Sweep]

    def settings(self, level: str) -> Iterator[dict[str, Any]]:
        """All settings of a level."""
        axes = self.sweep[level]
        for values in product(*axes.values()):
            yield dict(zip(axes, values, strict=True))


def adapt_gbrt(problem: Problem, *, share: float, full_rate: float, trees: float) -> Systems:
    """Our default, all systems of a fit; and apart from each other the two cheap models with two gates each.

    ``joint`` and ``confidence`` share the cheap models that were grown with the gate, ``refit`` and
    ``refit-confidence`` the one that was learnt again on the columns they bought.
    """
    clf = AdaptGbrtClassifier(
        full_rate=full_rate,
        cost_penalty=share / problem.costs.total,
        n_estimators=int(trees * problem.trees),
    )
    systems = gated(problem.fit(clf).staged_systems())
    gates = [system.stages[0].gate for system in systems]
    joint = [s for s, gate in zip(systems, gates, strict=True) if not gate.reads_predictor]
    refit = [
        s
        for s, gate in zip(systems, gates, strict=True)
        if gate.reads_predictor and not isinstance(gate, ConfidenceGate)
    ]
    return {
        "adapt-gbrt": systems,
        "adapt-gbrt-refit": refit,
        "adapt-gbrt-refit-confidence": by_confidence(refit),
        "adapt-gbrt-joint": joint,
        "adapt-gbrt-confidence": by_confidence(joint),
    }


def adapt_gbrt_paper(
    problem: Problem, *, share: float, full_rate: float, learning_rate: float, trees: float
) -> Systems:
    """The paper's Algorithm 2: alternation, least-squares trees, its sweep of learning rates thinned."""
    clf = AdaptGbrtClassifier(
        full_rate=full_rate,
        cost_penalty=share / problem.costs.total,
        n_estimators=int(trees * problem.trees),
        learning_rate=learning_rate,
        newton=False,
        schedule="alternate",
        gate="joint",
    )
    return {"adapt-gbrt-paper": gated(problem.fit(clf).staged_systems())}


def greedy_miser(problem: Problem, *, share: float, learning_rate: float, trees: float) -> Systems:
    """Boosted trees with prices, no full model; twice the trees of Adapt-Gbrt, so that the sizes match."""
    clf = GreedyMiserClassifier(
        cost_penalty=share / problem.costs.total,
        n_estimators=int(2 * trees * problem.trees),
        learning_rate=learning_rate,
    )
    return {"greedy-miser": problem.fit(clf).staged_systems()}


def adapt_lin(problem: Problem, *, full_rate: float, penalties: int) -> Systems:
    """Adapt-Lin with the paper's sweep of penalties, each from the solution of the last."""
    clf = AdaptLinClassifier(full_rate=full_rate, cost_penalty=np.logspace(-4, 0, penalties))
    return {"adapt-lin": gated(problem.fit(clf).staged_systems())}


def lightgbm_confidence(
    problem: Problem, *, share: float, num_leaves: int, learning_rate: float, trees: float
) -> Systems:
    """LightGBM's own prices and confidence, see ``peers/lightgbm_gate.py``."""
    model = fit_lightgbm(
        problem.train.X,
        problem.train.y,
        problem.costs.of(np.eye(len(problem.costs.columns), dtype=bool)),
        penalty=share / problem.costs.total,
        num_leaves=num_leaves,
        learning_rate=learning_rate,
        n_estimators=int(trees * problem.trees),
    )
    full = problem.full
    return {"lightgbm-confidence": gated_systems(model, full.costs, full.classes, full.stages[-1])}


def cascade(problem: Problem, *, stage_estimator: str, cv: int) -> Systems:
    """Our cascade: many gates, their thresholds tuned together on out-of-fold scores; validation chooses a system."""
    fitted = problem.fit(CascadeClassifier(stage_estimator=stage_estimator, cv=cv))
    systems = fitted.staged_systems()
    # One gate is cut by the objective as everybody's is.
    return {"cascade": gated(systems) if len(fitted.stages_) == 2 else systems}


def budget_prune(problem: Problem, *, shares: int, keep_free: bool) -> Systems:
    """f0 itself, pruned by its out-of-bag rows: validation rows only choose. Nothing where f0 is no such forest."""
    if not getattr(problem.full_model.estimator, "bootstrap", False):
        return {}
    clf = BudgetPruneClassifier(
        problem.full_model.estimator,
        feature_costs=problem.costs,
        cost_penalty=np.logspace(-3, 0, shares) / problem.costs.total,
        keep_free=keep_free,
        pruning="oob",
        random_state=0,
    )
    return {"budget-prune": clf.fit(problem.train.X, problem.train.y).staged_systems()}


def gated(systems: Sequence[System]) -> list[System]:
    """One system per gate; those that differ by thresholds alone are one."""
    first = {(id(s.stages[0].predictor), id(s.stages[0].gate)): s for s in reversed(systems)}
    return [system for system in reversed(first.values()) if len(system.stages[0].columns)]


def by_confidence(systems: Sequence[System]) -> list[System]:
    """The same cheap models, each gated by its own confidence."""
    return [
        replace(
            s, stages=(Stage(s.stages[0].predictor, ConfidenceGate(), name="cheap"), *s.stages[1:])
        )
        for s in systems
    ]


def _shares(n: int) -> list[float]:
    return np.logspace(-2.3, -0.3, n).round(5).tolist()


_GBRT = {
    "quick": {"trees": [0.2], "full_rate": [0.3], "share": _shares(6)},
    "standard": {"trees": [1], "full_rate": [0.2, 0.5], "share": _shares(6)},
    "full": {"trees": [1], "full_rate": [0.1, 0.3, 0.6], "share": _shares(12)},
}
_MISER = {
    "quick": {"trees": [0.2], "learning_rate": [0.2], "share": _shares(6)},
    "standard": {"trees": [1], "learning_rate": [0.1, 0.2], "share": _shares(6)},
    "full": {"trees": [1], "learning_rate": [0.05, 0.1, 0.2], "share": _shares(12)},
}
# As many fits as adapt-gbrt. 31 leaves and a rate of 0.1 are LightGBM's own defaults.
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

_CASCADE = {
    "quick": {"stage_estimator": ["shared"], "cv": [3]},
    "standard": {"stage_estimator": ["own", "shared"], "cv": [5]},
    "full": {"stage_estimator": ["own", "shared", "auto"], "cv": [5]},
}

METHODS = {
    "adapt-gbrt": Method(
        adapt_gbrt,
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
        adapt_gbrt_paper,
        ("adapt-gbrt-paper",),
        {
            "quick": {
                "trees": [0.1],
                "learning_rate": [0.3],
                "full_rate": [0.3],
                "share": _shares(4),
            },
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
        },
    ),
    "greedy-miser": Method(greedy_miser, ("greedy-miser",), _MISER),
    "adapt-lin": Method(
        adapt_lin,
        ("adapt-lin",),
        {
            "quick": {"penalties": [5], "full_rate": [0.3, 0.6]},
            "standard": {"penalties": [20], "full_rate": np.arange(1, 10).__truediv__(10).tolist()},
            "full": {"penalties": [20], "full_rate": np.arange(1, 10).__truediv__(10).tolist()},
        },
    ),
    "lightgbm-confidence": Method(lightgbm_confidence, ("lightgbm-confidence",), _LIGHTGBM),
    "cascade": Method(cascade, ("cascade",), _CASCADE),
    "budget-prune": Method(
        budget_prune,
        ("budget-prune",),
        {
            "quick": {"shares": [6], "keep_free": [True]},
            "standard": {"shares": [15], "keep_free": [False, True]},
            "full": {"shares": [30], "keep_free": [False, True]},
        },
    ),
}
