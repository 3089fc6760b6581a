"""``sparing fit``: from a file and a price list to a stored system with its whole frontier."""

from __future__ import annotations

import json
import shlex
import time
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from sparing.cli.console import (
    AsJson,
    DataFile,
    Drop,
    Quiet,
    Target,
    Text,
    counted,
    plain_errors,
    say,
    show,
)
from sparing.cli.inspecting import (
    frontier_result,
    frontier_text,
    point_result,
    promise_text,
    systems_to_list,
)
from sparing.cli.options import (
    check_budget,
    check_guarantee,
    check_numbers,
    known_scoring,
    methods,
)
from sparing.cli.pricing import read_prices
from sparing.cli.stage_purchases import purchases, purchases_text

FIT_EXAMPLES = """
sparing fit patients.csv --target sick --costs costs.toml --out patients.sparing
sparing fit loans.parquet --target default --costs costs.toml --budget 3 --drop id --out loans.sparing
sparing fit patients.csv --target sick --estimator boosting --tolerance 0.005 --guarantee 0.95 --out p.sparing
"""


_LINES = 8
"""Systems of the table after a fit, besides the chosen one; `sparing frontier` has them all."""


_LEVEL = 0.95
"""Of the interval of what is lost."""


_FEW = 500
"""Rows that choose, below which the best of thousands of systems is mostly the luckiest."""


class Estimator(StrEnum):
    """Kinds of full models."""

    forest = "forest"
    boosting = "boosting"
    logistic = "logistic"
    svm = "svm"


def fit(
    data: DataFile,
    target: Target,
    out: Annotated[
        Path, typer.Option(help="File for the model, usually NAME.sparing.", metavar="MODEL")
    ],
    costs: Annotated[
        Path | None,
        typer.Option(help="Price list, see `sparing costs init`; without it every column costs 1."),
    ] = None,
    estimator: Annotated[
        Estimator, typer.Option(help="The full model, which sees every column.")
    ] = Estimator.forest,
    method: Annotated[
        str,
        typer.Option(
            help="auto races several, of which cascade takes the longest; or adapt-gbrt, adapt-lin, adapt-lstsq, "
            "cascade, greedy-miser, l1-gate, several with commas."
        ),
    ] = "auto",
    budget: Annotated[
        float | None, typer.Option(help="Average cost per row, at most: the best system for it.")
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            help="Loss of score against the full model, at most: the cheapest system. Without budget: 0.01."
        ),
    ] = None,
    scoring: Annotated[
        str, typer.Option(help="What is compared: accuracy, balanced_accuracy, roc_auc, …")
    ] = "accuracy",
    guarantee: Annotated[
        float | None,
        typer.Option(help="Confidence, such as 0.95, with which budget and tolerance are to hold."),
    ] = None,
    test: Annotated[
        float,
        typer.Option(
            help="Share of the rows kept aside, on which `sparing report` measures when given the same file."
        ),
    ] = 0.2,
    drop: Drop = None,
    text: Text = None,
    seed: Annotated[int, typer.Option(help="Random state of split and models.")] = 0,
    jobs: Annotated[
        int | None, typer.Option(help="Fits at the same time; -1 is all cores.")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Learn a system that buys only what it needs, and store it with all other budgets.

    A part of the rows is kept aside for `sparing report`, and a quarter of the others to choose by. Text and missing
    values may stay as they are.
    """
    with plain_errors():
        from sparing import BudgetedClassifier, PromiseError, runtime
        from sparing.tables import fingerprint, full_model, read_labelled
        from sparing.tables.writing import check_apart, check_folder

        began = time.perf_counter()
        if budget is None and tolerance is None:
            tolerance = 0.01
        check_budget(budget)
        check_numbers(seed, jobs)
        raced, scoring = methods(method), known_scoring(scoring)
        check_guarantee(guarantee, tolerance, scoring)
        check_folder(out)
        check_apart(out, data, costs)
        rows = read_labelled(data, target, drop=drop or (), text=text or ())
        total, known_by, content = len(rows.y), fingerprint(data), rows.content()
        if test:
            rows, _ = rows.split(test, seed=seed)
        prices = read_prices(costs, rows, drop or ())
        if costs is None:
            say("no price list given: every column costs 1 (see `sparing costs init`)", quiet)
        say(
            f"{total:,} rows, of which {len(rows.y):,} to learn and choose; {rows.X.shape[1]} columns, all together "
            f"{prices.total:.6g}",
            quiet,
        )
        classifier = BudgetedClassifier(
            full_model(estimator, rows.X),
            method=raced,
            feature_costs=prices,
            budget=budget,
            tolerance=tolerance,
            scoring=scoring,
            guarantee=guarantee,
            random_state=seed,
            n_jobs=jobs,
            verbose=0 if quiet else 1,
        )
        try:
            classifier.fit(rows.X, rows.y)
        except ValueError as error:
            # What it says next is of use in Python only.
            reason, fitted, _ = str(error).partition(" Nothing needs to be fitted again")
            if not fitted and not isinstance(error, PromiseError):
                raise
            raise ValueError(
                f"{reason} No model was written: loosen --tolerance or --budget, lower --guarantee, or give more rows."
            ) from error
        about = {
            "data": data.name,
            "target": target,
            "rows": len(rows.y),
            "estimator": str(estimator),
            "seed": seed,
            "test": test,
            "sha256": known_by,
            "content": content,
        }
        systems = systems_to_list(classifier.frontier_, classifier.choice_)
        digest = runtime.save(classifier, out, frontier=systems, like=rows.X, metadata=about)
        listed = frontier_result(systems) | {"chosen": point_result(classifier.choice_, systems)}
        say(f"\n{frontier_text(listed, most=_LINES)}\n", quiet)
        result = fitted_result(classifier) | {
            "model": str(out),
            "data": str(data) if test else None,
            "digest": digest,
            "seconds": round(time.perf_counter() - began, 1),
        }
        show(result, fitted_text(result), as_json)


def fitted_result(classifier: Any) -> dict[str, Any]:
    """The choice of a fitted ``BudgetedClassifier`` as plain data."""
    point, full, system = classifier.choice_, classifier.frontier_.full, classifier.system_
    certificate = getattr(classifier, "certificate_", None)
    stages = [(s.name, [system.costs.columns[j] for j in s.columns]) for s in system.stages]
    return {
        "cost": point.cost,
        "score": point.score,
        "scoring": str(classifier.scoring),
        "full_cost": full.cost,
        "full_score": full.score,
        "saving": 1 - point.cost / full.cost if full.cost > 0 else 0.0,
        "validation_rows": classifier.frontier_.n_rows,
        "loss": loss_result(classifier),
        # Those that are stored.
        "systems": len(systems_to_list(classifier.frontier_, point)),
        "method": str(point.label["method"]),
        "promised": certificate is not None,
        "certificate": None if certificate is None else json.loads(certificate.to_json()),
        "stages": purchases(
            system.costs, stages, has_full=system.has_full, shares=point.stage_rates
        ),
    }


def loss_result(classifier: Any) -> dict[str, float]:
    """Score lost to the full model on the validation rows, and the ends of its 95% interval, rows taken in pairs."""
    from sparing._bounds import binomial_bound

    frontier, point = classifier.frontier_, classifier.choice_
    value = float(frontier.full.score - point.score)
    low, high = map(float, replace(frontier, points=(point,)).intervals(_LEVEL).loss[0])
    if low == high and frontier.scoring == "accuracy":
        # Rows that all agree, drawn again, agree again: how many others may not is a matter of their number.
        rare = binomial_bound(0, frontier.n_rows, (1 - _LEVEL) / 2)
        low, high = low - rare, high + rare
    return {"value": value, "low": low, "high": high, "level": _LEVEL}


def loss_text(result: dict[str, Any]) -> str:
    """How far the score may be off on other rows than those it was chosen on."""
    loss = result["loss"]
    can_promise = result["scoring"] == "accuracy" and not result["promised"]
    hint = "; for a promise give --guarantee 0.95" if can_promise else ""
    few = result["validation_rows"] < _FEW
    caution = (
        "too good, as so few rows also chose" if few else "a little too good as the rows also chose"
    )
    return (
        f"chosen on these {result['validation_rows']:,} rows, where it loses {loss['value']:.4f} to the full model; on "
        f"new rows {loss['low']:.4f} to {loss['high']:.4f} ({loss['level']:.0%} interval, {caution}){hint}"
    )


def fitted_text(result: dict[str, Any]) -> str:
    """The same for people."""
    data = result.get("data")
    return "\n".join(
        [
            purchases_text(result["stages"]),
            "",
            f"on {result['validation_rows']:,} held-out rows: {result['scoring']} {result['score']:.4f} for "
            f"{result['cost']:.4g} a row, by {result['method']}",
            f"the full model alone:{'':{len(str(result['validation_rows']))}} {result['scoring']} "
            f"{result['full_score']:.4f} for {result['full_cost']:.4g} a row: {result['saving']:.0%} saved",
            loss_text(result),
            *([promise_text(result["certificate"])] if result["certificate"] else []),
            f"written to {result['model']} with {counted(result['systems'], 'system')} to choose from "
            f"(sparing frontier {result['model']})",
            *([f"next: sparing report {_words(result['model'], data)}"] if data else []),
        ]
    )


def _words(*names: str) -> str:
    return " ".join(map(shlex.quote, names))
