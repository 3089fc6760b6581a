"""``sparing fit``: from a file and a price list to a stored system with its whole frontier."""

from __future__ import annotations

import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from sparing.cli.console import AsJson, DataFile, Drop, Quiet, Target, Text, plain_errors, say, show
from sparing.cli.pricing import read_prices
from sparing.cli.stage_purchases import purchases, purchases_text

FIT_EXAMPLES = """
sparing fit patients.csv --target sick --costs costs.toml --out patients.sparing
sparing fit loans.parquet --target default --costs costs.toml --budget 3 --drop id --out loans.sparing
sparing fit patients.csv --target sick --estimator boosting --tolerance 0.005 --guarantee 0.95 --out p.sparing
"""


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
            help="auto, adapt-gbrt, adapt-lin, adapt-lstsq, cascade, greedy-miser, l1-gate; several with commas."
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
        if budget is None and tolerance is None:
            tolerance = 0.01
        classifier = BudgetedClassifier(
            full_model(estimator, rows.X),
            method=methods(method),
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
        except PromiseError as error:
            # What it says next is of use in Python only.
            reason = str(error).partition(" Nothing needs to be fitted again")[0]
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
        digest = runtime.save(classifier, out, like=rows.X, metadata=about)
        say(f"\n{classifier.frontier_}\n", quiet)
        result = fitted_result(classifier) | {
            "model": str(out),
            "digest": digest,
            "seconds": round(time.perf_counter() - began, 1),
        }
        show(result, fitted_text(result), as_json)


def methods(names: str) -> Any:
    """What ``--method`` means to ``BudgetedClassifier``: one name or a list."""
    several = [name.strip() for name in names.split(",") if name.strip()]
    return several[0] if len(several) == 1 else several


def fitted_result(classifier: Any) -> dict[str, Any]:
    """The choice of a fitted ``BudgetedClassifier`` as plain data."""
    point, full, system = classifier.choice_, classifier.frontier_.full, classifier.system_
    stages = [(s.name, [system.costs.columns[j] for j in s.columns]) for s in system.stages]
    return {
        "cost": point.cost,
        "score": point.score,
        "scoring": str(classifier.scoring),
        "full_cost": full.cost,
        "full_score": full.score,
        "saving": 1 - point.cost / full.cost if full.cost > 0 else 0.0,
        "validation_rows": classifier.frontier_.n_rows,
        "systems": len(classifier.frontier_),
        "method": str(point.label["method"]),
        "promised": hasattr(classifier, "certificate_"),
        "stages": purchases(
            system.costs, stages, has_full=system.has_full, shares=point.stage_rates
        ),
    }


def fitted_text(result: dict[str, Any]) -> str:
    """The same for people."""
    return "\n".join(
        [
            purchases_text(result["stages"]),
            "",
            f"on {result['validation_rows']:,} held-out rows: {result['scoring']} {result['score']:.4f} for "
            f"{result['cost']:.4g} a row, by {result['method']}",
            f"the full model alone:{'':{len(str(result['validation_rows']))}} {result['scoring']} "
            f"{result['full_score']:.4f} for {result['full_cost']:.4g} a row: {result['saving']:.0%} saved",
            f"written to {result['model']} with {result['systems']} systems to choose from "
            f"(sparing frontier {result['model']})",
        ]
    )
