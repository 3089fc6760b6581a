"""Where the files of the fetched data sets come from, and the proof that they are the right ones.

Two sources. A folder of the user, from the argument ``data_home`` or the environment variable
``SPARING_DATA``; or the public home of the data, kept after the first time in the folder
``sparing`` of scikit-learn's data home. Every known checksum is compared before anything is read.
A folder that is named is the only source: nothing is downloaded behind its back.
"""

from __future__ import annotations

import hashlib
import os
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import get_data_home

VARIABLE = "SPARING_DATA"

# fmt: off
SHA256 = {
    "cifar10/labels.npz": "49fe6576623b8741712a091579a93027795c91fd550d6a5c728f1683b4c7d0d0",
    "cifar10/test.webp": "e491c59dfeb353ddac67134ad85c79d4eef5760526ff220eeb891182479e9571",
    "cifar10/train_1.webp": "c865176d1ba041707262d71906b5b2503109b855e34946bcaab6a49820010d6a",
    "cifar10/train_2.webp": "fbfca2c0afde1e7156546ee398f63d7673c4e37b7a75b646f77becd85f41b88a",
    "cifar10/train_3.webp": "a8e8798a4dfaaf6fdd44749500e9d305720bf2d7e54a60c2c5a251bd243c90d8",
    "cifar10/train_4.webp": "5c8782bb2f89a31d8da4a3367230b5ba3f29f35c3c6f8323503093b3001964d0",
    "cifar10/train_5.webp": "5b4ce7f87b5b0e4a172c164ab9018f4e8ebf9181b1db3f1448b531317154c7d9",
    "covtype.npz": "4bc6ab9d005b454f15c9d671e45869425d88d0d2cdb660be721166bfa4eedb4f",
    "heart/heart_cleveland.csv.gz": "5a5d003ada34fc275baa2a240a50b3290550aa5601c2378dad804012d144fb0a",
    "miniboone_tiny.npz": "0ef6205ab303d2d9aa31dac8350017e7280c3f06d5189eef0b8ec2f048783e75",
    "mslr_web_sample.npz": "8cc6da4e4e0b422711aad59528ea6370c3c1a655e7febd682892585b91c119d1",
    "thyroid/ann_thyroid_test.csv.gz": "ff4bfa9aa04075a8025447221f6d47b1ca314cb7dd947969e6241cfd9c0a6aa6",
    "thyroid/ann_thyroid_train.csv.gz": "5429fa50bea0732a360809683b6e697e727f40ee494b2b3994b1482692f8cedc",
    "cifar-10-binary.tar.gz": "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
}
# fmt: on

DataHome = str | os.PathLike[str] | None
Result = TypeVar("Result")


def data_folder(data_home: DataHome) -> Path | None:
    """The user's folder: the argument, else ``SPARING_DATA``, else None."""
    named = data_home if data_home is not None else os.environ.get(VARIABLE)
    if not named:
        return None
    folder = Path(named).expanduser()
    if not folder.is_dir():
        origin = f"the variable {VARIABLE}" if data_home is None else "data_home"
        raise FileNotFoundError(f"{folder}, named by {origin}, is not a folder.")
    return folder


def find_file(folder: Path, name: str) -> Path:
    """Where a file stands in the user's folder."""
    path = folder / name
    if not path.is_file():
        raise FileNotFoundError(
            f"{name} is not in {folder}. Put it there, name another folder with data_home or "
            f"{VARIABLE}, or name none to get the data from its public home where it has one."
        )
    return path


def read_file(folder: Path, name: str) -> bytes:
    """Bytes of a file in the user's folder, after comparing its checksum where one is known."""
    path = find_file(folder, name)
    return _checked(path.read_bytes(), name, str(path))


def read_arrays(folder: Path, name: str) -> dict[str, NDArray[Any]]:
    """Arrays of an ``.npz`` file in the user's folder."""
    with np.load(BytesIO(read_file(folder, name)), allow_pickle=False) as arrays:
        return dict(arrays)


def download(url: str, name: str) -> bytes:
    """Bytes behind an address, from the cache after the first time."""
    cache = Path(get_data_home()) / "sparing" / name
    if cache.is_file():
        return _checked(cache.read_bytes(), name, str(cache))

    def read() -> bytes:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return bytes(answer.read())

    content = _checked(online(read, url), name, url)
    cache.parent.mkdir(parents=True, exist_ok=True)
    # Written aside and moved: a broken-off write must not pass for the file next time.
    aside = cache.with_name(f"{cache.name}.{os.getpid()}")
    aside.write_bytes(content)
    aside.replace(cache)
    return content


def uci_file(dataset: str, name: str) -> bytes:
    """One file of a data set of the UCI repository, given as number and name: ``45/heart+disease``."""
    archive = download(
        f"https://archive.ics.uci.edu/static/public/{dataset}.zip",
        f"{dataset.partition('/')[2]}.zip",
    )
    with zipfile.ZipFile(BytesIO(archive)) as opened:
        for member in opened.namelist():
            if member.rpartition("/")[2] == name:
                return opened.read(member)
        raise ValueError(f"UCI's archive {dataset} has no {name}: {', '.join(opened.namelist())}.")


def online(read: Callable[[], Result], source: str) -> Result:
    """Call something that needs the network; without one, say what to do instead."""
    try:
        return read()
    except (urllib.error.URLError, ConnectionError, TimeoutError) as error:
        raise ConnectionError(
            f"Could not reach {source} ({error}). Without a network, put the file into a folder "
            f"and name it with data_home or the environment variable {VARIABLE}; the docstring of "
            "this function says which file."
        ) from error


def _checked(content: bytes, name: str, where: str) -> bytes:
    expected = SHA256.get(name)
    if expected is not None and (found := hashlib.sha256(content).hexdigest()) != expected:
        raise ValueError(
            f"{name} from {where} is not the file this loader knows: its sha256 is {found}, it "
            f"should be {expected}. Fetch it again."
        )
    return content
