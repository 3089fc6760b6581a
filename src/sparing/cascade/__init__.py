"""Cascades: many stages, each with more columns than the last, any models, the full model at the end."""

from sparing.cascade.classifier import CascadeClassifier
from sparing.cascade.differences import WithDifferences

__all__ = ["CascadeClassifier", "WithDifferences"]
