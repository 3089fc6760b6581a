"""Write what the project measures about itself into the README: run by ``make readme``.

Two blocks between markers: what the demo finds, with its picture in docs/images; and the benchmarks beside the paper,
from the tables in benchmarks/results alone. ``python docs/readme.py results`` writes the second without running the
demo.
"""

from __future__ import annotations

import csv
import json
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parent.parent
RESULT = ROOT / "docs" / "demo.json"
SUMMARY = ROOT / "benchmarks" / "results" / "summary.csv"

OURS = ("cascade", "budgeted", "adapt-gbrt", "adapt-lin", "adapt-lstsq")
"""Methods of ours; those that begin with one of them are variants of it."""
TITLES = {
    "cifar-svm": "CIFAR-10, RBF machine",
    "digits": "Digits, RBF machine",
    "forest-et": "Forest, 200 extra trees",
    "forest-et-attributes": "Forest by attribute, 200 extra trees",
    "forest-rf40": "Forest, 40 trees",
    "letters-rf": "Letters, 500 trees",
    "letters-svm": "Letters, RBF machine",
    "letters-svm-authors": "Letters, the authors' RBF machine",
    "miniboone-rf40": "MiniBooNE (5000 rows), 40 trees",
    "mslr": "MSLR ranking (paper: Yahoo!), 140 trees",
    "thyroid": "ann-thyroid, 500 trees",
}
"""Data sets and their full models in words."""
FAITHFUL = "adapt-gbrt-paper"
"""The paper's own method, under its protocol."""
BASELINES = ("greedy-miser", "budget-prune", "l1-gate")
"""What the paper compares itself with."""


def between(text: str, name: str, block: str) -> str:
    """The text with a block between the markers of this name."""
    start, end = f"<!-- {name}: written by `make readme` -->\n", f"<!-- /{name} -->"
    before, rest = text.split(start)
    return before + start + block + end + rest.split(end)[1]


def demo_block(result: dict) -> str:
    """What the demo finds."""
    from sparing.demo import demo_text

    patients = result["n_learn"] + result["n_report"]
    head = f"What `make demo` finds on the hypothyroid data ({patients} patients, prices of Turney 1995):"
    table = demo_text(result).split("\nRaced:")[0].rstrip()
    return f"{head}\n\n```\n{table}\n```\n"


def results_block(rows: list[dict[str, str]]) -> str:
    """A line per data set: the paper's cut, its method as it stands there, our best, the best peer, the baselines."""
    near = [row for row in rows if row["tolerance"] == "0.01"]
    lines = [
        "| data, full model | paper | its method, by path | ours | best peer | best baseline |",
        "|---|---|---|---|---|---|",
    ]
    for data in dict.fromkeys(row["data"] for row in near):
        here = [row for row in near if row["data"] == data]
        cut = here[0].get("paper_cut", "")
        cells = [
            TITLES.get(data, data),
            f"{float(cut):.0%}" if cut else "–",
            _cell(here, "path", FAITHFUL, named=False),
            _cell(here, "stage", "ours"),
            _cell(here, "stage", "peer"),
            _cell(here, "stage", "baseline"),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", _kept_on_test(near)]) + "\n"


def _kept_on_test(near: list[dict[str, str]]) -> str:
    """How often the point that validation rows keep is exceeded on test rows."""
    mine = [row for row in near if (row["method"], row["accounting"]) == ("cascade", "stage")]
    mine = [row for row in mine if row["score"] == "accuracy"]
    splits = sum(int(row["splits"]) for row in mine)
    over = sum(int(row["over"]) for row in mine)
    return (
        f"A point kept on validation rows can be exceeded on test rows: the cascade loses more on {over} of {splits} "
        "splits. Promises are below."
    )


def kind(method: str) -> str:
    """What a method is to us."""
    if method == FAITHFUL:
        return FAITHFUL
    if method in BASELINES:
        return "baseline"
    return "ours" if method.startswith(OURS) else "peer"


def _cell(rows: list[dict[str, str]], accounting: str, wanted: str, *, named: bool = True) -> str:
    """Cut on test rows and points lost, of the method of a kind that costs least on the first split's validation rows.

    Of methods within a hundredth of that it is the one run on most splits, then the cheaper one.
    """
    mine = [row for row in rows if (row["accounting"], kind(row["method"])) == (accounting, wanted)]
    if not mine:
        return "not run"
    least = min(float(row["validation_cost"]) for row in mine)
    near = [row for row in mine if float(row["validation_cost"]) <= 1.01 * least]
    best = min(near, key=lambda row: (-int(row["splits"]), float(row["validation_cost"])))
    if float(best["cut"]) <= 0:
        return "the full model"
    cell = f"**{float(best['cut']):.0%}**, {100 * float(best['difference']):+.2f}"
    splits = "1 split" if best["splits"] == "1" else f"{best['splits']} splits"
    return f"{cell} ({best['method']}, {splits})" if named else f"{cell} ({splits})"


def read_results() -> list[dict[str, str]]:
    """The summary that the benchmarks write."""
    with open(SUMMARY, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def with_blocks(text: str, result: dict, rows: list[dict[str, str]]) -> str:
    """The README with everything between its markers."""
    return between(between(text, "demo", demo_block(result)), "results", results_block(rows))


def run_the_demo() -> dict:
    """Run it, keep its picture and its result."""
    from sparing.demo import run_demo

    with TemporaryDirectory() as folder:
        result = run_demo(folder)
        shutil.copy(result["plot"], ROOT / "docs" / "images" / "hypothyroid.png")
    result |= {"plot": "docs/images/hypothyroid.png", "seconds": round(result["seconds"], 1)}
    RESULT.write_text(json.dumps(result, indent=1) + "\n")
    return result


def main(words: list[str]) -> None:
    """Write the blocks; with the word ``results`` the demo is not run again."""
    result = json.loads(RESULT.read_text()) if words == ["results"] else run_the_demo()
    readme = ROOT / "README.md"
    readme.write_text(with_blocks(readme.read_text(), result, read_results()))


if __name__ == "__main__":
    main(sys.argv[1:])
