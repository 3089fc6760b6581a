"""Merging a run with the tables on disk: what it did not run, or ran with fewer fits, stays as it stands there.

The cache of fits is lost with the machine while the tables are committed, so a run that knows a part of the fits must
not erase the others. What is taken over or left is a *unit*: all rows of a method on a split.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from paper.comparison import Rows
from paper.methods import Method
from paper.pairing import CHAMPION, PAIRED, REFERENCE, Wish
from sparing.system import ACCOUNTINGS

Row = Mapping[str, Any]
Unit = tuple[int, str]
"""A split, and a method by its name in the table of methods; in the rows it may have several, those it gives."""
SAME = 5e-4
"""Test scores of the full model that differ by no more than this are those of one full model.

Image features and kernel machines are sums in the order of the machine: on CIFAR-10 four of 10,000 test rows changed
sides on another processor with the same versions of everything.
"""
DIGITS = 1e-4
"""Relative difference below which a cost or score is one that was found before: tables have five digits."""


class Spent(NamedTuple):
    """Fits that were done, how many the sweep has, and processor minutes."""

    fits: int = 0
    of: int = 0
    minutes: float = 0.0

    def __str__(self) -> str:
        return str(self.fits) if self.fits == self.of else f"{self.fits} of {self.of}"


@dataclass(frozen=True)
class Found:
    """What was found on a data set, by a run or by those before it.

    Attributes
    ----------
    name : data set.
    choices, curves, duels : rows of the tables.
    answers : what chosen systems are worth on each test unit.
    about : data, level, versions, and methods that were left out or failed.
    full : numbers of the full model, by split.
    spent : fits and minutes of the methods that were run.
    """

    name: str
    choices: Rows
    curves: Rows
    duels: Rows
    answers: Mapping[Wish, np.ndarray]
    about: Mapping[str, Any]
    full: Mapping[int, Mapping[str, Any]]
    spent: Mapping[Unit, Spent]


def merge(new: Found, old: Found, table: Mapping[str, Method]) -> Found:
    """What a run found, and of what was found before all that it did not run with as many fits.

    Parameters
    ----------
    new, old : what the run found, and what stands on disk.
    table : methods, in the order of the rows.

    Raises
    ------
    ValueError
        If rows of a split would stand side by side that have different full models.
    """
    merging = _Merging(new, old, table)
    merging.check_full_models()
    return Found(
        new.name,
        merging.choices(),
        in_order(merging.rows("curves"), table),
        merging.duels(),
        merging.answers(),
        merging.about(),
        merging.full(),
        merging.spent(),
    )


def in_order(rows: Rows, table: Mapping[str, Method]) -> Rows:
    """Rows as a run orders them: splits, accountings, tolerances, budgets, methods."""
    names = [given for method in table.values() for given in method.gives]

    def place(row: Row) -> tuple[float, ...]:
        return (
            row["split"],
            ACCOUNTINGS.index(row.get("accounting", ACCOUNTINGS[0])),
            _number(row, "budget"),
            -_number(row, "tolerance"),
            _rank(row["method"], names),
        )

    return sorted(rows, key=place)


def fewer(new: Found, old: Found) -> list[str]:
    """Methods whose fits of this run are not taken over, in words."""
    return [
        f"{new.name} split {split} {method}: {spent.fits} fits here, so the {_fits(old, (split, method))} on disk stay"
        for (split, method), spent in new.spent.items()
        if spent.fits < _fits(old, (split, method))
    ]


def _fits(found: Found, unit: Unit) -> int:
    return found.spent.get(unit, Spent()).fits


class _Merging:
    """A run and what stands on disk.

    ``anew`` are the units that come from the run. What they chose for a wish may be the same as before: two that were
    compared before, and are the same now, need not be compared again.
    """

    def __init__(self, new: Found, old: Found, table: Mapping[str, Method]) -> None:
        self.new = new
        self.old = old
        self.anew = {u for u, spent in new.spent.items() if spent.fits >= _fits(old, u)}
        self.splits = {split for split, _ in self.anew}
        self._methods = {given: name for name, m in table.items() for given in m.gives}
        self.table = table
        self._now, self._before = _numbers(new), _numbers(old)

    def is_new(self, row: Row, method: str = "") -> bool:
        """Whether the method of a row, or another one on the split of the row, comes from the run."""
        return self._unit(row, method) in self.anew

    def has_moved(self, row: Row, method: str = "") -> bool:
        """Whether what was chosen for the wish of a row, by its method or another one, is another thing than before."""
        wish = _wish({"accounting": ACCOUNTINGS[0], **row, "method": method or row["method"]})
        now, before = self._now.get(wish), self._before.get(wish)
        if now is None or before is None:
            same = now is before
        else:
            same = np.allclose(now, before, DIGITS, 0)
        return self.is_new(row, method) and not same

    def _unit(self, row: Row, method: str = "") -> Unit:
        given = method or row["method"]
        return row["split"], self._methods.get(given, given)

    def rows(self, name: str) -> Rows:
        """Rows of a table: each from where its unit comes from."""
        mine = [row for row in getattr(self.new, name) if self.is_new(row)]
        return mine + [row for row in getattr(self.old, name) if not self.is_new(row)]

    def choices(self) -> Rows:
        """What was chosen; differences to the reference stay where neither of the two has moved."""
        before = {_wish(row): row for row in self.old.choices}
        rows = []
        for row in self.rows("choices"):
            if not pd.isna(row.get("budget")):
                known = before.get(_wish(row), {})
                row = {column: value for column, value in row.items() if column not in PAIRED}
                if not (self.has_moved(row) or self.has_moved(row, REFERENCE)):
                    row |= {column: known[column] for column in PAIRED if column in known}
            rows.append(row)
        return in_order(rows, self.table)

    def duels(self) -> Rows:
        """Duels that were fought before, of whose sides neither has moved."""
        moved = self.has_moved
        return [row for row in self.old.duels if not (moved(row) or moved(row, CHAMPION))]

    def answers(self) -> dict[Wish, np.ndarray]:
        """What chosen systems are worth, of each unit from where its rows come from."""
        kept = {w: a for w, a in self.old.answers.items() if not self.is_new(w._asdict())}
        mine = {w: a for w, a in self.new.answers.items() if self.is_new(w._asdict())}
        return kept | mine

    def check_full_models(self) -> None:
        """Refuse splits on which new rows and those of the disk have different full models."""
        kept = {row["split"] for row in self.old.choices if not self.is_new(row)}
        for split in sorted(kept & self.splits):
            now, before = (
                float(found.full[split]["full model test score"]) for found in (self.new, self.old)
            )
            if abs(now - before) > SAME:
                raise ValueError(
                    f"{self.new.name} split {split}: the full model has a test score of {now} here and of {before} in "
                    "the tables on disk, perhaps for other versions of libraries, so their methods cannot stand side "
                    "by side. Use another results folder (move these tables away) or rerun everything on this split."
                )

    def full(self) -> dict[int, Mapping[str, Any]]:
        """Numbers of the full model: those of the run on splits of which something is new."""
        return {
            split: (self.new if split in self.splits else self.old).full[split]
            for split in sorted({*self.old.full, *self.splits})
        }

    def spent(self) -> dict[Unit, Spent]:
        """Fits and minutes, by split and in the order of the methods."""
        both = {**self.old.spent, **{unit: self.new.spent[unit] for unit in self.anew}}
        units = sorted(both, key=lambda unit: (unit[0], _rank(unit[1], list(self.table))))
        return {unit: both[unit] for unit in units}

    def about(self) -> dict[str, Any]:
        """What is said about the data set; a failure on disk is forgotten once all of its method is new."""
        kept = {method for _, method in {*self.old.spent} - self.anew}
        forgotten = {f"failed {method}" for _, method in self.anew if method not in kept}
        failed = {k: v for k, v in self.old.about.items() if k.startswith("failed ")}
        # Versions and sizes are those of the last run that gave rows.
        last = self.new if self.anew else self.old
        return {
            **{k: v for k, v in self.new.about.items() if k.startswith("without ")},
            **{k: v for k, v in failed.items() if k not in forgotten},
            **{k: v for k, v in self.new.about.items() if k.startswith("failed ")},
            **{k: v for k, v in last.about.items() if not k.startswith(("without ", "failed "))},
        }


def _rank(name: str, names: Sequence[str]) -> int:
    """Place of a name; the unknown come last."""
    return names.index(name) if name in names else len(names)


def _number(row: Row, column: str, missing: float = 0.0) -> float:
    return missing if pd.isna(row.get(column)) else float(row[column])


def _wish(row: Row) -> tuple[Any, ...]:
    """What a row of choices was chosen for."""
    asked = _number(row, "tolerance", -1), _number(row, "budget", -1)
    return row["split"], row["accounting"], row["method"], *asked


def _numbers(found: Found) -> dict[tuple[Any, ...], tuple[float, float]]:
    """Test costs and scores of what was chosen, by wish."""
    return {_wish(row): (row["cost"], row["score"]) for row in found.choices}
