"""Zips made to hurt: every one is refused before anything is built."""

import io
import json
import pickle
import struct
import warnings
import zipfile

import numpy as np
import pytest
from bundle_cases import store
from forged import Bomb, forge, members, only, zip_of

from sparing.runtime import BundleError, inspect, load
from sparing.runtime import _archive as archive
from sparing.runtime import bundle as bundle_module


@pytest.fixture
def stored(tmp_path):
    return store(tmp_path)


@pytest.fixture
def refused(tmp_path, monkeypatch):
    """Asserts that a file is refused, with nothing built and nothing unpickled on the way."""

    def build(*args):
        pytest.fail("something was built")

    def unpickle(*args, **kwargs):
        pytest.fail("something was unpickled")

    def check(data, message):
        path = tmp_path / "forged.sparing"
        path.write_bytes(data)
        with monkeypatch.context() as patch:
            patch.setattr(bundle_module, "build_parts", build)
            for name in ("load", "loads", "Unpickler"):
                patch.setattr(pickle, name, unpickle)
            for read in (load, inspect):
                with pytest.raises(BundleError, match=message):
                    read(path)

    return check


def entries(stored, **changed):
    return [*(members(stored) | changed).items()]


@pytest.mark.parametrize(
    "name",
    [
        *("../evil.npz", "/etc/passwd.txt", "parts/../../evil.npz", "C:\\evil.npz", "parts//a.npz"),
        *("parts/a", "parts/", "Parts/a.npz", "parts/ä.npz", "./a.npz"),
    ],
)
def test_names_that_lead_elsewhere_are_refused(name, stored, refused):
    refused(zip_of([*entries(stored), (zipfile.ZipInfo(name), b"x")]), "member name")


def test_a_name_that_hides_another_is_refused(stored, refused):
    data = zip_of([*entries(stored), ("parts/a.npz?.txt", b"x")])
    refused(data.replace(b"parts/a.npz?.txt", b"parts/a.npz\0.txt"), "member name")


def test_a_member_twice_is_refused(stored, refused):
    name = only(stored, ".npz")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = zip_of([*entries(stored), (name, b"other")])
    refused(data, f"{name} is there twice")


def test_missing_and_extra_members_are_refused(stored, tmp_path, refused):
    name = only(stored, ".npz")
    without = [(n, data) for n, data in entries(stored) if n != name]
    refused(zip_of(without), f"{name} is missing")
    refused(zip_of([*entries(stored), ("parts/evil.npz", b"x")]), r"evil\.npz is not one manifest")
    # A member the manifest knows and no part wants.
    path = forge(stored, tmp_path / "a", replace={"parts/evil.npz": b"x"})
    refused(path.read_bytes(), r"evil\.npz belongs to no part")
    refused(zip_of([(n, d) for n, d in entries(stored) if n != "manifest.json"]), "no manifest")


def test_changed_bytes_are_refused(stored, tmp_path, refused):
    for ending in (".npz", ".txt", ".skops"):
        name = only(stored, ending)
        data = bytearray(members(stored)[name])
        data[len(data) // 2] ^= 1
        path = forge(stored, tmp_path / "a", replace={name: bytes(data)}, rehash=False)
        refused(path.read_bytes(), f"{name} does not have the sha256")
        path = forge(stored, tmp_path / "a", replace={name: bytes(data) + b" "}, rehash=False)
        refused(path.read_bytes(), f"{name} has {len(data) + 1} bytes")


def test_truncated_files_and_other_files_are_refused(stored, refused):
    data = stored.read_bytes()
    for end in (0, 1, 50, len(data) // 2, len(data) - 1):
        refused(data[:end], "not a zip, or not a whole one")
    refused(b"MZ" + bytes(500), "not a zip")
    refused(zip_of({"hello.txt": b"x"}), "no manifest")
    refused(b"#!/bin/sh\nrm -rf\n" + data, "in front of the zip")


def test_every_single_damaged_byte_is_noticed_or_harmless(stored, tmp_path):
    data = stored.read_bytes()
    path = tmp_path / "damaged"
    rng = np.random.default_rng(0)
    whole = inspect(stored)
    for place in rng.integers(0, len(data), 60).tolist():
        damaged = bytearray(data)
        damaged[place] ^= 0x40
        path.write_bytes(damaged)
        try:
            found = inspect(path)
        except BundleError:
            continue
        assert found == whole  # a date or a flag of the zip itself


def bomb(files, declared=None):
    """A zip with one member of zeros; its header may say another size."""
    size = 60_000_000
    raw = bytearray(zip_of([*files, ("parts/bomb.npz", bytes(size))]))
    if declared is not None:
        old, new = struct.pack("<I", size), struct.pack("<I", declared)
        assert raw.count(old) == 2  # the member's own header and the directory
        raw = raw.replace(old, new)
    return bytes(raw)


def test_zip_bombs_are_refused_without_blowing_up(stored, refused):
    refused(bomb(entries(stored)), "a zip bomb")
    files = members(stored)
    manifest = json.loads(files["manifest.json"])
    for declared in (5_000, 60_000_000):
        manifest["members"]["parts/bomb.npz"] = {"bytes": declared, "sha256": "0" * 64}
        files["manifest.json"] = json.dumps(manifest).encode()
        # The header lies: no more is read than it says, and the rest is noticed.
        refused(bomb(files.items(), declared=5_000), r"bytes|zip|CRC")


def test_sizes_and_numbers_have_limits(stored):
    for limits, message in [
        (archive.Limits(members=3), "more than the 3 allowed"),
        (archive.Limits(member=1000), "1000 are allowed"),
        (archive.Limits(total=10_000), "a zip bomb"),
        (archive.Limits(manifest=100), r"manifest.json has \d+ bytes, 100 are allowed"),
        (archive.Limits(ratio=1), "more than 1 times"),
    ]:
        with stored.open("rb") as file, pytest.raises(BundleError, match=message):
            archive.read_verified(file, limits)


def test_what_compresses_too_well_is_written_plain_and_can_be_read():
    zeros, text = bytes(1_000_000), b"a sentence that repeats itself. " * 40
    data = archive.zipped({"a.npz": zeros, "b.txt": text, "c.txt": b"xyz"})
    with zipfile.ZipFile(io.BytesIO(data)) as found:
        kinds = {info.filename: info.compress_type for info in found.infolist()}
        assert found.read("a.npz") == zeros
        archive._checked_entries(found, len(data), archive.LIMITS)
    assert kinds == {"a.npz": 0, "b.txt": zipfile.ZIP_DEFLATED, "c.txt": 0}


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"import os", "not valid JSON"),
        (b"[1, 2]", "not a JSON object"),
        (b'{"format": NaN}', "NaN is not a number"),
        (b'{"format": -Infinity}', "Infinity is not a number"),
        (b'{"format": 1, "format": 1}', "'format' is there twice"),
        (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", r"zip bomb"),
        (b"\xff\xfe", "not valid JSON"),
        (b'{"format": ' + b"1" * 5000 + b"}", "not valid JSON"),
        (b"", "not valid JSON"),
    ],
)
def test_manifests_that_are_not_json_are_refused(raw, message, stored, refused):
    refused(zip_of(entries(stored, **{"manifest.json": raw})), message)


def test_json_deeper_than_the_stack_is_refused():
    with pytest.raises(BundleError, match="not valid JSON"):
        archive.read_json(b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "x")


def test_a_huge_manifest_is_refused(stored, refused, monkeypatch):
    monkeypatch.setattr(archive, "LIMITS", archive.Limits(manifest=10_000))
    monkeypatch.setattr(archive.read_verified, "__defaults__", (archive.LIMITS,))
    rng = np.random.default_rng(0)
    raw = json.dumps({"format": 1, "junk": rng.normal(size=2000).tolist()}).encode()
    refused(zip_of(entries(stored, **{"manifest.json": raw})), "10000 are allowed")


def test_encrypted_and_oddly_compressed_members_are_refused(stored, refused):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_LZMA) as found:
        for name, data in entries(stored):
            found.writestr(name, data)
    refused(buffer.getvalue(), "compressed in an unknown way")
    raw = bytearray(stored.read_bytes())
    place = raw.index(b"PK\x01\x02") + 8
    raw[place] |= 1
    refused(bytes(raw), "encrypted")


def test_pickles_in_arrays_are_refused_and_never_run(stored, tmp_path, refused):
    trap = tmp_path / "trap"
    cells = np.empty(1, dtype=object)
    cells[0] = Bomb(trap)
    buffer = io.BytesIO()
    np.savez(buffer, columns=cells, allow_pickle=True)
    path = forge(stored, tmp_path / "a", replace={only(stored, ".npz"): buffer.getvalue()})
    refused(path.read_bytes(), "pickled objects")
    path = forge(stored, tmp_path / "a", replace={only(stored, ".npz"): pickle.dumps(Bomb(trap))})
    refused(path.read_bytes(), "not a zip")
    path = forge(stored, tmp_path / "a", replace={only(stored, ".skops"): pickle.dumps(Bomb(trap))})
    refused(path.read_bytes(), "not a zip")
    assert not trap.exists()
    # The trap is one: whoever unpickles falls into it.
    pickle.loads(pickle.dumps(Bomb(trap)))
    assert trap.exists()


def test_an_archive_inside_may_not_be_compressed(stored, tmp_path, refused):
    inner = zip_of({"columns.npy": bytes(100_000)})
    path = forge(stored, tmp_path / "a", replace={only(stored, ".npz"): inner})
    refused(path.read_bytes(), r"zip bomb|compressed member")
    inner = zip_of({"schema.json": b'{"a": 1, "b": 1, "c": 1}'})
    path = forge(stored, tmp_path / "a", replace={only(stored, ".skops"): inner})
    refused(path.read_bytes(), "compressed member")
