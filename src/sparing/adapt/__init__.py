"""The paper's learners: a cheap model f1 and a gate g that share few, cheap columns, beside a full model f0.

Each class is a thin shell: an engine for f1 and g, the alternation of ``_alternation``, the contract of ``_routed``.
"""

from sparing.adapt.gbrt import AdaptGbrtClassifier
from sparing.adapt.lin import AdaptLinClassifier
from sparing.adapt.lstsq import AdaptLstsqClassifier

__all__ = ["AdaptGbrtClassifier", "AdaptLinClassifier", "AdaptLstsqClassifier"]
