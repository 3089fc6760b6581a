"""Our methods: functions from a problem and a setting to systems, by the names of the methods they are.

A method gives systems and no thresholds: the objective cuts every gate at the same shares of validation rows. Systems
of several gates keep the thresholds they come with. One fit may serve several methods, such as the same cheap model
behind two gates.

Penalties are given as shares, the price of buying everything in units of mean loss; or as the paper's gamma, a price in
units of the summed loss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from paper.problem import Problem
from sparing import (
    AdaptGbrtClassifier,
    AdaptLinClassifier,
    AdaptLstsqClassifier,
    BudgetedClassifier,
    BudgetPruneClassifier,
    CascadeClassifier,
    GreedyMiserClassifier,
    L1GateClassifier,
)
from sparing.system import ConfidenceGate, Stage, System

Systems = Mapping[str, list[System]]


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
    problem: Problem,
    *,
    full_rate: float,
    learning_rate: float,
    trees: float = 1,
    rounds: int | None = None,
    max_depth: int = 4,
    max_iter: int | None = None,
    **price: float,
) -> Systems:
    """The paper's Algorithm 2: alternation, least-squares trees; ``price`` is a share or gamma."""
    clf = AdaptGbrtClassifier(
        full_rate=full_rate,
        cost_penalty=_penalty(problem, **price),
        n_estimators=rounds or int(trees * problem.trees),
        max_depth=max_depth,
        learning_rate=learning_rate,
        newton=False,
        schedule="alternate",
        gate="joint",
    )
    if max_iter is not None:
        clf.set_params(max_iter=max_iter)
    return {"adapt-gbrt-paper": gated(problem.fit(clf).staged_systems())}


def greedy_miser(
    problem: Problem,
    *,
    learning_rate: float,
    trees: float = 1,
    rounds: int | None = None,
    max_depth: int = 4,
    **price: float,
) -> Systems:
    """Boosted trees with prices, no full model; twice the trees of Adapt-Gbrt, so that the sizes match."""
    clf = GreedyMiserClassifier(
        cost_penalty=_penalty(problem, **price),
        n_estimators=rounds or int(2 * trees * problem.trees),
        max_depth=max_depth,
        learning_rate=learning_rate,
    )
    return {"greedy-miser": problem.fit(clf).staged_systems()}


def adapt_lin(problem: Problem, *, full_rate: float, penalties: int) -> Systems:
    """Adapt-Lin with the paper's sweep of penalties, each from the solution of the last."""
    clf = AdaptLinClassifier(full_rate=full_rate, cost_penalty=np.logspace(-4, 0, penalties))
    return {"adapt-lin": gated(problem.fit(clf).staged_systems())}


def adapt_lstsq(problem: Problem, *, full_rate: float, penalties: int) -> Systems:
    """Adapt-Lstsq with the sweep of Adapt-Lin."""
    clf = AdaptLstsqClassifier(full_rate=full_rate, cost_penalty=np.logspace(-4, 0, penalties))
    return {"adapt-lstsq": gated(problem.fit(clf).staged_systems())}


def l1_gate(problem: Problem, *, Cs: int, class_weights: int) -> Systems:
    """The paper's L1 baseline; its gates come with thresholds of their own too, class weights play their part."""
    clf = L1GateClassifier(Cs=Cs, class_weights=class_weights)
    return {"l1-gate": gated(problem.fit(clf).staged_systems())}


def cascade(problem: Problem, *, stage_estimator: str, cv: int) -> Systems:
    """Our cascade: many gates, their thresholds tuned together on out-of-fold scores; validation chooses a system."""
    fitted = problem.fit(CascadeClassifier(stage_estimator=stage_estimator, cv=cv))
    return {"cascade": _gated_if_one(fitted.staged_systems())}


def budgeted(problem: Problem, *, method: str) -> Systems:
    """BudgetedClassifier with its own race of methods; all systems of its frontier.

    f0 is the one of all others and has seen every training row, so its answers there would look perfect to whoever
    holds some of them out: the rows that choose for everybody judge the race too.
    """
    validation = problem.validation
    clf = BudgetedClassifier(
        problem.full_model,
        method=method,
        feature_costs=problem.costs,
        scoring=problem.score.selection,
        validation=(validation.X, validation.y),
        cv=problem.folds(5),
        random_state=0,
    )
    try:
        clf.fit(problem.train.X, problem.train.y, full_proba=problem.full_proba)
    except ValueError:
        # No system is as good as f0. The frontier is all that is needed here, and it is kept.
        if not hasattr(clf, "frontier_"):
            raise
    return {"budgeted": _gated_if_one(clf.staged_systems())}


def budget_prune(problem: Problem, *, shares: int, keep_free: bool) -> Systems:
    """f0 itself, pruned by its out-of-bag rows: validation rows only choose."""
    forest = problem.full_model.estimator
    return {"budget-prune": _pruned(problem, forest, shares, keep_free)}


def budget_prune_own(problem: Problem, *, trees: int, shares: int, keep_free: bool) -> Systems:
    """A forest of its own, pruned likewise: what the paper does on CIFAR-10, where f0 is a support vector machine."""
    forest = RandomForestClassifier(trees, random_state=0).fit(problem.train.X, problem.train.y)
    return {"budget-prune-own": _pruned(problem, forest, shares, keep_free)}


def _pruned(
    problem: Problem, forest: RandomForestClassifier, shares: int, keep_free: bool
) -> list[System]:
    clf = BudgetPruneClassifier(
        forest,
        feature_costs=problem.costs,
        cost_penalty=np.logspace(-3, 0, shares) / problem.costs.total,
        keep_free=keep_free,
        pruning="oob",
        random_state=0,
    )
    return clf.fit(problem.train.X, problem.train.y).staged_systems()


def gated(systems: Sequence[System]) -> list[System]:
    """One system per gate; those that differ by thresholds alone are one."""
    first = {(id(s.stages[0].predictor), id(s.stages[0].gate)): s for s in reversed(systems)}
    return [system for system in reversed(first.values()) if len(system.stages[0].columns)]


def _gated_if_one(systems: Sequence[System]) -> list[System]:
    """Systems as they are, but one gate is cut by the objective as everybody's is."""
    one_gate = gated([s for s in systems if len(s.stages) == 2])
    return one_gate + [s for s in systems if len(s.stages) != 2]


def by_confidence(systems: Sequence[System]) -> list[System]:
    """The same cheap models, each gated by its own confidence."""
    return [
        replace(
            s, stages=(Stage(s.stages[0].predictor, ConfidenceGate(), name="cheap"), *s.stages[1:])
        )
        for s in systems
    ]


def _penalty(problem: Problem, *, share: float | None = None, gamma: float | None = None) -> float:
    """Price of one unit of cost in units of mean loss."""
    if gamma is not None:
        return gamma / len(problem.train.y)
    assert share is not None
    return share / problem.costs.total
