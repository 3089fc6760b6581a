"""A fitted model measured on labelled rows, as one dict of plain data: what the report says, before it is a page."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from dataclasses import asdict, replace
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length, column_or_1d

from sparing._certificate import _SENTENCES, Certificate, fingerprint
from sparing._evaluation import label_text
from sparing._rows import ScoredRows, take_rows
from sparing.frontier import Frontier
from sparing.metrics.scoring import scoring_name
from sparing.report import _purchases as purchases
from sparing.report import _segments as grouping
from sparing.report._reliability import reliability
from sparing.report._subject import Subject, subject_of
from sparing.report._systems import measured_systems
from sparing.system import System

FORMAT = 1
"""Number of the layout of the dict."""


def summarise(
    model: Any,
    X: Any,
    y: Any,
    *,
    segments: Any = None,
    examples: int = 0,
    title: str | None = None,
    note: str | None = None,
    scoring: Any = None,
    groups: ArrayLike | None = None,
    level: float = 0.95,
    max_systems: int = 60,
    date: str | None = None,
    random_state: int | None = 0,
) -> dict[str, Any]:
    """Measure a model on rows it was not learnt from, and say everything a report says, as plain data.

    Parameters
    ----------
    model : Bundle, System, fitted routed classifier, Frontier or point of one
        A frontier is reported with the cheapest of its systems that loses nothing, or else its best. A model without
        one is shown at several thresholds of its gate.
    X, y : labelled rows
        Neither learnt from nor used to choose: the numbers are those of these rows.
    segments : None, column, list of columns, or mapping of name to one value per row
        For whom things are bought. Columns with many numbers are cut at their quartiles. None takes the columns whose
        groups differ most in cost; an empty list takes none. The true classes are always there.
    examples : int, default=0
        Rows to show with their values. They may be personal data: none unless asked for.
    title : str, optional
    note : str, optional
        What a reader must know about the rows before the numbers: that some of them were learnt from, for example.
    scoring : str, callable or matrix, optional
        None is the frontier's, or accuracy; see :meth:`sparing.Frontier.evaluate`.
    groups : array of shape (n_rows,), optional
        Query of each row, for ranking metrics.
    level : float, default=0.95
        Of the intervals.
    max_systems : int, default=60
        Systems of a frontier shown, evenly spread.
    date : str, optional
        Written into the report as given.
    random_state : int or None, default=0
        Resamples and choice of examples.

    Returns
    -------
    dict
        ``title``, ``date``, ``note``, ``headline``, ``frontier``, ``stages``, ``items``, ``segments``, ``calibration``,
        ``certificate``, ``data``, ``settings``, ``examples``: texts, numbers, lists and dicts that JSON can hold.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> from sparing import AdaptLinClassifier
    >>> from sparing.datasets import make_synthetic2
    >>> from sparing.report import summarise
    >>> (X, y), (X_test, y_test) = (make_synthetic2(random_state=i) for i in range(2))
    >>> clf = AdaptLinClassifier(SVC(), full_rate=0.6, random_state=0).fit(X, y)
    >>> summary = summarise(clf, X_test, y_test)
    >>> summary["headline"]["score"]["value"], round(summary["headline"]["saving"]["value"], 3)
    (1.0, 0.214)
    >>> [stage["name"] for stage in summary["stages"]]
    ['cheap', 'full']
    """
    if not hasattr(X, "shape"):
        X = np.asarray(X)
    y = column_or_1d(np.asarray(y))
    check_consistent_length(X, y)
    if not len(y):
        raise ValueError("There are no rows to report on: give labelled rows.")
    subject = subject_of(model)
    measured, chosen, choice = measured_systems(subject, X, y, scoring, groups, max_systems)
    system, accounting = measured.points[chosen].system, measured.accounting
    rows = ScoredRows(X, size=6 * len(system.stages) + 6)  # every part is asked once
    proba, labels, answering = system.predict_proba(rows), system.predict(rows), system.route(rows)
    right, costs = labels == y, system.acquisition_cost(rows, accounting=accounting)
    said = proba[np.arange(len(y)), _positions(labels, system.classes)]
    return {
        "format": FORMAT,
        "title": "What the predictions cost" if title is None else str(title),
        "date": date,
        "note": None if note is None else str(note),
        "headline": _headline(measured, chosen, level, random_state),
        "frontier": _frontier(measured, chosen, choice),
        "stages": purchases.stages(system, answering, right, costs),
        "items": purchases.items(system, rows, accounting),
        "segments": grouping.segments(X, y, segments, system, answering, right, costs),
        "calibration": [
            {"stage": stage.name, **reliability(said[here], right[here], level)}
            for index, stage in enumerate(system.stages)
            for here in [answering == index]
        ],
        "certificate": _certificate(subject.certificate, system, X, y),
        "data": _data(system, X, y),
        "settings": _settings(subject, measured, level),
        "examples": _examples(system, X, y, examples, random_state),
    }


# -- the reported system among others -----------------------------------------------------------------


def _headline(
    measured: Frontier, chosen: int, level: float, random_state: int | None
) -> dict[str, Any]:
    point, full = measured.points[chosen], measured.full
    drawn = replace(measured, points=(point,)).intervals(level, random_state=random_state)
    return {
        "scoring": scoring_name(measured.scoring),
        "accounting": measured.accounting,
        "n_rows": measured.n_rows,
        "level": level,
        "score": _estimate(point.score, drawn.score[0]),
        "cost": _estimate(point.cost, drawn.cost[0]),
        "loss": None
        if full is None or drawn.loss is None
        else _estimate(full.score - point.score, drawn.loss[0]),
        "saving": None
        if full is None or drawn.saving is None
        else _estimate(1.0 - point.cost / full.cost, drawn.saving[0]),
        "full": None if full is None else {"score": full.score, "cost": full.cost},
    }


def _estimate(value: float, ends: Any) -> dict[str, float]:
    return {"value": float(value), "low": float(ends[0]), "high": float(ends[1])}


def _frontier(measured: Frontier, chosen: int, note: str) -> dict[str, Any]:
    full = measured.full
    saves = full is not None and full.cost > 0
    return {
        "note": note,
        "chosen": chosen,
        "full": None if full is None else {"cost": full.cost, "score": full.score},
        "systems": [
            {
                "cost": point.cost,
                "score": point.score,
                "saving": 1.0 - point.cost / full.cost if full is not None and saves else None,
                "loss": None if full is None else full.score - point.score,
                "stages": [
                    {"name": stage.name, "share": share}
                    for stage, share in zip(point.system.stages, point.stage_rates, strict=True)
                ],
                "label": _settings_text(point.label),
            }
            for point in measured.points
        ],
    }


def _settings_text(label: Any) -> str:
    """How a system was made: its method, and the settings in words."""
    if not isinstance(label, Mapping) or "method" not in label:
        return label_text(label)
    others = label_text({name: value for name, value in label.items() if name != "method"})
    return ", ".join([str(label["method"]), *([others] if others else [])])


# -- promises, data, settings, rows -------------------------------------------------------------------


def _certificate(found: Any, system: System, X: Any, y: NDArray[Any]) -> dict[str, Any] | None:
    """What was promised, as plain data; a certificate of somebody else's making is shown as it is."""
    if found is None:
        return None
    if not isinstance(found, Certificate):
        try:
            found = Certificate.from_json(json.dumps(found))
        except ValueError:
            return {"own": False, "content": json.dumps(found, indent=1, default=str)}
    return {
        "own": True,
        "confidence": found.confidence,
        "n": found.n,
        "date": found.date,
        "data": found.data,
        "n_candidates": found.n_candidates,
        "n_tested": found.n_tested,
        "promises": [
            {
                "sentence": _SENTENCES[promise.kind].format(**asdict(promise)),
                **{
                    name: _number(getattr(promise, name))
                    for name in ("limit", "estimate", "bound", "p_value")
                },
                "n": promise.n,
                "method": promise.method,
            }
            for promise in found.promises
        ],
        "of_this_system": found.thresholds == system.thresholds
        and found.stages == tuple(stage.name for stage in system.stages),
        "on_these_rows": found.data == fingerprint(X, y),
    }


def _data(system: System, X: Any, y: NDArray[Any]) -> dict[str, Any]:
    labels, counts = np.unique(y, return_counts=True)
    return {
        "n_rows": len(y),
        "n_columns": int(X.shape[1]),
        "classes": [
            {"name": str(label), "n": int(n), "share": float(n / len(y))}
            for label, n in zip(labels.tolist(), counts, strict=True)
        ],
        "known_classes": [str(label) for label in system.classes.tolist()],
        "sha256": fingerprint(X, y),
    }


def _settings(subject: Subject, measured: Frontier, level: float) -> list[dict[str, Any]]:
    own: list[tuple[str, Any]] = [
        ("scoring", scoring_name(measured.scoring)),
        ("costs are counted", f"by {measured.accounting}"),
        ("level of the intervals", level),
        ("made with sparing", version("sparing")),
    ]
    return [
        {"name": group, "entries": [{"name": name, "value": value} for name, value in entries]}
        for group, entries in {"Report": own, **subject.settings}.items()
        if entries
    ]


def _examples(
    system: System, X: Any, y: NDArray[Any], n: int, random_state: int | None
) -> list[dict[str, Any]]:
    """Some rows as the system saw them: the values it bought, and what it made of them."""
    if n < 0:
        raise ValueError(f"examples is a number of rows, not {n!r}.")
    if not n:
        return []
    rng = np.random.default_rng(random_state)
    rows = np.sort(rng.choice(len(y), size=min(n, len(y)), replace=False))
    here = take_rows(X, rows)
    mask = system.acquisition_mask(here)
    columns = [grouping.column_values(here, j).tolist() for j in range(here.shape[1])]
    return [
        {
            "row": int(rows[i]),
            "stage": told["name"],
            "answer": str(told["prediction"]),
            "truth": str(y[rows[i]]),
            "cost": told["cost"],
            "items": {str(item): price for item, price in told["items"].items()},
            "values": _values(system.costs.columns, columns, mask, i),
        }
        for i, told in enumerate(system.explain(here))
    ]


def _values(names: tuple[Hashable, ...], columns: list[Any], mask: Any, row: int) -> dict[str, str]:
    return {str(names[j]): str(columns[j][row]) for j in np.flatnonzero(mask[row])}


def _positions(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.intp]:
    order = np.argsort(classes, kind="stable")
    return order[np.searchsorted(classes, labels, sorter=order)]


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
