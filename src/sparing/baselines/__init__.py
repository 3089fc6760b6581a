"""Baselines of the paper: GreedyMiser, the L1 gate, BudgetPrune."""
