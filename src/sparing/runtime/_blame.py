"""Whose fault it is when a model cannot use a row: a source's, the caller's, or the model's own.

Where a model was fitted on columns of unknown kind, asking it is the only way to find out what it takes.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from sparing.runtime._job import Job
from sparing.runtime._source import SourceError
from sparing.runtime._values import Value, is_missing

_TEXT, _MISSING, _NUMBER = range(3)
_NAMED = 3
"""Columns that a reason names."""


class NonsenseError(SourceError):
    """Values that came from sources and that a stage cannot use; ``columns`` are those that surely look wrong."""

    def __init__(self, message: str, columns: Sequence[Hashable]) -> None:
        super().__init__(message, final=True)
        self.columns = tuple(columns)


def blamed(job: Job, stage: str, columns: Mapping[Hashable, int], error: Exception) -> Exception:
    """The error to raise in the place of a model's TypeError or ValueError; itself when it is the model's own.

    Text is suspected before missing values, and these before numbers; of equal suspects those that were bought.

    Parameters
    ----------
    job : the row.
    stage : number and name of the stage, for the message.
    columns : what the stage reads, and where it stands in ``job.cells``.
    error : what the model raised.
    """
    cells = {column: job.cells[j] for column, j in columns.items()}
    worst = min(map(_suspicion, cells.values()), default=_NUMBER)
    suspects = {column: v for column, v in cells.items() if _suspicion(v) == worst}
    sold = [c for c in suspects if c in job.brought and c not in job.known]
    why = f"{type(error).__name__}: {error}"
    if sold:
        shown = [f"{_shown(c, suspects[c])} from source {job.brought[c]!r}" for c in sold]
        return NonsenseError(
            f"{stage} cannot use what was bought for entity {job.entity!r}: {_listed(shown)}. {why}",
            sold if worst == _TEXT else (),
        )
    given = [_shown(c, v) for c, v in suspects.items() if c in job.known]
    if given and worst != _NUMBER:
        return ValueError(f"{stage} cannot use what known says: {_listed(given)}. {why}")
    return error


def _suspicion(value: Value) -> int:
    return _TEXT if isinstance(value, str) else _MISSING if is_missing(value) else _NUMBER


def _shown(column: Hashable, value: Value) -> str:
    return f"column {column!r} is " + (
        "missing" if is_missing(value) else f"the {type(value).__name__} {value!r}"
    )


def _listed(shown: Sequence[str]) -> str:
    more = len(shown) - _NAMED
    return ", ".join(shown[:_NAMED]) + (f" and {more} more" if more > 0 else "")
