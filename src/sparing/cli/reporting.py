"""``sparing report``: one page about a stored model, for people who do not run it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from sparing.cli.console import AsJson, DataFile, ModelFile, Quiet, plain_errors, show
from sparing.cli.measuring import load_whole, rows_to_measure
from sparing.cli.options import near

REPORT_EXAMPLES = """
sparing report patients.sparing patients.csv --out report.html
sparing report patients.sparing test.csv --target sick --segment age --examples 5 --out report.html
"""


def report(
    model: ModelFile,
    data: DataFile,
    out: Annotated[Path, typer.Option(help="File for the page.")] = Path("report.html"),
    target: Annotated[
        str | None,
        typer.Option(
            help="Column of class labels; the model's own if not given.", metavar="COLUMN"
        ),
    ] = None,
    segment: Annotated[
        list[str] | None,
        typer.Option(
            help="Column whose groups are compared; several are possible.", metavar="COLUMN"
        ),
    ] = None,
    examples: Annotated[
        int, typer.Option(help="Rows to show with their values; they may be personal data.")
    ] = 0,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Measure a model on labelled rows and write one self-contained HTML page.

    Of the file it was fitted on, only the rows kept aside are used.
    """
    with plain_errors():
        from sparing.report import write_report
        from sparing.tables.writing import check_apart, check_folder

        check_folder(out)
        check_apart(out, model, data)
        bundle = load_whole(model)
        measured = rows_to_measure(bundle, data, target, quiet)
        rows = measured.rows
        check_segments(segment or (), data, [str(name) for name in rows.X.columns])
        result = write_report(
            bundle,
            rows.X,
            rows.y,
            out,
            segments=segment,
            examples=examples,
            title=title,
            note=None if measured.note is None else sentence(measured.note),
        )
        result = {**result, "measured": measured.result()}
        show(result, f"{_headline(result['headline'])}\nwritten to {out}", as_json)


def sentence(text: str) -> str:
    """The same with a capital letter, unless it begins with the name of a file.

    Examples
    --------
    >>> sentence("the model has learnt from it."), sentence("new.csv is another file.")
    ('The model has learnt from it.', 'new.csv is another file.')
    """
    first = text.split(" ", 1)[0]
    return text if "." in first else text[:1].upper() + text[1:]


def check_segments(wanted: Sequence[str], data: Path, columns: Sequence[str]) -> None:
    """Raise on columns to compare by that the model does not know."""
    from sparing._price_list import short

    for name in wanted:
        if name not in columns:
            raise ValueError(
                f"--segment {name!r} is not a column of {data} that the model was fitted on.{near(name, columns)} It "
                f"has {short(columns)}."
            )


def _headline(found: Mapping[str, Any]) -> str:
    """Score, cost and saving with their intervals, in two lines."""

    def between(name: str, form: str) -> str:
        value = found[name]
        return f"{value['value']:{form}} ({value['low']:{form}} to {value['high']:{form}})"

    lines = [
        f"on {found['n_rows']:,} rows: {found['scoring']} {between('score', '.4f')} for {between('cost', '.4g')} a row"
    ]
    full = found.get("full")
    if full is not None:
        # Of a full model that costs nothing, nothing can be saved.
        saved = f"; saved {between('saving', '.0%')}" if found["saving"] is not None else ""
        lines.append(
            f"the full model alone: {full['score']:.4f} for {full['cost']:.4g} a row{saved}"
        )
    return "\n".join(lines)
