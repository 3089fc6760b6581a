"""The application that the commands belong to."""

from importlib.metadata import version as installed_version
from typing import Annotated

import typer

from sparing.cli import demonstrating, fitting, inspecting, predicting, pricing, reporting, serving
from sparing.cli.console import examples

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="First steps: sparing demo; sparing costs init DATA.csv --target y --out costs.toml; sparing fit --help",
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


app.command(epilog=examples(fitting.FIT_EXAMPLES))(fitting.fit)
app.command(epilog=examples(inspecting.FRONTIER_EXAMPLES))(inspecting.frontier)
app.command(epilog=examples(predicting.PREDICT_EXAMPLES))(predicting.predict)
app.command(epilog=examples(inspecting.INSPECT_EXAMPLES))(inspecting.inspect)
app.command(epilog=examples(reporting.REPORT_EXAMPLES))(reporting.report)
app.command(epilog=examples(serving.SERVE_EXAMPLES))(serving.serve)
app.command()(demonstrating.demo)
app.add_typer(pricing.costs, name="costs")
