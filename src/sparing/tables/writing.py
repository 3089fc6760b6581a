"""Writing files whole or not at all, and tables chunk by chunk."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from csv import writer
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sparing.tables.content import TableError, arrow
from sparing.tables.reading import CSV, PARQUET


@contextmanager
def whole_file(path: str | PathLike[str]) -> Iterator[Path]:
    """A path to write to; afterwards the real one holds all of it, or, after an error, what it held before.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with whole_file(Path(folder, "a.txt")) as beside:
    ...         _ = beside.write_text("done")
    ...     [file.name for file in Path(folder).iterdir()]
    ['a.txt']
    """
    target = Path(path)
    check_folder(target)
    # The suffix stays: writers choose the compression by it.
    descriptor, name = tempfile.mkstemp(prefix=".", suffix=f".{target.name}", dir=target.parent)
    beside = Path(name)
    try:
        os.close(descriptor)
        yield beside
        mask = os.umask(0)
        os.umask(mask)
        beside.chmod(0o666 & ~mask)  # mkstemp lets nobody else read it
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def check_folder(path: str | PathLike[str]) -> None:
    """Raise before hours of work when a file could not be written in the end."""
    target = Path(path)
    if target.is_dir():
        raise TableError(f"{target} is a folder: name a file in it.")
    if not target.parent.is_dir():
        raise TableError(f"{target}: the folder {target.parent} does not exist: make it first.")
    if not os.access(target.parent, os.W_OK):
        raise TableError(f"{target}: the folder {target.parent} may not be written to.")


def check_apart(path: str | PathLike[str], *inputs: str | PathLike[str] | None) -> None:
    """Raise when a file to write is one that is read, under whatever name: a link or another path to it counts.

    Examples
    --------
    >>> from sparing.tables.writing import check_apart
    >>> check_apart("answers.csv", "rows.csv", None)

    Raises
    ------
    TableError
        Naming both.
    """
    target = Path(path)
    for given in inputs:
        if given is None or not target.exists() or not Path(given).exists():
            continue
        if target.samefile(given):
            same = "" if str(target) == str(given) else f" (the same file as {given})"
            raise TableError(
                f"--out {target}{same} is what is read here and would be overwritten: name another file."
            )


class TableWriter:
    """A table that is written chunk by chunk, CSV or Parquet by the name of the file; a context manager.

    Parameters
    ----------
    path : str or path
        The file appears when the block ends without an error.
    delimiter : str, default=","
        Of CSV.

    Examples
    --------
    >>> import pyarrow
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with TableWriter(Path(folder, "out.csv")) as writer:
    ...         writer.write(pyarrow.table({"a": ["x", "y, z"], "b": [1, 2]}))
    ...     print(Path(folder, "out.csv").read_text())
    a,b
    "x",1
    "y, z",2
    <BLANKLINE>
    """

    def __init__(self, path: str | PathLike[str], delimiter: str = ",") -> None:
        name = Path(path).name.lower()
        if not name.endswith(CSV + PARQUET):
            raise TableError(
                f"{path}: rows are written to CSV ({', '.join(CSV[:4])}) and Parquet ({', '.join(PARQUET)}) files."
            )
        self.path, self.is_csv = Path(path), name.endswith(CSV)
        self._delimiter = delimiter
        self._compression = "gzip" if name.endswith(".gz") else None
        self._stack = ExitStack()
        self._writer: Any = None
        self._file: Any = None

    def __enter__(self) -> Self:
        self._beside = self._stack.enter_context(whole_file(self.path))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, traceback)

    def write(self, table: Any) -> None:
        """Add rows; every chunk has the columns of the first one."""
        if self.is_csv:
            self._write_csv(table)
            return
        from pyarrow import parquet

        if self._writer is None:
            writer = parquet.ParquetWriter(self._beside, table.schema)
            self._writer = self._stack.enter_context(writer)
        self._writer.write_table(table)

    def _header(self, names: list[str]) -> bytes:
        text = io.StringIO()
        writer(text, delimiter=self._delimiter, lineterminator="\n").writerow(names)
        return text.getvalue().encode()

    def _write_csv(self, table: Any) -> None:
        from pyarrow import csv

        if self._file is None:
            stream = arrow().output_stream(str(self._beside), compression=self._compression)
            self._file = self._stack.enter_context(stream)
            self._file.write(self._header(table.column_names))
        # Quotes only where a value needs them, which arrow knows for a chunk as a whole.
        for quoting in ("none", "needed"):
            buffer = arrow().BufferOutputStream()
            options = csv.WriteOptions(
                include_header=False, delimiter=self._delimiter, quoting_style=quoting
            )
            try:
                csv.write_csv(table, buffer, options)
            except arrow().ArrowInvalid:
                if quoting == "needed":
                    raise
            else:
                self._file.write(buffer.getvalue())
                return
