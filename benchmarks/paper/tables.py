"""Tables on disk: what a run writes, and what the report is made of.

Per data set ``NAME.csv`` (what validation chose for every wish), ``NAME-curves.csv`` (the frontiers),
``NAME-duels.csv`` (the cascade against every other method at equal budgets), ``NAME-answers.npz`` (what the chosen
systems were worth on each test unit, which pairs are made of) and ``NAME-about.csv`` (data, full model, versions, fits
and minutes by split, and which methods were left out or failed).
"""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import sklearn

import sparing
from paper.comparison import Comparison, Rows
from paper.merging import Found, Spent, Unit, fewer, in_order, merge
from paper.methods import Method
from paper.objective import Kept
from paper.pairing import Wish, beside_reference, duels, read_answers, write_answers

HERE = Path(__file__).parent
FIRST = ("split", "accounting", "tolerance", "budget", "method")
"""Leading columns of the table of choices."""
VERSIONS = ("python", "numpy", "sklearn", "lightgbm", "sparing")


class Results:
    """What a run finds, split by split.

    Parameters
    ----------
    name : data set.
    table : methods, in the order of the tables.
    """

    def __init__(self, name: str, table: Mapping[str, Method]) -> None:
        self.name = name
        self.table = table
        self._spent: dict[Unit, Spent] = {}
        self._about: dict[str, Any] = {}
        self._full: dict[int, dict[str, Any]] = {}
        self._choices: Rows = []
        self._curves: Rows = []
        self._answers: dict[Wish, np.ndarray] = {}

    def expected(self, split: int, method: str) -> None:
        """Note that a fit belongs to the sweep."""
        fits, of, minutes = self._spent.get((split, method), Spent())
        self._spent[split, method] = Spent(fits, of + 1, minutes)

    def spent(self, split: int, method: str, seconds: float) -> None:
        """Note one fit that was done."""
        fits, of, minutes = self._spent[split, method]
        self._spent[split, method] = Spent(fits + 1, of, minutes + seconds / 60)

    def left_out(self, method: str, reason: str) -> None:
        """Note a method that does not apply."""
        self._about[f"without {method}"] = reason

    def failed(self, method: str, what: str) -> None:
        """Note a fit that failed."""
        self._about[f"failed {method}"] = what

    def add(
        self,
        split: int,
        about: Mapping[str, Any],
        full: Mapping[str, Kept],
        found: Comparison,
    ) -> None:
        """Add the tables of a split."""
        self._about |= about
        numbers = self._full.setdefault(split, {})
        for accounting, kept in full.items():
            numbers |= {
                f"full model cost by {accounting}": round(kept.test[0], 4),
                "full model validation score": round(kept.validation[1], 5),
                "full model test score": round(kept.test[1], 5),
                **{f"full model {k}": round(v, 5) for k, v in kept.more.items()},
            }
        self._choices += [{"split": split, **row} for row in found.choices]
        self._curves += [{"split": split, **row} for row in found.curves]
        self._answers |= {Wish(split, *wish): worth for wish, worth in found.answers.items()}

    def __len__(self) -> int:
        return len(self._choices)

    def write(self, folder: Path, level: str) -> None:
        """Write the tables, merged with those of the same level that are there."""
        folder.mkdir(parents=True, exist_ok=True)
        found = self._found(level)
        if (folder / f"{self.name}-about.csv").is_file():
            tables = Tables.read(folder, self.name)
            if tables.about["level"] == level:
                before = tables.found()
                for line in fewer(found, before):
                    print(line, flush=True)
                found = merge(found, before, self.table)
        _write(found, folder, self.table)

    def _found(self, level: str) -> Found:
        versions = {m.__name__: m.__version__ for m in (np, sklearn, lightgbm, sparing)}
        about = {**self._about, "level": level, "python": platform.python_version(), **versions}
        run = {unit: spent for unit, spent in self._spent.items() if spent.fits}
        found = self._choices, self._curves, [], self._answers
        return Found(self.name, *found, about, self._full, run)


def _write(found: Found, folder: Path, table: Mapping[str, Method]) -> None:
    pd.Series(_lines(found), name="value").to_csv(
        folder / f"{found.name}-about.csv", index_label="key"
    )
    write_answers(found.answers, folder / f"{found.name}-answers.npz")
    choices = pd.DataFrame(beside_reference(found.choices, found.answers))
    for suffix, frame in (
        ("", choices[[*FIRST, *(c for c in choices if c not in FIRST)]]),
        ("-curves", pd.DataFrame(found.curves)),
        ("-duels", pd.DataFrame(in_order(duels(found.duels, found.answers), table))),
    ):
        path = folder / f"{found.name}{suffix}.csv"
        path.unlink(missing_ok=True)
        if len(frame):
            frame.to_csv(path, index=False, float_format="%.5g")


def _lines(found: Found) -> dict[str, Any]:
    """What is said about a data set, in the order of the file."""
    last = {key: found.about[key] for key in VERSIONS}
    first = {k: v for k, v in found.about.items() if k not in last and k != "level"}
    spent = found.spent.items()
    return {
        **first,
        **{f"split {s} {key}": v for s, full in found.full.items() for key, v in full.items()},
        "level": found.about["level"],
        **{f"split {s} fits of {m}": str(mine) for (s, m), mine in spent},
        **{f"split {s} minutes of {m}": round(mine.minutes, 3) for (s, m), mine in spent},
        **last,
    }


@dataclass(frozen=True)
class Tables:
    """The tables of a data set, as read from disk.

    Attributes
    ----------
    choices, curves, duels : frames.
    answers : what chosen systems are worth on each test unit; of older runs nothing is known.
    about : text by key.
    """

    name: str
    choices: pd.DataFrame
    curves: pd.DataFrame
    duels: pd.DataFrame
    answers: Mapping[Wish, np.ndarray]
    about: Mapping[str, str]

    @classmethod
    def read(cls, folder: Path, name: str) -> Tables:
        """Read the tables of a data set; those of older runs have no duels."""
        about = pd.read_csv(folder / f"{name}-about.csv", dtype=str, index_col="key")["value"]
        duels = folder / f"{name}-duels.csv"
        return cls(
            name,
            pd.read_csv(folder / f"{name}.csv"),
            pd.read_csv(folder / f"{name}-curves.csv"),
            pd.read_csv(duels)
            if duels.is_file()
            else pd.DataFrame(columns=["split", "budget", "method"]),
            read_answers(folder / f"{name}-answers.npz"),
            about.fillna("").to_dict(),
        )

    @property
    def splits(self) -> list[int]:
        """Splits that were run."""
        return sorted(self.choices.split.unique().tolist())

    @property
    def methods(self) -> list[str]:
        """Methods that have results, in the order of the tables."""
        return list(self.choices.method.unique())

    @property
    def spent(self) -> dict[Unit, Spent]:
        """Fits and minutes, by split and method."""
        minutes = self.by_split("minutes of ")
        found = {}
        for unit, text in self.by_split("fits of ").items():
            fits, _, of = text.partition(" of ")
            found[unit] = Spent(int(fits), int(of or fits), float(minutes[unit]))
        return found

    def found(self) -> Found:
        """The tables as rows, to be merged with those of a run."""
        full: dict[int, dict[str, str]] = {}
        for (split, what), number in self.by_split("full model ").items():
            full.setdefault(split, {})[f"full model {what}"] = number
        about = {k: v for k, v in self.about.items() if not k.startswith("split ")}
        choices, curves, duels = (
            frame.to_dict("records") for frame in (self.choices, self.curves, self.duels)
        )
        return Found(self.name, choices, curves, duels, self.answers, about, full, self.spent)

    def by_split(self, words: str) -> dict[tuple[int, str], str]:
        """Entries of ``about`` whose key says a split and then these words, by the split and the rest of the key."""
        found = {re.match(rf"split (\d+) {words}(.*)", key): key for key in self.about}
        return {(int(m[1]), m[2]): self.about[key] for m, key in found.items() if m}

    def starting(self, words: str) -> dict[str, str]:
        """Entries of ``about`` whose key starts so, by the rest of the key."""
        return {k.removeprefix(words): v for k, v in self.about.items() if k.startswith(words)}

    def near(self, tolerance: float, accounting: str = "stage") -> pd.DataFrame:
        """What was chosen within a tolerance of the full model."""
        some = self.choices
        return some[(some.accounting == accounting) & (some.tolerance == tolerance)]

    def full(self, what: str) -> list[float]:
        """A number of the full model, split by split: "test score", "cost by stage", "cost by path"."""
        return [float(self.about[f"split {s} full model {what}"]) for s in self.splits]


def names_in(folder: Path) -> list[str]:
    """Data sets that have results."""
    return sorted(p.name.removesuffix("-about.csv") for p in folder.glob("*-about.csv"))


def published(name: str) -> pd.DataFrame:
    """Numbers published by others, ``authors`` or ``published``."""
    return pd.read_csv(HERE / f"{name}.csv", comment="#")


def keep_row(path: Path, row: Mapping[str, Any], by: Sequence[str]) -> None:
    """Write a row to a table on disk, in place of that with the same values in the columns it is known by."""
    known = pd.read_csv(path).to_dict("records") if path.is_file() else []
    others = [k for k in known if any(k[column] != row[column] for column in by)]
    table = pd.DataFrame([*others, row]).sort_values(list(by))
    table.to_csv(path, index=False, float_format="%.5g")
