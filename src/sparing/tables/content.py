"""What stands in a column of a file: missing values, numbers, text; from arrow's arrays to those of a frame.

CSV is read as text and looked at here, so that one rule decides what a number is, whether a file is read whole or in
chunks, and so that a value that does not fit can be named with its row.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Kind = Literal["number", "text"]

# fmt: off
MISSING = (
    "", "?", "NA", "N/A", "n/a", "<NA>", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "None", "#N/A", "#NA",
    "#N/A N/A", "-1.#IND", "1.#IND", "-1.#QNAN", "1.#QNAN",
)
# fmt: on
"""Words for a value that is not there: those pandas knows, and the question mark of older data sets."""

_TRUE = ("true", "True", "TRUE")
_FALSE = ("false", "False", "FALSE")


class TableError(ValueError):
    """A file that cannot be used as it is; the message names the file, the place and the way out.

    Examples
    --------
    >>> from sparing.tables import TableError, read_table
    >>> try:
    ...     read_table("patients.xls")
    ... except TableError as error:
    ...     print(error)
    patients.xls: rows are read from CSV (.csv, .tsv, .txt, .csv.gz) and Parquet (.parquet, .pq) files.
    """


class NotANumberError(ValueError):
    """A value that is no number.

    Attributes
    ----------
    value : what stands there.
    place : its position in the array.
    """

    def __init__(self, value: str, place: int) -> None:
        super().__init__(f"{value!r} is not a number")
        self.value, self.place = value, place


def arrow() -> Any:
    """The module pyarrow, or an error that names the extra."""
    try:
        import pyarrow
        import pyarrow.compute
    except ImportError as error:
        raise ImportError(
            "Reading and writing files of rows needs an extra: pip install 'sparing[cli]'."
        ) from error
    return pyarrow


def is_text(array: Any) -> bool:
    """Whether an arrow array holds text, plain or as a dictionary."""
    types = arrow().types
    kind = array.type.value_type if types.is_dictionary(array.type) else array.type
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def is_numeric(array: Any) -> bool:
    """Whether an arrow array holds numbers, truth values, or nothing at all."""
    types, kind = arrow().types, array.type
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_boolean(kind)
        or types.is_null(kind)
    )


def _plain_text(array: Any) -> Any:
    """Text without dictionary, blanks around it and words for missing values."""
    pa = arrow()
    compute = pa.compute
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    array = compute.utf8_trim_whitespace(array)
    words = pa.array(MISSING, type=array.type)
    return compute.if_else(compute.is_in(array, words), pa.scalar(None, array.type), array)


def numbers(array: Any) -> NDArray[np.float64]:
    """An arrow array as float64, NaN where nothing stands; true and false are 1 and 0.

    Examples
    --------
    >>> import pyarrow
    >>> numbers(pyarrow.array(["1.5", " 2 ", "NA"]))
    array([1.5, 2. , nan])
    >>> numbers(pyarrow.array(["true", "", "false"]))
    array([ 1., nan,  0.])

    Raises
    ------
    NotANumberError
        For the first value that is none.
    """
    pa = arrow()
    if not is_text(array):
        if pa.types.is_boolean(array.type):
            array = array.cast("int8")
        return np.asarray(array.cast("float64", safe=False).to_numpy(zero_copy_only=False), float)
    text = _plain_text(array)
    try:
        values = text.cast("float64")
    except pa.ArrowInvalid:
        values = _truth_values(text)
    out = np.asarray(values.to_numpy(zero_copy_only=False), dtype=float)
    infinite = np.isinf(out)
    if infinite.any():
        place = int(infinite.argmax())
        raise NotANumberError(str(array[place].as_py()), place)
    return out


def _truth_values(text: Any) -> Any:
    pa = arrow()
    compute = pa.compute
    true, false = (compute.is_in(text, pa.array(words, text.type)) for words in (_TRUE, _FALSE))
    known = compute.or_(compute.or_(true, false), compute.is_null(text))
    strange = np.flatnonzero(~known.to_numpy(zero_copy_only=False))
    if len(strange):
        # Of a column of numbers the word that is none is the culprit, not the numbers beside it.
        words = [place for place in strange.tolist() if not _is_number(text[place].as_py())]
        if not words and 2 * len(strange) > compute.count(text).as_py():
            words = np.flatnonzero(
                compute.or_(true, false).fill_null(False).to_numpy(False)
            ).tolist()
        place = words[0] if words else int(strange[0])
        raise NotANumberError(text[place].as_py(), place)
    none = pa.scalar(None, pa.float64())
    return compute.if_else(compute.is_null(text), none, true.cast("int8").cast("float64"))


def _is_number(word: str) -> bool:
    try:
        arrow().scalar(word).cast("float64")
    except arrow().ArrowInvalid:
        return False
    return True


def texts(array: Any) -> NDArray[np.object_]:
    """An arrow array as Python strings, None where nothing stands.

    Examples
    --------
    >>> import pyarrow
    >>> texts(pyarrow.array(["a", "NA", " b"]))
    array(['a', None, 'b'], dtype=object)
    """
    pa = arrow()
    if not is_text(array):
        # The text CSV would have: 3 and not 3.0 for whole numbers.
        whole = pa.types.is_floating(array.type) and _all_whole(array)
        array = array.cast("int64").cast("string") if whole else array.cast("string")
    coded = _plain_text(array)
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.combine_chunks()
    coded = coded.dictionary_encode()
    # One Python string per level, not per row.
    levels = np.array([*coded.dictionary.to_pylist(), None], dtype=object)
    codes = coded.indices.fill_null(len(levels) - 1).to_numpy(zero_copy_only=False)
    return levels[codes]


def _all_whole(array: Any) -> bool:
    values = array.to_numpy(zero_copy_only=False)
    values = values[np.isfinite(values)]
    return bool((values == np.round(values)).all() and (np.abs(values) < 2**53).all())


_STRAY_SHARE = 0.01
_STRAY_WORDS = 20
_STRAY_ROWS = 20
"""In fewer rows one cell says nothing about what a column is meant to be."""
_NUMBER = r"^-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


def stray_words(values: NDArray[np.object_]) -> NDArray[np.intp]:
    """Where the few cells stand that make text of a column of numbers; none when it is text for other reasons.

    Few is one, or 1% of the cells that hold something, with at most 20 different words.

    Examples
    --------
    >>> stray_words(np.array([*map(str, range(30)), "abc", None], dtype=object))
    array([30])
    >>> stray_words(np.array(["a", "b"] * 15, dtype=object))
    array([], dtype=int64)
    """
    pa = arrow()
    text = pa.array(values, type=pa.string())
    matches = pa.compute.match_substring_regex(text, _NUMBER).fill_null(True)
    places = np.flatnonzero(~matches.to_numpy(zero_copy_only=False))
    n_known = len(text) - text.null_count
    few = len(places) <= max(1, _STRAY_SHARE * n_known) and n_known >= _STRAY_ROWS
    if not few or len(np.unique(values[places].astype(str))) > _STRAY_WORDS:
        return places[:0]
    return places


def is_words(column: Any) -> bool:
    """Whether a column of a frame is text, by whatever type pandas gives it."""
    return getattr(column.dtype, "kind", "O") not in "fiub"


def kind_of(array: Any) -> Kind | None:
    """What a column holds; None for what is neither numbers nor text, such as dates in Parquet."""
    if is_numeric(array):
        return "number"
    if not is_text(array):
        return None
    try:
        numbers(array)
    except NotANumberError as error:
        return (
            "number" if error.value.strip().lstrip("+-").lower() in ("inf", "infinity") else "text"
        )
    return "number"
