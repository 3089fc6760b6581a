"""Rows on which a stored model may be measured: those it has not learnt from, as far as its file can tell."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

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


def rows_to_measure(
    bundle: Bundle, data: Path, target: str | None, quiet: bool = False
) -> Labelled:
    """Labelled rows of a file; of the file a model was fitted on only those that were kept aside.

    Parameters
    ----------
    bundle : what ``sparing.runtime.load`` gave.
    data : the file.
    target : column of labels; None is the one the model was fitted on.
    quiet : say nothing on stderr.
    """
    from sparing.tables import fingerprint, read_labelled
    from sparing.tables.answering import column_kinds

    about = bundle.metadata
    target = about.get("target") if target is None else target
    if target is None:
        raise ValueError("The model does not say which column holds the labels: give --target.")
    rows = read_labelled(data, target, like=column_kinds(bundle), classes=bundle.classes)
    if about.get("sha256") != fingerprint(data) or about.get("target") != target:
        return rows
    share = about.get("test")
    if not share:
        say(
            f"sparing: note: the model has learnt from {data}: on these rows it looks better than it is.",
            quiet,
        )
        return rows
    _, aside = rows.split(share, seed=about["seed"])
    say(f"measured on the {len(aside.y):,} rows of {data} that were kept aside", quiet)
    return aside
