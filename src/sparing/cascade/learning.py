"""From prices to scored stages: find the order, choose the kind of model, fit, drop what does not earn its place."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparing._full_model import FullModel, default_full_model
from sparing._price_list import short
from sparing._routed import Training
from sparing._rows import take_rows
from sparing.cascade.exits import StageScores, telling_prices
from sparing.cascade.inputs import NetworkInputs
from sparing.cascade.judges import Judge, NetworkJudge, RefitJudge, random_masks, small
from sparing.cascade.network import Booleans, Singles
from sparing.cascade.offers import Offers
from sparing.cascade.order import best_order, candidate_lengths, drop_stages
from sparing.cascade.stage_models import (
    Folds,
    OwnModels,
    SharedNetwork,
    StageError,
    cloneable,
    folds_for,
)
from sparing.cascade.training import train_network
from sparing.costs import FeatureCosts

Floats = NDArray[np.float64]
Kind = OwnModels | SharedNetwork

_HELD_OUT = 3000
"""Rows on which a network judges orders, at most (and at most a third of all)."""
_TAUGHT = 16_000
"""Rows the judging network is trained on, at most."""
_REFITTED, _REFIT_HELD_OUT = 24_000, 12_000
"""Rows that small copies of the full model are fitted on and judge orders on, at most.

On Forest, with 12,000 and 3000, a search of 120 sets ended with an order no better than elimination alone: 5.7 columns
on average within a point of the full model. With these, 60 sets lead to 4.9.
"""
_PATIENCE = 60
"""Sets of columns that small copies may be fitted for."""
_BEHIND = 0.03
"""Small copies judge when a network errs this much more often than the full model."""
_HOPELESS = 0.06
"""When it errs this much more often, no network is tried for the stages either."""
_STAGES = 10
"""Stages before the full model, at most, when the number is not given.

Fewer would be faster where every stage has a model of its own, but cost more: on CIFAR-10 four support vector machines
stop at 104 columns on average within a point of the full model, nine at 77.
"""


@dataclass(frozen=True, eq=False)
class Learnt:
    """Stages before the full model, and the scores of all stages on the training rows, out-of-fold.

    Attributes
    ----------
    names, predictors : of the stages before the full model.
    scores : of all stages, the full model last.
    kind : of model.
    order : items in the order of purchase, None when the stages were given.
    """

    names: list[str]
    predictors: tuple[Any, ...]
    scores: StageScores
    kind: str
    order: list[list[str]] | None


class CascadeLearner:
    """One fit of a cascade.

    Parameters
    ----------
    training : checked rows.
    full : the full model and its honest probabilities.
    stage_estimator, n_stages, round_trip_price, cv, n_jobs, verbose : see ``CascadeClassifier``.
    estimator : the full model as it was given, to make stages of its kind.
    """

    def __init__(
        self,
        training: Training,
        full: FullModel,
        *,
        stage_estimator: Any,
        estimator: Any,
        n_stages: int | None,
        round_trip_price: float,
        cv: Any,
        n_jobs: int | None,
        verbose: bool,
    ) -> None:
        self._training = training
        self._full = full
        self._wanted = stage_estimator
        self._estimator = estimator
        self._limit = None if n_stages is None else n_stages - 1
        self._trip = round_trip_price
        self._n_jobs = n_jobs
        self._verbose = verbose
        self._began = time.perf_counter()
        self._folds: Folds = folds_for(cv, training.y, training.seed)
        self._behind = 0.0
        self._full_error = (full.proba.argmax(axis=1) != training.y).astype(float)
        self._full_mask = np.zeros(training.X.shape[1], dtype=bool)
        self._full_mask[np.concatenate([stage.columns for stage in full.stages])] = True

    def report(self, text: str) -> None:
        """Say what is being done, and since when."""
        if self._verbose:
            passed = time.perf_counter() - self._began
            print(f"[cascade {passed:6.1f} s] {text}", file=sys.stderr)

    # -- the two ways ---------------------------------------------------------------------------

    def found(self) -> Learnt:
        """Find the order of purchases and the stages."""
        training = self._training
        offers = Offers.of(training.costs)
        if isinstance(training.costs.call_price, tuple):
            raise ValueError(
                "call_price has a price per stage, but the stages are yet to be found: give stages=, or one call_price "
                "for the full model."
            )
        if not len(offers):  # everything is free: there is nothing to save
            return self._without_stages()
        judge = self._judge(offers)
        order, prices = best_order(judge, self.report)
        lengths = candidate_lengths(len(order), judge.first)
        # The network only guesses which stages will be worth a model of their own: rather some too many.
        guessed = judge.scores(order, lengths)
        ahead = drop_stages(guessed, prices, self._most, self._trip, earns=-np.inf)
        by_kind = [
            (kind, lengths if isinstance(kind, SharedNetwork) else [lengths[k] for k in ahead[:-1]])
            for kind in self._kinds()
        ]
        candidates = [(kind, [offers.mask(order[:k]) for k in own]) for kind, own in by_kind]
        if not any(masks for _, masks in candidates):
            return self._without_stages()
        best = self._best(candidates)
        kind, masks = candidates[best]
        models = kind.fit(training, masks, self._folds, self._n_jobs, self.report)
        scores = self._scores(models.proba, masks, np.arange(len(training.y)))
        kept = drop_stages(scores, _wider(telling_prices(scores)), self._most, self._trip)
        names = [_stage_name(offers, order[:length]) for length in by_kind[best][1]]
        return Learnt(
            [names[k] for k in kept[:-1]],
            tuple(models.predictors[k] for k in kept[:-1]),
            scores.only(kept),
            models.name,
            [offers.names(offer) for offer in order],
        )

    def given(self, stages: Mapping[str, Booleans]) -> Learnt:
        """Take the stages as they are given, and find the kind of model."""
        training = self._training
        names = list(stages)[: self._limit]
        masks = [stages[name] for name in names]
        candidates = [(kind, masks) for kind in self._kinds()]
        kind = candidates[self._best(candidates)][0]
        models = kind.fit(training, masks, self._folds, self._n_jobs, self.report)
        done = len(models.predictors)
        scores = self._scores(models.proba, masks[:done], np.arange(len(training.y)))
        return Learnt(names[:done], models.predictors, scores, models.name, None)

    def _without_stages(self) -> Learnt:
        n = len(self._training.y)
        scores = self._scores(np.empty((0, n, 1)), [], np.arange(n))
        return Learnt([], (), scores, "none", [])

    @property
    def _most(self) -> int:
        return _STAGES if self._limit is None else self._limit

    # -- judging orders -------------------------------------------------------------------------

    @cached_property
    def _inputs(self) -> tuple[NetworkInputs, Singles]:
        """The rows as a network reads them."""
        inputs = NetworkInputs.fit(self._training.X, self._training.weight)
        return inputs, inputs.transform(self._training.X)

    def _judge(self, offers: Offers) -> Judge:
        """A network, or small copies of the full model where no network comes near it."""
        training, (inputs, Z) = self._training, self._inputs
        seed, weight = training.seed or 0, training.weight
        # Rows without weight have nothing to say.
        counting = np.arange(len(training.y)) if weight is None else np.flatnonzero(weight)
        rows, n = np.random.default_rng(seed).permutation(counting), len(counting)
        held_out = rows[: min(_HELD_OUT, max(1, n // 3))]
        taught = rows[len(held_out) :][:_TAUGHT] if n > 1 else rows
        common = {
            "offers": offers,
            "y": training.y[held_out],
            "full_cost": self._cost([], self._full_mask)[-1],
            "weight": None if weight is None else weight[held_out],
        }
        self.report(f"a network that judges orders of {len(offers)} purchases")
        network = train_network(
            inputs,
            Z[taught],
            training.y[taught],
            len(training.classes),
            random_masks(offers, seed),
            weight=None if weight is None else weight[taught],
            seed=seed,
        )
        judge = NetworkJudge(**common, network=network, Z=Z[held_out])
        own = self._own()
        model = None if own is None else small(own)
        behind = judge.error - float(
            np.average(self._full_error[held_out], weights=common["weight"])
        )
        if behind < _BEHIND or model is None:
            return judge
        self.report(
            f"the network errs {behind:.3f} more often than the full model: small copies judge"
        )
        held_out = rows[: min(_REFIT_HELD_OUT, max(1, n // 3))]
        some = rows[len(held_out) :][:_REFITTED]
        common |= {
            "y": training.y[held_out],
            "weight": None if weight is None else weight[held_out],
        }
        copies = RefitJudge(
            **common,
            model=model,
            X=take_rows(training.X, some),
            labels=training.y[some],
            held_out=take_rows(training.X, held_out),
            n_classes=len(training.classes),
            fit_weight=None if weight is None else weight[some],
            seed=seed,
            patience=_PATIENCE,
        )
        # A pipeline that names its columns does not take some of them: then the network has to do.
        try:
            copies.proba(offers.mask([0]))
        except (KeyError, ValueError):
            return judge
        self._behind = behind
        return copies

    # -- kinds of model -------------------------------------------------------------------------

    def _own(self) -> Any:
        """The full model's kind, to be fitted on some columns; None if that cannot be."""
        if self._estimator is None:
            return default_full_model(self._training.seed, None)
        return cloneable(self._estimator)

    def _kinds(self) -> list[Kind]:
        wanted = self._wanted
        automatic = ["own"] if self._behind > _HOPELESS else ["own", "shared"]
        names = automatic if isinstance(wanted, str) and wanted == "auto" else wanted
        several = names if isinstance(names, list | tuple) else [names]
        if not several:
            raise ValueError("stage_estimator is an empty list: give at least one kind of model.")
        kinds = list[Kind]()
        for one in several:
            if isinstance(one, str) and one == "shared":
                kinds.append(SharedNetwork(*self._inputs))
            elif isinstance(one, str) and one == "own":
                model = self._own()
                if model is not None:
                    kinds.append(OwnModels(model))
                elif len(several) == 1:
                    raise TypeError(
                        f"{type(self._estimator).__name__} cannot be fitted again for every stage: give "
                        "stage_estimator a classifier, or 'shared'."
                    )
            elif hasattr(one, "fit"):
                kinds.append(OwnModels(one))
            else:
                raise TypeError(
                    f"stage_estimator is 'auto', 'own', 'shared', a classifier or a list of these, not {one!r}."
                )
        return kinds

    def _best(self, candidates: Sequence[tuple[Kind, list[Booleans]]]) -> int:
        """Position of the kind whose cascade is best on the rows of one fold.

        Prices that tell something are found for each, the full model behind it: a judge, which stands in for the full
        model itself, may know of none at which a row is worth sending there.
        """
        if len(candidates) == 1:
            return 0
        train, test = self._folds[0]
        found = dict[int, StageScores]()
        for i, (kind, masks) in enumerate(candidates):
            try:
                proba = kind.honest(self._training, masks, (train, test))
            except StageError as error:
                self.report(str(error))
                continue
            found[i] = self._scores(proba, masks, test)
        prices = sorted({price for scores in found.values() for price in telling_prices(scores)})
        values = {i: scores.value(prices) for i, scores in found.items()}
        for i, value in values.items():
            kind, masks = candidates[i]
            self.report(f"{kind.name}: {value:.4g} on one fold, {len(masks)} stages")
        return min(values, key=lambda i: values[i], default=0)

    # -- scores ---------------------------------------------------------------------------------

    def _scores(
        self, proba: Floats, masks: Sequence[Booleans], rows: NDArray[np.intp]
    ) -> StageScores:
        training = self._training
        wrong = [p.argmax(axis=1) != training.y[rows] for p in proba]
        errors = np.array([*wrong, self._full_error[rows]], dtype=float)
        doubts = [1.0 - p.max(axis=1) for p in proba]
        weight = None if training.weight is None else training.weight[rows]
        return StageScores.of(
            errors,
            np.array(doubts).reshape(len(doubts), len(rows)),
            self._cost(masks, self._full_mask),
            weight,
        )

    def _cost(self, masks: Sequence[Booleans], last: Booleans) -> Floats:
        """What a row answered at each stage costs, the full model last."""
        costs, n_full = self._training.costs, len(self._full.stages)
        bought = np.logical_or.accumulate(np.array([*masks, last]), axis=0)
        calls = np.cumsum(costs.call_prices(len(masks) + n_full))
        return costs.of(bought) + np.append(calls[: len(masks)], calls[-1])


def given_stages(stages: Any, costs: FeatureCosts) -> dict[str, Booleans]:
    """Masks of the stages a user names, checked to be nested.

    Examples
    --------
    >>> from sparing import FeatureCosts
    >>> costs = FeatureCosts({"age": 1, "TSH": 20, "scan": 300})
    >>> given_stages({"questions": ["age"], "blood": ["age", "TSH"]}, costs)["blood"]
    array([ True,  True, False])
    >>> given_stages([["age"], ["TSH"]], costs)
    Traceback (most recent call last):
    ValueError: Stage 1 (stage 1) lacks column 'age' of the stage before: every stage contains the one before it.
    """
    if not isinstance(stages, Mapping):
        stages = {f"stage {k}": columns for k, columns in enumerate(stages)}
    if not stages:
        raise ValueError("stages is empty: give the columns of at least one stage, or None.")
    masks, before = dict[str, Booleans](), np.zeros(len(costs.columns), dtype=bool)
    for k, (name, columns) in enumerate(stages.items()):
        mask = costs.mask(columns)
        lost = [costs.columns[i] for i in np.flatnonzero(before & ~mask)]
        if lost:
            raise ValueError(
                f"Stage {k} ({name}) lacks column {short(lost)} of the stage before: every stage contains the one "
                "before it."
            )
        if not mask.any():
            raise ValueError(f"Stage {k} ({name}) has no columns.")
        if np.array_equal(mask, before):
            raise ValueError(f"Stage {k} ({name}) has no column that the stage before lacks.")
        masks[str(name)] = before = mask
    return masks


def _wider(prices: list[float]) -> list[float]:
    """Prices at which stages are kept or dropped: also such that more is given up than one would for an order."""
    return [5 * max(prices), *prices]


def _stage_name(offers: Offers, order: Sequence[int]) -> str:
    """What the last purchase of an order adds."""
    if not order:
        return "free"
    before = offers.items[list(order[:-1])].any(axis=0)
    added = offers.items[order[-1]] & ~before
    names = [str(offers.costs.items[i]) for i in np.flatnonzero(added)]
    return "+ " + ", ".join(names[:2]) + ", …" * (len(names) > 2)
