"""Medical tables with the prices of their tests, from a folder or from UCI.

The case for spending with care: a question costs a dollar, a scan a hundred. Prices and what tests
share are in ``turney.py``; a table with prices that needs no fetching is ``load_hypothyroid``.
"""

from __future__ import annotations

import gzip
from io import BytesIO

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.utils import Bunch

from sparing.datasets._bunch import RandomState, check_counts, make_bunch, make_split
from sparing.datasets._files import DataHome, data_folder, read_file, uci_file
from sparing.datasets.turney import heart_costs, thyroid_costs

__all__ = ["fetch_heart", "fetch_thyroid"]

# fmt: off
_THYROID_COLUMNS = (
    "age", "sex", "on_thyroxine", "query_on_thyroxine", "on_antithyroid_medication", "sick",
    "pregnant", "thyroid_surgery", "I131_treatment", "query_hypothyroid", "query_hyperthyroid",
    "lithium", "goitre", "tumor", "hypopituitary", "psych", "TSH", "T3", "TT4", "T4U", "FTI",
)
# fmt: on
_THYROID_COUNTS = {"train": {1: 93, 2: 191, 3: 3488}, "test": {1: 73, 2: 177, 3: 3178}}
_HEART_COUNTS = {0: 164, 1: 55, 2: 36, 3: 35, 4: 13}


def fetch_thyroid(
    *,
    data_home: DataHome = None,
    as_frame: bool = False,
    random_state: RandomState = 0,
) -> Bunch:
    """Thyroid function by questions and blood tests, with Turney's prices (ann-thyroid).

    Parameters
    ----------
    data_home : path, optional
        Folder with ``thyroid/ann_thyroid_train.csv.gz`` and ``thyroid/ann_thyroid_test.csv.gz``.
        Without it and without ``SPARING_DATA``, the data comes from UCI.
    as_frame : bool, default=False
        Give ``data`` and ``target`` as pandas objects.
    random_state : int, RandomState instance or None, default=0
        Draws the validation part, 30 % of UCI's training rows, with the same share of each class.

    Returns
    -------
    Bunch
        ``data`` of shape (7200, 21), UCI's 3772 training rows and then its 3428 test rows, numbers
        scaled by UCI to about 0 to 1, none missing; ``target`` 1 to 3, 93 % of it 3; ``costs``:
        questions 1.00 each, TSH 22.78, T3 11.41, TT4 14.51, T4U 11.41 Canadian dollars including
        one shared blood draw of 2.10, FTI computed from TT4 and T4U; ``split``, where ``test`` is
        UCI's.

    Notes
    -----
    R. Quinlan, Thyroid Disease, UCI Machine Learning Repository, 1986,
    https://doi.org/10.24432/C5D010, CC BY 4.0. Prices: P. D. Turney, Journal of Artificial
    Intelligence Research 2, 1995, distributed with it.

    Examples
    --------
    >>> from sparing.datasets import fetch_thyroid
    >>> thyroid = fetch_thyroid()  # doctest: +SKIP
    >>> round(thyroid.costs.of(["FTI"]), 2)  # doctest: +SKIP
    23.82
    """
    folder = data_folder(data_home)
    tables = []
    for part, counts in _THYROID_COUNTS.items():
        if folder is not None:
            text = gzip.decompress(read_file(folder, f"thyroid/ann_thyroid_{part}.csv.gz"))
            table = np.loadtxt(BytesIO(text), delimiter=",", skiprows=1)
        else:
            table = np.loadtxt(BytesIO(uci_file("102/thyroid+disease", f"ann-{part}.data")))
        check_counts(f"Thyroid, {part}", table[:, -1].astype(np.int64), counts)
        tables.append(table)
    n_train = len(tables[0])
    table = np.concatenate(tables)
    target = table[:, -1].astype(np.int64)
    train, validation = train_test_split(
        np.arange(n_train), test_size=0.3, stratify=target[:n_train], random_state=random_state
    )
    return make_bunch(
        table[:, :-1],
        target,
        costs=thyroid_costs(_THYROID_COLUMNS),
        target_names=["hyperfunction", "subnormal function", "normal"],
        descr="Thyroid disease (ann-thyroid), 3772 training and 3428 test patients. UCI 102, CC BY "
        "4.0. Prices in Canadian dollars: Turney 1995.",
        as_frame=as_frame,
        split=make_split(train, validation, np.arange(n_train, len(table))),
    )


def fetch_heart(
    *, binary: bool = False, data_home: DataHome = None, as_frame: bool = False
) -> Bunch:
    """Heart disease in Cleveland, 303 patients, 13 columns, with Turney's prices.

    Parameters
    ----------
    binary : bool, default=False
        False: 0 = healthy, 1 to 4 = diseased, by degree. True: 0 = healthy, 1 = diseased.
    data_home : path, optional
        Folder with ``heart/heart_cleveland.csv.gz``. Without it and without ``SPARING_DATA``, the
        data comes from UCI.
    as_frame : bool, default=False
        Give ``data`` and ``target`` as pandas objects.

    Returns
    -------
    Bunch
        ``data`` of shape (303, 13), with NaN in the 6 cells nobody knows; ``target``; ``costs`` in
        Canadian dollars, where chol and fbs share a blood draw, thalach and thal a thallium scan,
        and exang, oldpeak and slope an exercise electrocardiogram. No split: the table is small,
        use cross-validation.

    Notes
    -----
    A. Janosi, W. Steinbrunn, M. Pfisterer and R. Detrano, Heart Disease, UCI Machine Learning
    Repository, 1989, https://doi.org/10.24432/C52P4X, CC BY 4.0. Prices: P. D. Turney, Journal of
    Artificial Intelligence Research 2, 1995, distributed with it.

    Examples
    --------
    >>> from sparing.datasets import fetch_heart
    >>> heart = fetch_heart(binary=True)  # doctest: +SKIP
    >>> heart.data.shape, round(heart.costs.total, 2)  # doctest: +SKIP
    ((303, 13), 323.97)
    """
    folder = data_folder(data_home)
    if folder is not None:
        text = gzip.decompress(read_file(folder, "heart/heart_cleveland.csv.gz"))
        text = text.partition(b"\n")[2]
    else:
        text = uci_file("45/heart+disease", "processed.cleveland.data")
    table = np.loadtxt(BytesIO(text.replace(b"?", b"nan")), delimiter=",")
    degree = table[:, -1].astype(np.int64)
    check_counts("Heart", degree, _HEART_COUNTS)
    return make_bunch(
        table[:, :-1],
        (degree > 0).astype(np.int64) if binary else degree,
        costs=heart_costs(),
        target_names=["healthy", "diseased"]
        if binary
        else ["healthy", "degree 1", "degree 2", "degree 3", "degree 4"],
        descr="Heart disease, Cleveland: 303 patients. UCI 45, CC BY 4.0. Prices in Canadian "
        "dollars: Turney 1995.",
        as_frame=as_frame,
    )
