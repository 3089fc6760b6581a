"""Comparisons in pairs, and what they are made of: the worth of every chosen system on each test unit.

Methods are run at different times and on different machines, whose caches are lost. What was chosen for a wish is
therefore kept beside the tables, unit by unit; systems of different runs can be compared as long as they stand before
the same full model on the same test units, which merging sees to.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sparing.metrics import bootstrap_interval

REFERENCE = "adapt-gbrt"
"""The method that others are compared with, in pairs, at equal budgets."""
CHAMPION = "cascade"
"""The method whose duels with every other one are counted."""
PAIRED = ("difference", "low", "high")
"""Columns of a paired comparison."""


class Wish(NamedTuple):
    """What was asked for, by stage: a method on a split, and a tolerance or a budget."""

    split: int
    method: str
    kind: str
    value: float


Answers = Mapping[Wish, np.ndarray]
"""Worth of the system that was chosen for a wish on each test unit: right or wrong, or numbers."""
Row = Mapping[str, Any]


def difference(one: np.ndarray, other: np.ndarray) -> dict[str, float]:
    """Mean difference of two systems on the same units, with its interval."""
    interval = bootstrap_interval(one, other=other, random_state=0)
    return {"difference": interval.estimate, "low": interval.low, "high": interval.high}


def beside_reference(rows: list[Row], answers: Answers) -> list[Row]:
    """Rows of choices; at budgets by stage with the difference to the reference, where both are known."""
    out = list[Row]()
    for row in rows:
        one = Wish(row["split"], row["method"], "budget", row.get("budget", np.nan))
        other = one._replace(method=REFERENCE)
        if row["accounting"] == "stage" and one in answers and other in answers:
            row = {**row, **difference(answers[one], answers[other])}
        out.append(row)
    return out


def duels(rows: list[Row], answers: Answers) -> list[Row]:
    """Duels of the champion: those whose two sides are known, and of the rows given those where one is not.

    Without numbers where one of the two has no system so cheap.
    """
    known = {(wish.split, wish.method) for wish in answers}
    splits = {split for split, method in known if method == CHAMPION}
    out = [
        row
        for row in rows
        if row["split"] not in splits or (row["split"], row["method"]) not in known
    ]
    for split, share in sorted({(w.split, w.value) for w in answers if w.kind == "budget"}):
        if split not in splits:
            continue
        champion = answers.get(Wish(split, CHAMPION, "budget", share))
        for method in sorted(m for s, m in known if s == split and m != CHAMPION):
            rival = answers.get(Wish(split, method, "budget", share))
            row = {"split": split, "budget": share, "method": method, "alone": ""}
            if champion is not None and rival is not None:
                row |= difference(champion, rival)
            elif champion is not None:
                row["alone"] = CHAMPION
            elif rival is not None:
                row["alone"] = method
            else:
                continue
            out.append(row)
    return out


def write_answers(answers: Answers, path: Path) -> None:
    """Write what is known of all wishes; a system that was chosen for several is written once."""
    path.unlink(missing_ok=True)
    if not answers:
        return
    wishes = sorted(answers)
    values = np.array([answers[wish] for wish in wishes])
    systems, which = np.unique(values, axis=0, return_inverse=True)
    split, method, kind, value = (np.array(column) for column in zip(*wishes, strict=True))
    np.savez_compressed(
        path,
        n_units=values.shape[1],
        systems=np.packbits(systems, axis=1) if systems.dtype == bool else systems,
        which=which.astype(np.int32),
        split=split,
        method=method,
        kind=kind,
        value=value,
    )


def read_answers(path: Path) -> dict[Wish, np.ndarray]:
    """What is known of all wishes; nothing where there is no file."""
    if not path.is_file():
        return {}
    with np.load(path, allow_pickle=False) as file:
        systems, which = file["systems"], file["which"]
        if systems.dtype == np.uint8:
            systems = np.unpackbits(systems, axis=1, count=int(file["n_units"])).astype(bool)
        columns = (file[name].tolist() for name in Wish._fields)
        wishes = [Wish(*wish) for wish in zip(*columns, strict=True)]
    return {wish: systems[place] for wish, place in zip(wishes, which, strict=True)}
