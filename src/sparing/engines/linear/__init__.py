"""The linear engine: f1 and g of Adapt-Lin together, given the allocation q. This is (OPT2).

Minimises over W (a row per design column; f1's coefficients, then g's in the last column) and free intercepts

    mean_i w_i [(1 − q_i) ℓ1(f1_i) + softplus(g_i) − q_i g_i] + ridge/2 ‖W‖² + Σ_items price × ‖rows that need the item‖

by proximal Newton steps on the columns in play. The data are seen only through gradients and Hessians, all row-wise
work is in BLAS; the inner problem (a quadratic plus the penalty) does not depend on the number of rows. A Hessian is
kept, and corrected along every step, for as long as that pays. Stops on the distance to the subdifferential.
Adapt-Lstsq uses the same engine with a least-squares gate.

Called by ``adapt``. Nothing here knows budgets, prices or the full model.
"""

from sparing.engines.linear.active_set import INTERCEPT_RIDGE
from sparing.engines.linear.fit import LinearFit
from sparing.engines.linear.problem import LinearProblem

__all__ = ["INTERCEPT_RIDGE", "LinearFit", "LinearProblem"]
