"""The full model f0: fitted here, frozen, labels only, or known by stored probabilities alone.

Whatever it is, two things come out: the stage(s) that answer with it, and **honest** probabilities on the training rows
for the losses ℓ0. Scored on its own training rows f0 looks perfect and the allocation would trust it blindly, so a
model fitted here gives out-of-bag or out-of-fold probabilities; a legacy model was trained on other rows and is scored
as it is.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from sparing._folds import checked_folds
from sparing._full_columns import column_use, unwrapped
from sparing._full_input import refuse_other_models
from sparing._full_predictor import (
    DecidingPredictor,
    FullPredictor,
    StoredModel,
    encode,
    output_of,
    raw_output,
)
from sparing._price_list import short
from sparing._rows import take_rows
from sparing.system import Stage, System

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class FullModel:
    """f0 as the learners need it.

    Attributes
    ----------
    stages : the stage(s) that answer with f0: one, or those of a routed classifier used as f0.
    classes : class labels of f0, a superset of those in y.
    proba : probabilities on the training rows that are not optimistic, one column per class.
    estimator : the fitted model, None when only stored probabilities are known.
    decided : codes of the labels it gave these rows where they are not always the most probable ones, just as honest.
    """

    stages: tuple[Stage, ...]
    classes: NDArray[Any]
    proba: Floats
    estimator: Any
    decided: Codes | None = field(default=None, kw_only=True)

    @property
    def codes(self) -> Codes:
        """Class per row of X, as far as is known: its own label, or the most probable class."""
        return self.proba.argmax(axis=1) if self.decided is None else self.decided


def default_full_model(random_state: int | None, n_jobs: int | None) -> RandomForestClassifier:
    """The f0 of someone who brings none: a forest, because its out-of-bag rows make one fit enough."""
    return RandomForestClassifier(100, oob_score=True, random_state=random_state, n_jobs=n_jobs)


def fit_full_model(
    estimator: Any,
    X: Any,
    y: NDArray[Any],
    *,
    cv: Any = 5,
    out_of_bag: bool | None = None,
    sample_weight: Floats | None = None,
    full_proba: Any = None,
    own_labels: bool = True,
    random_state: int | None = None,
    n_jobs: int | None = None,
) -> FullModel:
    """Fit f0, or take it as it is, and get honest probabilities on the rows of X.

    Parameters
    ----------
    estimator : None (a forest), a classifier, or a legacy model: a ``FrozenEstimator``, a fitted classifier, or any
        object with ``predict_proba``, ``decision_function`` or just ``predict`` and no ``fit``.
    X, y : training rows and labels.
    cv : folds of the out-of-fold probabilities; unused for legacy models.
    out_of_bag : whether a forest with ``oob_score=True`` is judged by its out-of-bag rows instead; None: if ``cv`` is
        a number. Whoever gives folds has a reason, such as rows that belong together, which a bag tears apart.
    full_proba : honest probabilities of f0 on these rows, if already known: nothing is cross-fitted then, and with
        ``estimator=None`` f0 is a system known only by its logs.
    own_labels : whether a model answers with its own label where that is not its most probable class.
    """
    labels = np.unique(y)
    if estimator is None and full_proba is not None:
        stage = Stage(StoredModel(X.shape[1]), name="full")
        return FullModel((stage,), labels, _checked_proba(full_proba, len(y), labels), None)
    if estimator is None:
        estimator = default_full_model(random_state, n_jobs)
    refuse_other_models(estimator)
    legacy = is_legacy(estimator)
    if legacy:
        model = estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator
        check_is_fitted_if_possible(model)
    else:
        model = fitted(estimator, X, y, sample_weight, random_state)
    classes = _classes_of(model, labels)
    answers = FullPredictor(model, output_of(model), classes, column_use(model, X))
    some = np.arange(len(y))[:: max(1, len(y) // 2000)]
    if own_labels and _decides(answers, take_rows(X, some)):
        answers = DecidingPredictor(model, answers.output, classes, answers.use)

    if full_proba is not None:
        proba = _checked_proba(full_proba, len(y), classes)
        # The model must answer on the scale of the probabilities it is known by.
        if answers.output != "predict_proba":
            answers = answers.adjusted(answers.raw(take_rows(X, some)), proba[some], None)
        return FullModel(_stages(answers), classes, proba, model)

    by_bag = isinstance(cv, int | np.integer) if out_of_bag is None else out_of_bag
    raw, decided = None, None
    if legacy:
        raw = answers.raw(X)
        decided = answers.decide(X) if isinstance(answers, DecidingPredictor) else None
    elif by_bag:
        raw = _out_of_bag(model, y, classes)
    if raw is None:
        raw, decided = _out_of_fold(
            estimator, X, y, answers, cv, sample_weight, random_state, n_jobs
        )
    answers = answers.adjusted(raw, np.eye(len(classes))[encode(y, classes)], sample_weight)
    proba = _checked_proba(
        answers.proba(raw), len(y), classes, f"The full model's {answers.output}"
    )
    if legacy:
        _warn_if_in_sample(estimator, proba, y, classes)
    return FullModel(_stages(answers), classes, proba, model, decided=decided)


def _stages(answers: FullPredictor) -> tuple[Stage, ...]:
    """One stage, or those of a routed classifier: a system inside a system is one longer system."""
    system = getattr(unwrapped(answers.model), "system_", None)
    if isinstance(system, System) and answers.use.inputs is None:  # and sees the same columns
        return system.stages
    return (Stage(answers, name="full"),)


def _decides(answers: FullPredictor, X: Any) -> bool:
    """Whether a model's labels differ from its most probable classes; objects without ``fit`` are not asked."""
    asked = hasattr(answers.model, "fit") and callable(getattr(answers.model, "predict", None))
    if answers.output == "predict" or not asked:
        return False
    labels = np.asarray(answers.model.predict(answers.use.inputs_of(X)))
    if not np.isin(labels, answers.classes).all():
        return False
    # Support vector machines break ties between classes by votes, on some rows or other.
    votes = answers.output == "decision_function" and len(answers.classes) > 2
    return votes or not np.array_equal(labels, answers.classes[answers.raw(X).argmax(axis=1)])


def fitted(
    estimator: Any, X: Any, y: NDArray[Any], weight: Floats | None, random_state: int | None
) -> Any:
    """A fitted clone, with our seed where it has none of its own and with weights where it takes them."""
    model = _seeded(clone(estimator), random_state)
    with warnings.catch_warnings():
        # Rows that were never out of bag get the class shares instead, in _out_of_bag.
        warnings.filterwarnings("ignore", message="Some inputs do not have OOB scores")
        return model.fit(X, y, **_weight_argument(model, weight))


def _weight_argument(model: Any, weight: Floats | None) -> dict[str, Any]:
    """Weights as an argument of ``fit``, of a pipeline's last step for a pipeline; empty if it takes none."""
    name, taker = "sample_weight", model
    if isinstance(model, Pipeline):
        last, taker = model.steps[-1]
        name = f"{last}__sample_weight"
    takes = weight is not None and has_fit_parameter(taker, "sample_weight")
    return {name: weight} if takes else {}


# -- honest scores ----------------------------------------------------------------------------------


def _out_of_bag(model: Any, y: NDArray[Any], classes: NDArray[Any]) -> Floats | None:
    if not getattr(model, "oob_score", False):
        return None
    proba = getattr(model, "oob_decision_function_", None)
    if proba is None or np.shape(proba) != (len(y), len(classes)):
        return None
    proba = np.array(proba, dtype=float)
    never = ~(proba.sum(axis=1) > 0.5)
    proba[never] = np.bincount(encode(y, classes), minlength=len(classes)) / len(y)
    return proba


def _out_of_fold(
    estimator: Any,
    X: Any,
    y: NDArray[Any],
    answers: FullPredictor,
    cv: Any,
    weight: Floats | None,
    random_state: int | None,
    n_jobs: int | None,
) -> tuple[Floats, Codes | None]:
    """What models that have not seen them say of all rows, and the labels they give if these are not the likeliest."""
    folds, classes = checked_folds(cv, y, random_state), answers.classes
    decides = isinstance(answers, DecidingPredictor)

    def fold(train: Codes, test: Codes) -> tuple[Floats, Codes]:
        present = np.unique(y[train])
        if len(present) == 1:  # the only row of the other class is in the test fold
            only = np.repeat(encode(present, classes), len(test))
            return np.eye(len(classes))[only], only
        part = None if weight is None else weight[train]
        model = fitted(estimator, take_rows(X, train), y[train], part, random_state)
        rows = take_rows(X, test)
        said = raw_output(model, answers.output, rows, classes)
        return said, encode(model.predict(rows), classes) if decides else said.argmax(axis=1)

    parts = Parallel(n_jobs=n_jobs)(delayed(fold)(train, test) for train, test in folds)
    raw, codes = np.empty((len(y), len(classes))), np.empty(len(y), dtype=np.intp)
    for (_, test), (values, labels) in zip(folds, parts, strict=True):
        raw[test], codes[test] = values, labels
    return raw, codes if decides else None


# -- what was passed --------------------------------------------------------------------------------


def is_legacy(estimator: Any) -> bool:
    """Whether a model is used as it is: frozen, without ``fit``, or already fitted."""
    if isinstance(estimator, FrozenEstimator) or not hasattr(estimator, "fit"):
        return True
    if not hasattr(estimator, "__sklearn_tags__"):
        return False
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def check_is_fitted_if_possible(model: Any) -> None:
    """Raise for a frozen model that was never fitted; what is not scikit-learn's is taken at its word."""
    if hasattr(model, "fit") and hasattr(model, "__sklearn_tags__"):
        check_is_fitted(model)


def _classes_of(model: Any, labels: NDArray[Any]) -> NDArray[Any]:
    classes = getattr(model, "classes_", None)
    if classes is None:
        return labels
    classes = np.asarray(classes)
    known = set(classes.tolist())
    unseen = [label for label in labels.tolist() if label not in known]
    if unseen:
        raise ValueError(
            f"y has labels the full model does not know: {short(unseen)}; it knows {short(classes.tolist())}. "
            "Relabel y, or use a full model trained with these classes."
        )
    return classes


def _warn_if_in_sample(
    estimator: Any, proba: Floats, y: NDArray[Any], classes: NDArray[Any]
) -> None:
    if isinstance(estimator, FrozenEstimator) or not hasattr(estimator, "fit") or len(y) < 50:
        return
    if np.mean(proba.argmax(axis=1) == encode(y, classes)) >= 0.985:
        warnings.warn(
            f"The fitted {type(estimator).__name__} is nearly always right on the rows given to fit. If it was trained "
            "on them, too few rows will be kept from it: pass it unfitted (sklearn.base.clone) to have it "
            "cross-fitted, or in FrozenEstimator if its training rows were other ones.",
            UserWarning,
            stacklevel=2,
        )


def _checked_proba(proba: Any, n: int, classes: NDArray[Any], what: str = "full_proba") -> Floats:
    proba = np.asarray(proba, dtype=float)
    if proba.ndim == 1 and len(classes) == 2:
        proba = np.column_stack([1.0 - proba, proba])
    if proba.shape != (n, len(classes)):
        raise ValueError(
            f"{what} has shape {proba.shape}; it needs one row per row of X and one column per class, "
            f"({n}, {len(classes)}), in the order {short(classes.tolist())}."
        )
    bad = ~(np.isfinite(proba).all(axis=1) & (proba >= 0).all(axis=1))
    bad |= np.abs(proba.sum(axis=1) - 1.0) > 1e-3
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise ValueError(
            f"{what}, row {row} is {proba[row].tolist()}: probabilities are finite, 0 or more and sum to 1."
        )
    return proba


def _seeded(model: Any, random_state: int | None) -> Any:
    """Give a model that has no seed of its own ours, so that a fit can be repeated."""
    if random_state is not None:
        unset = [
            name
            for name, value in model.get_params(deep=True).items()
            if (name == "random_state" or name.endswith("__random_state")) and value is None
        ]
        model.set_params(**dict.fromkeys(unset, random_state))
    return model
