"""From prices to scored stages: find the order, choose the kind of model, fit, drop what does not earn its place."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, pairwise
from typing import Any

import numpy as np

from sparing._folds import checked_folds
from sparing._full_model import FullModel, default_full_model
from sparing._progress import Progress
from sparing._routed import Training
from sparing.cascade.accounts import Accounts
from sparing.cascade.chains import Chain, Learnt
from sparing.cascade.choosing import Candidates, Kind, best_kinds
from sparing.cascade.differences import with_differences_if_better
from sparing.cascade.exits import StageScores, telling_prices, wider
from sparing.cascade.gaps import LOWEST
from sparing.cascade.inputs import NetworkInputs
from sparing.cascade.judges import small
from sparing.cascade.judging import judge_for
from sparing.cascade.kinds import Asked, Both, asked_kinds
from sparing.cascade.mixed import MixedModels
from sparing.cascade.network import Booleans, Singles
from sparing.cascade.offers import Offers
from sparing.cascade.order import drop_stages
from sparing.cascade.paths import Path, cheaper_prices, judged_paths, kernel_paths, only_path
from sparing.cascade.shared_network import SharedNetwork
from sparing.cascade.stage_models import (
    Folds,
    OwnModels,
    StageError,
    cloneable,
)

_HOPELESS = 0.06
"""When a network errs this much more often than the full model, none is tried for the stages."""
_MANY = 100
"""Purchases beyond which a kernel machine finds the order for full models without trees, and stages are spread evenly.

Of 400 columns on CIFAR-10 the search for stages among prefixes chose three of less than eight, which hardly answer a
row.
"""
_TAUGHT_MORE = 3
"""How often networks see the stages of the best order for every time that they see those of a cheaper one."""
_STAGES = 10
"""Stages before the full model, at most, when the number is not given.

Fewer would be faster where every stage has a model of its own, but cost more: on CIFAR-10 four support vector machines
stop at 104 columns on average within a point of the full model, nine at 77.
"""


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
        self._folds: Folds = checked_folds(cv, training.y, training.seed)
        self._behind = 0.0
        # Folds that are given may keep rows together that belong together.
        self._rows_alone = isinstance(cv, int | np.integer)
        self._named = type(estimator).__name__
        self._asked = self._asked_for(stage_estimator)
        self._accounts = Accounts(training, full)
        self._order = list[list[str]]()

    def learn(self, stages: Mapping[str, Booleans] | None) -> Learnt:
        """Learn with the stages as they are given, or find them; interrupted, what is ready is kept."""
        try:
            return self._found() if stages is None else self._given(stages)
        except KeyboardInterrupt:
            found = (
                "; order_ is the order that was found, whose beginnings can be given as stages="
                if self._order
                else ""
            )
            warnings.warn(
                f"Interrupted before a stage was fitted: the cascade is the full model alone{found}.",
                UserWarning,
                stacklevel=2,
            )
            return self._without_stages(self._order if stages is None else None)

    # -- the two ways ---------------------------------------------------------------------------

    def _found(self) -> Learnt:
        """Find the order of purchases and the stages."""
        training = self._training
        offers = Offers.of(training.costs)
        if self._limit == 0 or not self._accounts.can_save(offers):
            return self._without_stages([])
        self._try_out(offers.mask([0][: len(offers)]), offers.mask(range(len(offers))))
        paths = self._paths(offers)
        order = paths[0].order
        self._order = offers.in_words(order)
        masks = [offers.prefixes(path.order, path.every) for path in paths]
        kinds = self._kinds([*_TAUGHT_MORE * masks[0], *chain(*masks[1:])])
        by_kind = [_lengths(paths[0], kind) for kind in kinds]
        candidates = [
            (kind, offers.prefixes(order, own)) for kind, own in zip(kinds, by_kind, strict=True)
        ]
        best, seen = self._best(candidates)
        first = kinds[best[0]]
        lengths = by_kind[best[0]]
        if seen is not None and not isinstance(first, SharedNetwork):
            # A stage that does not earn its place on the rows that chose the kind need not be fitted on the others.
            lengths = [lengths[k] for k in self._earning(seen)[:-1]] or lengths
        chains = list[Chain]()
        for kind in (kinds[k] for k in best):
            wanted = [(paths[0], lengths), *((path, _lengths(path, kind)) for path in paths[1:])]
            found, interrupted = self._chains(offers, wanted, kind)
            chains = chains if interrupted and chains else [*chains, *found]
            if interrupted:
                break
        return Learnt(tuple(chains), training.costs)

    def _chains(
        self, offers: Offers, wanted: Sequence[tuple[Path, list[int]]], kind: Kind
    ) -> tuple[list[Chain], bool]:
        """Fit prefixes of some orders, those that are the same once, and keep what earns its place; the best first.

        The second result says whether the fit was interrupted.
        """
        masks = [offers.prefixes(path.order, lengths) for path, lengths in wanted]
        every = {mask.tobytes(): mask for mask in chain(*masks)}
        models = kind.fit(
            self._training, [*every.values()], self._folds, self._n_jobs, self._progress
        )
        # Interrupted, the last ones may be missing.
        places = dict(zip(every, range(len(models.predictors)), strict=False))
        chains, known = list[Chain](), set[bytes]()
        for (path, lengths), own in zip(wanted, masks, strict=True):
            ready = [k for k, mask in enumerate(own) if mask.tobytes() in places]
            stages = [places[own[k].tobytes()] for k in ready]
            fitted = [models.predictors[k] for k in stages]
            scores = self._accounts.scores(
                models.proba[stages], [own[k] for k in ready], models.rows, fitted
            )
            if path.whole:
                kept = [*range(len(ready) + 1)]
            elif chains:
                best = chains[0].scores
                prices = path.prices or cheaper_prices(best, telling_prices(best))
                kept = drop_stages(scores, prices, self._most, self._trip)
            else:
                kept = self._earning(scores)
            variants = [(kept, False)]
            if dropped := _below(scores, kept):
                room = max(1, self._most - len(kept) + 1)
                begun = [*dropped[:room], *kept[:-1]][: self._most]
                variants.append(([*begun, kept[-1]], True))
            for variant, for_less in variants:
                bought = {own[ready[k]].tobytes() for k in variant[:-1]}
                if chains and bought <= known:
                    continue
                if not for_less:  # its stages serve other budgets in a chain of their own
                    known |= bought
                ends = [0, *(lengths[ready[k]] for k in variant[:-1])]
                chains.append(
                    Chain(
                        models.name,
                        [offers.stage_name(path.order, *some) for some in pairwise(ends)],
                        tuple(fitted[k] for k in variant[:-1]),
                        scores.only(variant),
                        offers.in_words(path.order),
                        for_less,
                    )
                )
        return chains, models.interrupted

    def _given(self, stages: Mapping[str, Booleans]) -> Learnt:
        """Take the stages as they are given, and find the kind of model."""
        training = self._training
        names, masks = list(stages), list(stages.values())
        # Prices of calls, if there is one per stage, must be as many as the stages.
        training.costs.call_prices(len(masks) + len(self._full.stages))
        if self._limit == 0:
            return self._without_stages(None)
        self._try_out(masks[0], masks[-1])
        candidates = [(kind, masks) for kind in self._kinds(masks)]
        chains = list[Chain]()
        for kind in (candidates[k][0] for k in self._best(candidates)[0]):
            models = kind.fit(training, masks, self._folds, self._n_jobs, self._progress)
            if chains and models.interrupted:
                break
            done = len(models.predictors)
            scores = self._accounts.scores(
                models.proba, masks[:done], models.rows, models.predictors
            )
            if not chains:
                kept = self._within_limit(scores)
            left = [masks[k] for k in kept[:-1]]
            found = Chain(
                models.name,
                [names[k] for k in kept[:-1]],
                tuple(models.predictors[k] for k in kept[:-1]),
                replace(scores.only(kept), costs=self._accounts.costs(left, kept[:-1])),
                None,
            )
            chains.append(found)
            if models.interrupted:
                break
        return Learnt(tuple(chains), self._accounts.prices(kept[:-1]))

    def _within_limit(self, scores: StageScores) -> list[int]:
        """Positions of the stages that were given, the full model among them; the best where they may be fewer."""
        n_given = len(scores.doubts)
        if self._limit is None or n_given <= self._limit:
            return list(range(n_given + 1))
        prices = wider(telling_prices(scores))
        return drop_stages(scores, prices, self._limit, self._trip, earns=-np.inf)

    def _without_stages(self, order: list[list[str]] | None) -> Learnt:
        alone = Chain("none", [], (), self._accounts.full_alone(), order)
        return Learnt((alone,), self._accounts.prices())

    @property
    def _most(self) -> int:
        return _STAGES if self._limit is None else self._limit

    # -- which columns when ----------------------------------------------------------------------

    @cached_property
    def _inputs(self) -> tuple[NetworkInputs, Singles]:
        """The rows as a network reads them."""
        inputs = NetworkInputs.fit(self._training.X, self._training.weight)
        return inputs, inputs.transform(self._training.X)

    def _paths(self, offers: Offers) -> list[Path]:
        """Orders of offers with lengths of prefixes that may be stages, the best one first."""
        training, own = self._training, self._own
        if len(offers) < 2:
            return [only_path(offers)]
        if len(offers) > _MANY and own is not None and small(own) is None:
            self.report(f"a kernel machine that gives up {len(offers)} purchases one by one")
            return kernel_paths(training, offers, self._inputs[0].design, self._most)
        judge, self._behind = judge_for(
            training,
            offers,
            *self._inputs,
            full_cost=self._accounts.costs([])[-1],
            full_error=self._accounts.full_error,
            own=own,
            n_jobs=self._n_jobs,
            progress=self._progress,
        )
        return judged_paths(judge, self._most, self._trip, self.report)

    # -- kinds of model -------------------------------------------------------------------------

    def _asked_for(self, stage_estimator: Any) -> list[Asked]:
        n_rows = len(self._training.y)
        return asked_kinds(stage_estimator, self._own, self._named, self._rows_alone, n_rows)

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
        shared = SharedNetwork(
            *self._inputs, masks, one_by_one=self._rows_alone, progress=self._progress
        )
        return [
            shared if k == "shared" else MixedModels(k.own, shared) if isinstance(k, Both) else k
            for k in self._asked
        ]

    def _best(self, candidates: Candidates) -> tuple[list[int], StageScores | None]:
        return best_kinds(
            candidates,
            self._training,
            self._folds,
            self._accounts.scores,
            self._n_jobs,
            self.report,
        )

    def _earning(self, scores: StageScores) -> list[int]:
        """Positions of the stages that earn their place, the full model among them."""
        return drop_stages(scores, wider(telling_prices(scores)), self._most, self._trip)


def _below(scores: StageScores, kept: Sequence[int]) -> list[int]:
    """Positions of the stages that are cheaper than all that are kept, if these begin with a dear one.

    A stage that does not earn its place still has an answer for those who cannot pay for more.
    """
    dear = scores.costs[kept[0]] > LOWEST * scores.costs[-1]
    return list(range(kept[0])) if dear else []


def _lengths(path: Path, kind: Kind) -> list[int]:
    """Prefixes of an order that are stages if the models are of some kind."""
    return path.every if isinstance(kind, SharedNetwork) else path.few


def _own_of(kind: Asked) -> OwnModels | None:
    """The models in a kind that are fitted for each stage."""
    return kind.own if isinstance(kind, Both) else kind if isinstance(kind, OwnModels) else None
