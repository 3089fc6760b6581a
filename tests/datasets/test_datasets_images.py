from __future__ import annotations

import hashlib
import sys
import tarfile
from io import BytesIO

import numpy as np
import pytest

from sparing.datasets import _files, fetch_cifar10

NAMES = [f"train_{i}" for i in range(1, 6)] + ["test"]


def labels():
    return np.tile(np.arange(10, dtype=np.uint8), 1000)


def check(images):
    assert images.data.shape == (60000, 32, 32, 3)
    assert images.data.dtype == np.uint8
    assert images.costs is None
    assert [len(part) for part in images.split.values()] == [19761, 8468, 10000]
    assert images.split.train.max() < 50000
    assert not np.intersect1d(images.split.train, images.split.validation).size
    np.testing.assert_array_equal(images.split.test, np.arange(50000, 60000))


def test_from_mosaics(put):
    image = pytest.importorskip("PIL.Image")
    # Tile (row 2, column 3) of each mosaic has one red pixel in its row 4, column 5.
    mosaic = np.zeros((3200, 3200, 3), dtype=np.uint8)
    mosaic[2 * 32 + 4, 3 * 32 + 5, 0] = 200
    content = BytesIO()
    image.fromarray(mosaic).save(content, "webp", lossless=True)
    for name in NAMES:
        folder = put(f"cifar10/{name}.webp", content.getvalue())
    content = BytesIO()
    np.savez(content, y_train=np.tile(labels(), 5), y_test=labels())
    folder = put("cifar10/labels.npz", content.getvalue())
    images = fetch_cifar10(binary=True, data_home=folder)
    check(images)
    np.testing.assert_array_equal(images.target[:10], [0] * 5 + [1] * 5)
    at = np.argwhere(images.data)
    np.testing.assert_array_equal(at, [[i * 10000 + 203, 4, 5, 0] for i in range(6)])


def test_from_the_authors_archive(serve, monkeypatch):
    records = np.zeros((10000, 3073), dtype=np.uint8)
    records[:, 0] = labels()
    records[7, 1 + 1024 + 4 * 32 + 5] = 200  # green, row 4, column 5
    content = BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name in [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]:
            info = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            info.size = records.nbytes
            archive.addfile(info, BytesIO(records.tobytes()))
    digest = hashlib.sha256(content.getvalue()).hexdigest()
    monkeypatch.setitem(_files.SHA256, "cifar-10-binary.tar.gz", digest)
    serve(content.getvalue())
    images = fetch_cifar10()
    check(images)
    np.testing.assert_array_equal(images.target[:10], range(10))
    at = np.argwhere(images.data)
    np.testing.assert_array_equal(at, [[i * 10000 + 7, 4, 5, 1] for i in range(6)])


def test_archive_without_a_batch(serve, monkeypatch):
    content = BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz"):
        pass
    digest = hashlib.sha256(content.getvalue()).hexdigest()
    monkeypatch.setitem(_files.SHA256, "cifar-10-binary.tar.gz", digest)
    serve(content.getvalue())
    with pytest.raises(ValueError, match=r"has no data_batch_1\.bin"):
        fetch_cifar10()


def test_offline(offline):
    with pytest.raises(ConnectionError, match=r"cs\.toronto\.edu.*SPARING_DATA"):
        fetch_cifar10()


def test_without_pillow_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match=r"sparing\[bench\]"):
        fetch_cifar10(data_home=tmp_path)


def test_real(real_data):
    images = fetch_cifar10(data_home=real_data)
    check(images)
    means = images.data[:50000].mean(axis=(0, 1, 2), dtype=np.float64) / 255
    np.testing.assert_allclose(means, [0.49139968, 0.48215841, 0.44653091], atol=1e-8)
