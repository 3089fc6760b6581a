"""Tables on disk, and what is written and drawn from them alone.

Per data set ``NAME.csv`` (what validation chose for every wish), ``NAME-curves.csv`` (the frontiers) and
``NAME-about.csv`` (data, full model, versions, minutes). No number of the report is typed by hand.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import sklearn

import sparing
from paper.objective import REFERENCE, Kept
from sparing.displays import Curve, FrontierDisplay

HERE = Path(__file__).parent
DRAWN = (
    "cascade",
    "adapt-gbrt",
    "adapt-gbrt-joint",
    "adapt-gbrt-confidence",
    "lightgbm-confidence",
    "adapt-lin",
)
RIVALS = {
    "authors Adapt-Gbrt": ("adapt-gbrt", "adapt-gbrt-paper"),
    "authors Adapt-Lin": ("adapt-lin",),
    "authors GreedyMiser": ("greedy-miser",),
}
"""Points of the authors' code, and which of our methods are set beside them."""


class Results:
    """What a run finds, split by split."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._seconds: dict[str, float] = {}
        self._fits: dict[str, int] = {}
        self._about: dict[str, Any] = {}
        self._choices: list[dict[str, Any]] = []
        self._curves: list[dict[str, Any]] = []

    def spent(self, method: str, seconds: float) -> None:
        """Note one fit."""
        self._seconds[method] = self._seconds.get(method, 0.0) + seconds
        self._fits[method] = self._fits.get(method, 0) + 1

    def add(
        self,
        split: int,
        about: Mapping[str, Any],
        full: Mapping[str, Kept],
        choices: Sequence[Mapping[str, Any]],
        curves: Sequence[Mapping[str, Any]],
    ) -> None:
        """Add the tables of a split."""
        self._about |= about
        for accounting, kept in full.items():
            self._about |= {
                f"split {split} full model cost by {accounting}": round(kept.test[0], 4),
                f"split {split} full model validation score": round(kept.validation[1], 5),
                f"split {split} full model test score": round(kept.test[1], 5),
            }
        self._choices += [{"split": split, **row} for row in choices]
        self._curves += [{"split": split, **row} for row in curves]

    def write(self, folder: Path, level: str) -> None:
        """Write the three tables."""
        folder.mkdir(parents=True, exist_ok=True)
        about = self._about | {
            "level": level,
            **{f"fits of {m}": n for m, n in self._fits.items()},
            **{f"minutes of {m}": round(s / 60, 2) for m, s in self._seconds.items()},
            "python": platform.python_version(),
            **{m.__name__: m.__version__ for m in (np, sklearn, lightgbm, sparing)},
        }
        pd.Series(about, name="value").to_csv(folder / f"{self.name}-about.csv", index_label="key")
        self.choices().to_csv(folder / f"{self.name}.csv", index=False, float_format="%.5g")
        curves = pd.DataFrame(self._curves)
        curves.to_csv(folder / f"{self.name}-curves.csv", index=False, float_format="%.5g")

    def choices(self) -> pd.DataFrame:
        """What validation chose for every wish."""
        return pd.DataFrame(self._choices)

    def text(self) -> str:
        """The main table, for the eye."""
        return f"{self.name}\n{_tolerances(self.choices(), 'stage')}\n"


def read(folder: Path, name: str) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, str]]:
    """The three tables of a data set."""
    about = pd.read_csv(folder / f"{name}-about.csv", dtype=str, index_col="key")["value"]
    choices = pd.read_csv(folder / f"{name}.csv")
    return choices, pd.read_csv(folder / f"{name}-curves.csv"), about.to_dict()


def names_in(folder: Path) -> list[str]:
    """Data sets that have results."""
    return sorted(p.name.removesuffix("-about.csv") for p in folder.glob("*-about.csv"))


def published(name: str) -> pd.DataFrame:
    """Numbers published by others, ``authors`` or ``published``."""
    return pd.read_csv(HERE / f"{name}.csv", comment="#")


# -- the picture --------------------------------------------------------------------------------------


def write_plot(folder: Path, name: str) -> None:
    """Draw the frontiers on test rows of the loader's own split, as validation chose them."""
    import matplotlib

    matplotlib.use("Agg")
    choices, curves, about = read(folder, name)
    curves = curves[(curves.split == 0) & (curves.accounting == "stage")]
    near = choices[
        (choices.split == 0) & (choices.accounting == "stage") & (choices.tolerance == 0.01)
    ]
    cuts = near.set_index("method")["cut"]
    full = (
        float(about["split 0 full model cost by stage"]),
        float(about["split 0 full model test score"]),
    )
    # Where a tenth of the cost is spent nobody is near the full model yet: the picture starts there.
    drawn = []
    for method in DRAWN:
        mine = curves[(curves.method == method) & (curves.score > full[1] - 0.12)]
        if len(mine):
            drawn.append(
                Curve(mine.cost.to_numpy(), mine.score.to_numpy(), method, saving=cuts.get(method))
            )
    display = FrontierDisplay(drawn, full=full, tolerance=0.01, score_name="test accuracy").plot()
    if about["same as authors"] == "True":
        _draw_authors(display.ax_, about["family"], full[1] - 0.12)
    display.figure_.savefig(folder / f"{name}.png", dpi=110)
    matplotlib.pyplot.close(display.figure_)


def _draw_authors(ax: Any, family: str, lowest: float) -> None:
    points = published("authors")
    points = points[points.data.str.startswith(family) & (points.test_accuracy > lowest)]
    for (method, mine), marker in zip(points.groupby("method"), "x+*", strict=False):
        ax.plot(mine.test_cost, mine.test_accuracy, marker, color="black", label=method, zorder=8)
    ax.legend(
        loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=2, frameon=False, fontsize="small"
    )


# -- the report ---------------------------------------------------------------------------------------


def write_report(folder: Path, path: Path) -> None:
    """Write the report of a folder of tables."""
    path.write_text(render(folder, path.parent), encoding="utf-8")


def render(folder: Path, home: Path) -> str:
    """The report, from the tables alone."""
    found = {name: read(folder, name) for name in names_in(folder)}
    parts = [
        "# Results",
        "Written by `python benchmarks/run.py all` from the tables in `results/`; how everything is measured stands in "
        "[README.md](README.md). Validation rows choose, test rows report. Cost is the average per row; *cut* is the "
        "part of the full model's cost that is saved. Brackets are 95% bootstrap intervals over test rows, in pairs.",
        "## Cut within 1 point of the full model",
        "By stage: every row pays for all columns of the stages it enters. The score on test rows, where it is further "
        "from the full model than the point asked for on validation rows, follows in the sections below.",
        _summary(found),
    ]
    for name, tables in found.items():
        parts += _section(name, *tables, (folder / f"{name}.png").relative_to(home).as_posix())
    return "\n\n".join(parts) + "\n"


def _summary(found: Mapping[str, tuple]) -> str:
    columns = {}
    for name, (choices, _, about) in found.items():
        near = choices[(choices.accounting == "stage") & (choices.tolerance == 0.01)]
        cuts = near.groupby("method", sort=False)["cut"].mean().map("{:.0%}".format)
        paper = published("published").set_index("data")["cut"]
        cuts["paper, its own full model"] = (
            f"{paper[about['family']]:.0%}" if about["family"] in paper.index else ""
        )
        columns[name] = cuts
    return _markdown(pd.DataFrame(columns).rename_axis("method").reset_index())


def _section(
    name: str, choices: pd.DataFrame, curves: pd.DataFrame, about: Mapping[str, str], picture: str
) -> list[str]:
    splits = sorted(choices.split.unique())
    methods = list(choices.method.unique())
    scores = [float(about[f"split {s} full model test score"]) for s in splits]
    minutes = {
        k.removeprefix("minutes of "): float(v)
        for k, v in about.items()
        if k.startswith("minutes of ")
    }
    fits = {m: about[f"fits of {m}"] for m in minutes}
    parts = [
        f"## {name}",
        f"{about['data']} {about['columns']} columns, {about['classes']} classes; {about['train rows']} rows to learn, "
        f"{about['validation rows']} to choose, {about['test rows']} to test.",
        f"Full model: `{about['full model']}`, test accuracy {scores[0]:.4f} at "
        f"{float(about['split 0 full model cost by stage']):.4g} by stage and "
        f"{float(about['split 0 full model cost by path']):.4g} by path"
        + (
            f"; on {len(splits)} splits {np.mean(scores):.4f} on average."
            if len(splits) > 1
            else "."
        ),
        f"![test accuracy against average cost]({picture})",
        "Cheapest system within 1, 0.5 and 0 points of the full model on validation: test cost, cut, and the "
        "difference of its test score to the full model's in points. By stage"
        + (" on the data's own split:" if len(splits) > 1 else ":"),
        _tolerances(choices[choices.split == 0], "stage"),
    ]
    if len(splits) > 1:
        parts += [
            f"Mean and standard deviation over {len(splits)} splits, the own one and {len(splits) - 1} drawn from all "
            "its rows:",
            _repeated(choices),
        ]
    parts += [
        "By path, where trees pay for what a row's paths test:",
        _tolerances(choices[choices.split == 0], "path"),
    ]
    parts += [
        f"Test accuracy at budgets, as shares of the full model's cost, by stage. ▼ and ▲: worse or better than "
        f"{REFERENCE} by more than chance (the paired interval excludes 0)"
        + ("; on the own split." if len(splits) > 1 else "."),
        _budgets(choices[choices.split == 0], methods),
    ]
    if about["same as authors"] == "True":
        parts += [
            "Beside points of the authors' published code (`paper/authors.csv` says how they were measured): the "
            "system that validation chooses at the same cost.",
            _authors(curves[curves.split == 0], about["family"]),
        ]
    spent = ", ".join(f"{m} {fits[m]} fits in {minutes[m]:.1f}" for m in minutes)
    parts.append(
        f"Level {about['level']}; processor minutes: {spent}. Python {about['python']}, numpy {about['numpy']}, "
        f"scikit-learn {about['sklearn']}, LightGBM {about['lightgbm']}, sparing {about['sparing']}."
    )
    return parts


def _tolerances(choices: pd.DataFrame, accounting: str) -> str:
    some = choices[(choices.accounting == accounting) & choices.tolerance.notna()]
    table: dict[str, dict[str, str]] = {}
    for row in some.itertuples():
        text = "full model"
        if row.cut > 0:
            points = [100 * v for v in (row.difference, row.low, row.high)]
            text = f"{row.cost:.2f} ({row.cut:.0%}) {points[0]:+.2f} [{points[1]:+.2f}, {points[2]:+.2f}]"
        table.setdefault(row.method, {})[_wish(row.tolerance)] = text
    return _markdown(
        pd.DataFrame.from_dict(table, orient="index").rename_axis("method").reset_index()
    )


def _repeated(choices: pd.DataFrame) -> str:
    some = choices[(choices.accounting == "stage") & choices.tolerance.notna()]
    table: dict[str, dict[str, str]] = {}
    for (method, tolerance), mine in some.groupby(["method", "tolerance"], sort=False):
        points = 100 * mine.difference
        text = f"{mine.cut.mean():.0%} ± {100 * mine.cut.std():.0f}, {points.mean():+.2f} ± {points.std():.2f}"
        table.setdefault(method, {})[_wish(tolerance)] = text
    return _markdown(
        pd.DataFrame.from_dict(table, orient="index").rename_axis("method").reset_index()
    )


def _budgets(choices: pd.DataFrame, methods: Sequence[str]) -> str:
    some = choices[(choices.accounting == "stage") & choices.budget.notna()]
    table: dict[str, dict[str, str]] = {m: {} for m in methods}
    for row in some.itertuples():
        mark = " ▼" if row.high < 0 else " ▲" if row.low > 0 else ""
        table[row.method][f"{row.budget:.0%}"] = f"{row.score:.4f}{mark}"
    frame = pd.DataFrame.from_dict(table, orient="index")
    frame = frame[[f"{share:.0%}" for share in sorted(some.budget.unique())]]
    return _markdown(frame.rename_axis("method").reset_index())


def _authors(curves: pd.DataFrame, family: str) -> str:
    points = published("authors")
    curves = curves[curves.accounting == "stage"]
    lines = []
    for point in points[points.data.str.startswith(family)].itertuples():
        line = {
            "": point.method,
            "their cost": f"{point.test_cost:.2f}",
            "their accuracy": f"{point.test_accuracy:.4f}",
        }
        for number, method in enumerate(RIVALS[point.method]):
            mine = curves[(curves.method == method) & (curves.validation_cost <= point.test_cost)]
            who = "ours" if number == 0 else "ours, as in the paper"
            if len(mine):
                best = mine.loc[mine.validation_score.idxmax()]
                line[who] = (
                    f"{best.score:.4f} at {best.cost:.2f} ({100 * (best.score - point.test_accuracy):+.2f})"
                )
        lines.append(line)
    return _markdown(pd.DataFrame(lines))


def _wish(tolerance: float) -> str:
    return f"within {100 * tolerance:g} points"


def _markdown(frame: pd.DataFrame) -> str:
    frame = frame.fillna("")
    lines = [frame.columns, ["---"] * len(frame.columns), *frame.itertuples(index=False)]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
