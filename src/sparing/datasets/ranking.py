"""Rankings for benchmarks: documents with grades, grouped by query.

Neither data set may be passed on: both come from files that the user has obtained from their
publishers. The prices of the Yahoo! features do ship with the package.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import vstack
from sklearn.datasets import load_svmlight_file
from sklearn.utils import Bunch, check_random_state

from sparing.costs import FeatureCosts
from sparing.datasets._bunch import RandomState, make_bunch, make_split, packaged
from sparing.datasets._files import VARIABLE, DataHome, data_folder, find_file, read_arrays

__all__ = ["fetch_mslr", "fetch_yahoo_ltr"]

_GRADES = [f"grade {grade}" for grade in range(5)]
_YAHOO_COLUMNS = 519
_YAHOO_HIGHEST = 700
# Documents in training, validation and test in the paper; together all of set1.train.txt.
_YAHOO_SIZES = (141397, 146769, 184968)


def fetch_mslr(
    *,
    variant: Literal["sample", "Fold1", "Fold2", "Fold3", "Fold4", "Fold5"] = "sample",
    relevant_from: int | None = None,
    data_home: DataHome = None,
    as_frame: bool = False,
    random_state: RandomState = 0,
) -> Bunch:
    """Microsoft learning to rank: query and document pairs, 136 columns, grades 0 to 4.

    Parameters
    ----------
    variant : {"sample", "Fold1", ..., "Fold5"}, default="sample"
        "sample": 10000 documents of 86 queries. A fold: the official one.
    relevant_from : int, optional
        Give 1 for documents of this grade or a better one and 0 for the others, instead of grades.
    data_home : path, optional
        Folder with ``mslr_web_sample.npz``, or with ``MSLR-WEB10K/Fold1/train.txt``, ``vali.txt`` and
        ``test.txt``. None: the folder named by ``SPARING_DATA``. There is nothing to download from
        without accepting Microsoft's terms.
    as_frame : bool, default=False
        Give ``data`` and ``target`` as pandas objects.
    random_state : int, RandomState instance or None, default=0
        Sample only: draws the queries for validation, 30 % of the training ones.

    Returns
    -------
    Bunch
        ``data`` of shape (n, 136); ``target``; ``query``, the query number of each row; ``costs``, 1
        per column, since no prices are published; ``variant``; ``split``, which never cuts a query.

    Notes
    -----
    T. Qin and T.-Y. Liu, Introducing LETOR 4.0 Datasets, 2013. Microsoft Research terms: research
    use, no redistribution.

    Examples
    --------
    >>> from sparing.datasets import fetch_mslr
    >>> pages = fetch_mslr(relevant_from=2)  # doctest: +SKIP
    >>> pages.data.shape  # doctest: +SKIP
    (10000, 136)
    """
    folder = data_folder(data_home)
    if folder is None:
        raise FileNotFoundError(
            "The MSLR data has no free download: get MSLR-WEB10K from Microsoft Research "
            "(https://www.microsoft.com/en-us/research/project/mslr/) and name the folder that "
            f"holds it with data_home or the environment variable {VARIABLE}."
        )
    if variant == "sample":
        arrays = read_arrays(folder, "mslr_web_sample.npz")
        parts = [
            (arrays[f"X_{part}"], arrays[f"y_{part}"], arrays[f"qid_{part}"])
            for part in ("train", "test")
        ]
    elif variant in ("Fold1", "Fold2", "Fold3", "Fold4", "Fold5"):
        parts = [
            (X.toarray(), y, query)
            for X, y, query in (
                _svmlight(folder, f"MSLR-WEB10K/{variant}/{part}.txt", 136, np.float64)
                for part in ("train", "vali", "test")
            )
        ]
    else:
        raise ValueError(f'variant is "sample" or "Fold1" to "Fold5", not {variant!r}.')
    y, query = (np.concatenate([part[i] for part in parts]) for i in (1, 2))
    rows = np.split(np.arange(len(y)), np.cumsum([len(part[1]) for part in parts])[:-1])
    if variant == "sample":
        queries = np.unique(query[rows[0]])
        held = check_random_state(random_state).permutation(queries)[: round(0.3 * len(queries))]
        is_held = np.isin(query[rows[0]], held)
        rows = [rows[0][~is_held], rows[0][is_held], rows[1]]
    return make_bunch(
        np.concatenate([part[0] for part in parts]).astype(np.float64),
        _grades(y, relevant_from),
        costs=FeatureCosts({f"feature_{i}": 1.0 for i in range(1, 137)}),
        target_names=_GRADES if relevant_from is None else ["not relevant", "relevant"],
        descr=f"MSLR-WEB10K, {variant}. Microsoft Research terms: research use only.",
        as_frame=as_frame,
        split=make_split(*rows),
        query=query.astype(np.int64),
        variant=variant,
    )


def fetch_yahoo_ltr(
    folder: str | os.PathLike[str] | None = None,
    *,
    relevant_from: int | None = None,
    official_split: bool = False,
    as_frame: bool = False,
) -> Bunch:
    """Yahoo! learning to rank, set 1: 519 columns with prices in CPU time, grades 0 to 4.

    Parameters
    ----------
    folder : path, optional
        Folder with Yahoo!'s files ``set1.train.txt`` and, for the official split, ``set1.valid.txt``
        and ``set1.test.txt``. None: the subfolder ``yahoo_ltr`` of the folder in ``SPARING_DATA``.
    relevant_from : int, optional
        Give 1 for documents of this grade or a better one and 0 for the others, instead of grades.
        The paper's labels are of this kind; it does not tell the grade.
    official_split : bool, default=False
        False: ``set1.train.txt`` alone, which has the 473134 documents and 19944 queries of the
        paper, cut in the order of the file into its 141397 / 146769 / 184968 documents (moved to
        the nearest end of a query where needed). True: the three official files.
    as_frame : bool, default=False
        Give ``data`` and ``target`` as pandas objects.

    Returns
    -------
    Bunch
        ``data`` of shape (n, 519), float32, dense: 1 GB for the paper's documents; ``target``;
        ``query``, the query number of each row; ``costs``, one of 1, 5, 20, 50, 100, 150, 200 per
        column, together 16948; ``feature_ids``, Yahoo!'s number of each column; ``variant``;
        ``split``, which never cuts a query.

    Notes
    -----
    Yahoo! numbers the features of its two sets together, up to 700, of which set 1 uses 519. The
    price list numbers them 1 to 519; it is taken to follow the order of Yahoo!'s numbers.

    O. Chapelle and Y. Chang, Yahoo! Learning to Rank Challenge Overview, 2011. The documents come
    from Yahoo! Webscope (C14B) under its terms. The prices were published with the MIT-licensed
    code of Nan, Wang and Saligrama (2016); the notice is in ``data/yahoo_ltr.md``.

    Examples
    --------
    >>> from sparing.datasets import fetch_yahoo_ltr
    >>> pages = fetch_yahoo_ltr("ltrc_yahoo", relevant_from=3)  # doctest: +SKIP
    >>> pages.data.shape, pages.costs.total  # doctest: +SKIP
    ((473134, 519), 16948.0)
    """
    home = _yahoo_folder(folder)
    names = ["set1.train.txt", "set1.valid.txt", "set1.test.txt"][: 3 if official_split else 1]
    parts = [_svmlight(home, name, _YAHOO_HIGHEST, np.float32) for name in names]
    feature_ids = _yahoo_columns(parts[0][0])
    y, query = (np.concatenate([part[i] for part in parts]) for i in (1, 2))
    if official_split:
        cuts = np.cumsum([len(part[1]) for part in parts])[:2]
    else:
        cuts = _query_ends(query, np.cumsum(_YAHOO_SIZES)[:2] / sum(_YAHOO_SIZES))
    return make_bunch(
        vstack([part[0] for part in parts]).tocsr()[:, feature_ids - 1].toarray(),
        _grades(y, relevant_from),
        costs=yahoo_costs(),
        target_names=_GRADES if relevant_from is None else ["not relevant", "relevant"],
        descr=packaged("yahoo_ltr.md").decode(),
        as_frame=as_frame,
        split=make_split(*np.split(np.arange(len(y)), cuts)),
        query=query,
        feature_ids=feature_ids,
        variant="official" if official_split else "paper",
    )


def yahoo_costs() -> FeatureCosts:
    """Prices of the 519 features of the Yahoo! data, which need no file but the package.

    Examples
    --------
    >>> yahoo_costs().total
    16948.0
    """
    rows = csv.DictReader(packaged("yahoo_ltr_feature_costs.csv").decode().splitlines())
    return FeatureCosts({f"feature_{row['feature_index']}": float(row["cost"]) for row in rows})


def _yahoo_folder(folder: str | os.PathLike[str] | None) -> Path:
    home = Path(folder).expanduser() if folder is not None else data_folder(None)
    if home is None:
        raise FileNotFoundError(
            "The Yahoo! documents have no free download: get C14B from Yahoo! Webscope "
            "(https://webscope.sandbox.yahoo.com/) and pass the folder of its set1.*.txt files."
        )
    return home if folder is not None else home / "yahoo_ltr"


def _yahoo_columns(X: Any) -> NDArray[np.int64]:
    """Yahoo!'s numbers of the 519 columns; numbers up to 519 are already the price list's."""
    used = np.flatnonzero(np.diff(X.tocsc().indptr)) + 1
    if used.size and used[-1] <= _YAHOO_COLUMNS:
        return np.arange(1, _YAHOO_COLUMNS + 1)
    if len(used) != _YAHOO_COLUMNS:
        raise ValueError(
            f"set1.train.txt uses {len(used)} features, set 1 of the Yahoo! data has "
            f"{_YAHOO_COLUMNS}: without all of them, prices cannot be told apart."
        )
    return used.astype(np.int64)


def _svmlight(folder: Path, name: str, n_features: int, dtype: type) -> tuple[Any, ...]:
    # By its path and not its bytes: the text is larger than the table.
    return load_svmlight_file(
        str(find_file(folder, name)),
        n_features=n_features,
        dtype=dtype,
        zero_based=False,
        query_id=True,
    )


def _grades(y: NDArray[Any], relevant_from: int | None) -> NDArray[np.int64]:
    return (y if relevant_from is None else y >= relevant_from).astype(np.int64)


def _query_ends(query: NDArray[np.int64], fractions: NDArray[np.float64]) -> NDArray[np.intp]:
    """Row numbers at which queries end, nearest to the given fractions of the rows."""
    ends = np.flatnonzero(np.diff(query)) + 1
    wanted = fractions * len(query)
    return ends[np.abs(ends - wanted[:, None]).argmin(axis=1)]
