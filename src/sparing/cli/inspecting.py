"""``sparing inspect`` and ``sparing frontier``: what a stored system buys, and what else could be had."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparing.cli.console import AsJson, ModelFile, plain_errors, show, table
from sparing.cli.measuring import load_whole, rows_to_measure
from sparing.cli.options import check_budget
from sparing.cli.stage_purchases import purchases, purchases_text

if TYPE_CHECKING:
    from sparing import Frontier


INSPECT_EXAMPLES = """
sparing inspect patients.sparing
sparing inspect patients.sparing --json
"""
FRONTIER_EXAMPLES = """
sparing frontier patients.sparing
sparing frontier patients.sparing test.csv --target sick
sparing frontier patients.sparing --budget 12 --out cheaper.sparing
"""


def inspect(model: ModelFile, as_json: AsJson = False) -> None:
    """Say what is in a file: columns, prices, and what it buys stage by stage. Nothing in it is run."""
    with plain_errors():
        from sparing import FeatureCosts, runtime

        manifest = runtime.inspect(model)
        costs = FeatureCosts.from_dict(manifest["prices"])
        stages = [(stage["name"], stage["columns"]) for stage in manifest["stages"]]
        frontier = manifest["frontier"]
        result = {
            "model": str(model),
            "format": manifest["format"],
            "made_by": manifest["made_by"],
            "metadata": manifest["metadata"],
            "classes": manifest["classes"]["labels"],
            "columns": len(costs.columns),
            "all_columns_cost": costs.total,
            "stages": purchases(costs, stages, has_full=manifest["has_full"]),
            "thresholds": manifest["thresholds"],
            "frontier": None if frontier is None else len(frontier["points"]),
            "certificate": manifest["certificate"],
            "outside": manifest["outside"],
        }
        show(result, _inspected_text(result), as_json)


def _inspected_text(result: dict[str, Any]) -> str:
    about = ", ".join(
        f"{key} {value}"
        for key, value in result["metadata"].items()
        if key not in ("sha256", "content")
    )
    made = ", ".join(f"{name} {number}" for name, number in result["made_by"].items() if number)
    classes = ", ".join(map(str, result["classes"][:8])) + ", …" * (len(result["classes"]) > 8)
    lines = [
        f"{result['model']}: format {result['format']}, made by {made}",
        *([about] if about else []),
        f"classes: {classes}",
        f"{result['columns']} columns, all together {result['all_columns_cost']:.6g}",
        "",
        purchases_text(result["stages"]),
        "",
        f"systems to choose from: {result['frontier'] or 'this one alone'}; promised: "
        + ("see --json" if result["certificate"] else "nothing"),
    ]
    if result["outside"]:
        lines.append(f"models that are not inside: {', '.join(result['outside'])}")
    return "\n".join(lines)


def frontier(
    model: ModelFile,
    data: Annotated[
        Path | None,
        typer.Argument(
            help="Rows to measure on; without them, as measured when it was fitted.",
            metavar="DATA",
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            help="Column of class labels in DATA; the model's own if not given.", metavar="COLUMN"
        ),
    ] = None,
    budget: Annotated[
        float | None, typer.Option(help="Choose the best for this cost per row.")
    ] = None,
    tolerance: Annotated[
        float | None, typer.Option(help="Choose the cheapest within this of the full model.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write a model with the chosen system; nothing is fitted again.", metavar="MODEL"
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the systems of a model, cheapest first, and choose another one."""
    with plain_errors():
        from sparing import runtime
        from sparing._choice import CAUTION
        from sparing.tables.writing import check_apart, check_folder

        if data is None and target is not None:
            raise ValueError("--target is a column of DATA: give DATA as well.")
        check_budget(budget)
        chooses = budget is not None or tolerance is not None
        if out is not None and not chooses:
            raise ValueError("--out stores a chosen system: give --budget or --tolerance.")
        if out is not None:
            check_folder(out)
            check_apart(out, model, data)
        bundle = runtime.load(model) if data is None else load_whole(model)
        systems = stored_frontier(bundle, model)
        if data is not None:
            measured = rows_to_measure(bundle, data, target)
            systems = systems.on(measured.rows.X, measured.rows.y)
        result = frontier_result(systems)
        if data is not None:
            result["measured"] = measured.result()
        if chooses:
            point = systems.at(budget=budget, tolerance=tolerance, caution=CAUTION)
            result["chosen"] = point_result(point, systems)
            if out is not None:
                about = dict(bundle.metadata)
                kept = systems if systems.chosen is None else systems.judge
                system = point.system
                runtime.save(system, out, frontier=kept, metadata=about, like=bundle.like)
        show(result, frontier_text(result), as_json)


def stored_frontier(bundle: Any, model: Path) -> Frontier:
    """The frontier of a loaded file, ready to choose from."""
    from sparing import Frontier

    stored = bundle.frontier
    if stored is None:
        raise ValueError(f"{model} holds one system and no frontier: `sparing fit` stores one.")
    return Frontier(
        stored.points, stored.full, stored.scoring, stored.accounting, stored.n_rows
    ).pareto()


def frontier_result(frontier: Frontier) -> dict[str, Any]:
    """Cost and score of the systems worth having, cheapest first, as plain data."""
    return {
        "scoring": str(frontier.scoring),
        "rows": frontier.n_rows,
        "full": None if frontier.full is None else point_result(frontier.full, frontier),
        "points": [point_result(point, frontier) for point in frontier.pareto()],
    }


def point_result(point: Any, frontier: Frontier) -> dict[str, Any]:
    """One system: cost, score, saving, share of rows answered at each stage, and its label."""
    label = point.label if isinstance(point.label, dict) else {"label": point.label}
    full = frontier.full
    saving = None if full is None or not full.cost > 0 else 1 - point.cost / full.cost
    return {
        "cost": point.cost,
        "score": point.score,
        "saving": saving,
        "stages": list(point.stage_rates),
        **{str(key): value for key, value in label.items()},
    }


def frontier_text(result: dict[str, Any], most: int | None = None) -> str:
    """The same for people: a line per system, the chosen one with a star.

    Parameters
    ----------
    result : from :func:`frontier_result`, with ``chosen`` if there is one.
    most : lines for systems; None is all. The chosen one is always among them.
    """
    chosen = result.get("chosen")
    points = result["points"]
    if most is not None and len(points) > most:
        points = [points[round(i * (len(points) - 1) / (most - 1))] for i in range(most)]
    if chosen is not None and chosen not in points:
        points = sorted([*points, chosen], key=lambda point: (point["cost"], point["score"]))
    points = [*points, *([result["full"]] if result["full"] else [])]
    lines = [
        [
            f"{point['cost']:.5g}",
            f"{point['score']:.4f}",
            "" if point["saving"] is None else f"{point['saving']:.0%}",
            " ".join(f"{share:.0%}" for share in point["stages"]),
            str(point.get("method") or point.get("label") or "") + " *" * (point == chosen),
        ]
        for point in points
    ]
    text = table(["cost", result["scoring"], "saved", "answered at each stage", "by"], lines)
    if chosen is not None:
        text += f"\n\n* chosen: {result['scoring']} {chosen['score']:.4f} for {chosen['cost']:.5g} a row"
    shown = "" if most is None or len(result["points"]) <= most else f", {most} of them shown"
    return f"{text}\n\n{len(result['points'])} systems on {result['rows']:,} rows{shown}"
