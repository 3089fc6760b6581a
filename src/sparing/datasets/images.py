"""Images for benchmarks: CIFAR-10, from a folder or from its author's page.

Images are no table: prices belong to the features that are computed from them, and ``costs`` is
None here.
"""

from __future__ import annotations

import tarfile
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from sparing.datasets._bunch import RandomState, check_counts, draw_split, make_split
from sparing.datasets._files import DataHome, data_folder, download, read_arrays, read_file

__all__ = ["fetch_cifar10"]

# fmt: off
_NAMES = [
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
]
# fmt: on
_ARCHIVE = "cifar-10-binary.tar.gz"
_SIDE = 32
# A record of the author's binary files: the label, then the red, the green and the blue plane.
_RECORD = 1 + 3 * _SIDE * _SIDE
_BATCH = 10000


def fetch_cifar10(
    *, binary: bool = False, data_home: DataHome = None, random_state: RandomState = 0
) -> Bunch:
    """CIFAR-10: 60000 colour images of 32 x 32 pixels, 10 classes.

    Parameters
    ----------
    binary : bool, default=False
        True: the paper's two classes, 0 for the first five (airplane to deer), 1 for the others.
    data_home : path, optional
        Folder with ``cifar10/train_1.webp`` to ``train_5.webp``, ``cifar10/test.webp`` (mosaics of 100 x
        100 images, lossless; reading them needs Pillow, extra ``bench``) and ``cifar10/labels.npz``.
        Without it and without ``SPARING_DATA``, the author's archive is downloaded (162 MB).
    random_state : int, RandomState instance or None, default=0
        Draws the training and validation rows from the 50000 training images. The paper gives the
        sizes and not the rows.

    Returns
    -------
    Bunch
        ``data`` of shape (60000, 32, 32, 3), uint8, the training images and then the test images, in
        the author's order; ``target``; ``target_names``; ``costs``, None: prices belong to the features
        computed from an image (in the paper 400 of them, 1 each); ``split`` with ``train`` (19761),
        ``validation`` (8468) and ``test`` (the 10000 test images); ``DESCR``.

    Notes
    -----
    A. Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009. The images come
    without a formal licence.

    Examples
    --------
    >>> from sparing.datasets import fetch_cifar10
    >>> images = fetch_cifar10(binary=True)  # doctest: +SKIP
    >>> images.data.shape, images.target.mean()  # doctest: +SKIP
    ((60000, 32, 32, 3), 0.5)
    """
    folder = data_folder(data_home)
    data, target = _from_archive() if folder is None else _from_folder(folder)
    n_train = 5 * _BATCH
    check_counts("CIFAR-10, training", target[:n_train], dict.fromkeys(range(10), 5000))
    check_counts("CIFAR-10, test", target[n_train:], dict.fromkeys(range(10), 1000))
    drawn = draw_split(n_train, (19761, 8468, 0), random_state)
    return Bunch(
        data=data,
        target=(target >= 5).astype(np.int64) if binary else target,
        frame=None,
        feature_names=None,
        target_names=["airplane to deer", "dog to truck"] if binary else list(_NAMES),
        costs=None,
        split=make_split(drawn.train, drawn.validation, np.arange(n_train, len(target))),
        DESCR="CIFAR-10: 60000 images of 32 x 32 pixels in 10 classes. Krizhevsky 2009, no formal "
        "licence.",
    )


def _from_folder(folder: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    image = _pillow()
    labels = read_arrays(folder, "cifar10/labels.npz")
    names = [f"train_{i}" for i in range(1, 6)] + ["test"]
    data = np.empty((len(names) * _BATCH, _SIDE, _SIDE, 3), dtype=np.uint8)
    for i, name in enumerate(names):
        with image.open(BytesIO(read_file(folder, f"cifar10/{name}.webp"))) as mosaic:
            tiles = np.asarray(mosaic.convert("RGB")).reshape(100, _SIDE, 100, _SIDE, 3)
        data[i * _BATCH : (i + 1) * _BATCH] = tiles.swapaxes(1, 2).reshape(-1, _SIDE, _SIDE, 3)
    return data, np.concatenate([labels["y_train"], labels["y_test"]]).astype(np.int64)


def _from_archive() -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    content = download(f"https://www.cs.toronto.edu/~kriz/{_ARCHIVE}", _ARCHIVE)
    names = [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]
    batches: dict[str, NDArray[np.uint8]] = {}
    with tarfile.open(fileobj=BytesIO(content)) as archive:
        for member in archive:
            name = member.name.rpartition("/")[2]
            if name in names and (opened := archive.extractfile(member)) is not None:
                batches[name] = np.frombuffer(opened.read(), np.uint8).reshape(-1, _RECORD)
    missing = [name for name in names if name not in batches]
    if missing:
        raise ValueError(f"{_ARCHIVE} has no {', '.join(missing)}.")
    records = np.concatenate([batches[name] for name in names])
    planes = records[:, 1:].reshape(-1, 3, _SIDE, _SIDE)
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), records[:, 0].astype(np.int64)


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(
            "Reading the mosaics of CIFAR-10 needs Pillow: pip install 'sparing[bench]'."
        ) from error
    return Image
