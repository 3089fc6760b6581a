"""Settings that may be one number or several, learnt one after the other in one fit."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

PENALTY_CONSTRAINT = [Interval(Real, 0, None, closed="left"), StrOptions({"auto"}), "array-like"]
"""What ``cost_penalty`` may be, in scikit-learn's words."""
JOBS_CONSTRAINT = [
    Interval(Integral, None, -1, closed="right"),
    Interval(Integral, 1, None, closed="left"),
    None,
]
"""What ``n_jobs`` may be: 0 would fail in the midst of a fit."""


def numbers(name: str, given: Any, upper: float = np.inf) -> list[float]:
    """One number or several, from 0 to ``upper``.

    Examples
    --------
    >>> numbers("full_rate", 0.3, upper=1), numbers("full_rate", [0.1, 0.2], upper=1)
    ([0.3], [0.1, 0.2])
    """
    try:
        values = np.atleast_1d(np.asarray(given, dtype=float))
    except (TypeError, ValueError):
        values = np.array([np.nan])
    fits = np.isfinite(values) & (values >= 0) & (values <= upper)
    if values.ndim != 1 or not len(values) or not fits.all():
        between = "0 or more" if upper == np.inf else f"from 0 to {upper:g}"
        raise ValueError(
            f"{name} is a number {between}, or a sequence of such numbers; got {given!r}."
        )
    return values.tolist()


def penalties(given: Any, automatic: float) -> list[float]:
    """Values of ``cost_penalty`` to learn for, the largest first."""
    if isinstance(given, str):
        return [automatic]
    return sorted(numbers("cost_penalty", given), reverse=True)
