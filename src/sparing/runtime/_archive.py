"""Zips of data: written whole or not at all, the same bytes every time, and read with suspicion.

Nothing is decompressed before its name, its declared size and its ratio are known to be sane, and nothing is handed out
before its size and its sha256 are those the manifest says. What the members mean is not known here.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

MANIFEST = "manifest.json"

MEMBER_NAME = re.compile(r"[a-z0-9_-]+(/[a-z0-9_-]+)*\.[a-z0-9]+")
_DATE = (1980, 1, 1, 0, 0, 0)
"""The first day of zip: a file's bytes do not depend on when it was written."""
_CHUNK = 1 << 20


class BundleError(ValueError):
    """A file that is no bundle, not a whole one, not the one expected, or one that is not safe to read.

    Examples
    --------
    >>> import tempfile
    >>> from sparing.runtime import BundleError, load
    >>> with tempfile.NamedTemporaryFile(suffix=".sparing") as file:
    ...     _ = file.write(b"not a zip"), file.flush()
    ...     try:
    ...         load(file.name)
    ...     except BundleError as error:
    ...         print("refused:", "not a zip" in str(error))
    refused: True
    """


@dataclass(frozen=True)
class Limits:
    """How large a file may be before it is refused unread.

    Attributes
    ----------
    members : number of members.
    manifest : bytes of the manifest.
    member : bytes of one member.
    total : bytes of all members.
    ratio : bytes of a member per byte in the zip; what compresses better is written uncompressed.
    """

    members: int = 20_000
    manifest: int = 1 << 27
    member: int = 1 << 31
    total: int = 1 << 32
    ratio: int = 200


LIMITS = Limits()


def sha256(data: bytes) -> str:
    """Hexadecimal sha256 of some bytes."""
    return hashlib.sha256(data).hexdigest()


# -- writing ------------------------------------------------------------------------------------------


def zipped(members: Mapping[str, bytes], *, compress: bool = True) -> bytes:
    """A zip of some members, the same bytes whenever the members are the same.

    Examples
    --------
    >>> zipped({"b.txt": b"2", "a.txt": b"1"}) == zipped({"a.txt": b"1", "b.txt": b"2"})
    True
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        # The manifest first: it can be read without the rest.
        for name in sorted(members, key=lambda name: (name != MANIFEST, name)):
            info = zipfile.ZipInfo(name, _DATE)
            info.create_system, info.external_attr = 3, 0o100644 << 16
            if compress and _worth_packing(members[name]):
                info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, members[name])
    return buffer.getvalue()


def _worth_packing(data: bytes) -> bool:
    """Whether data shrinks, and not so much that a reader would have to fear it."""
    packed = len(zlib.compress(data, 6))
    return packed < len(data) and len(data) <= packed * LIMITS.ratio // 2


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Put data into a file: afterwards the path holds all of it, or what it held before.

    Written beside the target, flushed to the disk, then renamed over it.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"There is no folder {str(target.parent)!r} to write {target.name} into."
        )
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())  # mkstemp lets nobody else read it
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    """Make the rename itself last; systems that cannot open a folder do it by themselves."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# -- reading ------------------------------------------------------------------------------------------


def read_verified(
    file: BinaryIO, limits: Limits = LIMITS
) -> tuple[dict[str, Any], bytes, dict[str, bytes]]:
    """Manifest, its bytes, and all members of a bundle, every one of them verified.

    Raises
    ------
    BundleError
        For anything that is not exactly what the manifest says.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    try:
        with zipfile.ZipFile(file) as archive:
            infos = _checked_entries(archive, size, limits)
            if MANIFEST not in infos:
                raise BundleError(f"There is no {MANIFEST}: this zip is not a bundle.")
            raw = _read(archive, infos.pop(MANIFEST), limits.manifest)
            manifest = read_json(raw, MANIFEST)
            declared = _declared(manifest, infos)
            members = {}
            for name, info in infos.items():
                members[name] = data = _read(archive, info, declared[name]["bytes"])
                if sha256(data) != declared[name]["sha256"]:
                    raise BundleError(
                        f"{name} does not have the sha256 that {MANIFEST} says: the file is damaged or was changed."
                    )
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError) as error:
        raise BundleError(
            f"This is not a zip, or not a whole one ({error}), and so no .sparing file: `sparing fit` and "
            "sparing.runtime.save write them."
        ) from error
    return manifest, raw, members


def stored_entries(data: bytes, what: str) -> dict[str, bytes]:
    """Members of a zip inside a bundle (npz, skops), which may not be compressed again.

    Without compression nothing can be larger than the member it came from, whose size is verified.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = _checked_entries(archive, len(data), LIMITS, name=re.compile(r"[\w-]+\.\w+"))
            packed = [n for n, info in infos.items() if info.compress_type != zipfile.ZIP_STORED]
            if packed:
                raise BundleError(f"{what} holds a compressed member, {packed[0]}: bundles do not.")
            return {name: _read(archive, info, len(data)) for name, info in infos.items()}
    except (zipfile.BadZipFile, EOFError, NotImplementedError, OSError) as error:
        raise BundleError(f"{what} is not a zip, or not a whole one: {error}.") from error
    except BundleError as error:
        raise BundleError(f"{what}: {error}") from error


def _checked_entries(
    archive: zipfile.ZipFile, size: int, limits: Limits, name: re.Pattern[str] = MEMBER_NAME
) -> dict[str, zipfile.ZipInfo]:
    """Entries of the directory of a zip, by name; nothing is decompressed."""
    entries = archive.infolist()
    if len(entries) > limits.members:
        raise BundleError(f"{len(entries)} members are more than the {limits.members} allowed.")
    infos: dict[str, zipfile.ZipInfo] = {}
    for info in entries:
        # What zipfile made of the name and what is written there may differ, by a NUL for one.
        if info.filename != info.orig_filename or not name.fullmatch(info.filename):
            raise BundleError(
                f"The member name {info.orig_filename!r} is not one of a bundle: relative, lower-case, with an ending."
            )
        if info.filename in infos:
            raise BundleError(f"The member {info.filename} is there twice.")
        if info.flag_bits & 0x1:
            raise BundleError(f"The member {info.filename} is encrypted.")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise BundleError(f"The member {info.filename} is compressed in an unknown way.")
        if info.file_size > limits.member:
            raise BundleError(
                f"The member {info.filename} has {info.file_size} bytes, {limits.member} are allowed."
            )
        if info.file_size > max(1, info.compress_size) * limits.ratio:
            raise BundleError(
                f"The member {info.filename} is compressed more than {limits.ratio} times: a zip bomb."
            )
        infos[info.filename] = info
    total = sum(info.file_size for info in entries)
    # Against the file itself as well: members of a zip may overlap.
    if total > min(limits.total, size * limits.ratio):
        raise BundleError(f"The members have {total} bytes together: a zip bomb.")
    if entries and min(info.header_offset for info in entries) != 0:
        raise BundleError("There is something in front of the zip: a bundle is a zip alone.")
    return infos


def _declared(
    manifest: dict[str, Any], infos: Mapping[str, zipfile.ZipInfo]
) -> dict[str, dict[str, Any]]:
    """Size and sha256 of every member as the manifest says, which names exactly those that are there."""
    declared = manifest.get("members")
    if not isinstance(declared, dict):
        raise BundleError(f"{MANIFEST} has no list of members.")
    for name, entry in declared.items():
        whole = isinstance(entry, dict) and set(entry) == {"bytes", "sha256"}
        if (
            not whole
            or not isinstance(entry["sha256"], str)
            or isinstance(entry["bytes"], bool)
            or not isinstance(entry["bytes"], int)
        ):
            raise BundleError(f"{MANIFEST}: the member {name} needs bytes and sha256.")
    missing = sorted(declared.keys() - infos.keys())
    extra = sorted(infos.keys() - declared.keys())
    if missing:
        raise BundleError(f"The member {missing[0]} is missing.")
    if extra:
        raise BundleError(f"The member {extra[0]} is not one {MANIFEST} knows.")
    for name, info in infos.items():
        if info.file_size != declared[name]["bytes"]:
            raise BundleError(
                f"The member {name} has {info.file_size} bytes, {MANIFEST} says {declared[name]['bytes']}."
            )
    return declared


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo, most: int) -> bytes:
    """A member, never more bytes of it than allowed, whatever its header says."""
    if info.file_size > most:
        raise BundleError(f"{info.filename} has {info.file_size} bytes, {most} are allowed.")
    out = bytearray()
    with archive.open(info) as member:
        while chunk := member.read(_CHUNK):
            out += chunk
            if len(out) > most:
                raise BundleError(f"{info.filename} is larger than the {most} bytes allowed.")
    if len(out) != info.file_size:
        raise BundleError(f"{info.filename} has {len(out)} bytes, {info.file_size} were declared.")
    return bytes(out)


def read_json(raw: bytes, what: str) -> dict[str, Any]:
    """A JSON object: no NaN, no infinity, no name twice.

    Examples
    --------
    >>> read_json(b'{"a": NaN}', "manifest.json")
    Traceback (most recent call last):
    sparing.runtime._archive.BundleError: manifest.json is not valid JSON: NaN is not a number of JSON.
    """
    try:
        value = json.loads(
            raw.decode("utf-8"), parse_constant=_no_constant, object_pairs_hook=_no_name_twice
        )
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{what} is not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise BundleError(f"{what} is not a JSON object.")
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number of JSON.")


def _no_name_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r} is there twice.")
    return found
