"""The report, written from the tables on disk alone: no number of it is typed by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd

from paper.fit_time import section as fit_time_section
from paper.one_line import section as one_line_section
from paper.pairing import CHAMPION, REFERENCE
from paper.problem import QUICK_ROWS
from paper.spread import section as spread_section
from paper.summary import (
    beside_paper,
    duels,
    duels_by_data,
    equal_accuracy,
    fought,
    kept_on_test,
    lost,
    missing,
    reasons,
    spent,
)
from paper.synthetic import sections as synthetic_sections
from paper.tables import Tables, names_in, published

RIVALS = {
    "authors Adapt-Gbrt": ("adapt-gbrt", "adapt-gbrt-paper"),
    "authors Adapt-Lin": ("adapt-lin",),
    "authors GreedyMiser": ("greedy-miser",),
}
"""Points of the authors' code, and which of our methods are set beside them."""
ACQUIRERS = {"GDFS": (CHAMPION,), "DIME": (CHAMPION,)}
"""Methods that choose the next column row by row, measured elsewhere, and what is set beside them."""
_SPREAD = (
    "In brackets the difference in points, ± the 95% interval of our accuracy alone on these test rows: what theirs "
    "answered on each row is not known."
)


def write_report(folder: Path, path: Path) -> None:
    """Write the report of a folder of tables."""
    path.write_text(render(folder, path.parent), encoding="utf-8")


def render(folder: Path, home: Path) -> str:
    """The report, from the tables alone."""
    found = {name: Tables.read(folder, name) for name in names_in(folder)}
    # Quick reports lie two folders further down.
    up = "" if (home / "README.md").is_file() else "../../"
    parts = [
        "# Results",
        "Written by `python benchmarks/run.py all` from the tables in `results/`; how everything is measured stands in "
        f"[README.md]({up}README.md), why figures differ from the paper's in [DIFFERENCES.md]({up}DIFFERENCES.md). "
        "Validation "
        "rows choose, test rows report. Cost is the average per row; *cut* is the part of the full model's cost that "
        "is saved. Brackets are 95% intervals: of a difference, bootstrap over test rows (queries, where these are "
        "ranked) in pairs; of a cut, over splits where there are several, else over test rows.",
    ]
    if any(tables.about.get("level") == "quick" for tables in found.values()):
        parts.append(
            f"**A quick run**: at most {', '.join(map(str, QUICK_ROWS))} rows to learn, choose and test, the first "
            "split alone, thin sweeps and small models. It shows that everything runs, not how good anything is."
        )
    if found:
        parts += _overview(found)
    apart = (
        one_line_section(folder),
        spread_section(folder),
        fit_time_section(folder),
        synthetic_sections(folder, home),
    )
    for heading, text, table in chain(*apart):
        parts += [heading, text, _markdown(table)]
    for name, tables in found.items():
        parts += _section(tables, (folder / f"{name}.png").relative_to(home).as_posix())
    return "\n\n".join(parts) + "\n"


def text_of(tables: Tables) -> str:
    """The main table of a data set, for the eye."""
    own = tables.choices[tables.choices.split == tables.splits[0]]
    legend = (
        f"{tables.name}: cheapest system within so much of the full model on validation rows; its test cost, the part "
        "of the full model's that is saved, and the difference of its test score in points with a 95% interval."
    )
    return "\n".join([legend, _tolerances(own, "stage"), *_missing(tables), ""])


def _overview(found: Mapping[str, Tables]) -> list[str]:
    parts = [
        "## Beside the paper",
        "Cut within 1 point of the full model, and the difference of the test score to the full model's in points. "
        "*Our best* and *best peer* are the methods that cost least on the validation rows of the first split by "
        "stage, of those that were run. The paper counts by path. *More than the paper's*: by how many points of the "
        "full model's cost the cut before it is larger, where rows and full model are of the paper's kind.",
        _markdown(beside_paper(found)),
        "## Cost at equal accuracy",
        "Cheapest system within 1 point of the full model on validation rows: cut on test rows with its interval, and "
        "the difference of the test score in points. By stage: every row pays for all columns of the stages it enters.",
        _markdown(equal_accuracy(found, 0.01)),
        "Nothing lost on validation rows:",
        _markdown(equal_accuracy(found, 0.0)),
    ]
    if why := reasons(found):
        parts.append("– : " + "; ".join(why) + ".")
    parts += [
        "How often a point that was kept on validation rows was exceeded on test rows, and the mean difference, over "
        "all data sets that are no rankings, and all splits a method was run on:",
        _markdown(kept_on_test(found, 0.01)),
    ]
    if len(every := fought(found)):
        parts += [
            f"## The {CHAMPION} against other methods",
            "At every budget of the grid, on every data set and split where both were run: systems chosen on "
            "validation rows; won or lost when the paired interval of the difference on test excludes 0. *Only*: one "
            "of the two has no system so cheap. *Counted*: of how many such budgets; what older runs answered on each "
            f"test row was not kept. Budgets of a split share their rows. The {CHAMPION} was built while some of these "
            "duels were looked at: DIFFERENCES.md says which.",
            _markdown(duels(every, found)),
            "The same by data set, won / even / lost:",
            _markdown(duels_by_data(every)),
        ]
        if len(losses := lost(every)):
            parts += [
                f"Where the {CHAMPION} lost: budgets as shares of the full model's cost, difference in points with its "
                "interval.",
                _markdown(losses),
            ]
    return parts


def _section(tables: Tables, picture: str) -> list[str]:
    about, splits, choices = tables.about, tables.splits, tables.choices
    own = choices[choices.split == 0]
    score, several = about.get("score", "accuracy"), len(splits) > 1
    scores = tables.full("test score")
    queries = (
        f" Queries: {about['train queries']}, {about['validation queries']}, {about['test queries']}."
        if "train queries" in about
        else ""
    )
    parts = [
        f"## {tables.name}",
        f"{about['data']} {about['columns']} columns, {about['classes']} classes; {about['train rows']} rows to learn, "
        f"{about['validation rows']} to choose, {about['test rows']} to test.{queries} {about.get('note', '')}".strip(),
        f"Full model: `{about['full model']}`, test {score} {scores[0]:.4f} at "
        f"{tables.full('cost by stage')[0]:.4g} by stage and {tables.full('cost by path')[0]:.4g} by path"
        + (f"; on {len(splits)} splits {np.mean(scores):.4f} on average." if several else "."),
        f"![test {score} against average cost]({picture})",
        "Cheapest system within 1, 0.5 and 0 points of the full model on validation: test cost, cut, and the "
        "difference of its test score to the full model's in points. By stage"
        + (" on the data's own split:" if several else ":"),
        _tolerances(own, "stage"),
    ]
    if several:
        parts += [
            f"Mean and standard deviation over {len(splits)} splits, the own one and {len(splits) - 1} drawn from all "
            "its rows:",
            _repeated(choices),
        ]
    parts += [
        "By path, where trees pay for what a row's paths test:",
        _tolerances(own, "path"),
        f"{score.capitalize()} on test rows at budgets, as shares of the full model's cost, by stage; nothing where a "
        f"method has no system so cheap. ▼ and ▲: worse or better than {REFERENCE}, where it has one, by more than "
        "chance (the paired interval excludes 0)"
        + ("; ?: not run together with it, so not compared" if _apart(own).any() else "")
        + ("; on the own split." if several else "."),
        _budgets(own, tables.methods),
    ]
    if more := [c for c in own if f"split 0 full model {c}" in about]:
        parts += [
            "Other scores of the systems within 1 point, which chose nothing, on average over the splits that they are "
            "known for:",
            _more(tables, more),
        ]
    if about["same as authors"] == "True":
        parts += [
            "Beside points of the authors' published code (`paper/authors.csv` says how they were measured): the "
            f"system that validation chooses at the same cost. {_SPREAD}",
            _beside(tables, published("authors"), RIVALS),
        ]
    elsewhere = published("acquisition")
    if (elsewhere.data == about["family"]).any() and CHAMPION in tables.methods:
        parts += [
            "Beside points of methods that choose the next column row by row (`paper/acquisition.csv` says how they "
            f"were measured; they have no full model behind them): the {CHAMPION} that validation chooses at the same "
            f"cost. {_SPREAD}",
            _beside(tables, elsewhere, ACQUIRERS),
        ]
    parts += _missing(tables)
    costs = ", ".join(
        f"{m} {s} fits in {round(s.minutes, 2):.1f}" for m, s in spent(tables).items()
    )
    parts.append(
        f"Level {about['level']}; processor minutes: {costs}. Python {about['python']}, numpy {about['numpy']}, "
        f"scikit-learn {about['sklearn']}, LightGBM {about['lightgbm']}, sparing {about['sparing']}."
    )
    return parts


def _missing(tables: Tables) -> list[str]:
    """What is not in the tables of a data set, and why."""
    parts = []
    if left_out := tables.starting("without "):
        reasons = "; ".join(f"{method}: {reason}" for method, reason in left_out.items())
        parts.append(f"Left out: {reasons}.")
    if not_run := [method for method, text in missing(tables).items() if text == "not run"]:
        parts.append(f"Not run yet: {', '.join(not_run)}.")
    if failed := tables.starting("failed "):
        parts.append("Failed: " + "; ".join(f"{m}: {what}" for m, what in failed.items()) + ".")
    return parts


def _more(tables: Tables, names: Sequence[str]) -> str:
    near = tables.near(0.01).dropna(subset=list(names))
    rows = [
        {"method": method, "splits": len(mine)}
        | {name: f"{mine[name].mean():.4f}" for name in names}
        for method, mine in near.groupby("method", sort=False)
    ]
    of_full = {name: np.array(tables.full(name)) for name in names}
    full = {name: f"{values.mean():.4f}" for name, values in of_full.items()}
    return _markdown(
        pd.DataFrame([{"method": "full model", "splits": len(tables.splits), **full}, *rows])
    )


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
        points = 100 * mine.difference.mean()
        text = f"{mine.cut.mean():.0%}, {points:+.2f} (1 split)"
        if len(mine) > 1:
            spread = 100 * mine.difference.std()
            text = (
                f"{mine.cut.mean():.0%} ± {100 * mine.cut.std():.0f}, {points:+.2f} ± {spread:.2f}"
            )
        table.setdefault(method, {})[_wish(tolerance)] = text
    return _markdown(
        pd.DataFrame.from_dict(table, orient="index").rename_axis("method").reset_index()
    )


def _budgets(choices: pd.DataFrame, methods: Sequence[str]) -> str:
    some = choices[(choices.accounting == "stage") & choices.budget.notna()]
    table: dict[str, dict[str, str]] = {m: {} for m in methods}
    for row, apart in zip(some.itertuples(), _apart(some), strict=True):
        mark = " ?" if apart else " ▼" if row.high < 0 else " ▲" if row.low > 0 else ""
        table[row.method][f"{row.budget:.0%}"] = f"{row.score:.4f}{mark}"
    frame = pd.DataFrame.from_dict(table, orient="index")
    frame = frame[[f"{share:.0%}" for share in sorted(some.budget.unique())]]
    return _markdown(frame.rename_axis("method").reset_index())


def _apart(choices: pd.DataFrame) -> pd.Series:
    """Rows at budgets that could be compared with the reference, which has one too, but were not run with it."""
    stage = choices.accounting == "stage"
    budgets = choices.budget[stage & (choices.method == REFERENCE)].dropna()
    return stage & choices.budget.isin(budgets) & choices.low.isna()


def _beside(tables: Tables, points: pd.DataFrame, rivals: Mapping[str, Sequence[str]]) -> str:
    """Points measured elsewhere on the own split, and what our methods reach there at the same cost."""
    curves, family = tables.curves, tables.about["family"]
    curves = curves[(curves.accounting == "stage") & (curves.split == 0)]
    n_rows = int(tables.about["test rows"])
    lines = []
    for point in points[points.data.str.startswith(family)].itertuples():
        line = {
            "": point.method,
            "their cost": f"{point.test_cost:.2f}",
            "their accuracy": f"{point.test_accuracy:.4f}",
        }
        for number, method in enumerate(rivals[point.method]):
            mine = curves[(curves.method == method) & (curves.validation_cost <= point.test_cost)]
            who = "ours" if number == 0 else "ours, as in the paper"
            if len(mine):
                best = mine.loc[mine.validation_score.idxmax()]
                margin = 196 * np.sqrt(best.score * (1 - best.score) / n_rows)
                more = f"{100 * (best.score - point.test_accuracy):+.2f} ± {margin:.2f}"
                line[who] = f"{best.score:.4f} at {best.cost:.2f} ({more})"
        lines.append(line)
    return _markdown(pd.DataFrame(lines))


def _wish(tolerance: float) -> str:
    return f"within {100 * tolerance:g} points"


def _markdown(frame: pd.DataFrame) -> str:
    frame = frame.fillna("")
    lines = [frame.columns, ["---"] * len(frame.columns), *frame.itertuples(index=False)]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
