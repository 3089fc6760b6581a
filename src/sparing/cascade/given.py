"""Stages that a user names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparing._price_list import short
from sparing.costs import FeatureCosts

Booleans = NDArray[np.bool_]

FULL = "full"
"""What the last stage is called."""


def given_stages(stages: Any, costs: FeatureCosts) -> dict[str, Booleans]:
    """Masks of the stages a user names, checked to be nested.

    Examples
    --------
    >>> from sparing import FeatureCosts
    >>> costs = FeatureCosts({"age": 1, "TSH": 20, "scan": 300})
    >>> given_stages({"questions": ["age"], "blood": ["age", "TSH"]}, costs)["blood"]
    array([ True,  True, False])
    >>> given_stages([["age"], ["TSH"]], costs)
    Traceback (most recent call last):
    ValueError: Stage 1 (stage 1) lacks column 'age' of the stage before: every stage contains the one before it.
    """
    if not isinstance(stages, Mapping):
        stages = {f"stage {k}": columns for k, columns in enumerate(stages)}
    if not stages:
        raise ValueError("stages is empty: give the columns of at least one stage, or None.")
    masks, before = dict[str, Booleans](), np.zeros(len(costs.columns), dtype=bool)
    for k, (name, columns) in enumerate(stages.items()):
        if name == FULL:
            raise ValueError(
                f"A stage is called {FULL!r}, which is the name of the last one: give another."
            )
        if isinstance(columns, str) or not isinstance(columns, Iterable):
            raise TypeError(
                f"Stage {k} of stages ({name}) is {columns!r}: stages needs a list of columns for every stage, "
                f"[[{columns!r}], ...]."
            )
        if isinstance(columns, np.ndarray) and columns.dtype != bool:
            columns = columns.ravel().tolist()
        if isinstance(columns, tuple) and any(isinstance(c, list) for c in columns):
            raise TypeError(
                f"Stage {k} of stages has {columns!r} in place of names of columns. Stages with names are a mapping: "
                "stages={'questions': ['age', ...], ...}."
            )
        try:
            mask = costs.mask(columns)
        except ValueError as error:
            raise ValueError(f"Stage {k} ({name}): {error}") from None
        lost = [costs.columns[i] for i in np.flatnonzero(before & ~mask)]
        if lost:
            raise ValueError(
                f"Stage {k} ({name}) lacks column {short(lost)} of the stage before: every stage contains the one "
                "before it."
            )
        if not mask.any():
            raise ValueError(f"Stage {k} ({name}) has no columns.")
        if np.array_equal(mask, before):
            raise ValueError(f"Stage {k} ({name}) has no column that the stage before lacks.")
        masks[str(name)] = before = mask
    return masks
