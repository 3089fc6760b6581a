"""Kinds of models for the stages: what was asked for, checked before anything is searched."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, Literal

from sklearn.base import is_regressor

from sparing._lightgbm import lightgbm
from sparing.cascade.boosted import boosted_trees
from sparing.cascade.stage_models import OwnModels


@dataclass(frozen=True)
class Both:
    """Wanted: the answers of these models and of the shared networks, averaged."""

    own: OwnModels


Asked = OwnModels | Both | Literal["shared"]

_CHOICES = (
    "stage_estimator is 'auto', 'own', 'boosted', 'shared', 'both', a classifier or a list of these"
)


def asked_kinds(
    wanted: Any, own: Any, full_name: str, out_of_bag: bool, n_rows: int
) -> list[Asked]:
    """Kinds of models that a user asks for.

    Parameters
    ----------
    wanted : ``stage_estimator`` as it was given.
    own : the full model's kind, unfitted; None if it cannot be fitted on some columns.
    full_name : of the full model, for errors.
    out_of_bag : whether forests may be judged by their out-of-bag rows.
    n_rows : rows to learn from.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression, LogisticRegression
    >>> [getattr(kind, "name", kind) for kind in asked_kinds("auto", LogisticRegression(), "", True, 500)]
    ['LogisticRegression', 'boosted trees', 'shared', Both(own=...)]
    >>> asked_kinds(LinearRegression(), None, "", True, 500)
    Traceback (most recent call last):
    TypeError: LinearRegression is a regressor: stages need a classifier with predict_proba or decision_function.
    """
    automatic = isinstance(wanted, str) and wanted == "auto"
    names = ["own", "boosted", "shared", "both"] if automatic else wanted
    several = list(names) if isinstance(names, list | tuple) else [names]
    if not several:
        raise ValueError("stage_estimator is an empty list: give at least one kind of model.")
    kinds = list[Asked]()
    models = None if own is None else OwnModels(own, out_of_bag)
    for one in several:
        if isinstance(one, str) and one == "shared":
            kinds.append("shared")
        elif isinstance(one, str) and one == "boosted":
            if not (automatic and isinstance(own, lightgbm.LGBMClassifier)):
                kinds.append(OwnModels(boosted_trees(n_rows), out_of_bag))
        elif isinstance(one, str) and one in ("own", "both"):
            if models is not None:
                kinds.append(models if one == "own" else Both(models))
            elif len(several) == 1:
                raise TypeError(
                    f"{full_name} cannot be fitted again for every stage, or does not say how sure it is: give "
                    "stage_estimator a classifier, or 'shared'."
                )
        else:
            _check_classifier(one)
            kinds.append(OwnModels(one, out_of_bag))
    return kinds


def _check_classifier(model: Any) -> None:
    if inspect.isclass(model):
        raise TypeError(f"{_CHOICES}: {model.__name__} is a class, give {model.__name__}().")
    if isinstance(model, str) or not hasattr(model, "fit"):
        raise TypeError(f"{_CHOICES}, not {model!r}.")
    name = type(model).__name__
    if is_regressor(model):
        raise TypeError(
            f"{name} is a regressor: stages need a classifier with predict_proba or decision_function."
        )
    if not any(hasattr(model, method) for method in ("predict_proba", "decision_function")):
        raise TypeError(
            f"{name} gives labels only: a stage must say how sure it is. Give a stage_estimator with predict_proba or "
            "decision_function, or stage_estimator='shared'."
        )
