"""Systems and frontiers as plain data of a manifest.

The main system stands at the top of the manifest, readable by people: its stages with the columns they buy. The other
systems of a frontier follow as lists of part numbers and thresholds.
"""

from __future__ import annotations

import json
from typing import Any

from sparing._stored import plain_label, plain_labels
from sparing.runtime._parts import PartWriter
from sparing.runtime._plain import plain, plain_prices
from sparing.system import Stage, System


class SystemWriter:
    """Systems as plain data over shared parts; the first one added is the main one."""

    def __init__(self, main: System, parts: PartWriter) -> None:
        self.main, self.parts = main, parts
        self.prices, self.classes = plain_prices(main.costs), plain_labels(main.classes)
        self.systems: list[dict[str, Any]] = []
        self._known: dict[str, int | None] = {json.dumps(self._record(main)): None}
        self.stages = [
            {
                **self._stage(stage),
                "columns": [plain_label(main.costs.columns[j], "column") for j in stage.columns],
            }
            for stage in main.stages
        ]

    def _stage(self, stage: Stage) -> dict[str, Any]:
        gate = None if stage.gate is None else self.parts.add(stage.gate, stage.name)
        return {
            "name": str(stage.name),
            "predictor": self.parts.add(stage.predictor, stage.name),
            "gate": gate,
            "threshold": plain_label(float(stage.threshold), "threshold"),
        }

    def add(self, system: System) -> int | None:
        """Number of a system among the others; None for the main one."""
        record = self._record(system)
        key = json.dumps(record)
        if key not in self._known:
            self._known[key] = len(self.systems)
            self.systems.append(record)
        return self._known[key]

    def _record(self, system: System) -> dict[str, Any]:
        record: dict[str, Any] = {
            "stages": [self._stage(stage) for stage in system.stages],
            "accounting": system.accounting,
            "has_full": system.has_full,
        }
        if system.costs != self.main.costs:
            record["prices"] = plain_prices(system.costs)
        if (classes := plain_labels(system.classes)) != self.classes:
            record["classes"] = classes
        return record

    def frontier(self, frontier: Any) -> dict[str, Any]:
        """A frontier, its systems added."""
        chosen = getattr(frontier, "chosen", None)
        full = frontier.full
        return {
            "scoring": _scoring(frontier.scoring),
            "accounting": frontier.accounting,
            "n_rows": int(frontier.n_rows),
            "points": [self._point(point) for point in frontier.points],
            "full": None if full is None else self._point(full),
            "chosen": None if chosen is None else self.frontier(chosen),
        }

    def _point(self, point: Any) -> dict[str, Any]:
        return {
            "system": self.add(point.system),
            "cost": plain(float(point.cost), "cost"),
            "score": plain(float(point.score), "score"),
            "stage_rates": plain(point.stage_rates, "rates"),
            "loss_error": plain(point.loss_error, "standard error"),
            "kept_error": plain(point.kept_error, "error among the rows kept"),
            "label": plain(point.label, "label"),
        }


def _scoring(scoring: Any) -> Any:
    """What a frontier was scored by, for people: its name, or its matrix."""
    if callable(scoring):
        return getattr(scoring, "__name__", None) or repr(scoring)
    return plain(scoring, "scoring")
