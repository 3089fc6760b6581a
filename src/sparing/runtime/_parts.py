"""The parts of systems as records of data, and back: the only place that turns a name in a file into a class.

Records stand in the order in which they can be built: a part comes after the parts it is made of. A part that many
systems share is one record. ``sparing/_stored.py`` says how to add a kind.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from sparing._stored import Storable, Stored
from sparing.runtime._archive import MEMBER_NAME, BundleError, sha256
from sparing.runtime._arrays import pack_arrays, unpack_arrays
from sparing.runtime._boosters import check_booster
from sparing.runtime._models import check_model, pack_model, unpack_model

KINDS: Mapping[str, str] = {
    "boosted gate": "sparing.engines.boosted_parts:BoostedGate",
    "boosted pair": "sparing.engines.boosted_parts:BoostedPair",
    "boosted predictor": "sparing.engines.boosted_parts:BoostedPredictor",
    "boosted trees": "sparing.engines.boosted_parts:BoostedTrees",
    "column encoder": "sparing.engines.binning:ColumnEncoder",
    "confidence gate": "sparing._stage:ConfidenceGate",
    "deciding model": "sparing._full_predictor:DecidingPredictor",
    "design": "sparing.engines.design:Design",
    "exit gate": "sparing.engines.refit:ExitGate",
    "linear gate": "sparing.engines.linear_parts:LinearGate",
    "linear predictor": "sparing.engines.linear_parts:LinearPredictor",
    "linear scores": "sparing.engines.linear_parts:LinearScores",
    "logged model": "sparing._full_predictor:StoredModel",
    "masked network": "sparing.cascade.network:MaskedNetwork",
    "masked predictor": "sparing.cascade.network:MaskedPredictor",
    "mean predictor": "sparing.cascade.mixed:MeanPredictor",
    "model": "sparing._full_predictor:FullPredictor",
    "network inputs": "sparing.cascade.inputs:NetworkInputs",
    "pruned forest": "sparing.baselines._pruned_forest:PrunedForest",
}
"""Every kind of part there is, and its class. Closed: a file names kinds, never classes."""

_RECORD = {"kind", "settings", "arrays", "boosters", "models", "outside", "parts"}
_ENDINGS = {"boosters": ".txt", "models": ".skops"}


def class_of(kind: str, kinds: Mapping[str, type]) -> Any:
    """The class of a kind: the library's own, or one of those given."""
    if kind in KINDS:
        module, _, name = KINDS[kind].partition(":")
        return getattr(import_module(module), name)
    if kind in kinds:
        return kinds[kind]
    raise BundleError(
        f"There is no kind of part called {kind!r}. If it is yours, load(path, kinds={{{kind!r}: YourClass}})."
    )


# -- writing ------------------------------------------------------------------------------------------


class PartWriter:
    """Records and members of parts; what was added before is not added again.

    Parameters
    ----------
    outside : names of the stages whose models are not written.
    """

    def __init__(self, outside: Collection[str] = ()) -> None:
        self.outside = set(outside)
        self.records: list[dict[str, Any]] = []
        self.members: dict[str, bytes] = {}
        # By identity, the part kept so that its id is not used again; and by content.
        self._known: dict[int, tuple[int, Any]] = {}
        self._same: dict[str, int] = {}
        self._left_out: dict[str, int] = {}

    def add(self, part: Any, stage: str) -> int:
        """Number of a part's record; ``stage`` is the name of the stage it belongs to."""
        if id(part) not in self._known:
            self._known[id(part)] = (self._record(part, stage), part)
        return self._known[id(part)][0]

    def _record(self, part: Any, stage: str) -> int:
        stored = self._stored(part, stage)
        children = {name: self.add(child, stage) for name, child in stored.parts.items()}
        absent = any(model is None for model in stored.models.values())
        outside = bool(stored.models) and (stage in self.outside or absent)
        content: dict[str, dict[str, bytes]] = {"arrays": {}, "boosters": {}, "models": {}}
        if stored.arrays:
            content["arrays"]["arrays.npz"] = pack_arrays(stored.arrays)
        for name, text in stored.boosters.items():
            # What could not be read again is not written.
            check_booster(text, f"{stored.kind}: {name}")
            content["boosters"][name] = text.encode()
        if not outside:
            for name, model in stored.models.items():
                content["models"][name] = pack_model(model, f"stage {stage!r}")
        same = json.dumps(
            [
                stored.kind,
                stored.settings,
                children,
                {what: {n: sha256(data) for n, data in c.items()} for what, c in content.items()},
            ],
            sort_keys=True,
        )
        if not outside and same in self._same:
            return self._same[same]
        number = len(self.records)
        record: dict[str, Any] = {"kind": stored.kind, "settings": dict(stored.settings)}
        if stored.arrays:
            record["arrays"] = self._member(number, "arrays.npz", content["arrays"]["arrays.npz"])
        for what, ending in _ENDINGS.items():
            if content[what]:
                record[what] = {
                    name: self._member(number, name + ending, data)
                    for name, data in content[what].items()
                }
        if outside:
            self._leave_out(stage, number)
            record["outside"] = dict.fromkeys(stored.models, stage)
        if children:
            record["parts"] = children
        self.records.append(record)
        self._same.setdefault(same, number)
        return number

    def _stored(self, part: Any, stage: str) -> Stored:
        if not hasattr(part, "stored"):
            raise BundleError(
                f"The {type(part).__name__} of stage {stage!r} cannot be stored: give it the methods stored and "
                "restored (see sparing/_stored.py)."
            )
        stored = part.stored()
        if stored.kind in KINDS:
            known = class_of(stored.kind, {})
            if isinstance(part, known) and type(part) is not known:
                raise BundleError(
                    f"The {type(part).__name__} of stage {stage!r} would be stored as the {known.__name__} it inherits "
                    "from: give it a kind and methods stored and restored of its own."
                )
        return stored

    def _member(self, number: int, name: str, data: bytes) -> str:
        path = f"parts/{number:05d}/{name}"
        if not MEMBER_NAME.fullmatch(path):
            raise BundleError(f"{name!r} cannot name a member: use a-z, 0-9, - and _.")
        self.members[path] = data
        return path

    def _leave_out(self, stage: str, number: int) -> None:
        if stage in self._left_out:
            raise BundleError(
                f"Two different models of stages called {stage!r} would stay outside: which is which could not be told "
                "when the file is loaded. Give the stages different names."
            )
        self._left_out[stage] = number

    def check_outside(self) -> None:
        """Raise when a stage to be left outside was never met."""
        unknown = sorted(self.outside - self._left_out.keys())
        if unknown:
            raise BundleError(
                f"There is no model to leave outside at a stage called {unknown[0]!r}: outside= names stages whose "
                "answers come from a model of scikit-learn's kind, usually ['full']."
            )


# -- reading ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Checked:
    """A record whose data is read and verified; nothing of it is built.

    Attributes
    ----------
    stored : settings, arrays and boosters; models and parts are still missing.
    models : bytes of the models by name, and the member they come from.
    outside : stage by name of the model that is to be given.
    parts : numbers of the parts by name.
    """

    stored: Stored
    models: Mapping[str, tuple[str, bytes]]
    outside: Mapping[str, str]
    parts: Mapping[str, int]


def check_records(
    records: Any,
    members: Mapping[str, bytes],
    trusted: Sequence[str] | None,
    kinds: Mapping[str, type] | None,
) -> list[Checked]:
    """Verify every record and every member before anything is built; None leaves types or kinds unchecked."""
    if not isinstance(records, list):
        raise BundleError("The parts are not a list.")
    free = set(members)
    checked = []
    for number, record in enumerate(records):
        where = f"Part {number}"
        if not isinstance(record, dict) or not {"kind", "settings"} <= set(record) <= _RECORD:
            raise BundleError(f"{where} is not a record of a part: {str(record)[:200]}.")
        if not isinstance(record["kind"], str) or not isinstance(record["settings"], dict):
            raise BundleError(f"{where} needs a kind and settings.")
        if kinds is not None and record["kind"] not in KINDS and record["kind"] not in kinds:
            class_of(record["kind"], kinds)  # raises
        checked.append(_checked(record, where, number, members, free, trusted))
    if free:
        raise BundleError(f"The member {min(free)} belongs to no part.")
    return checked


def _checked(
    record: dict[str, Any],
    where: str,
    number: int,
    members: Mapping[str, bytes],
    free: set[str],
    trusted: Sequence[str] | None,
) -> Checked:
    def take(name: Any, ending: str) -> bytes:
        if not isinstance(name, str) or name not in free or not name.endswith(ending):
            raise BundleError(
                f"{where} wants the member {name!r}, which is not there or not {ending}."
            )
        free.discard(name)
        return members[name]

    arrays = {}
    if "arrays" in record:
        arrays = unpack_arrays(take(record["arrays"], ".npz"), record["arrays"])
    boosters = {}
    for key, name in _texts(record, "boosters", where).items():
        boosters[key] = _decoded(take(name, ".txt"), name)
        check_booster(boosters[key], name)
    models = {}
    for key, name in _texts(record, "models", where).items():
        models[key] = (name, take(name, ".skops"))
        check_model(models[key][1], name, trusted)
    parts = record.get("parts", {})
    if not isinstance(parts, dict) or not all(
        isinstance(n, int) and not isinstance(n, bool) and 0 <= n < number for n in parts.values()
    ):
        raise BundleError(f"{where} is made of parts that do not come before it: {parts!r}.")
    stored = Stored(record["kind"], record["settings"], arrays, boosters)
    return Checked(stored, models, _texts(record, "outside", where), parts)


def _texts(record: dict[str, Any], what: str, where: str) -> dict[str, str]:
    found = record.get(what, {})
    if not isinstance(found, dict) or not all(isinstance(v, str) for v in found.values()):
        raise BundleError(f"{where}: {what} is a mapping of names, not {found!r}.")
    return found


def _decoded(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BundleError(f"{name} is not text: {error}") from error


def build_parts(
    checked: Sequence[Checked],
    given: Mapping[str, Any],
    trusted: Sequence[str],
    kinds: Mapping[str, type],
) -> list[Any]:
    """The parts, after all of them were verified; ``given`` are models from outside by stage."""
    built: list[Any] = []
    for number, item in enumerate(checked):
        models: dict[str, Any] = {name: given.get(stage) for name, stage in item.outside.items()}
        for name, (member, data) in item.models.items():
            models[name] = unpack_model(data, member, trusted)
        stored = Stored(
            item.stored.kind,
            item.stored.settings,
            item.stored.arrays,
            item.stored.boosters,
            models,
            {name: built[n] for name, n in item.parts.items()},
        )
        kind: type[Storable] = class_of(stored.kind, kinds)
        try:
            built.append(kind.restored(stored))
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            raise BundleError(f"Part {number} ({stored.kind}) cannot be built: {error}") from error
    return built
