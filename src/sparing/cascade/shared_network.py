"""One model for all stages: networks trained with the columns of later stages taken away, whose answers are averaged.

Every fold has two of them, which have learnt from all rows but those they are asked about: where rows may be held out
one by one, each network holds out one half of the fold and learns from the other half too.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import numpy as np
from joblib import Parallel, delayed

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
Lessons = list[tuple[Codes, Codes]]

_MEMBERS = 2
"""Networks of a fold.

On Letters' validation rows (two splits) two cost 3 to 5% less at half a point of error than one, and less than one that
is trained twice as long or four that are trained half as long. There (one split, equal stages) two that hold out half a
fold each are right on 0.3 points more of the rows for five columns, and 0.1 for five and a half, than two that hold out
all of it.
"""


class SharedNetwork:
    """Networks for all stages, trained with the columns of later stages taken away, whose answers are averaged.

    Parameters
    ----------
    inputs, Z : the rows as a network reads them.
    taught : masks of the stages they learn to answer for, some perhaps several times to be seen more often; they may be
        asked about some of these only.
    one_by_one : whether a row may be held out without the others of its fold: not where these belong together.
    """

    name = "shared network"

    def __init__(
        self,
        inputs: NetworkInputs,
        Z: Singles,
        taught: Sequence[Booleans],
        one_by_one: bool = False,
    ) -> None:
        self.inputs = inputs
        self.Z = Z
        self.taught = np.array(taught)
        self.one_by_one = one_by_one
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
        said = [self._say(training, *one, masks) for one in zip(by_fold, ready, strict=True)]
        rows = np.concatenate([test for _, test in ready])
        in_order = np.argsort(rows)
        together = tuple(network for networks in by_fold for network in networks)
        predictors = tuple(MaskedPredictor(together, mask) for mask in masks)
        proba = np.concatenate(said, axis=1)[:, in_order]
        return StageModels(predictors, proba, rows[in_order], self.name, len(by_fold) < len(folds))

    def honest(
        self, training: Training, masks: Sequence[Booleans], fold: Any, n_jobs: int | None = None
    ) -> Floats:
        """Probabilities of one fold's test rows: of shape (n_masks, n_test, n_classes)."""
        (networks,) = self._trained(training, [fold], n_jobs, Progress(verbose=0))
        return self._say(training, networks, fold, masks)

    def _lessons(self, training: Training, fold: tuple[Codes, Codes]) -> Lessons:
        """For each network of a fold the rows it learns from, and positions of the test rows that it is asked about."""
        train, test = fold
        if not self.one_by_one:
            return [(train, np.arange(len(test)))] * _MEMBERS
        # As many rows of each class in every part.
        by_class = np.argsort(training.y[test], kind="stable")
        parts = [np.sort(by_class[i::_MEMBERS]) for i in range(_MEMBERS)]
        return [(np.concatenate([train, np.delete(test, part)]), part) for part in parts]

    def _say(
        self,
        training: Training,
        networks: Networks,
        fold: tuple[Codes, Codes],
        masks: Sequence[Booleans],
    ) -> Floats:
        """What the networks of a fold say about the test rows that they have not learnt from, on average."""
        test = fold[1]
        said = np.zeros((len(masks), len(test), len(training.classes)))
        asked = np.zeros((len(test), 1))
        with one_thread():
            lessons = self._lessons(training, fold)
            for network, (_, places) in zip(networks, lessons, strict=True):
                rows = self.Z[test[places]]
                said[:, places] += [network.proba(rows, mask) for mask in masks]
                asked[places] += 1
        return said / asked

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
            for member, (rows, _) in enumerate(self._lessons(training, fold))
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
