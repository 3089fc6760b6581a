"""The sweeps of the paper's appendix, per data set; ``run.py --full`` runs them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Appendix:
    """What the paper sweeps for Adapt-Gbrt, and the sizes of its models.

    Attributes
    ----------
    gammas : (exponent of the smallest, exponent of the largest, how many), a price in units of the summed loss.
    learning_rates : (smallest, largest, how many).
    trees, depth : of f1 and of g, each.
    iterations : alternations.
    """

    gammas: tuple[float, float, int]
    learning_rates: tuple[float, float, int]
    trees: int
    depth: int
    iterations: int

    def adapt_gbrt(self) -> dict[str, list]:
        """Axes of the sweep of Adapt-Gbrt."""
        return {
            "rounds": [self.trees],
            "max_depth": [self.depth],
            "max_iter": [self.iterations],
            "learning_rate": np.linspace(*self.learning_rates).round(4).tolist(),
            "full_rate": np.linspace(0.1, 0.9, 9).round(1).tolist(),
            "gamma": np.logspace(*self.gammas).round(6).tolist(),
        }

    def greedy_miser(self) -> dict[str, list]:
        """Axes of the sweep of GreedyMiser: twice the trees; stated for Letters, taken for the others too."""
        return {
            "rounds": [2 * self.trees],
            "max_depth": [self.depth],
            "learning_rate": np.logspace(-5, 0, 20).round(7).tolist(),
            "gamma": np.logspace(-1, 2, 20).round(5).tolist(),
        }


APPENDIX = {
    "letters": Appendix((-1, 2, 10), (0.1, 1, 9), 500, 4, 30),
    "miniboone": Appendix((-1, 2, 20), (0.1, 1, 9), 100, 4, 50),
    "forest": Appendix((-1, 2, 20), (0.1, 1, 9), 500, 4, 50),
    "cifar": Appendix((-4, 1, 15), (0.01, 1, 10), 200, 5, 50),
    "ranking": Appendix((-1, 3, 30), (0.1, 1, 9), 100, 4, 20),
}
"""By the family of a data set."""
