"""Tables over all data sets, from those on disk: cost at equal accuracy, duels, the paper's cuts beside ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import t as student

from paper.comparison import TOLERANCES
from paper.merging import Spent
from paper.methods import METHODS, PEERS
from paper.pairing import CHAMPION
from paper.tables import Tables, published

OURS = tuple(
    name
    for key in ("cascade", "budgeted", "adapt-gbrt", "adapt-lin", "adapt-lstsq")
    for name in METHODS[key].gives
)
"""Methods of ours that may be the best system: not the paper's own protocol, nor its baselines."""
FAITHFUL = "adapt-gbrt-paper"
EVERY = [name for method in METHODS.values() for name in method.gives]
"""All methods, in the order of the tables."""


def summary(found: Mapping[str, Tables]) -> pd.DataFrame:
    """A row per data set, method, accounting and tolerance: cost and cut with intervals, and what is lost on test.

    With several splits, means and their 95% t-intervals over splits; with one, the interval of the mean cost over test
    rows, and the paired bootstrap interval of the loss.
    """
    rows = []
    for name, tables in found.items():
        for accounting in ("stage", "path"):
            full = tables.full(f"cost by {accounting}")
            for tolerance in TOLERANCES:
                near = tables.near(tolerance, accounting)
                for method, mine in near.groupby("method", sort=False):
                    rows.append(
                        {
                            "data": name,
                            "method": method,
                            "accounting": accounting,
                            "tolerance": tolerance,
                            "splits": len(mine),
                            "over": int((mine.difference < -tolerance).sum()),
                            "full_cost": np.mean(full),
                            # Of the first split, which every method is run on: on it they can be compared.
                            "validation_cost": mine.sort_values("split").validation_cost.iloc[0],
                        }
                        | _numbers(mine)
                    )
    return pd.DataFrame(rows)


def _numbers(mine: pd.DataFrame) -> dict[str, float]:
    """Means with intervals of cost, cut and difference to the full model."""
    if len(mine) > 1:
        return {
            key: value
            for name in ("cost", "cut", "difference")
            for key, value in _over_splits(name, mine[name].to_numpy()).items()
        }
    row = mine.iloc[0]
    full = row.cost / (1 - row.cut) if row.cut < 1 else np.nan
    low, high = (float(row.get(name, np.nan)) for name in ("cost_low", "cost_high"))
    return {
        "cost": row.cost,
        "cost_low": low,
        "cost_high": high,
        "cut": row.cut,
        "cut_low": 1 - high / full,
        "cut_high": 1 - low / full,
        "difference": row.difference,
        "difference_low": row.low,
        "difference_high": row.high,
    }


def _over_splits(name: str, values: np.ndarray) -> dict[str, float]:
    margin = student.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    mean = values.mean()
    # Nobody saves more than everything.
    most = 1.0 if name == "cut" else np.inf
    return {name: mean, f"{name}_low": mean - margin, f"{name}_high": min(mean + margin, most)}


def write_summary(found: Mapping[str, Tables], path: Path) -> None:
    """Write the summary for other documents, the paper's cut beside it."""
    frame = summary(found)
    if len(frame):
        families = {name: tables.about["family"] for name, tables in found.items()}
        paper = published("published").set_index("data")["cut"]
        frame["paper_cut"] = frame.data.map(families).map(paper)
        frame["score"] = frame.data.map(
            {name: tables.about.get("score", "accuracy") for name, tables in found.items()}
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.to_csv(path, index=False, float_format="%.5g")


# -- tables for people --------------------------------------------------------------------------------


def equal_accuracy(found: Mapping[str, Tables], tolerance: float) -> pd.DataFrame:
    """Methods × data sets: cut with its interval, and the difference on test in points."""
    frame = summary(found)
    frame = frame[(frame.accounting == "stage") & (frame.tolerance == tolerance)]
    columns = {
        name: frame[frame.data == name].set_index("method").apply(_cell, axis=1) for name in found
    }
    table = pd.DataFrame(columns)
    table = table.reindex([*EVERY, *(m for m in table.index if m not in EVERY)])
    for name, tables in found.items():
        for method, text in missing(tables).items():
            table.loc[list(METHODS[method].gives), name] = text
    return table.fillna("not run").rename_axis("method").reset_index()


def missing(tables: Tables) -> dict[str, str]:
    """Methods of the table that have no results here: "–" where they do not apply, "not run" where they could."""
    left_out, run = tables.starting("without "), spent(tables)
    return {
        name: "–" if name in left_out else "not run"
        for name, method in METHODS.items()
        if name not in run and not set(method.gives) & set(tables.methods)
    }


def spent(tables: Tables) -> dict[str, Spent]:
    """Fits and minutes of the methods, over the splits each was run on."""
    total: dict[str, Spent] = {}
    for (_, method), mine in tables.spent.items():
        fits, of, minutes = total.get(method, Spent())
        total[method] = Spent(fits + mine.fits, of + mine.of, minutes + mine.minutes)
    order = [*(name for name in METHODS if name in total), *(m for m in total if m not in METHODS)]
    return {method: total[method] for method in order}


def _cell(row: pd.Series) -> str:
    if row.cut <= 0:
        return "full model"
    interval = (
        f" [{100 * row.cut_low:.0f}, {100 * row.cut_high:.0f}]" if np.isfinite(row.cut_low) else ""
    )
    return f"{100 * row.cut:.0f}%{interval}, {100 * row.difference:+.2f}"


def reasons(found: Mapping[str, Tables]) -> list[str]:
    """Why methods are missing, a line per reason."""
    why: dict[tuple[str, str], list[str]] = {}
    for name, tables in found.items():
        for method, reason in tables.starting("without ").items():
            why.setdefault((method, reason), []).append(name)
    return [f"{method} on {', '.join(names)}: {reason}" for (method, reason), names in why.items()]


def kept_on_test(found: Mapping[str, Tables], tolerance: float) -> pd.DataFrame:
    """How often a tolerance that was kept on validation rows was missed on test rows, method by method."""
    every = summary(found)
    counted = [name for name, tables in found.items() if tables.about.get("unit") != "queries"]
    frame = every[every.data.isin(counted) & (every.accounting == "stage") & (every.cut > 0)]
    frame = frame[frame.tolerance == tolerance]
    rows = []
    for method, mine in frame.groupby("method"):
        splits = mine.splits.sum()
        lost = 100 * np.average(mine.difference, weights=mine.splits)
        share = f"{mine.over.sum()} of {splits} ({mine.over.sum() / splits:.0%})"
        rows.append({"method": method, "splits that lost more": share, "mean": f"{lost:+.2f}"})
    columns = ["method", "splits that lost more", "mean"]
    return _by_method(pd.DataFrame(rows, columns=columns).set_index("method"), "method")


def fought(found: Mapping[str, Tables]) -> pd.DataFrame:
    """Every duel of the champion, with its data set and how it ended."""
    every = pd.concat(
        [tables.duels.assign(data=name) for name, tables in found.items()], ignore_index=True
    )
    if len(every):
        every["outcome"] = np.select(
            [every.alone == CHAMPION, every.alone == every.method, every.low > 0, every.high < 0],
            ["only cascade", "only the other", "won", "lost"],
            "even",
        )
    return every


def duels(every: pd.DataFrame, found: Mapping[str, Tables]) -> pd.DataFrame:
    """The champion against every method: budgets won, even, lost, over all data sets and splits."""
    columns = ["won", "even", "lost", "only cascade", "only the other"]
    counts = every.groupby(["method", "outcome"]).size().unstack(fill_value=0)
    counts = counts.reindex(columns=columns, fill_value=0)
    counts["counted"] = counts.sum(axis=1).astype(str) + " of " + _possible(found).astype(str)
    counts["data sets"] = every.groupby("method")["data"].nunique()
    return _by_method(counts, "cascade against")


def _possible(found: Mapping[str, Tables]) -> pd.Series:
    """Splits and budgets, by method, where it and the champion were run and one of them has a system."""
    total = dict.fromkeys(EVERY, 0)
    for tables in found.values():
        some = tables.choices[(tables.choices.accounting == "stage")]
        run = some.groupby("split")["method"].unique()
        at = some.dropna(subset="budget").groupby(["split", "method"])["budget"].agg(set).to_dict()
        for split, methods in run.items():
            mine = at.get((split, CHAMPION), set())
            for method in set(methods) - {CHAMPION} if CHAMPION in methods else ():
                total[method] = total.get(method, 0) + len(mine | at.get((split, method), set()))
    return pd.Series(total)


def duels_by_data(every: pd.DataFrame) -> pd.DataFrame:
    """Methods × data sets: budgets won / even / lost where both have a system."""
    counts = every.groupby(["method", "data", "outcome"]).size().unstack(fill_value=0)
    counts = counts.reindex(columns=["won", "even", "lost"], fill_value=0)
    cells = counts.astype(str).agg(" / ".join, axis=1)
    return _by_method(cells.unstack(), "cascade against")


def lost(every: pd.DataFrame) -> pd.DataFrame:
    """Where the champion is worse beyond chance: splits and budgets, by how many points."""
    rows = []
    for (method, data), some in every[every.outcome == "lost"].groupby(["method", "data"]):
        where = [
            f"split {duel.split} at {duel.budget:.0%}: {100 * duel.difference:+.2f} "
            f"[{100 * duel.low:+.2f}, {100 * duel.high:+.2f}]"
            for duel in some.itertuples()
        ]
        rows.append({"method": method, "data": data, "where": "; ".join(where)})
    frame = pd.DataFrame(rows, columns=["method", "data", "where"])
    return frame.sort_values("method", key=lambda names: names.map(EVERY.index), kind="stable")


def _by_method(frame: pd.DataFrame, title: str) -> pd.DataFrame:
    """Rows in the order of the table of methods, with a title for their names."""
    in_order = [method for method in EVERY if method in frame.index]
    return frame.loc[in_order].rename_axis(title).reset_index()


def beside_paper(found: Mapping[str, Tables]) -> pd.DataFrame:
    """The paper's cut, our Adapt-Gbrt under its protocol (by path), and our best system, as validation ranks them.

    Differences to the paper's cut are by path, as it counts, and stand where rows and full model are of its kind.
    """
    frame = summary(found)
    paper = published("published").set_index("data")["cut"]
    rows = []
    for name, tables in found.items():
        family = tables.about["family"]
        if family not in paper.index:
            continue
        near = frame[(frame.data == name) & (frame.tolerance == 0.01)]
        of_theirs, best, peer = (
            _best(near, accounting, methods)
            for accounting, methods in (("path", [FAITHFUL]), ("stage", OURS), ("stage", PEERS))
        )
        note = tables.about.get("note", "")
        by_path = None if best is None else _best(near, "path", [best.method])
        more, more_of_best = (
            "" if note else _more(one, paper[family]) for one in (of_theirs, by_path)
        )
        rows.append(
            {
                "data": name,
                "paper's cut": f"{paper[family]:.0%}",
                "Adapt-Gbrt as in the paper, by path": _told(of_theirs),
                "more than the paper's": more,
                "the same, by stage": _told(_best(near, "stage", [FAITHFUL])),
                "our best, by path": _told(by_path, named=True),
                "more than the paper's ": more_of_best,
                "the same, by stage ": _told(best),
                "best peer, by stage": _told(peer, named=True),
                "how the data differ": note,
            }
        )
    return pd.DataFrame(rows)


def _best(near: pd.DataFrame, accounting: str, methods: Sequence[str]) -> pd.Series | None:
    """Of some methods the one that costs least on the validation rows of the first split."""
    mine = near[(near.accounting == accounting) & near.method.isin(methods)]
    return mine.loc[mine.validation_cost.idxmin()] if len(mine) else None


def _told(best: pd.Series | None, named: bool = False) -> str:
    if best is None:
        return "not run"
    splits = "1 split" if best.splits == 1 else f"{best.splits} splits"
    return f"{best.method}: {_cell(best)}, {splits}" if named else f"{_cell(best)}, {splits}"


def _more(best: pd.Series | None, paper: float) -> str:
    """Points of the full model's cost."""
    return "" if best is None else f"{100 * (best.cut - paper):+.0f}"
