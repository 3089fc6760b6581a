"""Rows for learning, for choosing and for promising: three parts that share no row and, with groups, no group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Parts:
    """Row numbers: ``train`` learns, ``validation`` chooses, ``calibration`` promises; the last two may be empty."""

    train: Rows
    validation: Rows
    calibration: Rows


def split_rows(
    y: NDArray[Any],
    validation: float,
    calibration: float,
    *,
    groups: Any = None,
    random_state: int | None = None,
) -> Parts:
    """Split rows by shares, every class in proportion, so that no class is missing in the training part.

    Parameters
    ----------
    y : labels
    validation, calibration : shares of the rows; 0 for none.
    groups : array of shape (n_rows,), optional
        Rows of one group stay together; classes are then in proportion only by chance.

    Examples
    --------
    >>> parts = split_rows(np.repeat([0, 1], [80, 20]), 0.25, 0.0, random_state=0)
    >>> len(parts.train), len(parts.validation), len(parts.calibration)
    (75, 25, 0)
    """
    rng = np.random.default_rng(random_state)
    n = len(y)
    shares = np.array([validation, calibration])
    if groups is None:
        part = _by_class(y, shares, rng)
    else:
        _, code = np.unique(np.asarray(groups), return_inverse=True)
        if len(code) != n:
            raise ValueError(f"groups has {len(code)} entries for {n} rows.")
        part = _by_group(code, shares, rng)[code]
    for number, (name, share) in enumerate(
        [("validation", validation), ("calibration", calibration)], start=1
    ):
        if share > 0 and not (part == number).any():
            raise ValueError(
                f"{name}={share:g} of {n} rows{'' if groups is None else ' in so few groups'} leaves no row: give more "
                f"rows, a larger share, or {name}=(X, y)."
            )
    missing = np.setdiff1d(np.unique(y), np.unique(y[part == 0]))
    if len(missing):
        raise ValueError(
            f"The classes {missing.tolist()} are in no training row once whole groups are set aside: give validation "
            "and calibration rows as (X, y)."
        )
    return Parts(*(np.flatnonzero(part == number) for number in range(3)))


def _by_class(y: NDArray[Any], shares: NDArray[np.float64], rng: np.random.Generator) -> Rows:
    """Part of each row: rows in random order within their class, cut at the shares of all rows."""
    part = np.zeros(len(y), dtype=np.intp)
    _, code = np.unique(y, return_inverse=True)
    # Sorted by place within the class, a spread number from 0 to 1, any cut takes all classes in proportion.
    place = np.empty(len(y))
    for label in range(code.max() + 1):
        rows = rng.permutation(np.flatnonzero(code == label))
        place[rows] = (np.arange(len(rows)) + rng.uniform()) / len(rows)
        place[rows[0]] = np.inf  # one row of every class is kept for training, whatever the shares
    order = np.argsort(place, kind="stable")
    cuts = np.round(np.cumsum(shares) * len(y)).astype(int)
    free = int(np.isfinite(place).sum())
    first, second = np.minimum(cuts, free)
    part[order[:first]] = 1
    part[order[first:second]] = 2
    return part


def _by_group(code: Rows, shares: NDArray[np.float64], rng: np.random.Generator) -> Rows:
    """Part of each group: groups in random order, cut where their rows reach the shares."""
    sizes = np.bincount(code)
    order = rng.permutation(len(sizes))
    reached = np.cumsum(sizes[order]) / sizes.sum()
    part = np.zeros(len(sizes), dtype=np.intp)
    first, second = np.cumsum(shares)
    part[order[reached <= second]] = 2
    part[order[reached <= first]] = 1
    return part
