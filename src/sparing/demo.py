"""The demonstration: real patients, real prices, and a system that keeps the accuracy for a fraction of the money."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import balanced_accuracy_score, recall_score
from sklearn.model_selection import train_test_split

from sparing.adapt import AdaptGbrtClassifier
from sparing.datasets import load_hypothyroid
from sparing.frontier import Frontier
from sparing.system import System

_PENALTIES = np.array([0.3, 0.1, 0.03, 0.01, 0.003])
"""Prices of cost, in units of loss for buying everything; the frontier picks among them."""


def run_demo(
    out: str | Path | None = None, *, random_state: int = 0, quiet: bool = False
) -> dict[str, Any]:
    """Learn a budgeted system on the bundled hypothyroid data and report it.

    Half of the patients train, a quarter chooses the system, a quarter reports.

    Parameters
    ----------
    out : folder, optional
        Where to write the plot of the trade-off; needs the extra ``plot``.
    random_state : int, default=0
        Split and models.
    quiet : bool, default=False
        No progress on stderr.

    Returns
    -------
    dict with ``rows`` (one dict per line of the table), ``items`` (bought first), ``plot`` (path or None), ``seconds``.

    Examples
    --------
    >>> result = run_demo(quiet=True)
    >>> full, cheap, adaptive = result["rows"]
    >>> adaptive["price"] < 0.5 * full["price"]
    True
    """
    began = time.perf_counter()

    def say(text: str) -> None:
        if not quiet:
            seconds = time.perf_counter() - began
            print(f"[{seconds:5.1f} s] {text}", file=sys.stderr, flush=True)

    data = load_hypothyroid()
    X, y = data.data, data.target
    say(
        f"{len(y)} patients, {y.sum()} with hypothyroidism; all tests together cost ${data.costs.total:.2f}"
    )
    X_learn, X_test, y_learn, y_test = train_test_split(
        X, y, test_size=0.25, stratify=y, random_state=random_state
    )
    X_train, X_val, y_train, y_val = train_test_split(
        X_learn, y_learn, test_size=1 / 3, stratify=y_learn, random_state=random_state
    )
    say("training the full model, then cheap models and gates at five prices of cost")
    # Few patients are sick: a forest that weighs the classes evenly misses fewer of them.
    forest = RandomForestClassifier(
        200, min_samples_leaf=3, class_weight="balanced_subsample", oob_score=True
    )
    classifier = AdaptGbrtClassifier(
        forest,
        feature_costs=data.costs,
        full_rate=[0.05, 0.2],
        cost_penalty=(_PENALTIES / data.costs.total).tolist(),
        n_estimators=60,
        random_state=random_state,
    ).fit(X_train, y_train)
    systems = classifier.staged_systems()
    say(f"comparing {len(systems)} systems on {len(y_val)} patients")
    frontier = Frontier.evaluate(systems, X_val, y_val, scoring="balanced_accuracy")
    chosen = frontier.at(tolerance=0.0).system
    say(f"measuring the chosen one on {len(y_test)} patients nobody has looked at")
    rows = [
        _row("full model", chosen.with_thresholds(-np.inf), X_test, y_test),
        _row("cheap model alone", chosen.with_thresholds(np.inf), X_test, y_test),
        _row("adaptive system", chosen, X_test, y_test),
    ]
    plot = None
    if out is not None:
        plot = _plot(frontier.on(X_test, y_test), Path(out))
    return {
        "rows": rows,
        "items": _first_items(chosen),
        "plot": None if plot is None else str(plot),
        "n_test": len(y_test),
        "seconds": time.perf_counter() - began,
    }


def demo_text(result: dict[str, Any]) -> str:
    """The result of :func:`run_demo` as a table for people."""
    full, _, adaptive = result["rows"]
    head = f"on {result['n_test']} unseen patients"
    lines = [
        f"{head:<26}{'accuracy':>9}{'recall of':>11}{'average':>9}{'asked the':>11}",
        f"{'':<26}{'':>9}{'the sick':>11}{'price':>9}{'full model':>11}",
    ]
    lines += [
        f"{row['name']:<26}{row['accuracy']:>9.3f}{row['recall']:>11.3f}"
        f"{'$' + format(row['price'], '.2f'):>9}{row['asked']:>11.1%}"
        for row in result["rows"]
    ]
    saved = 1.0 - adaptive["price"] / full["price"]
    first = ", ".join(f"{name} (${price:.2f})" for name, price in result["items"].items())
    lines += [
        "",
        f"The adaptive system saves {saved:.0%} of the price. Everybody pays first for: {first}.",
    ]
    if result["plot"]:
        lines.append(f"The trade-off is drawn in {result['plot']}.")
    lines += [
        "",
        "Next: put your own prices in.",
        "  from sparing import AdaptGbrtClassifier, Frontier",
        "  clf = AdaptGbrtClassifier(your_model, feature_costs={'age': 0, 'lab': 20}).fit(X, y)",
        "  clf.predict(X_new); clf.route(X_new); clf.acquisition_cost(X_new); clf.explain(X_new[:1])",
        "  Frontier.evaluate(clf, X_val, y_val).at(budget=8).system  # the best system for 8 a row",
    ]
    return "\n".join(lines)


def _row(name: str, system: System, X: Any, y: Any) -> dict[str, Any]:
    answers = system.predict(X)
    # Sent to the full model at once, a row does not pay for the gate as well.
    alone = name == "full model"
    price = System(system.stages[-1:], system.costs, system.classes) if alone else system
    return {
        "name": name,
        "accuracy": float(np.mean(answers == y)),
        "recall": float(recall_score(y, answers)),
        "balanced_accuracy": float(balanced_accuracy_score(y, answers)),
        "price": float(price.acquisition_cost(X).mean()),
        "asked": float(np.mean(system.route(X) == len(system.stages) - 1)),
    }


def _first_items(system: System) -> dict[str, float]:
    items = system.costs.items_of(system.stage_columns()[0])
    return {
        str(system.costs.items[i]): float(system.costs.item_prices[i])
        for i in np.flatnonzero(items)
    }


def _plot(frontier: Frontier, folder: Path) -> Path:
    import matplotlib.pyplot as plt

    from sparing.displays import FrontierDisplay

    folder.mkdir(parents=True, exist_ok=True)
    figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
    FrontierDisplay.from_frontier(frontier, tolerance=0.0, ax=ax)
    ax.set_title(
        "Hypothyroid: systems chosen on validation patients, measured on others", fontsize=11
    )
    ax.set_xlabel("average price per patient, Canadian dollars (1995)")
    path = folder / "hypothyroid.png"
    figure.savefig(path, dpi=150)
    plt.close(figure)
    return path
