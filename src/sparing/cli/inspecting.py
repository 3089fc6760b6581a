"""``sparing inspect`` and ``sparing frontier``: what a stored system buys, and what else could be had."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparing.cli.console import (
    AsJson,
    ModelFile,
    counted,
    in_short,
    plain_errors,
    show,
    table,
)
from sparing.cli.measuring import load_whole, rows_to_measure
from sparing.cli.options import check_budget
from sparing.cli.stage_purchases import purchases, purchases_text

if TYPE_CHECKING:
    from sparing import Frontier
    from sparing.tables import Labelled


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
        f"{key} {in_short(value)}"
        for key, value in result["metadata"].items()
        if key not in ("sha256", "content")
    )
    made = ", ".join(f"{name} {number}" for name, number in result["made_by"].items() if number)
    classes = ", ".join(map(str, result["classes"][:8])) + ", …" * (len(result["classes"]) > 8)
    promise = result["certificate"]
    lines = [
        f"{result['model']}: format {result['format']}, made by {made}",
        *([about] if about else []),
        f"classes: {classes}",
        f"{result['columns']} columns, all together {result['all_columns_cost']:.6g}",
        "",
        purchases_text(result["stages"]),
        "",
        f"systems to choose from: {result['frontier'] or 'this one alone'}"
        + ("" if promise else "; promised: nothing"),
        *([promise_text(promise)] if promise else []),
    ]
    if result["outside"]:
        lines.append(f"models that are not inside: {', '.join(result['outside'])}")
    return "\n".join(lines)


def promise_text(certificate: Any) -> str:
    """What a stored certificate says; of one of somebody else's making, where it can be read."""
    from sparing import Certificate

    try:
        return repr(Certificate.from_json(json.dumps(certificate)))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        # A bundle stores any plain data as a certificate, so any part of it may be missing or of another type.
        return "promised: in words of its own, see --json"


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
        stored = stored_frontier(bundle, model)
        own = own_point(bundle, stored)
        systems = systems_to_list(stored, own)
        place = None if own is None else systems.points.index(own)
        if data is not None:
            measured = rows_to_measure(bundle, data, target)
            systems = measured_on(systems, measured.rows)
        result = frontier_result(systems)
        if place is not None:
            result["own"] = point_result(systems.points[place], systems)
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
        text = frontier_text(result)
        if out is not None and bundle.certificate is not None:
            text += (
                f"\nThe promise of {model.name} is about another system and is not in {out.name}."
            )
        show(result, text, as_json)


def stored_frontier(bundle: Any, model: Path) -> Frontier:
    """The frontier of a loaded file, ready to choose from."""
    from sparing import Frontier

    stored = bundle.frontier
    if stored is None or not stored.points:
        raise ValueError(f"{model} holds one system and no frontier: `sparing fit` stores one.")
    return Frontier(stored.points, stored.full, stored.scoring, stored.accounting, stored.n_rows)


def own_point(bundle: Any, stored: Frontier) -> Any:
    """The system that a loaded file answers with, as a point of its frontier; None when it is not one of them."""
    records = bundle.manifest["frontier"]["points"]
    # A point without a number of its own is the main system of the file.
    places = (place for place, record in enumerate(records) if record["system"] is None)
    return next((stored.points[place] for place in places), None)


def systems_to_list(frontier: Frontier, chosen: Any = None) -> Frontier:
    """The systems that no other one beats and the chosen one, cheapest first.

    Caution or a promise may choose a system that is beaten on the rows of the frontier.

    Parameters
    ----------
    frontier : measured on the rows that chose.
    chosen : one of its points, if any.
    """
    best = frontier.pareto()
    if chosen is None or any(point is chosen for point in best):
        return best
    points = sorted([*best.points, chosen], key=lambda point: (point.cost, point.score))
    return replace(best, points=tuple(points))


def measured_on(systems: Frontier, rows: Labelled) -> Frontier:
    """All these systems on other rows, in the same order; they are still chosen by the old ones.

    ``Frontier.on`` would leave out the beaten ones, and the model's own may be one of them.
    """
    from sparing import Frontier

    other = Frontier.evaluate(
        [point.system for point in systems],
        rows.X,
        rows.y,
        scoring=systems.scoring,
        accounting=systems.accounting,
        labels=[point.label for point in systems],
        full=None if systems.full is None else systems.full.system,
    )
    return replace(other, chosen=systems)


def frontier_result(frontier: Frontier) -> dict[str, Any]:
    """Cost and score of all systems of a frontier, cheapest first, as plain data."""
    points = sorted(frontier, key=lambda point: (point.cost, point.score))
    return {
        "scoring": str(frontier.scoring),
        "rows": frontier.n_rows,
        "full": None if frontier.full is None else point_result(frontier.full, frontier),
        "points": [point_result(point, frontier) for point in points],
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
    """The same for people: a line per system, with a star at the chosen one or else at the model's own.

    Parameters
    ----------
    result : from :func:`frontier_result`, with one of its points as ``chosen`` or ``own`` if there is one.
    most : lines for systems besides the one with the star and the full model; None is all.
    """
    name = "chosen" if result.get("chosen") else "own"
    starred, full = result.get(name), result["full"]
    systems = result["points"]
    place = None if starred is None else systems.index(starred)
    places = _places_to_show(len(systems), most, place)
    lines = [_line(systems[i], star=i == place) for i in places]
    if full is not None:
        lines.append(_line(full))
    text = table(["cost", result["scoring"], "saved", "answered at each stage", "by"], lines)
    if starred is not None:
        word = "chosen" if name == "chosen" else "this model"
        text += f"\n\n* {word}: {result['scoring']} {starred['score']:.4f} for {starred['cost']:.5g} a row"
    count = counted(len(systems), "system") + (" and the full model" if full is not None else "")
    shown = "" if len(places) == len(systems) else f", {len(places)} of the systems shown"
    return f"{text}\n\n{count} on {counted(result['rows'], 'row')}{shown}"


def _places_to_show(n: int, most: int | None, always: int | None) -> list[int]:
    """Places of a long list, spread evenly from the first to the last, and the one that is always shown."""
    if most is None or n <= most:
        return list(range(n))
    spread = {round(i * (n - 1) / max(most - 1, 1)) for i in range(most)}
    return sorted(spread if always is None else spread | {always})


def _line(point: dict[str, Any], star: bool = False) -> list[str]:
    """The cells of one system in the table."""
    return [
        f"{point['cost']:.5g}",
        f"{point['score']:.4f}",
        "" if point["saving"] is None else f"{point['saving']:.0%}",
        " ".join(f"{share:.0%}" for share in point["stages"]),
        str(point.get("method") or point.get("label") or "") + " *" * star,
    ]
