"""Systems and frontiers again, from the plain data of a manifest and the parts that were built."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparing._stored import read_label, read_labels
from sparing.runtime._archive import BundleError
from sparing.runtime._plain import read_plain, read_prices
from sparing.runtime._types import empty_table
from sparing.system import ACCOUNTINGS, Stage, System

Floats = NDArray[np.float64]

_STAGE = {"name", "predictor", "gate", "threshold"}


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
    loss_error : float
        Standard error of what it loses against the full model.
    kept_error : float
        Share of wrong answers among the rows that are not sent to the full model; NaN in files that do not say it.
    """

    system: System
    cost: float
    score: float
    stage_rates: tuple[float, ...]
    label: Any = None
    loss_error: float = math.nan
    kept_error: float = math.nan


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


@dataclass(frozen=True, eq=False)
class Bundle(System):
    """A system that came from a file, and what the file says beside it.

    It is a :class:`~sparing.system.System` and is used like one. Re-priced or re-thresholded it is a plain system.

    Attributes
    ----------
    frontier : StoredFrontier or None
        Other systems of the same fit, with their costs and scores; ``frontier.points[i].system`` is one of them.
    certificate : plain data or None
        What was guaranteed of the system, and how.
    metadata : mapping
        What the user wrote into the file.
    manifest : mapping
        All of the verified manifest.
    digest : str
        sha256 of the manifest, which names the hash of everything else: it identifies the content of the file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sparing import GreedyMiserClassifier
    >>> from sparing.datasets import make_synthetic1
    >>> from sparing.runtime import load, save
    >>> X, y = make_synthetic1()
    >>> clf = GreedyMiserClassifier(n_estimators=5, random_state=0).fit(X, y)
    >>> with TemporaryDirectory() as folder:
    ...     _ = save(clf, Path(folder, "model.sparing"), metadata={"rows": len(y)})
    ...     bundle = load(Path(folder, "model.sparing"))
    >>> bundle.metadata["rows"], bundle.with_costs([2, 3]).costs.total
    (1000, 5.0)
    """

    frontier: StoredFrontier | None = None
    certificate: Any = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    manifest: Mapping[str, Any] = field(default_factory=dict)
    digest: str = ""

    @property
    def system(self) -> System:
        """The system alone."""
        return System(self.stages, self.costs, self.classes, self.accounting, self.has_full)

    @property
    def like(self) -> Any:
        """A frame without rows, with the column types the system was fitted on, if these were stored; or None."""
        return empty_table(self.manifest.get("types"), self.costs.columns)

    def with_costs(self, costs: Any) -> System:
        """The same stages at other prices; nothing is refitted."""
        return self.system.with_costs(costs)

    def with_thresholds(self, thresholds: float | Sequence[float]) -> System:
        """The same stages with other thresholds: one number for all gates, or one per gate."""
        return self.system.with_thresholds(thresholds)

    def __repr__(self) -> str:
        others = "" if self.frontier is None else f", frontier of {len(self.frontier)} systems"
        return f"Bundle {self.digest[:12]}{others}\n{super().__repr__()}"


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
        columns = _labels(manifest["columns"], "columns")
        if tuple(columns) != self.costs.columns:
            raise BundleError("The columns are not those of the price list.")
        items = _labels(manifest["items"], "items")
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
            if not isinstance(stage, dict) or not stage.keys() >= _STAGE:
                raise BundleError(
                    f"{where} has a stage that lacks one of {sorted(_STAGE)}: {stage!r}."
                )
            if not isinstance(stage["name"], str):
                raise BundleError(
                    f"{where} has a stage called {stage['name']!r}, which is not text."
                )
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
            said = _labels(record.get("columns"), "columns of a stage")
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
        wanted = {"system", "cost", "score", "stage_rates", "loss_error", "label"}
        later = {"kept_error"}  # files of before have no such key
        if not isinstance(record, dict) or set(record) - later != wanted:
            raise BundleError(f"A point of a frontier has {sorted(wanted | later)}.")
        number = record["system"]
        place = 0 if number is None else number + 1 if type(number) is int else -1
        if not 0 <= place < len(self._records) or (number is not None and number < 0):
            raise BundleError(f"A point of the frontier is system {number!r}, which is not there.")
        names = ("cost", "score", "loss_error", "kept_error")
        values = [read_plain(record.get(name, math.nan)) for name in names]
        rates = read_plain(record["stage_rates"])
        if not isinstance(rates, list) or not all(
            isinstance(v, float | int) for v in [*values, *rates]
        ):
            raise BundleError(
                "A point of a frontier has numbers as cost, score, standard error, error of kept rows and rates."
            )
        return StoredPoint(
            self._system(place, parts),
            float(values[0]),
            float(values[1]),
            tuple(float(rate) for rate in rates),
            read_plain(record["label"]),
            float(values[2]),
            float(values[3]),
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


def _labels(value: Any, what: str) -> list[Any]:
    try:
        return [read_label(name) for name in _list(value, what)]
    except ValueError as error:
        raise BundleError(f"{what}: {error}") from error


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise BundleError(f"{what} is a list, not {value!r}.")
    return value
