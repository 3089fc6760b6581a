"""Rows for learning, for choosing and for promising: three parts that share no row and, with groups, no group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Positions = NDArray[np.intp]
Floats = NDArray[np.float64]

_FEWEST = 10
"""Rows without which nothing is learnt: there would be next to none to choose by."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows with labels; weights and groups when there are any."""

    X: Any
    y: NDArray[Any]
    weight: Floats | None = None
    groups: NDArray[Any] | None = None


@dataclass(frozen=True)
class Parts:
    """Row numbers: ``train`` learns, ``validation`` chooses, ``calibration`` promises; the last two may be empty."""

    train: Positions
    validation: Positions
    calibration: Positions


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


def check_enough(y: NDArray[Any], validation: float, calibration: float) -> None:
    """Raise when there are too few rows, or too few of a class, to have some of them in every part.

    Examples
    --------
    >>> check_enough(np.array(["a", "b"] * 6 + ["c"]), 0.25, 0.0)
    Traceback (most recent call last):
    ValueError: Class 'c' has 1 row; at least 2 are needed, to learn from and to choose by: ...
    """
    needs = ["to learn from", *["to choose by"] * (validation > 0)]
    needs += ["to promise by"] * (calibration > 0)
    if validation + calibration >= 1:
        raise ValueError(
            f"validation={validation:g} and calibration={calibration:g} leave no row to learn from: together they are "
            "less than 1."
        )
    if len(y) < _FEWEST:
        raise ValueError(
            f"{len(y)} rows are too few {' and '.join(needs)}: give at least {_FEWEST}, and some hundred for a choice "
            "that holds."
        )
    labels, counts = np.unique(y, return_counts=True)
    for label, count in zip(labels.tolist(), counts.tolist(), strict=True):
        if count < len(needs):
            raise ValueError(
                f"Class {label!r} has {count} row{'s' * (count > 1)}; at least {len(needs)} are needed, "
                f"{' and '.join(needs)}: give more rows of it, leave it out, or join it with another class."
            )


def _by_class(y: NDArray[Any], shares: NDArray[np.float64], rng: np.random.Generator) -> Positions:
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


def _by_group(code: Positions, shares: NDArray[np.float64], rng: np.random.Generator) -> Positions:
    """Part of each group: groups in random order, cut where their rows reach the shares."""
    sizes = np.bincount(code)
    order = rng.permutation(len(sizes))
    reached = np.cumsum(sizes[order]) / sizes.sum()
    part = np.zeros(len(sizes), dtype=np.intp)
    first, second = np.cumsum(shares)
    part[order[reached <= second]] = 2
    part[order[reached <= first]] = 1
    return part
