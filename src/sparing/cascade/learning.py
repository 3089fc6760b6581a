"""From prices to scored stages: find the order, choose the kind of model, fit, drop what does not earn its place."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparing._evaluation import with_call_price
from sparing._full_model import FullModel, default_full_model
from sparing._progress import Progress
from sparing._routed import Training
from sparing._rows import take_rows
from sparing.cascade.choosing import Candidates, Kind, best_kind
from sparing.cascade.differences import with_differences_if_better
from sparing.cascade.exits import StageScores, telling_prices
from sparing.cascade.inputs import NetworkInputs
from sparing.cascade.judges import small
from sparing.cascade.judging import judge_for
from sparing.cascade.kernel_path import kernel_order
from sparing.cascade.kinds import Asked, Both, asked_kinds
from sparing.cascade.mixed import MixedModels
from sparing.cascade.network import Booleans, Singles
from sparing.cascade.offers import Offers
from sparing.cascade.order import best_order, candidate_lengths, drop_stages, spread_lengths
from sparing.cascade.stage_models import (
    Folds,
    OwnModels,
    SharedNetwork,
    StageError,
    cloneable,
    folds_for,
)
from sparing.cascade.training import one_thread
from sparing.costs import FeatureCosts

Floats = NDArray[np.float64]

_HOPELESS = 0.06
"""When a network errs this much more often than the full model, none is tried for the stages."""
_MANY = 100
"""Purchases beyond which a kernel machine finds the order for full models without trees, and stages are spread evenly.

Of 400 columns on CIFAR-10 the search for stages among prefixes chose three of less than eight, which hardly answer a
row.
"""
_TRIED = 40_000
"""Rows that the kernel machine draws from, at most."""
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
    costs : prices of the stages that are left.
    order : items in the order of purchase, None when the stages were given.
    """

    names: list[str]
    predictors: tuple[Any, ...]
    scores: StageScores
    kind: str
    costs: FeatureCosts
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
        verbose: int,
    ) -> None:
        self._training = training
        self._full = full
        self._automatic = isinstance(stage_estimator, str) and stage_estimator == "auto"
        self._own = default_full_model(training.seed, None)
        if estimator is not None:
            self._own = cloneable(estimator)
        self._limit = None if n_stages is None else n_stages - 1
        self._trip = round_trip_price
        self._n_jobs = n_jobs
        self._progress = Progress(verbose)
        self.report = self._progress.say
        self._folds: Folds = folds_for(cv, training.y, training.seed)
        self._behind = 0.0
        self._out_of_bag = isinstance(cv, int | np.integer)
        self._named = type(estimator).__name__
        self._asked = self._asked_for(stage_estimator)
        self._full_error = (full.proba.argmax(axis=1) != training.y).astype(float)
        self._full_mask = np.zeros(training.X.shape[1], dtype=bool)
        self._full_mask[np.concatenate([stage.columns for stage in full.stages])] = True

    def learn(self, stages: Mapping[str, Booleans] | None) -> Learnt:
        """Learn with the stages as they are given, or find them; interrupted, what is ready is kept."""
        try:
            return self._found() if stages is None else self._given(stages)
        except KeyboardInterrupt:
            warnings.warn(
                "Interrupted before a stage was fitted: the cascade is the full model alone.",
                UserWarning,
                stacklevel=2,
            )
            return self._without_stages()

    # -- the two ways ---------------------------------------------------------------------------

    def _found(self) -> Learnt:
        """Find the order of purchases and the stages."""
        training = self._training
        offers = Offers.of(training.costs)
        if isinstance(training.costs.call_price, tuple):
            raise ValueError(
                "call_price has a price per stage, but the stages are yet to be found: give stages=, or one call_price "
                "for the full model."
            )
        if self._limit == 0 or not self._can_save(offers):
            return self._without_stages()
        self._try_out(offers.mask([0][: len(offers)]), offers.mask(range(len(offers))))
        order, few = self._order(offers)
        lengths = sorted({*candidate_lengths(len(order), offers.first), *few})
        kinds = self._kinds([offers.mask(order[:k]) for k in lengths])
        by_kind = [(k, lengths if isinstance(k, SharedNetwork) else few) for k in kinds]
        candidates = [(kind, [offers.mask(order[:k]) for k in own]) for kind, own in by_kind]
        best, seen = self._best(candidates)
        (kind, masks), lengths = candidates[best], by_kind[best][1]
        if seen is not None and not isinstance(kind, SharedNetwork):
            # A stage that does not earn its place on the rows that chose the kind need not be fitted on the others.
            earning = self._earning(seen)[:-1] or range(len(masks))
            masks, lengths = [masks[k] for k in earning], [lengths[k] for k in earning]
        models = kind.fit(training, masks, self._folds, self._n_jobs, self._progress)
        done = len(models.predictors)
        scores = self._scores(models.proba, masks[:done], models.rows)
        kept = self._earning(scores)
        lengths = [lengths[k] for k in kept[:-1]]
        return Learnt(
            [offers.stage_name(order, *ends) for ends in pairwise([0, *lengths])],
            tuple(models.predictors[k] for k in kept[:-1]),
            scores.only(kept),
            models.name,
            training.costs,
            [offers.added(order, k, k + 1) for k in range(len(order))],
        )

    def _given(self, stages: Mapping[str, Booleans]) -> Learnt:
        """Take the stages as they are given, and find the kind of model."""
        training = self._training
        names, masks = list(stages), list(stages.values())
        # Prices of calls, if there is one per stage, must be as many as the stages.
        training.costs.call_prices(len(masks) + len(self._full.stages))
        if self._limit == 0:
            return self._without_stages()
        self._try_out(masks[0], masks[-1])
        candidates = [(kind, masks) for kind in self._kinds(masks)]
        kind = candidates[self._best(candidates)[0]][0]
        models = kind.fit(training, masks, self._folds, self._n_jobs, self._progress)
        done = len(models.predictors)
        scores = self._scores(models.proba, masks[:done], models.rows)
        kept = list(range(done + 1))
        if self._limit is not None and done > self._limit:
            prices = _wider(telling_prices(scores))
            kept = drop_stages(scores, prices, self._limit, self._trip, earns=-np.inf)
        left = [masks[k] for k in kept[:-1]]
        return Learnt(
            [names[k] for k in kept[:-1]],
            tuple(models.predictors[k] for k in kept[:-1]),
            replace(scores.only(kept), costs=self._cost(left, self._full_mask, kept[:-1])),
            models.name,
            self._costs_of(kept[:-1]),
            None,
        )

    def _without_stages(self) -> Learnt:
        n = len(self._training.y)
        scores = self._scores(np.empty((0, n, 1)), [], np.arange(n))
        return Learnt([], (), scores, "none", self._costs_of([]), [])

    def _costs_of(self, kept: Sequence[int]) -> FeatureCosts:
        """Prices with the calls of some of the stages, and of the full model."""
        costs, calls = self._training.costs, self._training.costs.call_price
        if not isinstance(calls, tuple):
            return costs
        left = (*(calls[k] for k in kept), *calls[-len(self._full.stages) :])
        return with_call_price(costs, left if len(left) > 1 else left[0])

    def _can_save(self, offers: Offers) -> bool:
        """Whether some stage could cost less than the full model."""
        smallest = [offers.mask([offer]) for offer in range(len(offers))]
        if offers.first == 0:
            smallest.append(offers.mask([]))
        return any(np.less(*self._cost([mask], self._full_mask)) for mask in smallest)

    @property
    def _most(self) -> int:
        return _STAGES if self._limit is None else self._limit

    # -- which columns when ----------------------------------------------------------------------

    @cached_property
    def _inputs(self) -> tuple[NetworkInputs, Singles]:
        """The rows as a network reads them."""
        inputs = NetworkInputs.fit(self._training.X, self._training.weight)
        return inputs, inputs.transform(self._training.X)

    def _order(self, offers: Offers) -> tuple[list[int], list[int]]:
        """An order of offers, and lengths of its prefixes that are worth a model of their own."""
        training, own = self._training, self._own
        if len(offers) < 2:
            return list(range(len(offers))), candidate_lengths(len(offers), offers.first)
        if len(offers) > _MANY and own is not None and small(own) is None:
            self.report(f"a kernel machine that gives up {len(offers)} purchases one by one")
            order = self._kernel_order(offers)
            return order, spread_lengths(offers, order, self._most)
        judge, self._behind = judge_for(
            training,
            offers,
            *self._inputs,
            full_cost=self._cost([], self._full_mask)[-1],
            full_error=self._full_error,
            own=own,
            n_jobs=self._n_jobs,
            report=self.report,
        )
        with one_thread():
            order, prices = best_order(judge, self.report)
        lengths = candidate_lengths(len(order), offers.first)
        # The judge only guesses which stages will be worth a model of their own: rather some too many.
        guessed = judge.scores(order, lengths)
        ahead = drop_stages(guessed, prices, self._most, self._trip, earns=-np.inf)
        return order, [lengths[k] for k in ahead[:-1]]

    def _kernel_order(self, offers: Offers) -> list[int]:
        training, design = self._training, self._inputs[0].design
        seed, weight = training.seed or 0, training.weight
        rows = np.arange(len(training.y)) if weight is None else np.flatnonzero(weight)
        if len(rows) > _TRIED:
            rows = np.random.default_rng(seed).permutation(rows)[:_TRIED]
        order = kernel_order(
            offers,
            design.owner,
            design.transform(take_rows(training.X, rows)).astype(np.float32),
            training.y[rows],
            len(training.classes),
            None if weight is None else weight[rows],
            seed,
        )
        return offers.closed(order)

    # -- kinds of model -------------------------------------------------------------------------

    def _asked_for(self, stage_estimator: Any) -> list[Asked]:
        n_rows = len(self._training.y)
        return asked_kinds(stage_estimator, self._own, self._named, self._out_of_bag, n_rows)

    def _try_out(self, *masks: Booleans) -> None:
        """Fit models that were asked for on a few rows, with few and with all columns, so that errors come early."""
        if self._automatic:
            better = with_differences_if_better(self._own, self._training, *self._folds[0])
            if better is not self._own:
                self.report("held-out rows say that trees should see differences of columns")
                self._own = better
                self._asked = self._asked_for("auto")
        failures = dict[OwnModels, StageError]()
        for models in dict.fromkeys(filter(None, map(_own_of, self._asked))):
            try:
                models.try_out(self._training, masks)
            except StageError as error:
                failures[models] = error
                self.report(str(error))
        self._asked = [kind for kind in self._asked if _own_of(kind) not in failures]
        if not self._asked:
            raise StageError("\n".join(map(str, failures.values())))

    def _kinds(self, masks: Sequence[Booleans]) -> list[Kind]:
        """Kinds of models to choose from, no network where it is hopeless; ``masks`` are all that it may be asked."""
        owns = [kind for kind in self._asked if isinstance(kind, OwnModels)]
        if len(owns) == len(self._asked) or (self._automatic and owns and self._behind > _HOPELESS):
            return [*owns]
        shared = SharedNetwork(*self._inputs, masks)
        return [
            shared if k == "shared" else MixedModels(k.own, shared) if isinstance(k, Both) else k
            for k in self._asked
        ]

    def _best(self, candidates: Candidates) -> tuple[int, StageScores | None]:
        return best_kind(
            candidates, self._training, self._folds, self._scores, self._n_jobs, self.report
        )

    def _earning(self, scores: StageScores) -> list[int]:
        """Positions of the stages that earn their place, the full model among them."""
        return drop_stages(scores, _wider(telling_prices(scores)), self._most, self._trip)

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

    def _cost(
        self, masks: Sequence[Booleans], last: Booleans, stages: Sequence[int] | None = None
    ) -> Floats:
        """What a row answered at each stage costs, the full model last; ``stages`` are those left of the given ones."""
        costs = self._costs_of(range(len(masks)) if stages is None else stages)
        n_full = len(self._full.stages)
        bought = np.logical_or.accumulate(np.array([*masks, last]), axis=0)
        calls = np.cumsum(costs.call_prices(len(masks) + n_full))
        return costs.of(bought) + np.append(calls[: len(masks)], calls[-1])


def _own_of(kind: Asked) -> OwnModels | None:
    """The models in a kind that are fitted for each stage."""
    return kind.own if isinstance(kind, Both) else kind if isinstance(kind, OwnModels) else None


def _wider(prices: list[float]) -> list[float]:
    """Prices at which stages are kept or dropped: also such that more is given up than one would for an order."""
    return [5 * max(prices), *prices]
