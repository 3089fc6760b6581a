"""Folders of data for the fetched sets: the real one, and small ones made here."""

from __future__ import annotations

import hashlib
import os
import urllib.error
from io import BytesIO
from pathlib import Path

import pytest

from sparing.datasets import _files


@pytest.fixture
def real_data():
    """The folder with the real files; its tests are skipped where there is none."""
    if not os.environ.get("SPARING_DATA"):
        pytest.skip("SPARING_DATA is not set")
    return Path(os.environ["SPARING_DATA"])


@pytest.fixture
def no_folder(monkeypatch, tmp_path):
    """No folder named and nothing in the cache, so that a loader turns to the network."""
    monkeypatch.delenv("SPARING_DATA", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "cache"))
    return tmp_path / "cache" / "sparing"


@pytest.fixture
def offline(no_folder, monkeypatch):
    def unreachable(*args, **kwargs):
        raise urllib.error.URLError("no network")

    monkeypatch.setattr(_files.urllib.request, "urlopen", unreachable)
    return unreachable


@pytest.fixture
def serve(no_folder, monkeypatch):
    """Answer a download with the given bytes; returns the list of addresses asked for."""

    def start(content):
        asked = []

        def urlopen(url, timeout):
            asked.append(url)
            return BytesIO(content)

        monkeypatch.setattr(_files.urllib.request, "urlopen", urlopen)
        return asked

    return start


@pytest.fixture
def put(tmp_path, monkeypatch):
    """Write a file into a folder of the user and make its checksum the known one."""

    def write(name, content):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        if name in _files.SHA256:
            monkeypatch.setitem(_files.SHA256, name, hashlib.sha256(content).hexdigest())
        return tmp_path

    return write
