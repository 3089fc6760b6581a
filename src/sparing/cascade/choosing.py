"""Which kinds of model: the cascades of every kind, compared on rows that their models have not seen."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from sparing._routed import Training
from sparing.cascade.exits import StageScores, mean_and_error, telling_prices
from sparing.cascade.mixed import MixedModels
from sparing.cascade.network import Booleans
from sparing.cascade.shared_network import SharedNetwork
from sparing.cascade.stage_models import Folds, OwnModels, StageError

Floats = NDArray[np.float64]
Kind = OwnModels | SharedNetwork | MixedModels
Candidates = Sequence[tuple[Kind, list[Booleans]]]
ScoresOf = Callable[[Floats, Sequence[Booleans], NDArray[np.intp]], StageScores]

_ROWS = 2000
"""Rows on which kinds are compared at least, if there are so many: one fold after the other is taken.

One fold of ann-thyroid has 528 rows, of which the full model gets two or three wrong.
"""
_BEHIND = 0.01
"""A kind that errs this much more often than another with all columns, beyond chance, is not tried on the stages."""
_TOLD_APART = 0.03
"""Models of the stages' own, and these averaged with networks, are told apart by this share of their value.

Networks that differ by their rounding alone move values by two percent on Letters. Closer ones are both fitted, since
which is better depends on how much may be lost.
"""


def best_kinds(
    candidates: Candidates,
    training: Training,
    folds: Folds,
    scores_of: ScoresOf,
    n_jobs: int | None,
    report: Callable[[str], None],
) -> tuple[list[int], StageScores | None]:
    """Positions of the kinds to fit, that whose cascade is best on held-out rows first, and its scores there.

    There are two where models of their own do about as well alone as averaged with networks. No scores if there is
    nothing to choose from. Interrupted, those that are through are compared. Prices that tell something are found for
    each, the full model behind it: a judge, which stands in for the full model itself, may know of none at which a row
    is worth sending there.

    Parameters
    ----------
    candidates : kinds, each with the columns of its stages.
    training, folds : rows, and how they are held out.
    scores_of : from probabilities, stages and rows to what the stages are worth, the full model behind them.
    n_jobs, report : fits in parallel; says what was found.
    """
    if len(candidates) == 1:
        return [0], None
    known = np.cumsum([len(test) for _, test in folds])
    some = folds[: int(np.searchsorted(known, min(_ROWS, known[-1]))) + 1]
    hopeless = _hopeless(candidates, training, folds[0], n_jobs, report)
    found = dict[int, StageScores]()
    for i, (kind, masks) in enumerate(candidates):
        if _own_of(kind) in hopeless:
            continue
        report(f"comparing kinds of stages: {kind.name} on {len(masks)} of them")
        try:
            proba = [kind.honest(training, masks, fold, n_jobs) for fold in some]
        except StageError as error:
            report(str(error))
            continue
        except KeyboardInterrupt:
            if not found:
                raise
            warnings.warn(
                "Interrupted while kinds of stages were compared: the best of those that are through is fitted now. "
                "Interrupt again to stop that too.",
                UserWarning,
                stacklevel=2,
            )
            break
        rows = np.concatenate([test for _, test in some])
        found[i] = scores_of(np.concatenate(proba, axis=1), masks, rows)
    prices = sorted({price for scores in found.values() for price in telling_prices(scores)})
    values = {i: scores.fair_value(prices) for i, scores in found.items()}
    for i, value in values.items():
        kind, masks = candidates[i]
        report(
            f"{kind.name}: {value:.4g} per row, errors at their price, on {len(rows)} rows, {len(masks)} stages"
        )

    def demanded(i: int) -> float:
        return values[i] * (1 + _TOLD_APART * isinstance(candidates[i][0], MixedModels))

    best = min(values, key=demanded, default=0)
    own = _own_of(candidates[best][0])
    equal = [
        i
        for i, value in values.items()
        if i != best
        and own is not None
        and _own_of(candidates[i][0]) is own
        and value < values[best] * (1 + _TOLD_APART)
    ]
    return [best, *equal], found.get(best)


def _own_of(kind: Kind) -> OwnModels | None:
    return (
        kind.own if isinstance(kind, MixedModels) else kind if isinstance(kind, OwnModels) else None
    )


def _hopeless(
    candidates: Candidates,
    training: Training,
    fold: tuple[NDArray[np.intp], NDArray[np.intp]],
    n_jobs: int | None,
    report: Callable[[str], None],
) -> set[OwnModels | None]:
    """Kinds of models of their own that fall behind another on the columns of the last stage."""
    wrong, test = dict[OwnModels, Floats](), fold[1]
    weight = np.ones(len(test)) if training.weight is None else training.weight[test]
    for kind, masks in candidates:
        if isinstance(kind, OwnModels):
            try:
                (proba,) = kind.honest(training, masks[-1:], fold, n_jobs)
            except StageError as error:
                report(str(error))
                continue
            wrong[kind] = (proba.argmax(axis=1) != training.y[test]).astype(float)
    if len(wrong) < 2 or not weight.any():
        return set()
    share = weight / weight.sum()
    best = min(wrong, key=lambda kind: float(share @ wrong[kind]))
    behind = set[OwnModels | None]()
    for kind, errors in wrong.items():
        more, spread = mean_and_error(errors - wrong[best], share)
        if more > max(_BEHIND, 2 * spread):
            report(
                f"on the last stage {kind.name} errs {more:.3f} more often than {best.name}: not tried"
            )
            behind.add(kind)
    return behind
