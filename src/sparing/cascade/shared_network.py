"""One model for all stages: networks trained with the columns of later stages taken away, whose answers are averaged.

Every fold has two of them, which have learnt from all rows but those they are asked about: where rows may be held out
one by one, each network holds out one half of the fold and learns from the other half too, but for a few rows about
which both are asked. These tell how much less sure several networks together are than one alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import reduce
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.optimize import brentq
from scipy.special import softmax

from sparing._progress import Progress
from sparing._routed import Training
from sparing.cascade.inputs import NetworkInputs
from sparing.cascade.network import (
    Booleans,
    Codes,
    Floats,
    MaskedNetwork,
    MaskedPredictor,
    Singles,
)
from sparing.cascade.stage_models import Folds, StageModels
from sparing.cascade.training import one_thread, train_network

Networks = tuple[MaskedNetwork, ...]

_MEMBERS = 2
"""Networks of a fold.

On Letters' validation rows (two splits) two cost 3 to 5% less at half a point of error than one, and less than one that
is trained twice as long or four that are trained half as long. There (one split, equal stages) two that hold out half a
fold each are right on 0.3 points more of the rows for five columns, and 0.1 for five and a half, than two that hold out
all of it.
"""
_ASKED_OF_BOTH = 5
"""One row of so many is held out by both networks of its fold."""
_SOFTEST = 100.0
_LEAST = 1e-12


class Lesson(NamedTuple):
    """What a network of a fold learns from, and what it is asked.

    Attributes
    ----------
    rows : it learns from.
    answers : positions of the test rows whose out-of-fold answers are its own, or its share of them.
    asked : positions of all test rows that it has not learnt from.
    """

    rows: Codes
    answers: Codes
    asked: Codes


class SharedNetwork:
    """Networks for all stages, trained with the columns of later stages taken away, whose answers are averaged.

    Parameters
    ----------
    inputs, Z : the rows as a network reads them.
    taught : masks of the stages they learn to answer for, some perhaps several times to be seen more often; they may be
        asked about some of these only.
    one_by_one : whether a row may be held out without the others of its fold: not where these belong together.
    progress : says how far the networks are by which kinds of models are compared; None says nothing.
    """

    name = "shared network"

    def __init__(
        self,
        inputs: NetworkInputs,
        Z: Singles,
        taught: Sequence[Booleans],
        one_by_one: bool = False,
        progress: Progress | None = None,
    ) -> None:
        self.inputs = inputs
        self.Z = Z
        self.taught = np.array(taught)
        self.one_by_one = one_by_one
        self.progress = Progress(verbose=0) if progress is None else progress
        self._known: dict[bytes, Networks] = {}

    def fit(
        self,
        training: Training,
        masks: Sequence[Booleans],
        folds: Folds,
        n_jobs: int | None,
        progress: Progress,
    ) -> StageModels:
        """Train the networks of every fold: what all of them say together is the answer.

        A network trained on all rows would be surer of itself than those that exits are tuned by. On Letters, where
        exits tuned to lose one point lost 2.1 with two such networks on validation rows, they lose 1.5 with the ten of
        the folds, at 0.1 to 0.3 columns less for the same accuracy.
        """
        by_fold = self._trained(training, folds, n_jobs, progress)
        ready = folds[: len(by_fold)]
        if len(by_fold) < len(folds):
            warnings.warn(
                f"Interrupted: the stages have the networks of {len(by_fold)} of {len(folds)} folds.",
                UserWarning,
                stacklevel=2,
            )
        together = tuple(network for networks in by_fold for network in networks)
        proba = self._as_sure_as(len(together), training, by_fold, ready, masks)
        rows = np.concatenate([test for _, test in ready])
        in_order = np.argsort(rows)
        predictors = tuple(MaskedPredictor(together, mask) for mask in masks)
        proba = proba[:, in_order]
        return StageModels(predictors, proba, rows[in_order], self.name, len(by_fold) < len(folds))

    def honest(
        self, training: Training, masks: Sequence[Booleans], fold: Any, n_jobs: int | None = None
    ) -> Floats:
        """Probabilities of one fold's test rows: of shape (n_masks, n_test, n_classes)."""
        (networks,) = self._trained(training, [fold], n_jobs, self.progress)
        return self._say(training, networks, fold, masks)[0]

    def _lessons(self, training: Training, fold: tuple[Codes, Codes]) -> list[Lesson]:
        """What each network of a fold learns from and is asked about."""
        train, test = fold
        if not self.one_by_one:
            every = np.arange(len(test))
            return [Lesson(train, every, every)] * _MEMBERS
        # As many rows of each class in every part.
        by_class = np.argsort(training.y[test], kind="stable")
        parts = [by_class[i::_MEMBERS] for i in range(_MEMBERS)]
        lessons = []
        for i, part in enumerate(parts):
            others = [other[::_ASKED_OF_BOTH] for k, other in enumerate(parts) if k != i]
            asked = np.sort(np.concatenate([part, *others]))
            learnt = np.concatenate([train, np.delete(test, asked)])
            lessons.append(Lesson(learnt, np.sort(part), asked))
        return lessons

    def _say(
        self,
        training: Training,
        networks: Networks,
        fold: tuple[Codes, Codes],
        masks: Sequence[Booleans],
    ) -> tuple[Floats, Floats]:
        """What the networks of a fold say about the test rows that they have not learnt from.

        First the answers, of shape (n_masks, n_test, n_classes). Then what each network says of the rows that none of
        them has learnt from, of shape (n_networks, n_masks, n_rows, n_classes).
        """
        test, lessons = fold[1], self._lessons(training, fold)
        both = _asked_of_all(lessons)
        said, share = np.zeros((len(masks), len(test), len(training.classes))), np.zeros(len(test))
        opinions = np.empty((len(networks), len(masks), len(both), len(training.classes)))
        with one_thread():
            for i, (network, lesson) in enumerate(zip(networks, lessons, strict=True)):
                rows = self.Z[test[lesson.asked]]
                answers = np.isin(lesson.asked, lesson.answers)
                shared = np.isin(lesson.asked, both)
                share[lesson.answers] += 1
                for k, mask in enumerate(masks):
                    proba = network.proba(rows, mask)
                    said[k, lesson.answers] += proba[answers]
                    opinions[i, k] = proba[shared]
        return said / share[:, None], opinions

    def _as_sure_as(
        self,
        n: int,
        training: Training,
        by_fold: list[Networks],
        folds: Folds,
        masks: Sequence[Booleans],
    ) -> Floats:
        """Out-of-fold answers, softened until they are about as sure as ``n`` networks together.

        A network alone is surer of itself than many whose answers are averaged, the more so the fewer rows it has
        learnt from. Thresholds tuned on its doubts would send more rows on than expected: with 1500 made-up rows in
        given stages, a budget of 50 became 58 to 65 on other rows (two numbers of folds, three seeds), and becomes 46
        to 51 now. Doubt grows with the number of networks like 1 - 1/n, so that one and two tell how sure ``n`` are.
        """
        answers, alone, together = list[Floats](), list[Floats](), list[Floats]()
        by_both, places, n_before = list[Floats](), list[Codes](), 0
        weight = np.ones(len(training.y)) if training.weight is None else training.weight
        for networks, fold in zip(by_fold, folds, strict=True):
            said, opinions = self._say(training, networks, fold, masks)
            both = _asked_of_all(self._lessons(training, fold))
            answers.append(said)
            places.append(n_before + both)
            n_before += len(fold[1])
            alone.append(_doubt(opinions).mean(axis=0))
            together.append(_doubt(opinions.mean(axis=0)))
            by_both.append(weight[fold[1][both]])
        proba, shares = np.concatenate(answers, axis=1), np.concatenate(by_both)
        if not shares.any():
            return proba
        one, two = (
            np.average(np.concatenate(d, axis=1), axis=1, weights=shares) for d in (alone, together)
        )
        grown = (1 - 1 / n) / (1 - 1 / _MEMBERS)
        for k, doubt in enumerate(one + grown * (two - one)):
            asked = proba[k, np.concatenate(places)]
            proba[k] = _softened(proba[k], _temperature(asked, float(doubt), shares))
        return proba

    def _trained(
        self, training: Training, folds: Folds, n_jobs: int | None, progress: Progress
    ) -> list[Networks]:
        """Networks of every fold; those of a fold that was looked at before are known already.

        Interrupted, those of the first folds that are complete, if there are any.
        """
        keys = [test.tobytes() + train.tobytes() for train, test in folds]
        new = {k: fold for k, fold in zip(keys, folds, strict=True) if k not in self._known}
        fits = Parallel(n_jobs=n_jobs, return_as="generator")(
            delayed(train_network)(
                self.inputs,
                self.Z[rows],
                training.y[rows],
                len(training.classes),
                self.taught,
                weight=None if training.weight is None else training.weight[rows],
                seed=(training.seed or 0) + member,
            )
            for fold in new.values()
            for member, (rows, *_) in enumerate(self._lessons(training, fold))
        )
        found = list[MaskedNetwork]()
        try:
            with progress.of([1.0] * (_MEMBERS * len(new))):
                for i, network in enumerate(fits):
                    found.append(network)
                    progress.done(i, f"{self.name}, {len(np.unique(self.taught, axis=0))} stages")
        except KeyboardInterrupt:
            if len(found) < _MEMBERS and keys[0] not in self._known:
                raise
        groups = (found[i : i + _MEMBERS] for i in range(0, len(found), _MEMBERS))
        for key, networks in zip(new, groups, strict=False):
            if len(networks) == _MEMBERS:
                self._known[key] = tuple(networks)
        return [self._known[key] for key in takewhile(self._known.__contains__, keys)]


def _asked_of_all(lessons: Sequence[Lesson]) -> Codes:
    """Positions of the test rows that none of the networks has learnt from."""
    return reduce(np.intersect1d, [lesson.asked for lesson in lessons])


def _doubt(proba: Floats) -> Floats:
    return np.asarray(1.0 - proba.max(axis=-1))


def _softened(proba: Floats, temperature: float) -> Floats:
    """Probabilities at another temperature, which changes no decision."""
    return np.asarray(softmax(np.log(np.maximum(proba, _LEAST)) / temperature, axis=-1))


def _temperature(proba: Floats, doubt: float, weight: Floats) -> float:
    """The temperature, 1 or more, at which rows have some doubt on average."""

    def missing(temperature: float) -> float:
        return float(np.average(_doubt(_softened(proba, temperature)), weights=weight)) - doubt

    if missing(1.0) >= 0:
        return 1.0
    return float(brentq(missing, 1.0, _SOFTEST)) if missing(_SOFTEST) > 0 else _SOFTEST
