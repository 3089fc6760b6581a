"""Tables on disk: what a run writes, and what the report is made of.

Per data set ``NAME.csv`` (what validation chose for every wish), ``NAME-curves.csv`` (the frontiers),
``NAME-duels.csv`` (the cascade against every other method at equal budgets) and ``NAME-about.csv`` (data, full model,
versions, minutes, and which methods were left out, not run, or failed).
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import sklearn

import sparing
from paper.comparison import Comparison
from paper.objective import Kept

HERE = Path(__file__).parent
FIRST = ("split", "accounting", "tolerance", "budget", "method")
"""Leading columns of the table of choices."""


class Results:
    """What a run finds, split by split."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._seconds: dict[str, float] = {}
        self._fits: dict[str, list[int]] = {}
        self._about: dict[str, Any] = {}
        self._choices: list[dict[str, Any]] = []
        self._curves: list[dict[str, Any]] = []
        self._duels: list[dict[str, Any]] = []

    def expected(self, method: str) -> None:
        """Note that a fit belongs to the sweep."""
        self._fits.setdefault(method, [0, 0])[1] += 1

    def spent(self, method: str, seconds: float) -> None:
        """Note one fit that was done."""
        self._seconds[method] = self._seconds.get(method, 0.0) + seconds
        self._fits[method][0] += 1

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
        for accounting, kept in full.items():
            self._about |= {
                f"split {split} full model cost by {accounting}": round(kept.test[0], 4),
                f"split {split} full model validation score": round(kept.validation[1], 5),
                f"split {split} full model test score": round(kept.test[1], 5),
                **{f"split {split} full model {k}": round(v, 5) for k, v in kept.more.items()},
            }
        self._choices += [{"split": split, **row} for row in found.choices]
        self._curves += [{"split": split, **row} for row in found.curves]
        self._duels += [{"split": split, **row} for row in found.duels]

    def write(self, folder: Path, level: str) -> None:
        """Write the tables."""
        folder.mkdir(parents=True, exist_ok=True)
        run = {m: counts for m, counts in self._fits.items() if counts[0]}
        about = self._about | {
            "level": level,
            **{f"fits of {m}": n if n == of else f"{n} of {of}" for m, (n, of) in run.items()},
            **{f"minutes of {m}": round(s / 60, 2) for m, s in self._seconds.items()},
            "python": platform.python_version(),
            **{m.__name__: m.__version__ for m in (np, sklearn, lightgbm, sparing)},
        }
        pd.Series(about, name="value").to_csv(folder / f"{self.name}-about.csv", index_label="key")
        for suffix, frame in (
            ("", self.choices()),
            ("-curves", pd.DataFrame(self._curves)),
            ("-duels", pd.DataFrame(self._duels)),
        ):
            path = folder / f"{self.name}{suffix}.csv"
            path.unlink(missing_ok=True)
            if len(frame):
                frame.to_csv(path, index=False, float_format="%.5g")

    def choices(self) -> pd.DataFrame:
        """What validation chose for every wish."""
        frame = pd.DataFrame(self._choices)
        return frame[[*FIRST, *(c for c in frame if c not in FIRST)]] if len(frame) else frame


@dataclass(frozen=True)
class Tables:
    """The tables of a data set, as read from disk.

    Attributes
    ----------
    choices, curves, duels : frames.
    about : text by key.
    """

    name: str
    choices: pd.DataFrame
    curves: pd.DataFrame
    duels: pd.DataFrame
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
