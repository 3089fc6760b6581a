"""What a fit of a cascade ends with: stages one after the other, with what they say about the training rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sparing.cascade.exits import StageScores
from sparing.costs import FeatureCosts


@dataclass(frozen=True, eq=False)
class Chain:
    """Stages before the full model, each with what those before it have bought.

    Attributes
    ----------
    kind : of model.
    names, predictors : of the stages.
    scores : of all stages, the full model last, on the training rows, out-of-fold.
    order : items in the order of purchase, None when the stages were given.
    for_less : whether its systems are only for those who cannot pay for any of the chains before.
    """

    kind: str
    names: list[str]
    predictors: tuple[Any, ...]
    scores: StageScores
    order: list[list[str]] | None
    for_less: bool = False


@dataclass(frozen=True, eq=False)
class Learnt:
    """What a fit has found.

    Attributes
    ----------
    chains : the best one first; others are better at some costs.
    costs : prices of the stages that are left.
    """

    chains: tuple[Chain, ...]
    costs: FeatureCosts
