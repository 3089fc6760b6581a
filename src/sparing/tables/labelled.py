"""Rows with labels, checked for what would make a model worthless or impossible before anything is fitted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from hashlib import file_digest, sha256
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparing._parts import split_rows
from sparing._price_list import short
from sparing.tables.content import Kind, TableError, is_words, stray_words
from sparing.tables.reading import open_source, read_table

_ID_SHARE = 0.5
"""A text column with more levels than this share of its rows says who a row is, not what it is like."""
_FEW_LEVELS = 50
_MANY_LEVELS = 10_000
_CLASSES = 1000
"""More classes than anyone means: the target is a quantity or an id."""


@dataclass(frozen=True, eq=False)
class Labelled:
    """Rows and their labels.

    Attributes
    ----------
    X : pandas.DataFrame
    y : ndarray
        Whole numbers or text.
    path : where they come from.
    target : name of the column of labels.

    Examples
    --------
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import pandas as pd
    >>> from sparing.tables import Labelled
    >>> rows = Labelled(pd.DataFrame({"age": range(40)}), np.arange(40) % 2, Path("people.csv"), "sick")
    >>> learn, measure = rows.split(0.25, seed=0)
    >>> len(learn.y), len(measure.y), int(measure.y.sum())
    (30, 10, 5)
    """

    X: Any
    y: NDArray[Any]
    path: Path
    target: str

    def split(self, share: float, *, seed: int) -> tuple[Labelled, Labelled]:
        """Rows to learn from and a share of rows to measure on, the same ones for the same file and seed.

        Every class is in both in proportion, and each in the first.
        """
        if not 0 < share < 1:
            raise TableError(
                f"The share of rows to measure on is {share:g}: give a number between 0 and 1."
            )
        parts = split_rows(self.y, share, 0.0, random_state=seed)
        learn, test = (
            replace(self, X=self.X.iloc[rows].reset_index(drop=True), y=self.y[rows])
            for rows in (parts.train, parts.validation)
        )
        return learn, test

    def content(self) -> str:
        """sha256 of the rows as they were read.

        Line endings, quotes, the form of the file and its other columns do not matter; the order of the rows does.
        """
        digest = sha256()
        for name in sorted(map(str, self.X.columns)):
            column = self.X[name]
            if is_words(column):
                values = column.to_numpy(dtype=object)
            else:
                values = column.to_numpy(dtype=float) + 0.0  # one zero
                values = np.where(np.isnan(values), np.nan, values)  # one NaN
            _add(digest, name, values)
        _add(digest, self.target, self.y.astype(str).astype(object))
        return digest.hexdigest()


def _add(digest: Any, name: str, values: NDArray[Any]) -> None:
    """Hash a column, so that no two different ones are written alike: text as its levels and their numbers."""
    digest.update(json.dumps([name, len(values), values.dtype.kind]).encode())
    if values.dtype.kind != "O":
        digest.update(values.astype("<f8").tobytes())
        return
    import pandas

    codes, levels = pandas.factorize(values, sort=True)  # None is -1
    digest.update(json.dumps(list(levels)).encode())
    digest.update(codes.astype("<i8").tobytes())


def fingerprint(path: str | PathLike[str]) -> str:
    """sha256 of a file, by which its rows are known again.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "people.csv")
    ...     _ = path.write_text("age,sick")
    ...     fingerprint(path)[:8]
    '4eb8b3a2'
    """
    with open(path, "rb") as file:
        return file_digest(file, "sha256").hexdigest()


def read_labelled(
    path: str | PathLike[str],
    target: str,
    *,
    drop: Sequence[str] = (),
    text: Sequence[str] = (),
    like: Mapping[str, Kind] | None = None,
    classes: NDArray[Any] | None = None,
) -> Labelled:
    r"""Read rows to learn from, or to measure a fitted model on.

    Parameters
    ----------
    path : str or path
    target : str
        The column of labels.
    drop, text : names of columns, see :func:`read_table`.
    like : mapping of column to "number" or "text", optional
        Columns of a fitted model; None takes all but the target, and checks that they can be learnt from.
    classes : array, optional
        Labels of a fitted model: the target must hold these.

    Returns
    -------
    Labelled

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "patients.csv")
    ...     _ = file.write_text("age,sick\n61,yes\n35,no\n70,yes\n28,no\n")
    ...     rows = read_labelled(file, "sick")
    >>> rows.y, list(rows.X)
    (array(['yes', 'no', 'yes', 'no'], dtype='<U3'), ['age'])
    """
    source = open_source(path)
    if target not in source.names:
        near = get_close_matches(target, source.names, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise TableError(
            f"{source.path} has no column {target!r} for the target; it has {short(source.names)}.{hint}"
        )
    if target in drop:
        raise TableError(
            f"{target!r} is the target and cannot be left out: take it away from --drop."
        )
    labels = _labels(source.path, target, read_table(path, like={target: "text"})[target])
    if like is not None:
        if target in like:
            raise TableError(
                f"{target!r} is one of the columns the model was fitted on: it cannot be the target."
            )
        return Labelled(
            read_table(path, like=like),
            _known(source.path, target, labels, classes),
            source.path,
            target,
        )
    if not set(source.names) - {*drop, target}:
        raise TableError(f"{source.path} has no column beside the target {target!r}.")
    X = read_table(path, drop=[*drop, target], text=text)
    _check_labels(source.path, target, labels)
    if source.delimiter is not None:  # Parquet says itself what is text
        _check_strays(source.path, X, text)
    _check_columns(source.path, target, X, labels)
    return Labelled(X, labels, source.path, target)


def _labels(path: Path, target: str, words: Any) -> NDArray[Any]:
    """Labels as whole numbers if they all are, as text otherwise."""
    missing = np.flatnonzero(words.isna().to_numpy())
    if len(missing):
        raise TableError(
            f"{path}: {len(missing)} rows have no value in the target {target!r} (the first is row {missing[0] + 1}): "
            "remove these rows."
        )
    text = words.to_numpy().astype(str)
    levels, codes = np.unique(text, return_inverse=True)
    try:
        values = levels.astype(float)
    except ValueError:
        return text
    if (
        not np.isfinite(values).all()
        or (values != np.round(values)).any()
        or len(levels) > _CLASSES
    ):
        raise TableError(
            f"{path}: the target {target!r} has {len(levels)} different numbers, such as {short(levels[:3])}: sparing "
            "predicts classes. Cut it into classes first."
        )
    return values.astype(np.int64)[codes]


def _known(
    path: Path, target: str, labels: NDArray[Any], classes: NDArray[Any] | None
) -> NDArray[Any]:
    """Labels in the type of the classes of a model."""
    if classes is None:
        return labels
    if classes.dtype.kind in "OUT":
        labels = labels.astype(str)
    strange = [label for label in np.unique(labels).tolist() if label not in set(classes.tolist())]
    if strange:
        raise TableError(
            f"{path}: the target {target!r} holds {short(strange)}, which the model does not know; it knows "
            f"{short(classes.tolist())}."
        )
    return labels.astype(classes.dtype)


def _check_labels(path: Path, target: str, labels: NDArray[Any]) -> None:
    classes, counts = np.unique(labels, return_counts=True)
    if len(classes) == 1:
        raise TableError(
            f"{path}: every row has the class {classes[0].item()!r} in {target!r}: there is nothing to tell apart."
        )
    if len(classes) > _CLASSES:
        raise TableError(
            f"{path}: the target {target!r} has {len(classes)} classes: is it an id? Name the column of labels."
        )
    if counts.min() < 2:
        alone = [c for c, count in zip(classes.tolist(), counts, strict=True) if count == 1]
        raise TableError(
            f"{path}: of {short(alone)} in the target {target!r} there is one row; a class needs at least 2, better "
            "50: add rows, merge it with another class, or remove the row."
        )


def _check_strays(path: Path, X: Any, text: Sequence[str]) -> None:
    """Raise when a few cells would silently make text of a column of numbers."""
    for name in X.columns:
        if name in text or not is_words(X[name]):
            continue
        values = X[name].to_numpy(dtype=object)
        places = stray_words(values)
        if not len(places):
            continue
        first = f"{values[places[0]]!r} in row {places[0] + 1}"
        more = f" and {len(places) - 1} more such cells" if len(places) > 1 else ""
        raise TableError(
            f"{path}: column {name!r} holds numbers, but {first}{more}: mend the cell (empty if it is not known), or "
            f"keep the column as text with --text {_quoted(name)}."
        )


def _check_columns(path: Path, target: str, X: Any, labels: NDArray[Any]) -> None:
    words = labels.astype(str)
    for name in X.columns:
        column = X[name]
        known = column.notna()
        if not known.any():
            raise TableError(
                f"{path}: column {name!r} is empty in every row: leave it out with --drop {_quoted(name)}."
            )
        if not is_words(column):
            if labels.dtype.kind == "i" and (column == labels).all():
                raise TableError(_same(path, name, target))
            continue
        n_levels, n_known = column.nunique(), int(known.sum())
        if n_levels > _MANY_LEVELS or n_levels > max(_FEW_LEVELS, _ID_SHARE * n_known):
            raise TableError(
                f"{path}: the text column {name!r} has {n_levels:,} different values in {n_known:,} rows: it looks "
                f"like an id, a date or free text. Leave it out with --drop {_quoted(name)}."
            )
        if (column == words).all():
            raise TableError(_same(path, name, target))


def _same(path: Path, name: str, target: str) -> str:
    return (
        f"{path}: column {name!r} is the target {target!r} again, row for row: nobody could buy it. Leave it out with "
        f"--drop {_quoted(name)}."
    )


def _quoted(name: str) -> str:
    return name if name.isidentifier() else f'"{name}"'
