"""The model that is served, as clients see it."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Any

import numpy as np

from sparing.runtime._service_lever import Lever
from sparing.runtime._service_problem import finite
from sparing.system import System


def described(bundle: System, lever: Lever, numbers: Collection[Hashable]) -> dict[str, Any]:
    """Columns, items, prices, classes and stages of what is served now, and what the bundle says of itself.

    Examples
    --------
    >>> from sparing.runtime._service_client import ClientDesk
    >>> from sparing.runtime._service_lever import Serving
    >>> from sparing.runtime import Limits, Policy, MockSource, Session
    >>> from sparing.runtime._examples import lender
    >>> system, people = lender()
    >>> session = Session(system, [MockSource(people, ["income", "bureau"])])
    >>> desk = ClientDesk(system, book=None, limits=Limits(), policy=Policy(), derive={}, like=None)
    >>> lever = Lever(system, lambda system, position: Serving(session, desk))
    >>> [stage["price"] for stage in described(system, lever, ())["stages"]]
    [1.0, 6.0]
    """
    system, session = lever.system, lever.serving.session
    costs = system.costs
    bought = system.stage_columns()
    prices = costs.of(bought) + system.call_prices()
    return {
        "digest": getattr(bundle, "digest", ""),
        "classes": bundle.classes.tolist(),
        "columns": [
            {
                "name": str(column),
                "number": column in numbers,
                "items": [costs.items[i] for i in np.flatnonzero(costs.needs[j])],
                "bought_here": column not in session.only_known and bool(session.sources),
            }
            for j, column in enumerate(costs.columns)
        ],
        "items": [
            {"item": item, "price": price}
            for item, price in zip(costs.items, costs.item_prices.tolist(), strict=True)
        ],
        "stages": [
            {
                "name": stage.name,
                "columns": [str(costs.columns[j]) for j in np.flatnonzero(bought[k])],
                "price": float(prices[k]),
                "threshold": None if stage.gate is None else finite(lever.thresholds[k]),
            }
            for k, stage in enumerate(system.stages)
        ],
        "sources": {
            name: [str(item) for item in source.items] for name, source in session.sources.items()
        },
        "as_fitted": lever.is_fitted,
        # A certificate speaks of the system as it was fitted, and of no other position of the lever.
        "certificate": _plain(getattr(bundle, "certificate", None)) if lever.is_fitted else None,
        "metadata": _plain(dict(getattr(bundle, "metadata", {}))),
    }


def _plain(content: Any) -> Any:
    """Plain data that JSON can say."""
    if isinstance(content, dict):
        return {str(name): _plain(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [_plain(value) for value in content]
    return finite(content) if isinstance(content, float) else content
