"""Predictions that spend only what they need."""

from sparing.costs import FeatureCosts

__all__ = ["FeatureCosts"]
__version__ = "0.1.0"
