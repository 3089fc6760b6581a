"""``sparing predict``: answers for a file of any size."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from sparing.cli.console import AsJson, DataFile, Quiet, plain_errors, row_counter, say, show
from sparing.cli.measuring import load_whole

PREDICT_EXAMPLES = """
sparing predict new.csv --model patients.sparing --out answers.csv
sparing predict new.parquet --model loans.sparing --out answers.parquet --json
"""


def predict(
    data: DataFile,
    model: Annotated[Path, typer.Option(help="File that `sparing fit` wrote.")],
    out: Annotated[Path, typer.Option(help="CSV or Parquet file for rows and answers.")],
    prefix: Annotated[
        str, typer.Option(help="In front of the names prediction, stage and cost.")
    ] = "",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Answer every row of a file: the rows, with prediction, stage and cost behind them.

    The file is read in chunks: it may be larger than the memory.
    """
    with plain_errors():
        from sparing.tables import predict_table
        from sparing.tables.writing import check_apart

        check_apart(out, data, model)
        system = load_whole(model)
        began = time.perf_counter()
        with row_counter(quiet) as counter:
            done = predict_table(system, data, out, prefix=prefix, progress=counter)
        seconds = time.perf_counter() - began
        say(f"{done['rows'] / seconds:,.0f} rows per second", quiet)
        shares = ", ".join(
            f"{rows / done['rows']:.1%} at {stage.name}"
            for rows, stage in zip(done["stages"], system.stages, strict=True)
        )
        text = (
            f"{done['rows']:,} rows for {done['total_cost']:.6g}, {done['mean_cost']:.4g} a row; answered {shares}; "
            f"written to {out}"
        )
        show(done | {"out": str(out), "seconds": round(seconds, 2)}, text, as_json)
