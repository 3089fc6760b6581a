"""The command ``sparing``: thin commands, each a call of a public function.

Results go to stdout, progress to stderr. Needs the extra ``cli``.
"""

import json
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)


def _version(wanted: bool) -> None:
    if wanted:
        print(version("sparing"))
        raise typer.Exit


@app.callback()
def sparing(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Predictions that spend only what they need."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the plot.")] = Path("out"),
    seed: Annotated[int, typer.Option(help="Random state of split and models.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Learn a budgeted system on bundled patients, print a table, draw the trade-off."""
    from sparing.demo import demo_text, run_demo

    result = run_demo(out, random_state=seed)
    print(json.dumps(result) if as_json else demo_text(result))
