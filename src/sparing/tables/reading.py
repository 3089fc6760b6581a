"""Reading CSV and Parquet: whole, or in chunks of bounded size; every error names the file and the way out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from sparing._price_list import short
from sparing.tables.content import Kind, NotANumberError, TableError, arrow, kind_of, numbers, texts

CSV = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
PARQUET = (".parquet", ".pq")

_BLOCK = 1 << 20
"""Bytes of CSV that arrow reads at once. It reads up to 32 blocks ahead, whoever waits: small ones bound the memory."""
_CHUNK = 1 << 22
"""Bytes handed on at once: models answer many rows faster than few."""
_ROWS = 1 << 16
"""Rows of Parquet per chunk."""
_DELIMITERS = ",;\t|"
_TO_UTF8 = "save it as UTF-8, for example: iconv -f latin1 -t utf-8 OLD > NEW"


def _joined(batches: Iterable[Any]) -> Iterator[Any]:
    """Neighbouring batches as one, up to about a chunk."""
    waiting: list[Any] = []
    for batch in batches:
        waiting.append(batch)
        if sum(one.nbytes for one in waiting) >= _CHUNK:
            yield arrow().concat_batches(waiting)
            waiting = []
    if waiting:
        yield arrow().concat_batches(waiting)


@dataclass(frozen=True)
class Source:
    """A file that exists and has a header: its names, its form, its chunks.

    Attributes
    ----------
    path : the file.
    names : columns, in their order.
    delimiter : of CSV; None for Parquet.
    """

    path: Path
    names: tuple[str, ...]
    delimiter: str | None

    def batches(self) -> Iterator[Any]:
        """Chunks as arrow's record batches, CSV as text word for word."""
        with self._errors():
            yield from self._csv() if self.delimiter is not None else self._parquet()

    def _csv(self) -> Iterator[Any]:
        from pyarrow import csv

        text = arrow().string()
        with csv.open_csv(
            str(self.path),
            # One thread: only then errors name the row.
            read_options=csv.ReadOptions(block_size=_BLOCK, use_threads=False),
            parse_options=csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(self.names, text),
                strings_can_be_null=False,
                check_utf8=True,
            ),
        ) as reader:
            yield from _joined(reader)

    def _parquet(self) -> Iterator[Any]:
        from pyarrow import parquet

        with parquet.ParquetFile(self.path) as file:
            yield from file.iter_batches(batch_size=_ROWS, use_threads=False)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn what arrow says into a sentence with a way out."""
        try:
            yield
        except arrow().ArrowInvalid as error:
            raise TableError(f"{self.path}: {_explained(str(error), self.names)}") from error


def open_source(path: str | PathLike[str]) -> Source:
    """Look at the header of a file.

    Raises
    ------
    TableError
        When it is empty, of unknown form, not UTF-8, or has two columns of one name.
    FileNotFoundError
    """
    path = Path(path)
    name = path.name.lower()
    if not name.endswith(CSV + PARQUET):
        raise TableError(
            f"{path}: rows are read from CSV ({', '.join(CSV[:4])}) and Parquet ({', '.join(PARQUET)}) files."
        )
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such file.")
    if path.is_dir():
        raise TableError(f"{path} is a folder: name a file in it.")
    if path.stat().st_size == 0:
        raise TableError(
            f"{path} is empty: a header with the names of the columns and rows belong there."
        )
    names, delimiter = _csv_header(path) if name.endswith(CSV) else _parquet_header(path)
    twice = [n for n in dict.fromkeys(names) if names.count(n) > 1]
    if twice:
        raise TableError(
            f"{path} has more than one column named {short(twice)}: give each its own name."
        )
    if "" in names:
        raise TableError(
            f"{path}: column {names.index('') + 1} has no name: name it in the header, or remove it."
        )
    return Source(path, tuple(names), delimiter)


def _csv_header(path: Path) -> tuple[list[str], str]:
    from pyarrow import csv

    pa = arrow()
    with pa.input_stream(str(path), compression="detect") as stream:
        try:
            start = stream.read(1 << 20)
        except OSError as error:
            raise TableError(f"{path} cannot be unpacked: {error}") from error
    line = start.split(b"\n", 1)[0].removeprefix(b"\xef\xbb\xbf")
    if not line.strip():
        raise TableError(f"{path}: its first line is empty; the names of the columns belong there.")
    try:
        header = line.decode()
    except UnicodeDecodeError as error:
        raise TableError(
            f"{path} is not UTF-8 text (byte {error.start + 1} of the header): {_TO_UTF8}"
        ) from error
    delimiter = max(_DELIMITERS, key=header.count)
    try:
        table = csv.read_csv(
            pa.BufferReader(header.encode() + b"\n"),
            parse_options=csv.ParseOptions(delimiter=delimiter),
        )
    except pa.ArrowInvalid as error:
        raise TableError(f"{path}: the header cannot be read: {error}") from error
    return [str(name) for name in table.column_names], delimiter


def _parquet_header(path: Path) -> tuple[list[str], None]:
    from pyarrow import parquet

    try:
        return [str(name) for name in parquet.read_schema(path).names], None
    except arrow().ArrowInvalid as error:
        raise TableError(f"{path} is not a Parquet file: {error}") from error


def _explained(error: str, names: Sequence[str]) -> str:
    ragged = re.search(r"(?:Row #(\d+): )?Expected (\d+) columns, got (\d+)", error)
    if ragged:
        row, expected, got = ragged.groups()
        where = f"line {row}" if row else "a line"
        return (
            f"{where} has {got} columns, the header {expected}: mend the line; a value with a delimiter inside belongs "
            "between double quotes."
        )
    if "UTF8" in error:
        column = re.search(r"column #(\d+)", error)
        where = f" (column {names[int(column[1])]!r})" if column else ""
        return f"it is not UTF-8 text{where}: {_TO_UTF8}"
    if "Empty CSV" in error:
        return "it has a header and no rows."
    if "straddling object" in error:
        return f"a row is larger than {_BLOCK >> 20} MB, or a double quote is never closed: mend the quotes."
    return f"it cannot be read: {error}"


# -- frames -------------------------------------------------------------------------------------------


def read_table(
    path: str | PathLike[str],
    *,
    drop: Sequence[str] = (),
    text: Sequence[str] = (),
    like: Mapping[str, Kind] | None = None,
) -> Any:
    r"""Read a file of rows into a pandas frame of numbers and text.

    Parameters
    ----------
    path : str or path
        CSV (comma, semicolon, tab or bar; also gzipped) or Parquet.
    drop : names of columns to leave out.
    text : names of columns that are text whatever they look like: codes, numbers of departments.
    like : mapping of column to "number" or "text", optional
        Columns to read and what they hold; other columns are left out. None finds out.

    Returns
    -------
    pandas.DataFrame
        float64 with NaN, and objects (str, None).

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "patients.csv")
    ...     _ = file.write_text("age,sex,smoker\n61,f,true\n,m,false\n")
    ...     read_table(file)
        age sex  smoker
    0  61.0   f     1.0
    1   NaN   m     0.0
    """
    source = open_source(path)
    for option, names in (("drop", drop), ("text", text)):
        unknown = [name for name in names if name not in source.names]
        if unknown:
            raise TableError(
                f"{source.path} has no column {short(unknown)} to {_VERBS[option]}; {_has(source)}."
            )
    wanted = [name for name in source.names if name not in set(drop)]
    if like is not None:
        check_has(source, like)
        wanted = list(like)
    parts: dict[str, list[Any]] = {name: [] for name in wanted}
    for batch in source.batches():
        for name in wanted:
            parts[name].append(batch.column(source.names.index(name)))
    if not wanted or not sum(len(part) for part in parts[wanted[0]]):
        raise TableError(f"{source.path} has a header and no rows.")
    columns: dict[str, Any] = {}
    for name in wanted:
        array = arrow().chunked_array(parts.pop(name))
        given = "text" if name in text else None if like is None else like[name]
        kind = given or (kind_of(array) if source.delimiter is not None else _declared(array))
        if kind is None:
            raise TableError(_unusable(source, name, array))
        columns[name] = _converted(source, name, array, kind, 0)
    return _frame(columns)


_VERBS = {"drop": "leave out", "text": "read as text"}


def table_chunks(path: str | PathLike[str], like: Mapping[str, Kind]) -> Iterator[tuple[Any, Any]]:
    r"""Read a file of rows in chunks: what stands there, and the wanted columns as a frame.

    Parameters
    ----------
    path : str or path
    like : mapping of column to "number" or "text"
        Columns of the frame, in their order.

    Yields
    ------
    batch : pyarrow.RecordBatch
        All columns of the file; of CSV the text, word for word.
    frame : pandas.DataFrame

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "patients.csv")
    ...     _ = file.write_text("name,age\nA,61.0\nB,NA\n")
    ...     for batch, frame in table_chunks(file, {"age": "number"}):
    ...         print(batch.to_pylist(), frame["age"].tolist())
    [{'name': 'A', 'age': '61.0'}, {'name': 'B', 'age': 'NA'}] [61.0, nan]
    """
    source = open_source(path)
    check_has(source, like)
    first = 0
    for batch in source.batches():
        columns = {
            name: _converted(source, name, batch.column(source.names.index(name)), kind, first)
            for name, kind in like.items()
        }
        if batch.num_rows:
            yield batch, _frame(columns)
        first += batch.num_rows


def check_has(source: Source, like: Mapping[str, Kind]) -> None:
    """Raise unless a file has all the columns wanted."""
    missing = [name for name in like if name not in source.names]
    if missing:
        raise TableError(
            f"{source.path} does not have the columns the model was fitted on: missing are {short(missing)}; "
            f"{_has(source)}."
        )


def _declared(array: Any) -> Kind | None:
    """Kind of a Parquet column: its type says it, text that looks like numbers stays text."""
    types = arrow().types
    kind = kind_of(array)
    inner = array.type.value_type if types.is_dictionary(array.type) else array.type
    is_string = types.is_string(inner) or types.is_large_string(inner)
    return "text" if kind == "number" and is_string else kind


def _converted(source: Source, name: str, array: Any, kind: Kind, first: int) -> Any:
    try:
        return numbers(array) if kind == "number" else texts(array)
    except NotANumberError as error:
        raise TableError(
            f"{source.path}: column {name!r} holds {error.value!r} in row {first + error.place + 1}, where a finite "
            "number belongs: mend the value, or leave the cell empty if it is not known."
        ) from error
    except (arrow().ArrowInvalid, arrow().ArrowNotImplementedError) as error:
        raise TableError(_unusable(source, name, array)) from error


def _unusable(source: Source, name: str, array: Any) -> str:
    return (
        f"{source.path}: column {name!r} holds {array.type}, neither numbers nor text: turn it into a number (days "
        f"since a date, for example), or leave it out with --drop {name}."
    )


def _has(source: Source) -> str:
    return f"it has {short(source.names)}"


def _frame(columns: Mapping[str, Any]) -> Any:
    try:
        import pandas
    except ImportError as error:
        raise ImportError("Frames of rows need pandas: pip install 'sparing[cli]'.") from error
    # Objects stay objects, whatever type pandas prefers for text: bundles name it.
    series = {
        name: pandas.Series(values, dtype=values.dtype, copy=False)
        for name, values in columns.items()
    }
    return pandas.DataFrame(series, copy=False)
