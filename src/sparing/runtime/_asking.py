"""Asking one stage about one row: exactly what :class:`~sparing.system.System` does for a batch."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparing.runtime._row import MakeRow
from sparing.runtime._values import Value
from sparing.system import Decides, Stage

Floats = NDArray[np.float64]

_QUICK = 0.002
"""Seconds a model may hold up an event loop."""


class Said(NamedTuple):
    """What a stage says: the gate's score (NaN without a gate), whether the row goes on, and else the answer.

    Probabilities of a row that goes on are there where the gate reads them.
    """

    score: float
    goes_on: bool
    proba: Floats | None = None
    code: int = -1


class AskedStage:
    """A stage with everything looked up that does not depend on the row."""

    __slots__ = (
        *(
            "_decide",
            "_gate",
            "_make_row",
            "_predict_proba",
            "_reads_predictor",
            "_seconds",
            "name",
        ),
    )

    def __init__(self, stage: Stage, make_row: MakeRow) -> None:
        self.name = stage.name
        self._seconds = np.inf
        self._make_row = make_row
        self._gate = stage.gate
        self._reads_predictor = stage.gate is not None and stage.gate.reads_predictor
        self._predict_proba = stage.predictor.predict_proba
        predictor: Any = stage.predictor
        self._decide = predictor.decide if isinstance(predictor, Decides) else None

    @property
    def quick(self) -> bool:
        """Whether it has lately taken less time than handing it to a thread is worth."""
        return self._seconds < _QUICK

    def ask(self, cells: list[Value], text: bool, threshold: float) -> Said:
        """Ask the gate, and the predictor if the row stops here."""
        begin = time.perf_counter()
        try:
            return self._ask(cells, text, threshold)
        finally:
            seconds = time.perf_counter() - begin
            # A slow one is believed at once, a quick one after a while.
            self._seconds = max(seconds, min(0.8 * self._seconds, 1.0))

    def _ask(self, cells: list[Value], text: bool, threshold: float) -> Said:
        X = self._make_row(cells, text)
        proba, score = None, np.nan
        if self._gate is not None:
            if self._reads_predictor:
                proba = self._predict_proba(X)
            scores = self._gate.score(X, proba)
            # Compared as an array, as in a batch: a score in single precision is compared in single precision.
            score = float(scores[0])
            if (scores > threshold)[0]:
                return Said(score, True, None if proba is None else _first(proba))
        return self._answer(X, proba, score)

    def answer(self, cells: list[Value], text: bool, proba: Floats | None = None) -> Said:
        """Ask the predictor whatever the gate says, unless it has given its probabilities before."""
        given = None if proba is None else [proba]
        return self._answer(self._make_row(cells, text), given, np.nan)

    def _answer(self, X: Any, proba: Any, score: float) -> Said:
        if proba is None:
            proba = self._predict_proba(X)
        row = _first(proba)
        code = row.argmax() if self._decide is None else self._decide(X)[0]
        return Said(score, False, row, int(code))


def _first(proba: Any) -> Floats:
    return np.asarray(proba[0], dtype=float)
