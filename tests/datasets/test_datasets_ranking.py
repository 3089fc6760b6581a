from __future__ import annotations

from io import BytesIO

import numpy as np
import pytest

from sparing.datasets import fetch_mslr, fetch_yahoo_ltr
from sparing.datasets.ranking import yahoo_costs


def svmlight(rng, queries, ids):
    """Text of a ranking file, its grades and its table; some cells are left out, as zeros are."""
    lines, grades, table = [], [], []
    for query, n in queries:
        for _ in range(n):
            values = np.round(rng.random(len(ids)), 3) * (rng.random(len(ids)) < 0.8)
            if not table:
                values[:] = 0.5  # every feature is used at least once
            grade = int(rng.integers(5))
            cells = [f"{i}:{v:g}" for i, v in zip(ids, values, strict=True) if v]
            lines.append(" ".join([str(grade), f"qid:{query}", *cells]))
            grades.append(grade)
            table.append(values)
    return ("\n".join(lines) + "\n").encode(), np.array(grades), np.array(table)


def assert_no_query_is_cut(bunch):
    queries = np.concatenate([np.unique(bunch.query[rows]) for rows in bunch.split.values()])
    assert len(queries) == len(np.unique(bunch.query))


def test_yahoo_prices():
    costs = yahoo_costs()
    prices, counts = np.unique(costs.item_prices, return_counts=True)
    assert dict(zip(prices.tolist(), counts.tolist(), strict=True)) == {
        1: 123,
        5: 31,
        20: 191,
        50: 125,
        100: 16,
        150: 32,
        200: 1,
    }
    assert costs.total == 16948
    assert costs.columns == tuple(f"feature_{i}" for i in range(1, 520))


@pytest.mark.parametrize("scattered", [False, True])
def test_yahoo_columns_follow_the_price_list(put, scattered):
    rng = np.random.default_rng(0)
    ids = np.arange(1, 520)
    if scattered:
        ids = np.sort(rng.choice(np.arange(1, 701), 519, replace=False))
    queries = [(query, 5) for query in range(1, 21)]
    text, grades, table = svmlight(rng, queries, ids)
    folder = put("set1.train.txt", text)
    pages = fetch_yahoo_ltr(folder)
    assert pages.data.dtype == np.float32
    np.testing.assert_allclose(pages.data, table.astype(np.float32))
    np.testing.assert_array_equal(pages.target, grades)
    np.testing.assert_array_equal(pages.feature_ids, ids)
    assert pages.feature_names == list(pages.costs.columns)
    assert pages.variant == "paper"
    # 141397 : 146769 : 184968 of 100 documents, at ends of queries of 5.
    assert [len(rows) for rows in pages.split.values()] == [30, 30, 40]
    assert_no_query_is_cut(pages)
    relevant = fetch_yahoo_ltr(folder, relevant_from=3)
    np.testing.assert_array_equal(relevant.target, grades >= 3)


def test_yahoo_official_split(put):
    rng = np.random.default_rng(0)
    ids = np.arange(1, 520)
    for name, queries in [("train", [(1, 4), (2, 3)]), ("valid", [(3, 2)]), ("test", [(4, 5)])]:
        folder = put(f"set1.{name}.txt", svmlight(rng, queries, ids)[0])
    pages = fetch_yahoo_ltr(folder, official_split=True)
    assert pages.variant == "official"
    assert [len(rows) for rows in pages.split.values()] == [7, 2, 5]
    assert_no_query_is_cut(pages)


def test_yahoo_refuses_a_set_of_other_features(put):
    ids = np.arange(150, 700)
    folder = put("set1.train.txt", svmlight(np.random.default_rng(0), [(1, 2)], ids)[0])
    with pytest.raises(ValueError, match=r"uses 550 features, set 1 .* has 519"):
        fetch_yahoo_ltr(folder)


def test_yahoo_looks_in_the_folder_of_the_variable(put, monkeypatch):
    text, grades, _ = svmlight(
        np.random.default_rng(0), [(1, 3), (2, 3), (3, 3)], np.arange(1, 520)
    )
    monkeypatch.setenv("SPARING_DATA", str(put("yahoo_ltr/set1.train.txt", text)))
    np.testing.assert_array_equal(fetch_yahoo_ltr().target, grades)


def test_yahoo_without_files(no_folder, tmp_path):
    with pytest.raises(FileNotFoundError, match="Webscope"):
        fetch_yahoo_ltr()
    with pytest.raises(FileNotFoundError, match=r"set1\.train\.txt is not in"):
        fetch_yahoo_ltr(tmp_path)


def test_mslr_sample(put):
    rng = np.random.default_rng(0)
    arrays = {}
    for part, first in [("train", 1), ("test", 101)]:
        arrays[f"X_{part}"] = rng.random((50, 136))
        arrays[f"y_{part}"] = rng.integers(5, size=50).astype(np.uint8)
        arrays[f"qid_{part}"] = np.repeat(np.arange(first, first + 10), 5).astype(np.int32)
    content = BytesIO()
    np.savez(content, **arrays)
    folder = put("mslr_web_sample.npz", content.getvalue())
    pages = fetch_mslr(data_home=folder)
    assert pages.variant == "sample"
    assert [len(rows) for rows in pages.split.values()] == [35, 15, 50]
    assert_no_query_is_cut(pages)
    np.testing.assert_array_equal(pages.data[pages.split.test], arrays["X_test"])
    assert pages.costs.total == 136
    relevant = fetch_mslr(relevant_from=2, data_home=folder)
    np.testing.assert_array_equal(relevant.target, pages.target >= 2)
    other = fetch_mslr(data_home=folder, random_state=1)
    assert not np.array_equal(pages.split.validation, other.split.validation)


def test_mslr_fold(put):
    rng = np.random.default_rng(0)
    tables = []
    for part, queries in [("train", [(1, 4)]), ("vali", [(2, 3)]), ("test", [(3, 2)])]:
        text, _, table = svmlight(rng, queries, np.arange(1, 137))
        folder = put(f"MSLR-WEB10K/Fold2/{part}.txt", text)
        tables.append(table)
    pages = fetch_mslr(variant="Fold2", data_home=folder)
    np.testing.assert_allclose(pages.data, np.concatenate(tables))
    assert [len(rows) for rows in pages.split.values()] == [4, 3, 2]
    with pytest.raises(FileNotFoundError, match=r"MSLR-WEB10K/Fold1/train\.txt"):
        fetch_mslr(variant="Fold1", data_home=folder)
    with pytest.raises(ValueError, match="'Fold6'"):
        fetch_mslr(variant="Fold6", data_home=folder)


def test_mslr_without_a_folder(no_folder):
    with pytest.raises(FileNotFoundError, match=r"microsoft\.com.*SPARING_DATA"):
        fetch_mslr()


def test_mslr_real(real_data):
    pages = fetch_mslr(data_home=real_data)
    assert pages.data.shape == (10000, 136)
    assert len(np.unique(pages.query)) == 86
    assert len(pages.split.test) == 5000
    assert set(np.unique(pages.target)) == set(range(5))
    assert_no_query_is_cut(pages)
