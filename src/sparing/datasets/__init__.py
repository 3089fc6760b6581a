"""Data to learn from: made up, bundled, and fetched."""

from sparing.datasets.bundled import load_hypothyroid, load_letters
from sparing.datasets.fetch import fetch_forest, fetch_miniboone
from sparing.datasets.images import fetch_cifar10
from sparing.datasets.medical import fetch_heart, fetch_thyroid
from sparing.datasets.patches import KMeansPatches
from sparing.datasets.ranking import fetch_mslr, fetch_yahoo_ltr
from sparing.datasets.synthetic import make_synthetic1, make_synthetic2

__all__ = [
    "KMeansPatches",
    "fetch_cifar10",
    "fetch_forest",
    "fetch_heart",
    "fetch_miniboone",
    "fetch_mslr",
    "fetch_thyroid",
    "fetch_yahoo_ltr",
    "load_hypothyroid",
    "load_letters",
    "make_synthetic1",
    "make_synthetic2",
]
