"""A frontier as a table: for pandas, and for the eye."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sparing._choice import pareto_order
from sparing._evaluation import Label, label_text
from sparing.metrics.saving import cut
from sparing.metrics.scoring import scoring_name

if TYPE_CHECKING:
    from sparing.frontier import Frontier

_LINES = 10
"""Systems shown when a frontier is printed, spread over the Pareto set."""


def frontier_frame(frontier: Frontier) -> Any:
    """One row per system; see :meth:`sparing.frontier.Frontier.frame`."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError(
            "Frontier.frame needs pandas: pip install 'sparing[bench]', or pandas itself."
        ) from error
    judge = frontier.judge
    columns: dict[str, Any] = {"cost": frontier.costs, "score": frontier.scores}
    if frontier.full is not None and frontier.full.cost > 0:
        columns["saving"] = 1 - frontier.costs / frontier.full.cost
    columns["pareto"] = np.isin(np.arange(len(frontier)), pareto_order(judge.costs, judge.scores))
    for stage in range(max(len(point.stage_rates) for point in frontier)):
        columns[f"stage_{stage}"] = [
            point.stage_rates[stage] if stage < len(point.stage_rates) else np.nan
            for point in frontier
        ]
    if frontier.chosen is not None:
        columns |= {"chosen_cost": frontier.chosen.costs, "chosen_score": frontier.chosen.scores}
    labels = [as_mapping(point.label) for point in frontier]
    for key in dict.fromkeys(key for label in labels for key in label):
        name = f"label_{key}" if key in columns else key
        columns[name] = [label.get(key) for label in labels]
    return pandas.DataFrame(columns)


def frontier_text(frontier: Frontier) -> str:
    """A few lines: the systems worth having, and the full model."""
    best = frontier.pareto()
    shown = np.unique(np.linspace(0, len(best) - 1, _LINES).round().astype(int))
    where = "" if frontier.chosen is None else " where they were chosen"
    lines = [
        f"Frontier: {len(frontier)} systems, {len(best)} not dominated{where}; {scoring_name(frontier.scoring)} on "
        f"{frontier.n_rows} rows, cost by {frontier.accounting}"
        + (f"; {len(shown)} of them:" if len(shown) < len(best) else ""),
        f"  {'cost':>9} {'score':>9} {'saved':>6}",
    ]
    for point in [*(best.points[i] for i in shown), *([frontier.full] if frontier.full else [])]:
        saved = ""
        if frontier.full is not None and frontier.full.cost > 0:
            saved = f"{cut(point.cost, frontier.full.cost):.0%}"
        text = f"  {point.cost:>9.4g} {point.score:>9.4f} {saved:>6}  {label_text(point.label)}"
        lines.append(text.rstrip())
    return "\n".join(lines)


def as_mapping(label: Label) -> Mapping[str, Any]:
    """A label as a mapping; a text stands under ``label``."""
    if label is None:
        return {}
    return label if isinstance(label, Mapping) else {"label": label}
