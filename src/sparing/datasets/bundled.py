"""Two real data sets that ship with the package: no network, no other file.

Both come from the UCI Machine Learning Repository under CC BY 4.0; where the bytes were taken from
stands in ``data/letters.md`` and ``data/hypothyroid.md``, which are also the ``DESCR`` of the
bunches. The files are the UCI ones, compressed, and are turned into numbers here.
"""

from __future__ import annotations

import gzip

import numpy as np
from sklearn.utils import Bunch

from sparing.costs import FeatureCosts
from sparing.datasets._bunch import make_bunch, make_split, packaged
from sparing.datasets.turney import thyroid_costs

__all__ = ["load_hypothyroid", "load_letters"]

# fmt: off
_LETTER_COLUMNS = (
    "x-box", "y-box", "width", "high", "onpix", "x-bar", "y-bar", "x2bar", "y2bar", "xybar", "x2ybr",
    "xy2br", "x-ege", "xegvy", "y-ege", "yegvx",
)
# The line of a patient: diagnosis, questions, then per test the flag `..._measured` and the value.
_QUESTIONS = (
    "age", "sex", "on_thyroxine", "query_on_thyroxine", "on_antithyroid_medication",
    "thyroid_surgery", "query_hypothyroid", "query_hyperthyroid", "pregnant", "sick", "tumor",
    "lithium", "goitre",
)
_TESTS = ("TSH", "T3", "TT4", "T4U", "FTI", "TBG")
# fmt: on
_WORDS = {b"?": b"nan", b"f": b"0", b"t": b"1", b"M": b"0", b"F": b"1"}


def load_letters(*, binary: bool = False, as_frame: bool = False) -> Bunch:
    """Load the letter recognition data: 20000 images of capital letters, 16 numbers each.

    Parameters
    ----------
    binary : bool, default=False
        False: the 26 letters. True: the paper's two classes, 0 for the letters before N and 1
        for N and later.
    as_frame : bool, default=False
        Give ``data`` and ``target`` as pandas objects.

    Returns
    -------
    Bunch
        ``data`` of shape (20000, 16), whole numbers 0 to 15 as floats, in the order of the UCI
        file; ``target``, ``"A"`` to ``"Z"`` or 0 and 1; ``feature_names``, ``target_names``;
        ``costs``, 1 per column; ``split`` with the row numbers ``train`` (12000), ``validation``
        (4000) and ``test`` (4000) of the paper; ``frame`` and ``DESCR``.

    Notes
    -----
    D. J. Slate, Letter Recognition, UCI Machine Learning Repository, 1991, CC BY 4.0.

    Examples
    --------
    >>> from sparing.datasets import load_letters
    >>> letters = load_letters(binary=True)
    >>> letters.data.shape, letters.costs.total
    ((20000, 16), 16.0)
    >>> X_train, y_train = letters.data[letters.split.train], letters.target[letters.split.train]
    >>> X_train.shape
    (12000, 16)
    """
    lines = gzip.decompress(packaged("letter-recognition.data.gz")).decode("ascii").splitlines()
    letter = np.array([line[0] for line in lines])
    data = np.loadtxt([line[2:] for line in lines], delimiter=",")
    rows = np.arange(len(lines))
    return make_bunch(
        data,
        (letter >= "N").astype(np.int64) if binary else letter,
        costs=FeatureCosts(dict.fromkeys(_LETTER_COLUMNS, 1.0)),
        target_names=["A to M", "N to Z"] if binary else [chr(ord("A") + i) for i in range(26)],
        descr=packaged("letters.md").decode(),
        as_frame=as_frame,
        split=make_split(rows[:12000], rows[12000:16000], rows[16000:]),
    )


def load_hypothyroid(*, as_frame: bool = False) -> Bunch:
    """Load the hypothyroid data: 3163 patients, questions and blood tests, with real prices.

    The case the library is for: questions are cheap, blood tests are not, and most patients are
    healthy and need few of them.

    Parameters
    ----------
    as_frame : bool, default=False
        Give ``data`` and ``target`` as pandas objects.

    Returns
    -------
    Bunch
        ``data`` of shape (3163, 19), floats with NaN where nobody knows; ``target``, 1 for the
        151 hypothyroid patients, 0 for the others; ``feature_names``, ``target_names``;
        ``costs``; ``frame`` and ``DESCR``, which explains every column.

    Notes
    -----
    Prices are Turney's (1995), in Canadian dollars: 1.00 per question; TSH 22.78, T3 11.41,
    TT4 14.51, T4U 11.41, each with 2.10 for one shared blood draw. TBG is not in his list and is
    priced like T4U, the indirect measure of the same quantity. FTI is computed from TT4 and T4U
    and costs what they cost.

    The flags ``TSH_measured`` and so on of the UCI file are left out. Each says the same as "the
    cell is not missing" and would tell it before the test is ordered, for nothing. Missing cells
    stay NaN, and buying one costs as much as any other.

    Rows are in the order of the file, the hypothyroid patients first: shuffle before splitting.

    R. Quinlan, Thyroid Disease, UCI Machine Learning Repository, 1986, CC BY 4.0.

    Examples
    --------
    >>> from sparing.datasets import load_hypothyroid
    >>> patients = load_hypothyroid()
    >>> patients.data.shape, int(patients.target.sum())
    ((3163, 19), 151)
    >>> round(patients.costs.of(["age", "TSH"]), 2), round(patients.costs.total, 2)
    (23.78, 76.12)
    """
    table = np.array(
        [
            [_WORDS.get(cell, cell) for cell in line.split(b",")]
            for line in gzip.decompress(packaged("hypothyroid.data.gz")).splitlines()
        ]
    )
    first_test = 1 + len(_QUESTIONS)
    columns = [*range(1, first_test), *range(first_test + 1, table.shape[1], 2)]
    return make_bunch(
        table[:, columns].astype(np.float64),
        (table[:, 0] == b"hypothyroid").astype(np.int64),
        costs=thyroid_costs(_QUESTIONS + _TESTS),
        target_names=["healthy", "hypothyroid"],
        descr=packaged("hypothyroid.md").decode(),
        as_frame=as_frame,
    )
