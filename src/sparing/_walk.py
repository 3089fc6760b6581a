"""The way of rows through the stages of a system: which stage answers each, and what was asked on the way.

Called by ``system``, which knows prices and classes. Every gate is asked once for all rows that reach it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparing._rows import ScoredRows, n_rows, take_rows
from sparing._stage import Decides, Gate, Predictor, ReadsByRow, Stage, columns_read

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
Rows = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Walk:
    """Where every row stopped, the gate scores on its way, and the probabilities it got if they were asked for."""

    answering: Rows
    scores: Floats
    proba: Floats


def walk(
    stages: Sequence[Stage], X: Any, n_classes: int, asks: Callable[[Predictor], bool] | None
) -> Walk:
    """Send the rows through the gates, and ask the predictors where they stop if ``asks`` says so.

    Parameters
    ----------
    stages : cheapest first; all but the last have a gate.
    X : rows
    n_classes : int
    asks : says which predictors give probabilities to the rows they answer; None asks none.
    """
    n = n_rows(X)
    way = Walk(
        np.zeros(n, dtype=np.intp),
        np.full((n, len(stages) - 1), np.nan),
        np.full((n, n_classes) if asks else (0, 0), np.nan),
    )
    rows = np.arange(n)
    for index, stage in enumerate(stages):
        if not len(rows):
            break
        way.answering[rows] = index
        proba, goes_on = None, np.zeros(len(rows), dtype=bool)
        if stage.gate is not None:
            score, proba = _score(stage.gate, stage.predictor, X, rows)
            way.scores[rows, index] = score
            goes_on = score > stage.threshold
        stops = rows[~goes_on]
        if asks and len(stops) and asks(stage.predictor):
            way.proba[stops] = (
                _proba(stage.predictor, X, stops) if proba is None else proba[~goes_on]
            )
        rows = rows[goes_on]
    return way


def anyone(predictor: Predictor) -> bool:  # noqa: ARG001
    """Every predictor."""
    return True


def by_probability(predictor: Predictor) -> bool:
    """Predictors whose label is the most probable class."""
    return not isinstance(predictor, Decides)


def available(predictor: Predictor) -> bool:
    """Whether a predictor can be asked here; a model known only by its logs cannot."""
    return bool(getattr(predictor, "available", True))


def ask(what: str, part: object, compute: Callable[[Any], Any], X: Any, rows: Rows) -> Any:
    """Compute something of some rows, or take it from what :class:`ScoredRows` remember."""
    if isinstance(X, ScoredRows):
        return X.remember(what, part, lambda: compute(X.X))[rows]
    return compute(take_rows(X, rows))


def _proba(predictor: Predictor, X: Any, rows: Rows) -> Floats:
    return ask("proba", predictor, predictor.predict_proba, X, rows)


def _score(gate: Gate, predictor: Predictor, X: Any, rows: Rows) -> tuple[Floats, Floats | None]:
    """Score of each row, and the predictor's probabilities where they had to be computed for it."""
    if not gate.reads_predictor:
        return ask("score", gate, lambda here: gate.score(here, None), X, rows), None
    if isinstance(X, ScoredRows):
        every = np.arange(n_rows(X))
        # The same gate object may stand behind several predictors: the pair is what is remembered.
        return X.remember(
            "score", (gate, predictor), lambda: gate.score(X.X, _proba(predictor, X, every))
        )[rows], None
    here = take_rows(X, rows)
    proba = predictor.predict_proba(here)
    return gate.score(here, proba), proba


def read_by(part: Predictor | Gate, X: Any, rows: Rows, n_columns: int) -> Booleans:
    """Columns a predictor or a gate reads for each of some rows."""
    if not isinstance(part, ReadsByRow):  # nothing worth remembering
        return columns_read(part, rows, n_columns)
    return ask("read", part, lambda here: columns_read(part, here, n_columns), X, rows)
