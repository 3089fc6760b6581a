"""Bundles taken apart and put together again, honestly or not."""

import hashlib
import io
import json
import os
import zipfile


def members(path):
    """Name and bytes of every member."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def manifest_of(path):
    return json.loads(members(path)["manifest.json"])


def zip_of(files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items() if isinstance(files, dict) else files:
            archive.writestr(name, data)
    return buffer.getvalue()


def forge(source, target, *, manifest=None, replace=None, rehash=True):
    """A copy of a bundle with its manifest or members changed; hashes made right unless told otherwise.

    ``manifest`` changes the parsed manifest in place; ``replace`` maps a member to bytes, to a function of its bytes,
    or to None to leave it out.
    """
    files = members(source)
    for name, change in (replace or {}).items():
        data = change(files[name]) if callable(change) else change
        if data is None:
            del files[name]
        else:
            files[name] = data
    content = json.loads(files["manifest.json"])
    if rehash:
        content["members"] = {
            name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            for name, data in files.items()
            if name != "manifest.json"
        }
    if manifest is not None:
        manifest(content)
    files["manifest.json"] = json.dumps(content).encode()
    target.write_bytes(zip_of(files))
    return target


def only(path, ending):
    """Name of the first member that ends so."""
    return next(name for name in sorted(members(path)) if name.endswith(ending))


class Bomb:
    """Whoever unpickles it makes a folder: proof that code ran."""

    def __init__(self, folder):
        self.folder = str(folder)

    def __reduce__(self):
        return os.mkdir, (self.folder,)
