"""Systems and frontiers as plain data in a manifest, and back.

The main system stands at the top of the manifest, readable by people: its stages with the columns they buy. The other
systems of a frontier follow as lists of part numbers and thresholds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparing._stored import plain_label, plain_labels, read_label, read_labels
from sparing.costs import FeatureCosts
from sparing.runtime._archive import BundleError
from sparing.runtime._parts import PartWriter
from sparing.system import ACCOUNTINGS, Stage, System

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class StoredPoint:
    """One system of a stored frontier; it has the attributes of a :class:`~sparing.frontier.Point`.

    Attributes
    ----------
    system : System
    cost, score : float
        On the rows where the frontier was evaluated.
    stage_rates : tuple of float
    label : plain data
    """

    system: System
    cost: float
    score: float
    stage_rates: tuple[float, ...]
    label: Any = None


@dataclass(frozen=True, eq=False)
class StoredFrontier:
    """The systems of a frontier with their costs and scores, in the order in which they were given.

    ``Frontier(f.points, f.full, f.scoring, f.accounting, f.n_rows)`` chooses among them by budget or tolerance.

    Attributes
    ----------
    points : tuple of StoredPoint
    full : StoredPoint or None
        The full model alone.
    scoring : plain data
        Name of the scoring, or the matrix of misclassification costs.
    accounting : {"stage", "path"}
    n_rows : int
    chosen : StoredFrontier or None
        The same systems on the rows where they were chosen, when these were other rows.
    """

    points: tuple[StoredPoint, ...]
    full: StoredPoint | None
    scoring: Any
    accounting: Any
    n_rows: int
    chosen: StoredFrontier | None = None

    @property
    def costs(self) -> Floats:
        """Average cost of each system."""
        return np.array([point.cost for point in self.points])

    @property
    def scores(self) -> Floats:
        """Score of each system."""
        return np.array([point.score for point in self.points])

    def __len__(self) -> int:
        return len(self.points)


# -- any plain data -----------------------------------------------------------------------------------


def plain(value: Any, what: str) -> Any:
    """Data as JSON: numpy's numbers and arrays, tuples and infinities included.

    Examples
    --------
    >>> plain({"rates": np.array([0.5, np.inf]), "n": np.int64(3)}, "metadata")
    {'rates': [0.5, {'float': 'inf'}], 'n': 3}
    """
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise BundleError(f"The {what} has keys that are not text: {list(value)!r}.")
        return {str(key): plain(item, what) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, what) for item in value]
    if value is None:
        return None
    if isinstance(value, float) and np.isnan(value):
        return {"float": "nan"}
    try:
        return plain_label(value, what)
    except ValueError:
        raise BundleError(
            f"The {what} is plain data (text, numbers, booleans, None, lists, mappings); {value!r} is a "
            f"{type(value).__name__}."
        ) from None


def read_plain(value: Any) -> Any:
    """Inverse of :func:`plain`, up to tuples and arrays, which come back as lists."""
    if isinstance(value, list):
        return [read_plain(item) for item in value]
    if isinstance(value, dict):
        if set(value) == {"float"} and value["float"] in ("inf", "-inf", "nan"):
            return float(value["float"])
        return {key: read_plain(item) for key, item in value.items()}
    return value


# -- prices -------------------------------------------------------------------------------------------


def plain_prices(costs: FeatureCosts) -> dict[str, Any]:
    """A price list as JSON."""
    content = costs.to_dict()
    try:
        same = FeatureCosts.from_dict(json.loads(json.dumps(content))) == costs
    except (TypeError, ValueError):
        same = False
    if not same:
        raise BundleError(
            "A bundle stores prices of columns named by text, or of columns without names; these are called "
            f"{list(costs.columns)[:5]!r}: give the prices text as names."
        )
    return content


def read_prices(content: Any, where: str) -> FeatureCosts:
    """Inverse of :func:`plain_prices`."""
    if not isinstance(content, dict):
        raise BundleError(f"{where} is a price list, not {content!r}.")
    try:
        return FeatureCosts.from_dict(content)
    except (ValueError, TypeError, KeyError) as error:
        raise BundleError(f"{where}: {error}") from error


# -- systems ------------------------------------------------------------------------------------------


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
            "label": plain(point.label, "label"),
        }


def _scoring(scoring: Any) -> Any:
    """What a frontier was scored by, for people: its name, or its matrix."""
    if callable(scoring):
        return getattr(scoring, "__name__", None) or repr(scoring)
    return plain(scoring, "scoring")


class SystemReader:
    """Systems again, from a manifest and the parts that were built.

    Parameters
    ----------
    manifest : the verified manifest.
    """

    def __init__(self, manifest: Mapping[str, Any]) -> None:
        self.manifest = manifest
        self.costs = read_prices(manifest["prices"], "prices")
        self.classes = _classes(manifest["classes"])
        columns = [read_label(name) for name in _list(manifest["columns"], "columns")]
        if tuple(columns) != self.costs.columns:
            raise BundleError("The columns are not those of the price list.")
        items = [read_label(name) for name in _list(manifest["items"], "items")]
        if tuple(items) != self.costs.items:
            raise BundleError("The items are not those of the price list.")
        self._records = [_record(manifest, "The system")] + [
            _record(record, f"System {number}")
            for number, record in enumerate(_list(manifest["systems"], "systems"))
        ]
        self.n_parts = len(manifest["parts"])
        for where, record in zip(self._names, self._records, strict=True):
            self._check(record, where)
        self._systems: dict[int, System] = {}

    @property
    def _names(self) -> list[str]:
        return ["The system"] + [f"System {number}" for number in range(len(self._records) - 1)]

    def _check(self, record: Mapping[str, Any], where: str) -> None:
        if record["accounting"] not in ACCOUNTINGS or not isinstance(record["has_full"], bool):
            raise BundleError(f"{where} needs an accounting and has_full.")
        for stage in _list(record["stages"], f"{where}, stages"):
            if not isinstance(stage, dict) or not isinstance(stage.get("name"), str):
                raise BundleError(f"{where} has a stage without a name: {stage!r}.")
            for what in ("predictor", "gate"):
                number = stage.get(what)
                if what == "gate" and number is None:
                    continue
                if (
                    isinstance(number, bool)
                    or not isinstance(number, int)
                    or not 0 <= number < self.n_parts
                ):
                    raise BundleError(
                        f"{where}, stage {stage['name']!r}: its {what} is part {number!r}, which is not there."
                    )
            _threshold(stage, where)
        if "prices" in record and record is not self._records[0]:
            read_prices(record["prices"], f"{where}, prices")
        if "classes" in record:
            _classes(record["classes"])

    def main(self, parts: Sequence[Any]) -> System:
        """The main system; the columns its stages read must be those the manifest says they buy."""
        system = self._system(0, parts)
        for stage, record in zip(system.stages, self.manifest["stages"], strict=True):
            said = [read_label(name) for name in _list(record.get("columns"), "columns of a stage")]
            read = [self.costs.columns[j] for j in stage.columns]
            if said != read:
                raise BundleError(
                    f"Stage {stage.name!r} reads the columns {read!r}, the manifest says {said!r}."
                )
        return system

    def _system(self, place: int, parts: Sequence[Any]) -> System:
        if place not in self._systems:
            record, where = self._records[place], self._names[place]
            main = place == 0
            costs = self.costs
            if "prices" in record and not main:
                costs = read_prices(record["prices"], f"{where}, prices")
            classes = _classes(record["classes"]) if "classes" in record else self.classes
            try:
                self._systems[place] = System(
                    tuple(_stage(stage, parts, where) for stage in record["stages"]),
                    costs,
                    classes,
                    record["accounting"],
                    record["has_full"],
                )
            except (ValueError, TypeError, IndexError) as error:
                raise BundleError(f"{where}: {error}") from error
        return self._systems[place]

    def frontier(self, record: Any, parts: Sequence[Any]) -> StoredFrontier | None:
        """A frontier again."""
        if record is None:
            return None
        wanted = {"scoring", "accounting", "n_rows", "points", "full", "chosen"}
        if not isinstance(record, dict) or set(record) != wanted:
            raise BundleError(f"A frontier has {sorted(wanted)}.")
        if record["accounting"] not in ACCOUNTINGS or not isinstance(record["n_rows"], int):
            raise BundleError("A frontier needs an accounting and n_rows.")
        points = [self._point(p, parts) for p in _list(record["points"], "points")]
        full = None if record["full"] is None else self._point(record["full"], parts)
        return StoredFrontier(
            tuple(points),
            full,
            read_plain(record["scoring"]),
            record["accounting"],
            record["n_rows"],
            self.frontier(record["chosen"], parts),
        )

    def _point(self, record: Any, parts: Sequence[Any]) -> StoredPoint:
        wanted = {"system", "cost", "score", "stage_rates", "label"}
        if not isinstance(record, dict) or set(record) != wanted:
            raise BundleError(f"A point of a frontier has {sorted(wanted)}.")
        number = record["system"]
        place = 0 if number is None else number + 1 if type(number) is int else -1
        if not 0 <= place < len(self._records) or (number is not None and number < 0):
            raise BundleError(f"A point of the frontier is system {number!r}, which is not there.")
        values = [read_plain(record[name]) for name in ("cost", "score")]
        rates = read_plain(record["stage_rates"])
        if not isinstance(rates, list) or not all(
            isinstance(v, float | int) for v in [*values, *rates]
        ):
            raise BundleError("A point of a frontier has numbers as cost, score and rates.")
        return StoredPoint(
            self._system(place, parts),
            float(values[0]),
            float(values[1]),
            tuple(float(rate) for rate in rates),
            read_plain(record["label"]),
        )


def _record(record: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(record, dict) or not {"stages", "accounting", "has_full"} <= set(record):
        raise BundleError(f"{where} needs stages, accounting and has_full.")
    return record


def _stage(record: Mapping[str, Any], parts: Sequence[Any], where: str) -> Stage:
    predictor = parts[record["predictor"]]
    gate = None if record["gate"] is None else parts[record["gate"]]
    # A record may be sound and stand in the wrong place.
    if not hasattr(predictor, "predict_proba") or not hasattr(predictor, "columns"):
        raise BundleError(f"{where}: a {type(predictor).__name__} cannot answer at a stage.")
    if gate is not None and not (hasattr(gate, "score") and hasattr(gate, "reads_predictor")):
        raise BundleError(f"{where}: a {type(gate).__name__} cannot be a gate.")
    return Stage(predictor, gate, _threshold(record, where), record["name"])


def _threshold(stage: Mapping[str, Any], where: str) -> float:
    try:
        value = read_label(stage.get("threshold"))
    except ValueError:
        value = None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BundleError(
            f"{where}, stage {stage['name']!r}: its threshold is {stage.get('threshold')!r}, not a number."
        )
    return float(value)


def _classes(content: Any) -> NDArray[Any]:
    try:
        return read_labels(content)
    except (ValueError, TypeError, OverflowError) as error:
        raise BundleError(f"classes: {error}") from error


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise BundleError(f"{what} is a list, not {value!r}.")
    return value
