from __future__ import annotations

import zipfile
from io import BytesIO

import numpy as np
import pytest

from sparing.datasets import _files


def test_folder_argument_wins_over_the_variable(monkeypatch, tmp_path):
    monkeypatch.setenv("SPARING_DATA", str(tmp_path))
    other = tmp_path / "other"
    other.mkdir()
    assert _files.data_folder(None) == tmp_path
    assert _files.data_folder(other) == other


@pytest.mark.parametrize("value", [None, ""])
def test_no_folder(monkeypatch, value):
    monkeypatch.delenv("SPARING_DATA", raising=False)
    if value is not None:
        monkeypatch.setenv("SPARING_DATA", value)
    assert _files.data_folder(None) is None


def test_folder_that_is_not_there_is_named(monkeypatch, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere, named by data_home"):
        _files.data_folder(tmp_path / "nowhere")
    monkeypatch.setenv("SPARING_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match="named by the variable SPARING_DATA"):
        _files.data_folder(None)


def test_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"covtype\.npz is not in"):
        _files.read_file(tmp_path, "covtype.npz")


def test_wrong_checksum_names_the_file(tmp_path):
    (tmp_path / "covtype.npz").write_bytes(b"something else")
    with pytest.raises(ValueError, match=r"covtype\.npz from .* is not the file this loader knows"):
        _files.read_file(tmp_path, "covtype.npz")


def test_arrays_are_never_unpickled(put):
    content = BytesIO()
    np.savez(content, X=np.array([{"a": 1}], dtype=object))
    folder = put("covtype.npz", content.getvalue())
    with pytest.raises(ValueError, match="allow_pickle"):
        _files.read_arrays(folder, "covtype.npz")


def test_download_is_kept(serve, no_folder):
    asked = serve(b"content")
    assert _files.download("https://example.org/file", "file.zip") == b"content"
    assert _files.download("https://example.org/file", "file.zip") == b"content"
    assert asked == ["https://example.org/file"]
    assert [path.name for path in no_folder.iterdir()] == ["file.zip"]


def test_download_with_wrong_checksum_is_not_kept(serve, no_folder):
    serve(b"content")
    with pytest.raises(ValueError, match=r"cifar-10-binary\.tar\.gz from https://example\.org"):
        _files.download("https://example.org/file", "cifar-10-binary.tar.gz")
    assert not no_folder.exists()


def test_offline_says_what_to_do(offline):
    with pytest.raises(
        ConnectionError, match=r"Could not reach https://example\.org.*SPARING_DATA"
    ):
        _files.download("https://example.org/file", "file.zip")


def test_uci_file_is_found_in_a_subfolder(serve):
    content = BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("folder/wanted.data", "1 2 3")
    asked = serve(content.getvalue())
    assert _files.uci_file("45/heart+disease", "wanted.data") == b"1 2 3"
    assert asked == ["https://archive.ics.uci.edu/static/public/45/heart+disease.zip"]
    with pytest.raises(ValueError, match=r"has no other\.data: folder/wanted\.data"):
        _files.uci_file("45/heart+disease", "other.data")
