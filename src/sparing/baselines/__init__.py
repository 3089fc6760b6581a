"""Baselines of the paper: GreedyMiser and BudgetPrune."""

from sparing.baselines.budget_prune import BudgetPruneClassifier
from sparing.baselines.greedy_miser import GreedyMiserClassifier

__all__ = ["BudgetPruneClassifier", "GreedyMiserClassifier"]
