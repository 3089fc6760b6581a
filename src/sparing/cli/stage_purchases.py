"""What a system buys, stage by stage, as plain data and as text."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from sparing.cli.console import table
from sparing.costs import FeatureCosts


def purchases(
    costs: FeatureCosts,
    stages: Sequence[tuple[str, Sequence[Hashable]]],
    *,
    has_full: bool,
    shares: Sequence[float] | None = None,
) -> list[dict[str, Any]]:
    """Items bought on entering each stage, their prices, and what a row that is answered there has paid.

    Parameters
    ----------
    costs : prices.
    stages : name and columns of each stage.
    has_full : whether the last stage is the full model, whose call has a price.
    shares : share of rows answered at each stage, if known.

    Examples
    --------
    >>> costs = FeatureCosts({"age": 1, "TSH": 20}, shared={"draw": (2, ["TSH"])}, call_price=5)
    >>> for stage in purchases(costs, [("cheap", ["age"]), ("full", ["age", "TSH"])], has_full=True):
    ...     print(stage["name"], stage["buys"], stage["price"])
    cheap {'age': 1.0} 1.0
    full {'TSH': 20.0, 'draw': 2.0} 28.0
    """
    n = len(stages)
    calls = np.cumsum(costs.call_prices(n if has_full else n + 1))[:n]
    owned = np.zeros(len(costs.items), dtype=bool)
    known = np.zeros(len(costs.columns), dtype=bool)
    out = []
    for index, (name, columns) in enumerate(stages):
        known = known | costs.mask(list(columns))
        items = costs.items_of(known)
        out.append(
            {
                "stage": index,
                "name": name,
                "columns": int(known.sum()),
                "buys": {
                    str(costs.items[i]): float(costs.item_prices[i])
                    for i in np.flatnonzero(items & ~owned)
                },
                "price": float(costs.of(known)) + float(calls[index]),
                **({} if shares is None else {"share": float(shares[index])}),
            }
        )
        owned = items
    return out


def purchases_text(stages: Sequence[dict[str, Any]], most: int = 8) -> str:
    """A line per stage: who is answered there, what it costs to get there, what is bought for it."""
    rows = []
    for stage in stages:
        bought = sorted(stage["buys"].items(), key=lambda item: -item[1])
        names = [f"{name} ({price:.6g})" for name, price in bought if price > 0]
        free = len(bought) - len(names)
        if len(names) > most:
            names = [*names[: most - 1], f"and {len(names) - most + 1} more"]
        if free:
            names.append(f"{free} free")
        rows.append(
            [
                f"{stage['stage']} {stage['name']}",
                *([f"{stage['share']:.0%}"] if "share" in stage else []),
                f"{stage['price']:.6g}",
                ", ".join(names) or "nothing new",
            ]
        )
    shares = ["answers"] if all("share" in stage for stage in stages) else []
    head = ["stage", *shares, "price so far"]
    text = table(head, [row[:-1] for row in rows]).split("\n")
    return "\n".join(
        [text[0] + "  buys"]
        + [f"{line}  {row[-1]}" for line, row in zip(text[1:], rows, strict=True)]
    )
