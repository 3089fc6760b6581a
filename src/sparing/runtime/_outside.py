"""Models that stay outside a bundle: given when it is loaded, as models or as functions that ask one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sparing.runtime._archive import BundleError


def given_models(full_model: Any, outside: Sequence[str]) -> dict[str, Any]:
    """Models from outside by stage."""
    if full_model is None:
        return {}
    if not isinstance(full_model, Mapping):
        if len(outside) != 1:
            raise BundleError(
                f"full_model was given, and {len(outside)} models are outside this file"
                + (f": give a mapping of {list(outside)!r}." if outside else ": it has its own.")
            )
        full_model = {outside[0]: full_model}
    unknown = sorted(set(full_model) - set(outside))
    if unknown:
        raise BundleError(
            f"No model of a stage called {unknown[0]!r} is outside this file; those outside: {list(outside)!r}."
        )
    return {stage: _asked(model) for stage, model in full_model.items()}


def _asked(model: Any) -> Any:
    if any(hasattr(model, name) for name in ("predict_proba", "decision_function", "predict")):
        return model
    if callable(model):
        return _Endpoint(model)
    raise TypeError(
        f"full_model is a model or a callable that gives probabilities, not {model!r}; wrap an address in a function "
        "that calls it."
    )


class _Endpoint:
    """A function from rows to probabilities, as a model."""

    def __init__(self, ask: Any) -> None:
        self._ask = ask

    def predict_proba(self, X: Any) -> Any:
        """What the function says."""
        return self._ask(X)
