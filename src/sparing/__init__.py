"""Predictions that spend only what they need."""

from sparing.adapt import AdaptGbrtClassifier, AdaptLinClassifier, AdaptLstsqClassifier
from sparing.baselines import BudgetPruneClassifier, GreedyMiserClassifier, L1GateClassifier
from sparing.cascade import CascadeClassifier
from sparing.costs import FeatureCosts
from sparing.displays import (
    AcquisitionDisplay,
    ConvergenceDisplay,
    FrontierDisplay,
    RoutingDisplay,
)
from sparing.frontier import Frontier
from sparing.guarantees import Certificate, Guarantee, PromiseError, certify
from sparing.selection import BudgetedClassifier
from sparing.system import System

__all__ = [
    "AcquisitionDisplay",
    "AdaptGbrtClassifier",
    "AdaptLinClassifier",
    "AdaptLstsqClassifier",
    "BudgetPruneClassifier",
    "BudgetedClassifier",
    "CascadeClassifier",
    "Certificate",
    "ConvergenceDisplay",
    "FeatureCosts",
    "Frontier",
    "FrontierDisplay",
    "GreedyMiserClassifier",
    "Guarantee",
    "L1GateClassifier",
    "PromiseError",
    "RoutingDisplay",
    "System",
    "certify",
]
__version__ = "0.1.0"
