"""Baselines of the paper: GreedyMiser, BudgetPrune and the L1 gate."""

from sparing.baselines.budget_prune import BudgetPruneClassifier
from sparing.baselines.greedy_miser import GreedyMiserClassifier
from sparing.baselines.l1_gate import L1GateClassifier

__all__ = ["BudgetPruneClassifier", "GreedyMiserClassifier", "L1GateClassifier"]
