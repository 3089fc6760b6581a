"""The frontier of a fit: every chain of stages with all thresholds worth having, and the full model alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparing._evaluation import cost_by_stage, full_alone
from sparing._full_model import FullModel
from sparing._routed import Training
from sparing._rows import take_rows
from sparing.cascade.chains import Chain, Learnt
from sparing.cascade.exits import Choice, StageScores, trace, unbeaten
from sparing.frontier import Frontier, Point
from sparing.system import ConfidenceGate, Stage, System

_SAME = 1e-9
"""Relative difference of costs, and difference of scores, that is rounding."""
_ASKED = 5000
"""Training rows that the fitted stages are asked about, at most."""
_DEARER = 1.02
"""Factor by which they must cost more there than out-of-fold, or chance would move every point."""


class Known(NamedTuple):
    """What is known of a chain of stages.

    Attributes
    ----------
    predictors : of the stages before the full model.
    kind : of model.
    scores : accuracies of all stages, the full model last, if each had to answer all rows.
    order : items in the order of purchase, None when the stages were given.
    """

    predictors: Sequence[Any]
    kind: str
    scores: NDArray[np.float64]
    order: list[list[str]] | None


def frontier_of(
    learnt: Learnt, full: FullModel, training: Training
) -> tuple[Frontier, list[Known]]:
    """All points of a fit, out-of-fold, and what is known of the chains they belong to."""
    points, seen = list[Point](), list[Choice]()
    for chain in learnt.chains:
        cheap = [
            Stage(predictor, ConfidenceGate(), name=name)
            for predictor, name in zip(chain.predictors, chain.names, strict=True)
        ]
        system = System((*cheap, *full.stages), learnt.costs, training.classes)
        found = trace(chain.scores)
        if chain.for_less:
            least = min(seen, key=lambda choice: choice.cost)
            found = [c for c in found if c.cost < least.cost and c.error > least.error]
        # Of the other chains only what the best one does not have.
        new = unbeaten(found, seen) if seen else found
        points += [_point(system, choice) for choice in _served(new, chain, training)]
        seen += found
    known = [
        Known(chain.predictors, chain.kind, _accuracies(chain.scores), chain.order)
        for chain in learnt.chains
    ]
    best = learnt.chains[0]
    score = _accuracies(best.scores)[-1:]
    alone = full_alone(full, training.costs)
    rates = _rates((1.0,), alone)
    last = Point(
        alone, cost_by_stage(alone, rates), float(score[0]), rates, "full model", loss_error=0.0
    )
    # Where stages have prices of their own, the full model alone can be cheaper than all that stands before it.
    if not any(p.cost <= last.cost * (1 + _SAME) and p.score >= last.score - _SAME for p in points):
        points.append(last)
        known.append(Known((), "none", score, best.order))
    points.sort(key=lambda point: (point.cost, -point.score))
    n_rows = best.scores.errors.shape[1]
    return Frontier(tuple(points), last, "accuracy", "stage", n_rows), known


def _served(choices: Sequence[Choice], chain: Chain, training: Training) -> list[Choice]:
    """Choices with the cost and shares of the fitted stages where these send more training rows on than out-of-fold.

    A small tree doubts whole leaves alike, and a threshold tuned among leaves of other trees may send on all of one: a
    budget of 33 became a cost of 58 on 1200 hypothyroid rows. Stages are surer of rows they have learnt from than of
    new ones, if anything, so that what they send on even there is no bad luck.
    """
    n = len(training.y)
    # Interrupted, out-of-fold scores are there for some rows only.
    if not chain.predictors or chain.scores.errors.shape[1] != n:
        return list(choices)
    rows = np.random.default_rng(training.seed).permutation(n)[:_ASKED]
    asked = take_rows(training.X, rows)
    doubts = np.array([1.0 - p.predict_proba(asked).max(axis=1) for p in chain.predictors])
    scores, weight = chain.scores, chain.scores.weight[rows]
    by_fold, fitted = (
        StageScores.of(scores.errors[:, rows], d, scores.costs, weight, by_doubt=())
        for d in (scores.doubts[:, rows], doubts)
    )
    out = []
    for choice in choices:
        expected, found = by_fold.choice(choice.thresholds), fitted.choice(choice.thresholds)
        if found.cost > _DEARER * expected.cost:
            choice = replace(choice, cost=found.cost, shares=found.shares)
        out.append(choice)
    return out


def _point(system: System, choice: Choice) -> Point:
    """A system with some thresholds, evaluated out-of-fold."""
    inner = system.thresholds[len(choice.thresholds) :]
    chosen = system.with_thresholds([*choice.thresholds, *inner])
    return Point(
        chosen,
        choice.cost,
        1.0 - choice.error,
        _rates(choice.shares, chosen),
        loss_error=choice.loss_error,
    )


def _accuracies(scores: StageScores) -> NDArray[np.float64]:
    """Of every stage, if it had to answer all rows."""
    return np.asarray(1.0 - scores.errors @ scores.weight)


def _rates(shares: tuple[float, ...], system: System) -> tuple[float, ...]:
    """Shares by stage; a full model of several stages counts as one that pays for all of them."""
    return (*shares[:-1], *[0.0] * (len(system.stages) - len(shares)), shares[-1])
