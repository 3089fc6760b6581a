"""The application that the commands belong to."""

from collections.abc import Callable
from importlib.metadata import version as installed_version
from typing import Annotated

import typer

from sparing.cli import demonstrating, fitting, inspecting, predicting, pricing, reporting, serving
from sparing.cli.console import examples

FIRST_STEPS = """
sparing demo
sparing costs init DATA.csv --target y
sparing fit DATA.csv --target y --costs costs.toml --out model.sparing
sparing report model.sparing DATA.csv
"""

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples(FIRST_STEPS).replace("Examples", "First steps"),
)


def _version(wanted: bool) -> None:
    if wanted:
        print(installed_version("sparing"))
        raise typer.Exit


@app.callback()
def sparing(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Predictions that spend only what they need."""


def _add(command: Callable[..., None], short_help: str, shown: str | None = None) -> None:
    """Add a command; the list of commands has room for one line about it."""
    epilog = None if shown is None else examples(shown)
    app.command(epilog=epilog, short_help=short_help)(command)


app.add_typer(pricing.costs, name="costs", short_help="Write a price list to fill in.")
_add(fitting.fit, "Learn from a file and a price list; write a model.", fitting.FIT_EXAMPLES)
_add(reporting.report, "Measure a model and write one HTML page.", reporting.REPORT_EXAMPLES)
_add(inspecting.frontier, "List what can be had; choose another.", inspecting.FRONTIER_EXAMPLES)
_add(predicting.predict, "Answer every row of a file of any size.", predicting.PREDICT_EXAMPLES)
_add(inspecting.inspect, "Say what is in a model and what it buys.", inspecting.INSPECT_EXAMPLES)
_add(serving.serve, "Answer over HTTP.", serving.SERVE_EXAMPLES)
_add(demonstrating.demo, "See it at work on bundled patients.")
