"""Baselines of the paper: GreedyMiser, the L1 gate, BudgetPrune."""

from sparing.baselines.greedy_miser import GreedyMiserClassifier

__all__ = ["GreedyMiserClassifier"]
