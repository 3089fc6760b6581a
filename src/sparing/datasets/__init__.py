"""Data to learn from: made up, bundled, and fetched."""

from sparing.datasets.bundled import load_hypothyroid, load_letters
from sparing.datasets.synthetic import make_synthetic1, make_synthetic2

__all__ = ["load_hypothyroid", "load_letters", "make_synthetic1", "make_synthetic2"]
