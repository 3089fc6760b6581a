"""What a report is about: the system, its frontier and its certificate, from whatever holds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Number
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from sparing.frontier import Frontier, Point
from sparing.system import System

_LISTED = 20
"""Entries of a list of settings that are written out."""


@dataclass(frozen=True, eq=False)
class Subject:
    """The system to report, and what is known beside it.

    Attributes
    ----------
    system : System
    frontier : Frontier or None
        Other systems of the same fit, on the rows where they were chosen.
    certificate : Certificate, plain data or None
    settings : mapping of group to list of (name, value)
        Where the system comes from, in plain data.
    """

    system: System
    frontier: Frontier | None = None
    certificate: Any = None
    settings: Mapping[str, list[tuple[str, Any]]] = field(default_factory=dict)


def subject_of(model: Any) -> Subject:
    """What to report of a bundle, a system, a fitted classifier, a frontier or a point of one."""
    if isinstance(model, Frontier):
        chosen = _choice(model)
        return Subject(
            chosen.system, model, None, {"Reported system": _label_settings(chosen.label)}
        )
    system = model
    for name in ("system_", "system"):
        if not isinstance(system, System):
            system = getattr(system, name, system)
    if not isinstance(system, System):
        raise TypeError(
            f"A report is about a fitted model: a bundle, a System, a fitted routed classifier or a Frontier, not "
            f"{type(model).__name__}."
        )
    certificate = getattr(model, "certificate_", getattr(model, "certificate", None))
    frontier = _frontier(getattr(model, "frontier_", getattr(model, "frontier", None)))
    own = list[tuple[str, Any]]()
    if isinstance(model, BaseEstimator):
        params = model.get_params(deep=False).items()
        own = [("model", type(model).__name__), *((name, _plain(value)) for name, value in params)]
    label = getattr(getattr(model, "choice_", model), "label", None)
    settings = {"Model": own, "Reported system": _label_settings(label), **_file_settings(model)}
    return Subject(system, frontier, certificate, settings)


def same_system(one: System, other: System) -> bool:
    """Whether two systems ask the same parts with the same thresholds."""
    return len(one.stages) == len(other.stages) and all(
        a.predictor is b.predictor and a.gate is b.gate and a.threshold == b.threshold
        for a, b in zip(one.stages, other.stages, strict=True)
    )


def _choice(frontier: Frontier) -> Point:
    """The cheapest system that loses nothing against the full model; without one, or when all lose, the best."""
    judge = frontier.judge
    if judge.full is not None and judge.scores.max() >= judge.full.score:
        return frontier.at(tolerance=0.0)
    return frontier.pareto().points[-1]


def _frontier(found: Any) -> Frontier | None:
    """A frontier as it is; one that was stored in a file is made one again."""
    if found is None or isinstance(found, Frontier):
        return found
    return Frontier(
        found.points,
        found.full,
        found.scoring,
        found.accounting,
        found.n_rows,
        _frontier(found.chosen),
    )


def _label_settings(label: Any) -> list[tuple[str, Any]]:
    if label is None:
        return []
    if isinstance(label, Mapping):
        return [(str(name), _plain(value)) for name, value in label.items()]
    return [("label", str(label))]


def _file_settings(model: Any) -> dict[str, list[tuple[str, Any]]]:
    made_by = getattr(model, "manifest", {}).get("made_by", {})
    file = [("digest", model.digest)] if getattr(model, "digest", "") else []
    notes = getattr(model, "metadata", {})
    return {
        "File": file + [(f"made with {name}", found) for name, found in made_by.items() if found],
        "Notes in the file": [(str(name), _plain(value)) for name, value in notes.items()],
    }


def _plain(value: Any) -> Any:
    """Numbers, texts and short lists of them as they are; of anything else its kind only.

    A setting may hold rows (``validation=(X, y)``), and rows are not for a report that nobody asked to show any.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, Number):
        return value if isinstance(value, float) and np.isfinite(value) else str(value)
    if isinstance(value, Mapping) and len(value) <= _LISTED:
        return {str(name): _plain(entry) for name, entry in value.items()}
    flat = isinstance(value, Sequence) and all(isinstance(v, str | Number | None) for v in value)
    if flat and len(value) <= _LISTED:
        return [_plain(entry) for entry in value]
    return type(value).__name__
