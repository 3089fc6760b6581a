"""Ranking metrics, query by query, without a loop over queries.

All of them sort once and scatter the first k documents of each query into a table (n_queries, k). A query without a
relevant document counts as 0, as in scikit-learn's NDCG. Each function gives the mean over queries, or with
``per_query=True`` one number per query, which is what :func:`~sparing.metrics.bootstrap_interval` wants.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d

Floats = NDArray[np.float64]
Ties = Literal["worst", "rows"]


def run_precision_at_k(
    y_true: ArrayLike,
    y_score: ArrayLike,
    groups: ArrayLike,
    k: int = 5,
    *,
    ties: Ties = "worst",
    per_query: bool = False,
) -> Any:
    """Length of the unbroken run of relevant documents from rank 1, at most k, over k.

    This is what the authors of the paper report as "AP@5" on ranking data; it is not average precision, see
    :func:`average_precision_at_k`. A query with fewer than k documents cannot reach 1.

    Parameters
    ----------
    y_true : array of shape (n_rows,)
        Relevance; a document is relevant when it is above 0.
    y_score : array of shape (n_rows,)
        Larger comes first.
    groups : array of shape (n_rows,)
        Query of each row; the rows of a query need not stand together.
    k : int, default=5
    ties : {"worst", "rows"}, default="worst"
        Documents of equal score: ``"worst"`` puts the less relevant first, which does not depend on the order of the
        rows and flatters nobody; ``"rows"`` keeps the order of the rows, as a stable sort does.
    per_query : bool, default=False

    Returns
    -------
    float, or ndarray of shape (n_queries,) in the order of the sorted queries

    Examples
    --------
    >>> from sparing.metrics import run_precision_at_k
    >>> relevant = [1, 1, 0, 1, 0, 1]
    >>> score = [0.9, 0.8, 0.7, 0.6, 0.2, 0.1]
    >>> query = ["a", "a", "a", "a", "b", "b"]
    >>> run_precision_at_k(relevant, score, query, k=4)
    0.25
    >>> run_precision_at_k(relevant, score, query, k=4, per_query=True)
    array([0.5, 0. ])
    """
    top = _Queries(y_true, groups, k).top(y_score, ties)
    return _result(np.logical_and.accumulate(top > 0, axis=1).sum(axis=1) / k, per_query)


def average_precision_at_k(
    y_true: ArrayLike,
    y_score: ArrayLike,
    groups: ArrayLike,
    k: int = 5,
    *,
    ties: Ties = "worst",
    per_query: bool = False,
) -> Any:
    """Mean of the precisions at the ranks ≤ k of the relevant documents, over min(k, relevant documents).

    Parameters
    ----------
    y_true, y_score, groups, k, ties, per_query
        As in :func:`run_precision_at_k`.

    Returns
    -------
    float, or ndarray of shape (n_queries,)

    Examples
    --------
    >>> from sparing.metrics import average_precision_at_k
    >>> round(average_precision_at_k([1, 0, 1], [3, 2, 1], ["a", "a", "a"], k=3), 4)  # (1/1 + 2/3) / 2
    0.8333
    """
    queries = _Queries(y_true, groups, k)
    relevant = queries.top(y_score, ties) > 0
    precision = relevant.cumsum(axis=1) / np.arange(1, k + 1)
    there = np.bincount(queries.code, weights=queries.grade > 0)
    return _result(
        (precision * relevant).sum(axis=1) / np.clip(there, 1, k),
        per_query,
    )


def ndcg_at_k(
    y_true: ArrayLike,
    y_score: ArrayLike,
    groups: ArrayLike,
    k: int = 10,
    *,
    ties: Ties = "worst",
    per_query: bool = False,
) -> Any:
    """Normalised discounted cumulative gain of the first k documents.

    The gain is ``y_true`` itself, as in scikit-learn; pass ``2.0**grade - 1`` for the exponential gain.

    Parameters
    ----------
    y_true, y_score, groups, k, ties, per_query
        As in :func:`run_precision_at_k`; ``y_true`` is not negative.

    Returns
    -------
    float, or ndarray of shape (n_queries,)

    Examples
    --------
    >>> from sparing.metrics import ndcg_at_k
    >>> ndcg_at_k([3, 2, 0, 1, 0], [9, 8, 7, 1, 2], [1, 1, 1, 2, 2], per_query=True).round(4)
    array([1.    , 0.6309])
    """
    queries = _Queries(y_true, groups, k)
    if (queries.grade < 0).any():
        raise ValueError("ndcg_at_k needs relevance grades that are not negative.")
    discount = 1 / np.log2(np.arange(2, k + 2))
    gain = queries.top(y_score, ties) @ discount
    best = queries.top(queries.grade, "rows") @ discount
    return _result(np.divide(gain, best, out=np.zeros_like(gain), where=best > 0), per_query)


class _Queries:
    """Documents grouped by query."""

    def __init__(self, y_true: ArrayLike, groups: ArrayLike, k: int) -> None:
        if k < 1:
            raise ValueError(f"k is at least 1, not {k!r}.")
        self.k = k
        self.grade = column_or_1d(y_true).astype(float)
        assert_all_finite(self.grade, input_name="y_true")
        queries = column_or_1d(groups)
        check_consistent_length(self.grade, queries)
        _, self.code = np.unique(queries, return_inverse=True)
        self.size = np.bincount(self.code)

    def top(self, y_score: ArrayLike, ties: Ties) -> Floats:
        """Grades of the first k documents of each query, best score first; 0 where there is none."""
        score = column_or_1d(y_score).astype(float)
        assert_all_finite(score, input_name="y_score")
        check_consistent_length(score, self.grade)
        if ties not in ("worst", "rows"):
            raise ValueError(f"ties is 'worst' or 'rows', not {ties!r}.")
        worst_first = (self.grade,) if ties == "worst" else ()
        order = np.lexsort((*worst_first, -score, self.code))  # the last key comes first; stable
        query = self.code[order]
        rank = np.arange(len(order)) - (self.size.cumsum() - self.size)[query]
        first = rank < self.k
        top = np.zeros((len(self.size), self.k))
        top[query[first], rank[first]] = self.grade[order[first]]
        return top


def _result(values: Floats, per_query: bool) -> Any:
    return values if per_query else float(values.mean())
