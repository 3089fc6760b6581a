"""The demonstration: real patients, real prices, a system that is promised to keep the accuracy for less money."""

from __future__ import annotations

import json
import sys
import textwrap
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import recall_score
from sklearn.model_selection import train_test_split

from sparing.datasets import load_hypothyroid
from sparing.frontier import Frontier
from sparing.guarantees import PromiseError
from sparing.selection import BudgetedClassifier
from sparing.system import System

METHODS = ("adapt-gbrt", "greedy-miser")
"""What the demonstration races: the quick ones of ``method="auto"``."""

TOLERANCE, MIN_RECALL, CONFIDENCE = 0.01, 0.7, 0.95
"""What is to be promised. The sick are few: a point of accuracy could be a fifth of them, hence the floor of recall."""

_BUDGET = 20.0
_LEVEL = 0.95


def run_demo(
    out: str | Path | None = None,
    *,
    method: Any = METHODS,
    random_state: int = 0,
    quiet: bool = False,
) -> dict[str, Any]:
    """Learn a frontier on the bundled hypothyroid data, certify one of its systems and report it.

    A quarter of the patients is kept for the report and used for nothing else. Of the others half train, a fifth
    chooses and three tenths decide what can be promised.

    Parameters
    ----------
    out : folder, optional
        Where to write the plot of the frontier (needs the extra ``plot``) and the certificate.
    method : see :class:`sparing.BudgetedClassifier`, default=("adapt-gbrt", "greedy-miser")
        What to race.
    random_state : int, default=0
        Splits and models.
    quiet : bool, default=False
        No progress on stderr.

    Returns
    -------
    dict
        Plain data: ``rows`` (one dict per line of the table), ``stages`` (what is bought when), ``unread`` (what the
        full model never looks at, so that nobody pays for it), ``certificate`` (None when nothing can be promised;
        ``no_promise`` then says why), ``methods``, ``budget``, ``plot`` (path or None), numbers of patients,
        ``seconds``.

    Examples
    --------
    >>> result = run_demo(method="greedy-miser", quiet=True)
    >>> full, promised, within_budget, nobody = result["rows"]
    >>> promised["price"] < full["price"], within_budget["name"]
    (True, 'best for $20')
    """
    began = time.perf_counter()
    data = load_hypothyroid()
    X, y = data.data, data.target
    _say(
        f"{len(y)} patients, {y.sum()} with hypothyroidism; all tests together cost ${data.costs.total:.2f}",
        quiet,
    )
    X_learn, X_report, y_learn, y_report = train_test_split(
        X, y, test_size=0.25, stratify=y, random_state=random_state
    )
    # Few patients are sick: a forest that weighs the classes evenly misses fewer of them.
    forest = RandomForestClassifier(
        200, min_samples_leaf=3, class_weight="balanced_subsample", oob_score=True
    )
    classifier = BudgetedClassifier(
        forest,
        method=list(method) if isinstance(method, tuple) else method,
        feature_costs=data.costs,
        tolerance=TOLERANCE,
        min_recall={1: MIN_RECALL},
        guarantee=CONFIDENCE,
        validation=0.2,
        calibration=0.3,
        random_state=random_state,
        verbose=int(not quiet),
    )
    no_promise = None
    try:
        chosen = classifier.fit(X_learn, y_learn)
    except PromiseError as error:
        no_promise = str(error)
        chosen = classifier.at(tolerance=TOLERANCE)
    frontier = classifier.frontier_
    assert frontier.full is not None
    _say(f"measuring on {len(y_report)} patients nobody has looked at", quiet)
    budget = max(_BUDGET, 5.0 * float(np.ceil(frontier.costs.min() / 5.0)))
    name = "unpromised system" if no_promise else "promised system"
    systems = {
        "full model": frontier.full.system,
        name: chosen.system_,
        f"best for ${budget:g}": classifier.at(budget=budget).system_,
    }
    rows = _rows(systems, X_report, y_report)
    certificate = getattr(chosen, "certificate_", None)
    result: dict[str, Any] = {
        "rows": rows,
        "stages": _stages(chosen.system_, X_report),
        "unread": _unread(frontier.full.system),
        "certificate": None if certificate is None else json.loads(certificate.to_json()),
        "no_promise": no_promise,
        "methods": sorted(set(classifier.history_["method"].tolist())),
        "budget": budget,
        "n_learn": len(y_learn),
        "n_report": len(y_report),
        "n_sick": int(y_report.sum()),
        "plot": None,
    }
    if out is not None:
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        result["plot"] = str(
            _plot(frontier.on(X_report, y_report), rows, budget, folder / "hypothyroid.png")
        )
        promise = folder / "certificate.json"
        if certificate is not None:
            promise.write_text(certificate.to_json() + "\n")
        else:  # that of an earlier run is not about this system
            promise.unlink(missing_ok=True)
    return result | {"seconds": time.perf_counter() - began}


# -- measuring --------------------------------------------------------------------------------------------------


def _rows(systems: Mapping[str, System], X: Any, y: NDArray[Any]) -> list[dict[str, Any]]:
    """One line per system, and one for calling everybody healthy."""
    whole, *others = systems.values()
    report = Frontier.evaluate(others, X, y, full=whole)
    drawn = report.intervals(_LEVEL)
    assert drawn.saving is not None
    assert drawn.loss is not None
    unknown = np.full((1, 2), np.nan)
    savings, losses = np.vstack([unknown, drawn.saving]), np.vstack([unknown, drawn.loss])
    rows = []
    for i, (name, system) in enumerate(systems.items()):
        answers, cost = system.predict(X), system.acquisition_cost(X)
        rows.append(
            _row(name, answers, y, float(cost.mean()))
            | {
                "asked": float(np.mean(system.route(X) == len(system.stages) - 1))
                if system.has_full
                else 0.0,
            }
        )
        if i > 0:
            rows[i] |= {
                "saving": 1.0 - rows[i]["price"] / rows[0]["price"],
                "saving_interval": savings[i].tolist(),
                "loss": rows[0]["accuracy"] - rows[i]["accuracy"],
                "loss_interval": losses[i].tolist(),
            }
    return [*rows, _row("everybody called healthy", np.zeros_like(y), y, 0.0) | {"asked": 0.0}]


def _row(name: str, answers: NDArray[Any], y: NDArray[Any], price: float) -> dict[str, Any]:
    return {
        "name": name,
        "accuracy": float(np.mean(answers == y)),
        "recall": float(recall_score(y, answers)),
        "missed": int(np.sum((y == 1) & (answers != 1))),
        "price": price,
    }


def _stages(system: System, X: Any) -> list[dict[str, Any]]:
    """What each stage buys that the ones before have not, and for whom."""
    items = system.costs.items_of(system.stage_columns())
    new = items & ~np.vstack([np.zeros_like(items[:1]), items[:-1]])
    names, prices = system.costs.items, system.costs.item_prices
    answering = system.route(X)
    return [
        {
            "name": stage.name,
            "items": {str(names[i]): float(prices[i]) for i in np.flatnonzero(new[k])},
            "reached": float(np.mean(answering >= k)),
        }
        for k, stage in enumerate(system.stages)
    ]


def _unread(full: System) -> dict[str, float]:
    """Tests that cost something and that no tree of the full model looks at."""
    costs = full.costs
    spare = ~costs.items_of(full.stage_columns()).any(axis=0) & (costs.item_prices > 0)
    return {str(costs.items[i]): float(costs.item_prices[i]) for i in np.flatnonzero(spare)}


# -- telling ----------------------------------------------------------------------------------------------------


def demo_text(result: dict[str, Any]) -> str:
    """The result of :func:`run_demo` as text for people.

    Examples
    --------
    >>> print(demo_text(run_demo(method="greedy-miser", quiet=True)))
    on 791 unseen patients     accuracy  recall of  average   saved  asked the
    38 of them sick                       the sick    price         full model
    full model ...
    """
    head = f"on {result['n_report']} unseen patients"
    lines = [
        f"{head:<26}{'accuracy':>9}{'recall of':>11}{'average':>9}{'saved':>8}{'asked the':>11}",
        f"{result['n_sick']} of them sick".ljust(35)
        + f"{'the sick':>11}{'price':>9}{'':>8}{'full model':>11}",
    ]
    for row in result["rows"]:
        saved = f"{row['saving']:.0%}" if "saving" in row else ""
        lines.append(
            f"{row['name']:<26}{row['accuracy']:>9.3f}{row['recall']:>11.3f}"
            f"{'$' + format(row['price'], '.2f'):>9}{saved:>8}{row['asked']:>11.1%}"
        )
    if result["unread"]:
        spare = ", ".join(f"{name} ${price:.2f}" for name, price in result["unread"].items())
        lines.append(f"(no tree of the full model looks at {spare}: not bought)")
    _, chosen, _, _ = result["rows"]
    lines += ["", *_saving_lines(chosen), "", *_promise_lines(result), ""]
    lines += [f"What the {chosen['name']} buys:"]
    lines += [_stage_line(number, stage) for number, stage in enumerate(result["stages"], 1)]
    lines += [
        "",
        f'Raced: {", ".join(result["methods"])}, the quick ones; method="auto" also races cascades and linear models.',
    ]
    if result["plot"]:
        beside = ", the certificate stands beside it" if result["certificate"] else ""
        lines.append(f"The frontier is drawn in {result['plot']}{beside}.")
    lines += [
        "",
        "Next: put your own prices in.",
        "  from sparing import BudgetedClassifier",
        "  clf = BudgetedClassifier(your_model, feature_costs={'age': 0, 'lab': 20}, tolerance=0.01).fit(X, y)",
        "  clf.predict(X_new); clf.route(X_new); clf.acquisition_cost(X_new); clf.explain(X_new[:1])",
        "  clf.at(budget=8)  # the best system for 8 a row, from the same fit",
    ]
    return "\n".join(lines)


def _saving_lines(row: Mapping[str, Any]) -> list[str]:
    low, high = row["saving_interval"]
    least, most = (100 * end for end in row["loss_interval"])
    return [
        f"The {row['name']} saves {row['saving']:.0%} of the price ({_LEVEL:.0%} interval {low:.0%} to {high:.0%}) and "
        f"loses {100 * row['loss']:.1f} points",
        f"of accuracy ({least:.1f} to {most:.1f}; below 0 is a gain). It misses {row['missed']} of the sick.",
    ]


def _promise_lines(result: Mapping[str, Any]) -> list[str]:
    """The certificate in plain words."""
    certificate = result["certificate"]
    if certificate is None:
        return textwrap.wrap(f"No promise: {result['no_promise']}", 100)
    lines = [
        f"Promise, with {certificate['confidence']:.0%} confidence, from {certificate['n']} other patients used for "
        "nothing else:"
    ]
    for finding in certificate["promises"]:
        limit, seen, bound = finding["limit"], finding["estimate"], finding["bound"]
        if finding["kind"] == "tolerance":
            lines.append(
                f"  its accuracy is at most {_points(limit)} below the full model's "
                f"(seen: {100 * seen:.1f}, bound: {100 * bound:.1f});"
            )
        else:
            lines.append(
                f"  it finds at least {1 - limit:.0%} of the sick (seen: {1 - seen:.0%} of {finding['n']}, "
                f"bound: {1 - bound:.0%})."
            )
    return lines


def _points(share: float) -> str:
    return f"{100 * share:.3g} point{'' if share == 0.01 else 's'}"


def _stage_line(number: int, stage: Mapping[str, Any]) -> str:
    dearest = sorted(stage["items"].items(), key=lambda item: -item[1])
    shown = ", ".join(f"{name} ${price:.2f}" for name, price in dearest[:4])
    rest = dearest[4:]
    if rest:
        shown += f", {len(rest)} more ${sum(price for _, price in rest):.2f}"
    return f"  {number}. {stage['name']}, {stage['reached']:.1%} of the patients: {shown or 'nothing more'}"


def _plot(frontier: Frontier, rows: list[dict[str, Any]], budget: float, path: Path) -> Path:
    import matplotlib.pyplot as plt

    from sparing.displays import FrontierDisplay

    figure, ax = plt.subplots(figsize=(7.4, 4.2), layout="constrained")
    FrontierDisplay.from_frontier(frontier, budget=budget, level=_LEVEL, ax=ax)
    _, chosen, _, healthy = rows
    where = chosen["price"], chosen["accuracy"]
    ax.plot(
        *where, marker="o", markersize=12, color="none", markeredgecolor="black",
        markeredgewidth=1.6, linestyle="none", zorder=6,
    )  # fmt: skip
    ax.annotate(
        f"{chosen['name']}: {chosen['accuracy']:.4g} at {chosen['price']:.4g}, {chosen['saving']:.0%} saved",
        where,
        xytext=(20, -62),
        textcoords="offset points",
        fontsize="small",
        arrowprops={"arrowstyle": "-", "color": "#333333", "shrinkB": 6},
        zorder=7,
    )
    ax.axhline(healthy["accuracy"], color="#777777", linestyle=(0, (1, 2)), linewidth=1.2)
    ax.annotate(
        "everybody called healthy",
        (1, healthy["accuracy"]),
        xycoords=ax.get_yaxis_transform(),
        xytext=(-4, 4),
        textcoords="offset points",
        ha="right",
        fontsize="small",
    )
    low, high = ax.get_ylim()
    ax.set_ylim(min(low, healthy["accuracy"] - 0.006), high)
    ax.set_title(
        f"Chosen on validation patients, measured on others; the band is a {_LEVEL:.0%} interval",
        fontsize=11,
    )
    ax.set_xlabel("average price per patient, Canadian dollars (1995)")
    figure.savefig(path, dpi=150)
    plt.close(figure)
    return path


def _say(text: str, quiet: bool) -> None:
    if not quiet:
        print(text, file=sys.stderr, flush=True)
