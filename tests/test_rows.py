import gc

import numpy as np
import pandas as pd
import polars as pl
import pytest

from sparing._rows import ScoredRows, n_rows, row_chunks, take_rows

X = np.arange(12.0).reshape(6, 2)


@pytest.mark.parametrize(
    "make", [lambda a: a, lambda a: pd.DataFrame(a, index=list("fedcba")), pl.DataFrame]
)
def test_rows_of_arrays_and_frames(make):
    table = make(X)
    assert n_rows(table) == n_rows(ScoredRows(table)) == 6
    np.testing.assert_array_equal(take_rows(table, np.array([4, 1])), X[[4, 1]])
    np.testing.assert_array_equal(take_rows(table, np.array([], dtype=int)), X[:0])
    assert take_rows(table, np.arange(6)) is table


@pytest.mark.parametrize("rows", [[5, 4, 3, 2, 1, 0], [0, 0, 1, 1, 2, 2]])
def test_as_many_rows_as_there_are_need_not_be_all_of_them_in_order(rows):
    np.testing.assert_array_equal(take_rows(X, np.array(rows)), X[rows])


@pytest.mark.parametrize(("n", "size"), [(0, 3), (7, 3), (6, 3), (2, 5)])
def test_chunks_are_all_rows_in_order(n, size):
    chunks = list(row_chunks(n, size))
    assert all(0 < len(chunk) <= size for chunk in chunks)
    np.testing.assert_array_equal(np.concatenate([[], *chunks]), np.arange(n))


class Part:
    pass


def test_remembered_by_what_and_by_part():
    rows, part, other = ScoredRows(X), Part(), Part()
    calls = []

    def ask(what, part):
        def compute():
            calls.append(what)
            return len(calls)

        return rows.remember(what, part, compute)

    assert [ask("proba", part), ask("read", part), ask("proba", other)] == [1, 2, 3]
    assert [ask("proba", part), ask("proba", (part,)), ask("proba", other)] == [1, 1, 3]
    assert [ask("score", (part, other)), ask("score", (other, part)), ask("score", part)] == [4, 5, 6]  # fmt: skip
    assert ask("score", (part, other)) == 4


def test_the_results_used_last_are_kept():
    rows, parts = ScoredRows(X, size=2), [Part(), Part(), Part()]
    computed = []

    def ask(i):
        rows.remember("proba", parts[i], lambda: computed.append(i))

    for i in (0, 1, 0, 2, 0, 1):
        ask(i)
    assert computed == [0, 1, 2, 1]


@pytest.mark.parametrize("together", [True, False])
def test_the_results_of_a_part_that_is_gone_are_never_those_of_a_new_one(together):
    # Without a reference the next object would often get the id of the last one.
    rows, gate = ScoredRows(X, size=1000), Part()
    for i in range(200):
        part = Part()
        key = (gate, part) if together else part
        assert rows.remember("score", key, lambda i=i: i) == i
        del part, key
        gc.collect(0)
