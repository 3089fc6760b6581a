"""Manifests that lie: about money, about parts, about their own form."""

import copy
import random

import pytest
from bundle_cases import store
from forged import forge, members

from sparing.runtime import BundleError, load


@pytest.fixture
def stored(tmp_path):
    return store(tmp_path)


def put(*path_and_value):
    *path, last, value = path_and_value

    def change(manifest):
        place = manifest
        for step in path:
            place = place[step]
        place[last] = value

    return change


def drop(name):
    return lambda manifest: manifest.pop(name)


def swap_gate_and_predictor(manifest):
    stage = manifest["stages"][0]
    stage["gate"], stage["predictor"] = stage["predictor"], stage["gate"]


MANIFESTS = {
    "future format": (put("format", 2), "format 2.*update sparing"),
    "no format": (drop("format"), "format number is None"),
    "format of text": (put("format", "1"), "format number is '1'"),
    "format true": (put("format", True), "format number is True"),
    "missing entry": (drop("prices"), "lacks 'prices'"),
    "unknown entry": (put("code", "import os"), "unknown entry 'code'"),
    "members a list": (put("members", []), "no list of members"),
    "negative price": (put("prices", "prices", 0, -1.0), r"prices: The price of column 0 is -1"),
    "price of text": (put("prices", "prices", 0, "1"), "prices: The price of column 0"),
    "huge price": (put("prices", "prices", 0, 1e999), "not valid JSON"),
    "prices a list": (put("prices", [1]), "prices is a price list"),
    "other columns": (put("columns", 0, 9), "not those of the price list"),
    "other items": (put("items", []), "items are not those"),
    "classes a list": (put("classes", [0, 1]), "classes: "),
    "class twice": (put("classes", "labels", [0, 0]), "classes: A class is named twice"),
    "classes of objects": (put("classes", "dtype", "V8"), "classes: "),
    "classes of code": (put("classes", "labels", [0, {"__reduce__": "os"}]), "classes: "),
    "threshold null": (put("stages", 0, "threshold", None), "threshold is None, not a number"),
    "threshold of text": (put("stages", 0, "threshold", "nan"), "threshold is 'nan'"),
    "threshold nan": (put("stages", 0, "threshold", {"float": "nan"}), "threshold is"),
    "thresholds differ": (put("thresholds", [7.0]), "thresholds are not those of the stages"),
    "no stages": (put("stages", []), "thresholds are not those"),
    "stages a mapping": (put("stages", {}), "stages is a list"),
    "unknown part": (put("stages", 0, "gate", 99), "gate is part 99, which is not there"),
    "part of text": (put("stages", 0, "gate", "os"), "gate is part 'os'"),
    "no gate": (put("stages", 0, "gate", None), "needs a gate"),
    "parts in wrong places": (swap_gate_and_predictor, "cannot be a gate|cannot answer"),
    "other columns of a stage": (put("stages", 0, "columns", []), "the manifest says"),
    "unknown accounting": (put("accounting", "free"), "needs an accounting"),
    "unknown kind": (put("parts", 0, "kind", "os:system"), "no kind of part called 'os:system'"),
    "part of another kind": (put("parts", 0, "kind", "design"), "Part 0 .design. cannot be built"),
    "parts a mapping": (put("parts", {}), "parts are not a list"),
    "part a text": (put("parts", 0, "os"), "Part 0 is not a record"),
    "part of itself": (put("parts", 1, "parts", {"pair": 1}), "do not come before it"),
    "settings of text": (put("parts", 0, "settings", "n"), "needs a kind and settings"),
    "no width": (put("parts", 0, "settings", {}), "cannot be built"),
    "wrong width": (put("parts", 0, "settings", "n_columns", 50), "cannot be built"),
    "outside unsaid": (put("outside", ["full"]), "left outside are not those"),
    "metadata a list": (put("metadata", []), "metadata is a mapping"),
    "frontier of text": (put("frontier", "os"), "A frontier has"),
    "system missing": (
        put(
            "frontier",
            {
                **{"scoring": "accuracy", "accounting": "stage", "n_rows": 1, "full": None},
                "chosen": None,
                "points": [
                    {
                        "system": 5,
                        "cost": 1,
                        "score": 1,
                        "stage_rates": [1],
                        "loss_error": 0,
                        "label": None,
                    }
                ],
            },
        ),
        "system 5, which is not there",
    ),
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_forged_manifests_are_refused(name, stored, tmp_path):
    change, message = MANIFESTS[name]
    path = forge(stored, tmp_path / "forged.sparing", manifest=change)
    with pytest.raises(BundleError, match=message) as caught:
        load(path)
    assert "forged.sparing" in str(caught.value)


def test_members_exchanged_for_each_other_are_refused_whatever_the_hashes(stored, tmp_path):
    files = members(stored)
    texts = sorted(name for name in files if name.endswith(".txt"))
    assert len(texts) == 2
    swapped = {texts[0]: files[texts[1]], texts[1]: files[texts[0]]}
    path = forge(stored, tmp_path / "a.sparing", replace=swapped, rehash=False)
    with pytest.raises(BundleError, match=r"sha256|bytes"):
        load(path)
    with pytest.raises(BundleError, match=r"the part says|the manifest says"):
        load(forge(stored, tmp_path / "b.sparing", replace=swapped))


JUNK = [
    *(None, True, 0, -1, 7, 10**30, 1e308, -0.5, "", "x", "nan", [], {}, [1], [[]], {"a": 1}),
    *({"float": "inf"}, {"float": "nan"}, "os.system", [None], "parts/00000/arrays.npz"),
]


def places(value, path=()):
    """Every place in nested data."""
    if path:
        yield path
    for key in (
        value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    ):
        yield from places(value[key], (*path, key))


def test_whatever_stands_in_a_manifest_nothing_but_a_bundle_error_comes_out(stored, tmp_path):
    chance = random.Random(0)

    def scribble(manifest):
        *path, last = chance.choice([p for p in places(manifest) if p[0] != "members"])
        place = manifest
        for step in path:
            place = place[step]
        if chance.random() < 0.2:
            place.pop(last)
        else:
            place[last] = copy.deepcopy(chance.choice(JUNK))

    outcomes = set()
    for _ in range(150):
        path = forge(stored, tmp_path / "forged", manifest=scribble)
        try:
            load(path)
        except BundleError:
            outcomes.add("refused")
        else:
            outcomes.add("loaded")
    assert "refused" in outcomes
