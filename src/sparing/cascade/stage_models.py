"""A model per stage, fitted on its columns; ``shared_network.py`` has networks that serve all stages instead.

Either way every stage also gets out-of-fold probabilities on the training rows: exits tuned on in-sample scores would
trust the cheap stages blindly. A stage answers with its most probable class, which is what its doubt is about, even
where the model would label by another rule, such as a tuned threshold.

A stage does not see the scores of the stages before it. Tried with out-of-fold scores as further columns: on
ann-thyroid (forests) and Letters (support vector machines) accuracies moved by -0.2 to +0.3 points, within chance; on
Forest, whose fully grown trees trust such a column too much, they fell by 1.2 to 4.6.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from sparing._full_columns import ColumnUse, unwrapped
from sparing._full_model import fit_full_model, fitted
from sparing._full_predictor import FullPredictor, output_of
from sparing._price_list import short
from sparing._progress import Progress
from sparing._routed import Training
from sparing._rows import take_rows
from sparing.cascade.boosted import NumericBooster
from sparing.cascade.differences import WithDifferences
from sparing.cascade.network import Booleans

Floats = NDArray[np.float64]
Folds = list[tuple[NDArray[np.intp], NDArray[np.intp]]]

_TRIED = 500
"""Rows on which a model is tried out."""


@dataclass(frozen=True, eq=False)
class StageModels:
    """Predictors of the stages before the full model, and what they say about rows they have not seen.

    Attributes
    ----------
    predictors : one per stage.
    proba : out-of-fold, of shape (n_stages, n_rows, n_classes).
    rows : that these are about; all of them, unless the fit was interrupted.
    name : of the kind of model.
    interrupted : whether something is missing.
    """

    predictors: tuple[Any, ...]
    proba: Floats
    rows: NDArray[np.intp]
    name: str
    interrupted: bool = False


class StageError(ValueError):
    """A model that was made for all columns does not take some of them."""


class OwnModels:
    """A clone of some estimator per stage, refitted on the stage's columns without any prices.

    Parameters
    ----------
    estimator : to be cloned.
    out_of_bag : whether forests may be judged by their out-of-bag rows.
    """

    def __init__(self, estimator: Any, out_of_bag: bool = True) -> None:
        self.estimator = estimator
        self.out_of_bag = out_of_bag
        self.name = _name(estimator)
        self._known: dict[tuple[bytes, bytes], Floats] = {}
        self._fitted: dict[bytes, tuple[FullPredictor, Floats]] = {}

    def fit(
        self,
        training: Training,
        masks: Sequence[Booleans],
        folds: Folds,
        n_jobs: int | None,
        progress: Progress,
    ) -> StageModels:
        """Fit and cross-fit a model for every mask, once; interrupted, those that are complete are kept."""
        predictors = list[FullPredictor]()
        proba = list[Floats]()
        with progress.of([float(mask.sum()) for mask in masks]):
            for k, mask in enumerate(masks):
                columns = np.flatnonzero(mask)
                try:
                    if (key := columns.tobytes()) not in self._fitted:
                        self._fitted[key] = self._stage(training, columns, folds, n_jobs)
                except KeyboardInterrupt:
                    if not predictors:
                        raise
                    warnings.warn(
                        f"Interrupted: the cascade has the {len(predictors)} of {len(masks)} stages that were fitted.",
                        UserWarning,
                        stacklevel=2,
                    )
                    break
                predictor, honest = self._fitted[key]
                predictors.append(predictor)
                proba.append(honest)
                progress.done(k, f"stages, {self.name} on {len(columns)} columns")
        rows, missing = np.arange(len(training.y)), len(predictors) < len(masks)
        return StageModels(tuple(predictors), np.array(proba), rows, self.name, missing)

    def try_out(self, training: Training, masks: Sequence[Booleans]) -> None:
        """Fit on a few rows, as many of one class as of another, so that errors come early."""
        weight = np.ones(len(training.y)) if training.weight is None else training.weight
        counting = np.flatnonzero(weight)
        labels = training.y[counting]
        by_class = np.argsort(labels, kind="stable")
        first = np.searchsorted(labels[by_class], np.arange(len(training.classes)))
        rank = np.empty(len(labels), dtype=np.intp)
        rank[by_class] = np.arange(len(labels)) - first[labels[by_class]]
        part = _part(training, counting[np.argsort(rank, kind="stable")[:_TRIED]])
        for columns in map(np.flatnonzero, masks):
            rows = _safe_indexing(part.X, columns, axis=1)
            with self._explained(training, columns), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fitted(self.estimator, rows, part.y, part.weight, training.seed)

    def _stage(
        self, training: Training, columns: NDArray[np.intp], folds: Folds, n_jobs: int | None
    ) -> tuple[FullPredictor, Floats]:
        rows = _safe_indexing(training.X, columns, axis=1)
        with self._explained(training, columns):
            full = fit_full_model(
                clone(self.estimator),
                rows,
                training.y,
                cv=folds,
                out_of_bag=self.out_of_bag,
                full_proba=self._out_of_fold(training, columns, folds, n_jobs),
                own_labels=False,
                sample_weight=training.weight,
                random_state=training.seed,
                n_jobs=n_jobs,
            )
        predictor = full.stages[0].predictor
        assert isinstance(predictor, FullPredictor)
        n_classes = len(training.classes)
        honest = np.zeros((len(training.y), n_classes))
        honest[:, full.classes] = full.proba
        use = _use_in_table(predictor.use, columns, training.X.shape[1])
        return replace(predictor, use=use, classes=np.arange(n_classes)), honest

    def honest(
        self, training: Training, masks: Sequence[Booleans], fold: Any, n_jobs: int | None = None
    ) -> Floats:
        """Probabilities of one fold's test rows: of shape (n_masks, n_test, n_classes); worked out once."""
        wanted = [(np.flatnonzero(mask), fold) for mask in masks]
        return np.array(self._asked(training, wanted, n_jobs))

    def _out_of_fold(
        self, training: Training, columns: NDArray[np.intp], folds: Folds, n_jobs: int | None
    ) -> Floats | None:
        """Probabilities of all rows, with what is known of some folds; None if they come another way.

        Out-of-bag rows are cheaper, and decision values must become probabilities for all folds alike.
        """
        by_bag = self.out_of_bag and getattr(self.estimator, "oob_score", False)
        if by_bag or not hasattr(self.estimator, "predict_proba"):
            return None
        proba = np.zeros((len(training.y), len(training.classes)))
        found = self._asked(training, [(columns, fold) for fold in folds], n_jobs)
        for (_, test), of_fold in zip(folds, found, strict=True):
            proba[test] = of_fold
        return proba[:, np.unique(training.y)]

    def _asked(
        self, training: Training, wanted: Sequence[tuple[NDArray[np.intp], Any]], n_jobs: int | None
    ) -> list[Floats]:
        """Probabilities of folds' test rows from some columns each; a model is fitted once."""
        keys = [(columns.tobytes(), train.tobytes()) for columns, (train, _) in wanted]
        new = {key: w for key, w in zip(keys, wanted, strict=True) if key not in self._known}
        fits = (delayed(self._honest)(training, *one) for one in new.values())
        self._known.update(zip(new, Parallel(n_jobs=n_jobs)(fits), strict=True))
        return [self._known[key] for key in keys]

    def _honest(self, training: Training, columns: NDArray[np.intp], fold: Any) -> Floats:
        train, test = fold
        part = _part(training, train)
        if len(present := np.unique(part.y)) == 1:  # the other classes are in the test fold alone
            return np.eye(len(training.classes))[np.repeat(present, len(test))]
        rows = _safe_indexing(part.X, columns, axis=1)
        with self._explained(training, columns):
            model = fitted(self.estimator, rows, part.y, part.weight, training.seed)
        use = ColumnUse(training.X.shape[1], columns, inputs=columns)
        known = np.arange(len(training.classes))
        predictor = FullPredictor(model, output_of(model), known, use)
        return predictor.predict_proba(take_rows(training.X, test))

    @contextmanager
    def _explained(self, training: Training, columns: NDArray[np.intp]) -> Iterator[None]:
        try:
            yield
        except (KeyError, ValueError) as error:
            hint = "give a stage_estimator that takes such columns, or 'shared'"
            if isinstance(self.estimator, Pipeline) and "column" in str(error):
                hint = f"a pipeline that names its columns needs them all, make_column_selector() does not; {hint}"
            names = [training.costs.columns[i] for i in columns]
            # Libraries go on for lines about other models; the whole of it is in the chain of errors.
            said = str(error).strip().partition("\n")[0]
            raise StageError(
                f"{self.name} cannot be fitted on columns {short(names)}: {hint}. It says: {said}"
            ) from error


def _name(estimator: Any) -> str:
    """What a kind of model is called: the last step of a pipeline, without what stands around it."""
    if isinstance(estimator, WithDifferences):
        return f"{_name(estimator.estimator)} with differences"
    last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    return "boosted trees" if isinstance(last, NumericBooster) else type(last).__name__


def cloneable(estimator: Any) -> Any:
    """The model inside a full model that can be fitted again on fewer columns, or None."""
    model = unwrapped(estimator) if isinstance(estimator, FrozenEstimator) else estimator
    fits = hasattr(model, "fit") and hasattr(model, "get_params")
    says = any(hasattr(model, name) for name in ("predict_proba", "decision_function"))
    return clone(model) if fits and says and not hasattr(model, "system_") else None


def _part(training: Training, rows: NDArray[np.intp]) -> Training:
    weight = None if training.weight is None else training.weight[rows]
    return replace(training, X=take_rows(training.X, rows), y=training.y[rows], weight=weight)


def _use_in_table(use: ColumnUse, columns: NDArray[np.intp], n_columns: int) -> ColumnUse:
    """Columns a model uses, from positions in its part of the table to positions in the whole."""
    return replace(
        use,
        n_columns=n_columns,
        columns=columns[use.columns],
        inputs=columns if use.inputs is None else columns[use.inputs],
        given=None if use.given is None else columns[use.given],
    )
