"""The books as a table for people and other programs: CSV or Parquet."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


def export(
    purchases: Sequence[dict[str, Any]], path: str | os.PathLike[str], names: Sequence[str]
) -> None:
    """Write purchases to a file whose ending says which kind."""
    rows = [_row(purchase) for purchase in purchases]
    suffix = Path(path).suffix
    if suffix == ".csv":
        with Path(path).open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, names)
            writer.writeheader()
            writer.writerows(rows)
    elif suffix == ".parquet":
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError as error:
            raise ImportError(
                "Parquet files are written with pyarrow: pip install 'sparing[serve]'."
            ) from error
        table = pyarrow.table({name: [row[name] for row in rows] for name in names})
        pyarrow.parquet.write_table(table, path)
    else:
        raise ValueError(f"export writes .csv and .parquet files, not {str(path)!r}.")


def _row(purchase: dict[str, Any]) -> dict[str, Any]:
    row = purchase | {name: str(purchase[name]) for name in ("entity", "item")}
    for name in ("opened", "settled", "expires"):
        if row[name] is not None:
            row[name] = datetime.fromtimestamp(row[name], UTC)
    if row.get("values") is not None:
        row["values"] = json.dumps({str(c): value for c, value in row["values"].items()})
    return row
