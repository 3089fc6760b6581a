"""What a system costs, what it saves, and how well it answers."""

from sparing.metrics.bootstrap import Interval, bootstrap_interval
from sparing.metrics.cost_scorer import CostScorer, make_cost_scorer
from sparing.metrics.ranking import average_precision_at_k, ndcg_at_k, run_precision_at_k
from sparing.metrics.saving import mean_acquisition_cost, saving_at_tolerance

__all__ = [
    "CostScorer",
    "Interval",
    "average_precision_at_k",
    "bootstrap_interval",
    "make_cost_scorer",
    "mean_acquisition_cost",
    "ndcg_at_k",
    "run_precision_at_k",
    "saving_at_tolerance",
]
