"""What all commands share: options by name, one-line errors, plain tables, progress for those who watch."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

DataFile = Annotated[
    Path, typer.Argument(help="CSV or Parquet file with a header.", metavar="DATA")
]
ModelFile = Annotated[Path, typer.Argument(help="File that `sparing fit` wrote.", metavar="MODEL")]
Target = Annotated[str, typer.Option("--target", help="Column of class labels.", metavar="COLUMN")]
Drop = Annotated[
    list[str] | None,
    typer.Option(
        "--drop", help="Column to leave out; give it as often as needed.", metavar="COLUMN"
    ),
]
Text = Annotated[
    list[str] | None,
    typer.Option(
        "--text", help="Column of codes: text, though it looks like numbers.", metavar="COLUMN"
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")]


def examples(commands: str) -> str:
    """Commands for the end of a help page, kept line by line."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in commands.strip().split("\n"))


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn errors about what was given into one line on stderr and exit code 2; warnings into remarks.

    Anything else is our mistake: it ends with a traceback and exit code 1. A package that is missing is one line as
    well, with exit code 1: nothing that was given is wrong.
    """
    with warnings.catch_warnings():
        warnings.showwarning = _remark
        try:
            yield
        except (ValueError, OSError) as error:
            _fail(error, 2)
        except ImportError as error:
            _fail(error, 1)


def _fail(error: BaseException, code: int) -> None:
    text = str(error)
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        missing = isinstance(error, FileNotFoundError)
        text = f"{error.filename}: {'there is no such file' if missing else error.strerror}."
    print(f"sparing: {' '.join(text.split())}", file=sys.stderr)
    raise typer.Exit(code) from error


def _remark(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"sparing: note: {' '.join(str(message).split())}", file=sys.stderr)


def say(text: str, quiet: bool = False) -> None:
    """A line on stderr."""
    if not quiet:
        print(text, file=sys.stderr, flush=True)


def show(result: Any, text: str, as_json: bool) -> None:
    """The result on stdout, for people or for machines."""
    print(json.dumps(result, allow_nan=False, ensure_ascii=False) if as_json else text)


def counted(n: int, noun: str) -> str:
    """A number and what is counted.

    Examples
    --------
    >>> counted(1, "system"), counted(2000, "row")
    ('1 system', '2,000 rows')
    """
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def in_short(value: Any, most: int = 8) -> str:
    """A value as text; of a long list or mapping, such as a whole price list, the beginning and a count.

    Examples
    --------
    >>> in_short({"age": 1, "TSH": 20, "T3": 9}, most=2)
    'age 1, TSH 20, ... and 1 more'
    >>> in_short("a long text is left as it is", most=2)
    'a long text is left as it is'
    """
    if isinstance(value, Mapping):
        entries = [f"{key} {in_short(entry, most)}" for key, entry in value.items()]
    elif isinstance(value, list | tuple):
        entries = [in_short(entry, most) for entry in value]
    else:
        return str(value)
    if len(entries) > most:
        entries = [*entries[:most], f"... and {len(entries) - most:,} more"]
    return ", ".join(entries)


@contextmanager
def row_counter(quiet: bool) -> Iterator[Callable[[int], None] | None]:
    """Count rows on a terminal; None, which counts nothing, anywhere else."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    done = 0

    def count(rows: int) -> None:
        nonlocal done
        done += rows
        print(f"\r{done:,} rows", end="", file=sys.stderr, flush=True)

    try:
        yield count
    finally:
        print(file=sys.stderr)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns one under the other: the first to the left, the others to the right.

    Examples
    --------
    >>> print(table(["item", "price"], [["age", "1"], ["TSH", "22.78"]]))
    item  price
    age       1
    TSH   22.78
    """
    lines = [head, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    return "\n".join(
        "  ".join(
            f"{cell:<{width}}" if i == 0 else f"{cell:>{width}}"
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
