"""The full model as a stage's predictor: probabilities from whatever a model offers."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.pipeline import Pipeline

from sparing._full_columns import ColumnUse, column_use_again, unwrapped
from sparing._full_gaps import Gaps, gaps_of
from sparing._price_list import short
from sparing._stored import Stored, plain_labels, read_labels

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
Output = Literal["predict_proba", "decision_function", "predict"]

OUTPUTS: tuple[Output, ...] = ("predict_proba", "decision_function", "predict")
"""What a model may offer, richest first."""


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
    _kind: ClassVar[str] = "model"

    @property
    def columns(self) -> NDArray[np.intp]:
        """Columns the model uses on any row."""
        return self.use.columns

    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities."""
        return self.proba(self.raw(X))

    def columns_read(self, X: Any) -> NDArray[np.bool_]:
        """Columns the model tests on each row."""
        return self.use.read(self._whole(X))

    def raw(self, X: Any) -> Floats:
        """Probabilities, decision values or one-hot labels, one column per class."""
        return raw_output(self.model, self.output, self._given(X), self.classes)

    @cached_property
    def _gaps(self) -> Gaps | None:
        return gaps_of(self.model, self.use)

    def _whole(self, X: Any) -> Any:
        """X without gaps in columns that the model does not use, where it would refuse them."""
        return X if self._gaps is None else self._gaps.filled(X)

    def _given(self, X: Any) -> Any:
        """What the model is asked about."""
        return self.use.inputs_of(self._whole(X))

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

    def stored(self) -> Stored:
        """The model without its wrappers, its columns, and how its output is read."""
        arrays = {"columns": self.use.columns, "inputs": self.use.inputs, "given": self.use.given}
        return Stored(
            self._kind,
            settings={
                "output": self.output,
                "classes": plain_labels(self.classes),
                "n_columns": self.use.n_columns,
                "temperature": float(self.temperature),
                "accuracy": float(self.accuracy),
            },
            arrays={name: array for name, array in arrays.items() if array is not None},
            models={"model": _served(self.model)},
        )

    @classmethod
    def restored(cls, stored: Stored) -> FullPredictor | AbsentModel:
        """The predictor again; one that can be priced but not asked when its model is not there."""
        n_columns, classes = stored.count("n_columns"), read_labels(stored.settings.get("classes"))
        columns = stored.positions("columns", n_columns)
        inputs = stored.positions("inputs", n_columns) if "inputs" in stored.arrays else None
        given = stored.positions("given", n_columns) if "given" in stored.arrays else None
        output, model = stored.text("output"), stored.models.get("model")
        temperature, accuracy = stored.number("temperature"), stored.number("accuracy")
        if temperature <= 0 or not 0 <= accuracy <= 1:
            raise ValueError(
                f"A temperature is positive and an accuracy a share, not {temperature} and {accuracy}."
            )
        if model is None:
            return AbsentModel(stored, columns)
        if getattr(model, "classes_", None) is not None:
            encode(np.asarray(model.classes_), classes, "The full model knows")
        if not callable(getattr(model, output, None)):
            if not callable(getattr(model, "predict_proba", None)):
                raise ValueError(f"The full model {type(model).__name__} has no {output}.")
            output = "predict_proba"  # better than what it stands for
        if issubclass(cls, DecidingPredictor) and not callable(getattr(model, "predict", None)):
            raise ValueError(
                "The full model's labels were not always its most probable class: give a model with predict."
            )
        use = column_use_again(model, n_columns, columns, inputs, given)
        return cls(model, _output(output), classes, use, temperature, accuracy)


@dataclass(frozen=True, eq=False)
class DecidingPredictor(FullPredictor):
    """A model whose label is not always its most probable class: a tuned threshold, ties broken by votes."""

    _kind = "deciding model"

    def decide(self, X: Any) -> Codes:
        """Class per row, as the model itself says."""
        return encode(self.model.predict(self._given(X)), self.classes, "The full model answers")


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

    def stored(self) -> Stored:
        """Its width."""
        return Stored("logged model", settings={"n_columns": self.n_columns})

    @classmethod
    def restored(cls, stored: Stored) -> StoredModel:
        """The model again."""
        return cls(stored.count("n_columns"))


@dataclass(frozen=True, eq=False)
class AbsentModel:
    """A model that was left outside when its system was stored: routed to and priced, not asked."""

    _stored: Stored
    columns: NDArray[np.intp]
    available = False

    def predict_proba(self, X: Any) -> Floats:
        """Raise: the model has to be given."""
        raise RuntimeError(
            f"{X.shape[0]} rows are routed to the full model, which was left outside the bundle: give it, "
            "load(path, full_model=model), or use route(X) to see which rows to send to it."
        )

    def stored(self) -> Stored:
        """What was stored of it before."""
        return self._stored


def _served(model: Any) -> Any:
    """What serving needs of a model: nothing of wrappers that only chose it, nothing of single training rows."""
    model = unwrapped(model)
    stale = [name for name in _TRAINING if name in getattr(model, "__dict__", {})]
    if stale:
        model = copy(model)
        for name in stale:
            del model.__dict__[name]
    return model


_TRAINING = ("oob_decision_function_", "_sample_weight")
"""What forests remember of each training row."""


def output_of(model: Any) -> Output:
    """The richest output a model offers."""
    for name in OUTPUTS:
        if callable(getattr(model, name, None)):
            if name == "decision_function":
                _check_one_value_per_class(model)
            return name
    raise TypeError(
        f"estimator {type(model).__name__} has none of predict_proba, decision_function and predict: "
        "wrap it in an object that has one of them."
    )


def _output(name: str) -> Output:
    for known in OUTPUTS:
        if name == known:
            return known
    raise ValueError(f"A model offers {', '.join(OUTPUTS)}, not {name!r}.")


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
        if values.shape != (X.shape[0],):
            raise ValueError(
                f"The full model's predict gives answers of shape {values.shape} for {X.shape[0]} rows: it must give "
                "one label per row."
            )
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
