"""What a full model is and what it takes: a classifier, perhaps text, perhaps missing cells."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags

from sparing._cells import columns_of
from sparing._price_list import short

ENCODE_TEXT = (
    "Encode it inside the full model, in a Pipeline with a ColumnTransformer: prices stay those of the raw "
    "columns."
)
"""What to do with text that a full model does not take."""

_NOT_CLASSIFIERS = {
    "regressor": "a regressor",
    "clusterer": "a clusterer",
    "outlier_detector": "an outlier detector",
    "density_estimator": "a density estimator",
}


def refuse_other_models(model: Any) -> None:
    """Raise for a model that says it is something else than a classifier; what says nothing may be one.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> refuse_other_models(RandomForestRegressor())
    Traceback (most recent call last):
    ...
    TypeError: estimator RandomForestRegressor is a regressor, and the full model answers classes: pass a classifier...
    """
    inner = model
    while isinstance(inner, FrozenEstimator | Pipeline):
        inner = inner.estimator if isinstance(inner, FrozenEstimator) else inner.steps[-1][1]
    if not hasattr(inner, "__sklearn_tags__"):
        return
    kind = _NOT_CLASSIFIERS.get(get_tags(inner).estimator_type or "")
    if kind is None:
        return
    name = type(inner).__name__
    kin = name.endswith("Regressor")
    instead = name.removesuffix("Regressor") + "Classifier" if kin else "LogisticRegression"
    raise TypeError(
        f"estimator {name} is {kind}, and the full model answers classes: pass a classifier, {instead} for example."
    )


def takes_missing(model: Any) -> bool:
    """Whether a model may be given missing cells; where that cannot be known it is left to the model to refuse them.

    Tags that say yes are believed. No is also what they say when nobody has set them, and what wrappers say whatever is
    inside, so a no counts only from scikit-learn's own simple models, and from ours.
    """
    if isinstance(
        model, FrozenEstimator
    ):  # what is inside may have no tags, which frozen ones ask for
        return takes_missing(model.estimator)
    if not hasattr(model, "__sklearn_tags__") or get_tags(model).input_tags.allow_nan:
        return True
    if hasattr(model, "acquisition_cost"):
        return False
    if isinstance(model, Pipeline):
        steps = [step for _, step in model.steps]
        filled = [i for i, step in enumerate(steps) if _may_fill(step)]
        return all(takes_missing(step) for step in steps[: filled[0] if filled else None])
    if getattr(model, "estimator", None) is not None:
        return takes_missing(model.estimator)
    if getattr(model, "estimators", None):
        return all(takes_missing(part) for _, part in model.estimators)
    return not type(model).__module__.startswith("sklearn.")


def _may_fill(step: Any) -> bool:
    """Whether a step of a pipeline may put values into missing cells."""
    return isinstance(step, ColumnTransformer | FeatureUnion) or type(step).__module__.startswith(
        "sklearn.impute"
    )


@contextmanager
def text_named(X: Any, advice: str) -> Iterator[None]:
    """Say which columns hold text when a model inside cannot take it, and what to do about it."""
    try:
        yield
    except ValueError as error:
        texts = [name for name, values in columns_of(X) if values.dtype.kind in "OU"]
        if "could not convert string" not in str(error) or not texts:
            raise
        raise ValueError(
            f"The full model does not take text, which column {short(texts)} holds ({error}). {advice}"
        ) from error
