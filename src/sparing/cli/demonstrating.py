"""``sparing demo``: the demonstration on bundled patients."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sparing.cli.console import AsJson, plain_errors, show
from sparing.cli.options import check_numbers


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the plot.")] = Path("out"),
    seed: Annotated[int, typer.Option(help="Random state of split and models.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Learn a budgeted system on bundled patients, print a table, draw the trade-off."""
    with plain_errors():
        from sparing.demo import demo_text, run_demo

        check_numbers(seed, None)
        result = run_demo(out, random_state=seed)
        show(result, demo_text(result), as_json)
