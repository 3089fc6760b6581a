"""Plain data in a manifest: numpy's numbers, infinities and price lists as JSON, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from sparing._stored import plain_label
from sparing.costs import FeatureCosts
from sparing.runtime._archive import BundleError


def plain(value: Any, what: str) -> Any:
    """Data as JSON: numpy's numbers and arrays, tuples and infinities included.

    Examples
    --------
    >>> plain({"rates": np.array([0.5, np.inf]), "n": np.int64(3)}, "metadata")
    {'rates': [0.5, {'float': 'inf'}], 'n': 3}
    """
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise BundleError(f"The {what} has keys that are not text: {list(value)!r}.")
        return {str(key): plain(item, what) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, what) for item in value]
    if value is None:
        return None
    if isinstance(value, float) and np.isnan(value):
        return {"float": "nan"}
    try:
        return plain_label(value, what)
    except ValueError:
        raise BundleError(
            f"The {what} is plain data (text, numbers, booleans, None, lists, mappings); {value!r} is a "
            f"{type(value).__name__}."
        ) from None


def read_plain(value: Any) -> Any:
    """Inverse of :func:`plain`, up to tuples and arrays, which come back as lists."""
    if isinstance(value, list):
        return [read_plain(item) for item in value]
    if isinstance(value, dict):
        if set(value) == {"float"} and value["float"] in ("inf", "-inf", "nan"):
            return float(value["float"])
        return {key: read_plain(item) for key, item in value.items()}
    return value


def plain_prices(costs: FeatureCosts) -> dict[str, Any]:
    """A price list as JSON."""
    content = costs.to_dict()
    try:
        same = FeatureCosts.from_dict(json.loads(json.dumps(content))) == costs
    except (TypeError, ValueError):
        same = False
    if not same:
        raise BundleError(
            "A bundle stores prices of columns named by text, or of columns without names; these are called "
            f"{list(costs.columns)[:5]!r}: give the prices text as names."
        )
    return content


def read_prices(content: Any, where: str) -> FeatureCosts:
    """Inverse of :func:`plain_prices`."""
    if not isinstance(content, dict):
        raise BundleError(f"{where} is a price list, not {content!r}.")
    try:
        return FeatureCosts.from_dict(content)
    except (ValueError, TypeError, KeyError) as error:
        raise BundleError(f"{where}: {error}") from error
