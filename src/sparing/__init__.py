"""Predictions that spend only what they need."""

from sparing.adapt import AdaptLinClassifier
from sparing.costs import FeatureCosts

__all__ = ["AdaptLinClassifier", "FeatureCosts"]
__version__ = "0.1.0"
