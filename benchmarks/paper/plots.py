"""The picture of a data set, from its tables alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from paper.tables import Tables, published
from sparing.displays import Curve, FrontierDisplay

DRAWN = (
    "cascade",
    "budgeted",
    "adapt-gbrt",
    "adapt-gbrt-paper",
    "greedy-miser",
    "budget-prune",
    "lightgbm-confidence",
    "catboost-confidence",
    "adapt-lin",
    "l1-gate",
)


def write_plot(folder: Path, name: str) -> None:
    """Draw the frontiers on test rows of the loader's own split, as validation chose them."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    tables = Tables.read(folder, name)
    curves = tables.curves[(tables.curves.split == 0) & (tables.curves.accounting == "stage")]
    near = tables.near(0.01)
    cuts = near[near.split == 0].set_index("method")["cut"]
    full = tables.full("cost by stage")[0], tables.full("test score")[0]
    # Where a tenth of the cost is spent nobody is near the full model yet: the picture starts there.
    drawn = []
    for method in DRAWN:
        mine = curves[(curves.method == method) & (curves.score > full[1] - 0.12)]
        if len(mine):
            drawn.append(
                Curve(mine.cost.to_numpy(), mine.score.to_numpy(), method, saving=cuts.get(method))
            )
    score_name = f"test {tables.about.get('score', 'accuracy')}"
    display = FrontierDisplay(drawn, full=full, tolerance=0.01, score_name=score_name).plot()
    if tables.about["same as authors"] == "True":
        _draw_authors(display.ax_, tables.about["family"], full[1] - 0.12)
    display.figure_.savefig(folder / f"{name}.png", dpi=110)
    plt.close(display.figure_)


def _draw_authors(ax: Any, family: str, lowest: float) -> None:
    points = published("authors")
    points = points[points.data.str.startswith(family) & (points.test_accuracy > lowest)]
    for (method, mine), marker in zip(points.groupby("method"), "x+*", strict=False):
        ax.plot(mine.test_cost, mine.test_accuracy, marker, color="black", label=method, zorder=8)
    ax.legend(
        loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=2, frameon=False, fontsize="small"
    )
