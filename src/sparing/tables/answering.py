"""Answers for a file of rows, chunk by chunk: prediction, stage and cost beside what stands there."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import Any

import numpy as np

from sparing._price_list import short
from sparing.system import System
from sparing.tables.content import Kind, TableError, arrow
from sparing.tables.reading import open_source, table_chunks
from sparing.tables.writing import TableWriter, check_apart

COLUMNS = ("prediction", "stage", "cost")
"""What is added."""


def column_kinds(system: System) -> dict[str, Kind]:
    """Columns a system was fitted on and what they hold, as far as its file says; numbers where it says nothing.

    Raises
    ------
    TableError
        When its columns have no names.
    """
    columns = system.costs.columns
    if not all(isinstance(name, str) for name in columns):
        raise TableError(
            f"The model was fitted on {len(columns)} columns without names, which cannot be found in a file: fit it on "
            "a data frame, or predict in Python."
        )
    like = getattr(system, "like", None)
    names = [str(name) for name in columns]
    if like is None:
        return dict.fromkeys(names, "number")
    types = [getattr(dtype, "kind", "O") for dtype in like.dtypes]
    return {
        name: "number" if kind in "fiub" else "text"
        for name, kind in zip(names, types, strict=True)
    }


def predict_table(
    system: System,
    data: str | PathLike[str],
    out: str | PathLike[str],
    *,
    prefix: str = "",
    progress: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Answer every row of a file into another one, in bounded memory.

    The columns of the file are kept, those of CSV word for word; ``prediction``, ``stage`` (0 is the cheapest) and
    ``cost`` come behind them. The file appears when all rows are answered; after an error there is none.

    Parameters
    ----------
    system : System
        Usually from :func:`sparing.runtime.load`.
    data, out : str or path
        CSV or Parquet, by their names.
    prefix : str, default=""
        In front of the names of the new columns.
    progress : callable, optional
        Called with the number of rows of every chunk done.

    Returns
    -------
    dict with ``rows``, ``mean_cost``, ``total_cost``, ``stages`` (rows answered at each) and ``predictions`` (rows per
    class).

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sparing import GreedyMiserClassifier
    >>> from sparing.datasets import load_hypothyroid
    >>> from sparing.tables import predict_table
    >>> data = load_hypothyroid(as_frame=True)
    >>> clf = GreedyMiserClassifier(feature_costs=data.costs, n_estimators=5, random_state=0)
    >>> clf = clf.fit(data.data, data.target)
    >>> with TemporaryDirectory() as folder:
    ...     rows, out = Path(folder, "rows.csv"), Path(folder, "answers.csv")
    ...     data.data.head(3).to_csv(rows, index=False)
    ...     done = predict_table(clf.system_, rows, out)
    >>> done["rows"], done["stages"]
    (3, [3])
    """
    check_apart(out, data)
    source, kinds = open_source(data), column_kinds(system)
    names = [prefix + name for name in COLUMNS]
    taken = [name for name in names if name in source.names]
    if taken:
        raise TableError(
            f"{source.path} already has a column {short(taken)}: rename it, or give the new ones other names with "
            "--prefix new_"
        )
    stages = np.zeros(len(system.stages), dtype=np.int64)
    classes = np.zeros(len(system.classes), dtype=np.int64)
    place = {label: i for i, label in enumerate(system.classes.tolist())}
    total = 0.0
    with TableWriter(out, source.delimiter or ",") as writer:
        for batch, X in table_chunks(data, kinds):
            labels, stage, cost = system.answers(X)
            stages += np.bincount(stage, minlength=len(stages))
            found, counts = np.unique(labels, return_counts=True)
            classes[[place[label] for label in found.tolist()]] += counts
            total += float(cost.sum())
            writer.write(_with_answers(batch, X, names, (labels, stage, cost), writer.is_csv))
            if progress is not None:
                progress(len(stage))
        n = int(stages.sum())
        if not n:
            raise TableError(f"{source.path} has a header and no rows.")
    return {
        "rows": n,
        "mean_cost": total / n,
        "total_cost": total,
        "stages": stages.tolist(),
        "predictions": dict(zip(map(str, place), classes.tolist(), strict=True)),
    }


def _with_answers(
    batch: Any, X: Any, names: list[str], values: tuple[Any, ...], word_for_word: bool
) -> Any:
    pa = arrow()
    table = pa.Table.from_batches([batch])
    if not word_for_word:
        # Parquet has types: columns the model knows are written as what they are.
        for name in X.columns:
            index = table.schema.get_field_index(name)
            if pa.types.is_string(table.schema.field(index).type):
                table = table.set_column(
                    index, name, pa.array(X[name].to_numpy(), from_pandas=True)
                )
    for name, value in zip(names, values, strict=True):
        array = pa.array(value.tolist() if value.dtype.kind in "OUT" else value)
        table = table.append_column(name, array)
    return table
