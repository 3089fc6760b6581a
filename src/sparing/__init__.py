"""Predictions that spend only what they need."""

from sparing.adapt import AdaptGbrtClassifier, AdaptLinClassifier
from sparing.costs import FeatureCosts

__all__ = ["AdaptGbrtClassifier", "AdaptLinClassifier", "FeatureCosts"]
__version__ = "0.1.0"
