"""What a system buys: stage by stage, and item by item."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparing.system import Accounting, System

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


def stages(
    system: System, answering: Rows, right: NDArray[np.bool_], costs: Floats
) -> list[dict[str, Any]]:
    """One dict per stage: who comes, who is answered, what is bought there and at which price.

    Parameters
    ----------
    system : System
    answering : int array of shape (n_rows,)
        Stage that answers each row.
    right : bool array of shape (n_rows,)
    costs : array of shape (n_rows,)
        What each row paid.
    """
    n, n_stages = len(answering), len(system.stages)
    counts = np.bincount(answering, minlength=n_stages)
    totals = np.bincount(answering, weights=costs, minlength=n_stages)
    n_right = np.bincount(answering, weights=right, minlength=n_stages)
    bought = system.costs.items_of(system.stage_columns())
    new = bought & ~np.vstack([np.zeros_like(bought[:1]), bought[:-1]])
    prices = system.costs.of(system.stage_columns()) + system.call_prices()
    calls = np.diff(system.call_prices(), prepend=0.0)
    out = []
    for index, stage in enumerate(system.stages):
        count = int(counts[index])
        out.append(
            {
                "name": stage.name,
                "threshold": _finite(stage.threshold) if stage.gate is not None else None,
                "n_columns": len(stage.columns),
                "items": [_item(system, j) for j in np.flatnonzero(new[index]).tolist()],
                "call_price": float(calls[index]),
                "price": float(prices[index] - (prices[index - 1] if index else 0.0)),
                "price_so_far": float(prices[index]),
                "reached": float((answering >= index).mean()),
                "answered": count / n,
                "n": count,
                "mean_cost": float(totals[index] / count) if count else None,
                "right": float(n_right[index] / count) if count else None,
            }
        )
    return out


def items(system: System, X: Any, accounting: Accounting) -> list[dict[str, Any]]:
    """One dict per item: its price, the first stage that buys it, the share of the rows it was bought for."""
    first = system.costs.items_of(system.stage_columns())
    share = system.costs.items_of(system.acquisition_mask(X, accounting=accounting)).mean(axis=0)
    return [
        {
            **_item(system, j),
            "stage": system.stages[int(first[:, j].argmax())].name if first[:, j].any() else None,
            "share": float(share[j]),
            "mean_cost": float(share[j] * system.costs.item_prices[j]),
        }
        for j in range(len(system.costs.items))
    ]


def _item(system: System, position: int) -> dict[str, Any]:
    return {
        "name": str(system.costs.items[position]),
        "price": float(system.costs.item_prices[position]),
    }


def _finite(value: float) -> float | str:
    """A number that JSON knows, or the name of one it does not."""
    return float(value) if np.isfinite(value) else str(float(value))
