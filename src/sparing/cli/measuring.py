"""Rows on which a stored model may be measured: those it has not learnt from, as far as its file can tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparing.cli.console import say

if TYPE_CHECKING:
    from sparing.runtime import Bundle
    from sparing.tables import Labelled


def load_whole(model: Path) -> Bundle:
    """A stored model that can answer every row.

    Raises
    ------
    ValueError
        When one of its models was left outside the file: a command has nowhere to take it from.
    """
    from sparing import runtime

    bundle = runtime.load(model)
    outside = bundle.manifest["outside"]
    if outside:
        raise ValueError(
            f"{model}: the model of {', '.join(outside)} was left outside the file, so not every row can be answered "
            "here: use sparing.runtime.load(path, full_model=...) in Python."
        )
    return bundle


@dataclass(frozen=True, eq=False)
class Measured:
    """Rows to measure on, and what is known about them.

    Attributes
    ----------
    rows : Labelled
    kept_aside : bool
        Whether the model is known not to have learnt from them.
    note : what a reader of the figures has to know, if anything.
    """

    rows: Labelled
    kept_aside: bool
    note: str | None = None

    def result(self) -> dict[str, Any]:
        """The same as plain data, for ``--json``."""
        return {"rows": len(self.rows.y), "kept_aside": self.kept_aside, "note": self.note}


def rows_to_measure(
    bundle: Bundle, data: Path, target: str | None, quiet: bool = False
) -> Measured:
    """Labelled rows of a file; of the file a model was fitted on only those that were kept aside.

    A note about the rows goes to stderr, whoever wants quiet: without it the figures would be misread.

    Parameters
    ----------
    bundle : what ``sparing.runtime.load`` gave.
    data : the file.
    target : column of labels; None is the one the model was fitted on.
    quiet : no progress on stderr.
    """
    from sparing.tables import read_labelled
    from sparing.tables.answering import column_kinds

    about = bundle.metadata
    target = about.get("target") if target is None else target
    if target is None:
        raise ValueError("The model does not say which column holds the labels: give --target.")
    rows = read_labelled(data, target, like=column_kinds(bundle), classes=bundle.classes)
    share = about.get("test")
    if not _is_fitted_on(rows, about):
        note = (
            f"{data} is not the file the model was fitted on: all {len(rows.y):,} rows were measured. If it holds rows "
            "that the model learnt from, the figures are too good."
        )
    elif not share:
        note = f"the model has learnt from {data}: on these rows it looks better than it is."
    else:
        _, aside = rows.split(share, seed=about["seed"])
        say(f"measured on the {len(aside.y):,} rows of {data} that were kept aside", quiet)
        return Measured(aside, kept_aside=True)
    say(f"sparing: note: {note}")
    return Measured(rows, kept_aside=False, note=note)


def _is_fitted_on(rows: Labelled, about: Mapping[str, Any]) -> bool:
    """Whether these are, row by row, the rows that `sparing fit` was given: the same content, or the same bytes."""
    from sparing.tables import fingerprint

    if about.get("target") != rows.target:
        return False
    return about.get("content") == rows.content() or about.get("sha256") == fingerprint(rows.path)
