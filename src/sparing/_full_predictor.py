"""The full model as a stage's predictor: probabilities from whatever a model offers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.pipeline import Pipeline

from sparing._full_columns import ColumnUse, unwrapped
from sparing._price_list import short

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
Output = Literal["predict_proba", "decision_function", "predict"]


@dataclass(frozen=True, eq=False)
class FullPredictor:
    """A model as a stage's predictor: probabilities whatever it offers, and the columns it uses.

    A ``decision_function`` d becomes softmax(d / T) with the temperature T fitted on honest scores, which keeps every
    decision of the model as it is. A model of labels only gets ``accuracy`` on the label it says, the rest spread.
    """

    model: Any
    output: Output
    classes: NDArray[Any]
    use: ColumnUse
    temperature: float = 1.0
    accuracy: float = 1.0

    @property
    def columns(self) -> NDArray[np.intp]:
        """Columns the model uses on any row."""
        return self.use.columns

    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities."""
        return self.proba(self.raw(X))

    def columns_read(self, X: Any) -> NDArray[np.bool_]:
        """Columns the model tests on each row."""
        return self.use.read(X)

    def raw(self, X: Any) -> Floats:
        """Probabilities, decision values or one-hot labels, one column per class."""
        return raw_output(self.model, self.output, self.use.inputs_of(X), self.classes)

    def proba(self, raw: Floats) -> Floats:
        """Probabilities from :meth:`raw`."""
        if self.output == "decision_function":
            return softmax(raw / self.temperature, axis=1)
        if self.output == "predict":
            rest = (1.0 - self.accuracy) / max(1, len(self.classes) - 1)
            return np.where(raw > 0, self.accuracy, rest)
        return raw

    def adjusted(self, raw: Floats, target: Floats, weight: Floats | None) -> FullPredictor:
        """The same with its temperature or accuracy measured.

        Parameters
        ----------
        raw : outputs of :meth:`raw` that are not optimistic.
        target : what they should have said: one-hot labels, or better probabilities of the same model.
        weight : weights of the rows.
        """
        if self.output == "decision_function":
            return replace(self, temperature=_temperature(raw, target, weight))
        if self.output == "predict":
            right = np.average((raw * target).sum(axis=1), weights=weight)
            # One more right and one more wrong: a model that never erred here is not infallible. It
            # must also stay above chance, or its label would not be the most probable one.
            accuracy = (right * len(raw) + 1) / (len(raw) + 2)
            return replace(self, accuracy=float(max(accuracy, 1 / len(self.classes) + 1e-3)))
        return self


@dataclass(frozen=True, eq=False)
class DecidingPredictor(FullPredictor):
    """A model whose label is not always its most probable class: a tuned threshold, ties broken by votes."""

    def decide(self, X: Any) -> Codes:
        """Class per row, as the model itself says."""
        return encode(
            self.model.predict(self.use.inputs_of(X)), self.classes, "The full model answers"
        )


@dataclass(frozen=True)
class StoredModel:
    """A legacy system known only by its logs: it can be routed to and priced, not asked."""

    n_columns: int
    available = False

    @property
    def columns(self) -> NDArray[np.intp]:
        """All columns: nothing is known about what it uses."""
        return np.arange(self.n_columns)

    def predict_proba(self, X: Any) -> Floats:
        """Raise: the rows must be sent to the real system."""
        raise RuntimeError(
            f"{X.shape[0]} rows are routed to the full model, which is known here only by its stored probabilities "
            "(full_proba). Use route(X) to see which, send those to the real system, or fit with the model itself."
        )


def output_of(model: Any) -> Output:
    """The richest output a model offers."""
    names: tuple[Output, ...] = ("predict_proba", "decision_function", "predict")
    for name in names:
        if callable(getattr(model, name, None)):
            if name == "decision_function":
                _check_one_value_per_class(model)
            return name
    raise TypeError(
        f"estimator {type(model).__name__} has none of predict_proba, decision_function and predict: "
        "wrap it in an object that has one of them."
    )


def _check_one_value_per_class(model: Any) -> None:
    last = unwrapped(model)
    last = unwrapped(last.steps[-1][1]) if isinstance(last, Pipeline) else last
    by_pairs = getattr(last, "decision_function_shape", "ovr") == "ovo"
    # With three classes there are three pairs, and nobody would notice.
    if by_pairs and len(getattr(last, "classes_", ())) > 2:
        raise ValueError(
            f"The decision values of this {type(last).__name__} are of pairs of classes: set "
            "decision_function_shape='ovr', which also works on a fitted model and changes no prediction."
        )


def raw_output(model: Any, output: Output, X: Any, classes: NDArray[Any]) -> Floats:
    """Probabilities, decision values or one-hot labels of a model, one column per class."""
    values = np.asarray(getattr(model, output)(X))
    if output == "predict":
        return np.eye(len(classes))[encode(values, classes, "The full model answers")]
    own = np.asarray(getattr(model, "classes_", classes))
    if values.ndim == 2 and values.shape[1] == 1 and len(own) == 2:
        values = values[:, 0]
    if (
        values.ndim == 1 and len(own) == 2
    ):  # of the second class; half a decision value on either side
        pair = (1.0 - values, values) if output == "predict_proba" else (-values / 2, values / 2)
        values = np.column_stack(pair)
    if values.shape != (X.shape[0], len(own)):
        raise ValueError(
            f"The full model's {output} has shape {values.shape} for {X.shape[0]} rows and {len(own)} classes, "
            f"{own.tolist()}. If it knows more classes, let it name them in `classes_`."
        )
    if np.array_equal(own, classes):
        return values.astype(float)
    # A fold may lack a class: impossible by probability, or just below the worst by decision value.
    missing = 0.0 if output == "predict_proba" else values.min(axis=1, keepdims=True) - 1.0
    out = np.empty((len(values), len(classes)))
    out[:] = missing
    out[:, encode(own, classes)] = values
    return out


def _temperature(raw: Floats, target: Floats, weight: Floats | None) -> float:
    def loss(log_temperature: float) -> float:
        logs = log_softmax(raw / np.exp(log_temperature), axis=1)
        return float(-np.average((logs * target).sum(axis=1), weights=weight))

    around = np.log(max(float(np.abs(raw).max()), 1e-12))
    best = minimize_scalar(loss, bounds=(around - 12, around + 6), method="bounded")
    return float(np.exp(best.x))


def encode(y: NDArray[Any], classes: NDArray[Any], who: str = "y has") -> Codes:
    """Positions of labels in ``classes``."""
    found, inverse = np.unique(y, return_inverse=True)
    place = {label: i for i, label in enumerate(classes.tolist())}
    unknown = [label for label in found.tolist() if label not in place]
    if unknown:
        raise ValueError(
            f"{who} labels that are not among the classes ({short(classes.tolist())}): {short(unknown)}."
        )
    return np.array([place[label] for label in found.tolist()], dtype=np.intp)[inverse.ravel()]
