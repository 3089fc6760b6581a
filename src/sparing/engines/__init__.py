"""Solvers of the cheap model and the gate given the allocation: linear and boosted trees."""
