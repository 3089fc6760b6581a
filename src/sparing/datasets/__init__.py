"""Data to learn from: made up, bundled, and fetched."""

from sparing.datasets.synthetic import make_synthetic1, make_synthetic2

__all__ = ["make_synthetic1", "make_synthetic2"]
