"""The 400 features of CIFAR-10 that the paper prices at 1 each, computed once and kept beside the fits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.utils import Bunch

from paper.store import Store, cache_folder
from sparing import FeatureCosts
from sparing.datasets import KMeansPatches, fetch_cifar10


def cifar10_features(cache: Path | None = None, random_state: int = 0) -> Bunch:
    """k-means features of the paper's 38229 images in two classes, learnt from its training images alone.

    Splits drawn anew keep these features: they are learnt without labels.

    Parameters
    ----------
    cache : folder the features are kept in, that of the fits by default; the first time takes about a minute.
    random_state : draws the split and learns the features.

    Returns
    -------
    Bunch of ``data`` (float32, training, validation and test rows in this order), ``target``, ``costs``, ``split``,
    ``DESCR``.
    """
    model = KMeansPatches(random_state=random_state)
    return Store(cache or cache_folder()).get(
        ("cifar10", "features"),
        {"model": repr(model), "random_state": random_state},
        lambda: _computed(model, random_state),
    )


def _computed(model: KMeansPatches, random_state: int) -> Bunch:
    images = fetch_cifar10(binary=True, random_state=random_state)
    rows = [images.split[part] for part in ("train", "validation", "test")]
    ends = np.cumsum([len(part) for part in rows])
    model.fit(images.data[rows[0]])
    data = np.concatenate([model.transform(images.data[part]) for part in rows])
    train, validation, test = np.split(np.arange(ends[-1]), ends[:-1])
    return Bunch(
        data=data,
        target=images.target[np.concatenate(rows)],
        costs=FeatureCosts(dict.fromkeys(model.get_feature_names_out().tolist(), 1.0)),
        split=Bunch(train=train, validation=validation, test=test),
        DESCR=images.DESCR
        + " 400 k-means features of patches, two classes: the first five and the others.",
    )
