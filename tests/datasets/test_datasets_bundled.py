from __future__ import annotations

import gzip
import hashlib
import sys
from importlib import resources

import numpy as np
import pytest

from sparing.costs import FeatureCosts
from sparing.datasets import load_hypothyroid, load_letters

DATA = resources.files("sparing.datasets") / "data"
LOADERS = [load_letters, load_hypothyroid]


def sha256(name):
    return hashlib.sha256(gzip.decompress((DATA / name).read_bytes())).hexdigest()


def test_the_bytes_are_the_published_ones():
    assert (
        sha256("letter-recognition.data.gz")
        == "2b89f3602cf768d3c8355267d2f13f2417809e101fc2b5ceee10db19a60de6e2"
    )
    assert (
        sha256("hypothyroid.data.gz")
        == "ffba466e9844cf7d6d8fde1f89209c6ab1d583c865abb449bb6ab8c70875f4c4"
    )


def test_package_files_are_small():
    assert all(len(file.read_bytes()) < 250_000 for file in DATA.iterdir())


@pytest.mark.parametrize("load", LOADERS)
def test_costs_are_in_the_order_of_the_columns(load):
    bunch = load()
    assert isinstance(bunch.costs, FeatureCosts)
    assert list(bunch.costs.columns) == bunch.feature_names
    assert bunch.data.shape == (len(bunch.target), len(bunch.feature_names))


@pytest.mark.parametrize("load", LOADERS)
def test_licence_is_told(load):
    assert "Attribution 4.0" in load().DESCR


@pytest.mark.parametrize("load", LOADERS)
def test_as_frame(load):
    pandas = pytest.importorskip("pandas")
    plain, framed = load(), load(as_frame=True)
    assert plain.frame is None
    assert isinstance(framed.data, pandas.DataFrame)
    assert isinstance(framed.target, pandas.Series)
    assert list(framed.data.columns) == plain.feature_names
    np.testing.assert_array_equal(framed.data.to_numpy(), plain.data)
    np.testing.assert_array_equal(framed.target.to_numpy(), plain.target)
    assert list(framed.frame.columns) == [*plain.feature_names, "target"]


@pytest.mark.parametrize("load", LOADERS)
def test_as_frame_without_pandas_names_the_extra(load, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"sparing\[bench\]"):
        load(as_frame=True)


def test_letters_facts():
    letters = load_letters()
    assert letters.data.shape == (20000, 16)
    assert letters.data.dtype == np.float64
    assert (letters.data.min(), letters.data.max()) == (0, 15)
    names, counts = np.unique(letters.target, return_counts=True)
    assert list(names) == letters.target_names
    counts = dict(zip(names, counts, strict=True))
    assert (counts["A"], counts["B"], counts["Z"]) == (789, 766, 734)
    assert letters.target[0] == "T"
    np.testing.assert_array_equal(
        letters.data[0], [2, 8, 3, 5, 1, 8, 13, 0, 6, 6, 10, 8, 0, 8, 0, 8]
    )


def test_letters_binary_cuts_before_n():
    letters, halves = load_letters(), load_letters(binary=True)
    assert set(letters.target[halves.target == 0]) == set("ABCDEFGHIJKLM")
    assert set(letters.target[halves.target == 1]) == set("NOPQRSTUVWXYZ")
    assert len(halves.target_names) == 2


def test_letters_split_is_the_papers():
    split = load_letters().split
    assert [len(split[part]) for part in ("train", "validation", "test")] == [12000, 4000, 4000]
    np.testing.assert_array_equal(
        np.concatenate([split.train, split.validation, split.test]), np.arange(20000)
    )


def test_letters_cost_one_each():
    np.testing.assert_array_equal(load_letters().costs.item_prices, np.ones(16))


@pytest.fixture(scope="module")
def patients():
    return load_hypothyroid()


def test_hypothyroid_facts(patients):
    assert patients.data.shape == (3163, 19)
    assert patients.data.dtype == np.float64
    np.testing.assert_array_equal(np.bincount(patients.target), [3012, 151])
    missing = dict(
        zip(patients.feature_names, np.isnan(patients.data).sum(axis=0).tolist(), strict=True)
    )
    assert {name: n for name, n in missing.items() if n} == {
        "age": 446,
        "sex": 73,
        "TSH": 468,
        "T3": 695,
        "TT4": 249,
        "T4U": 248,
        "FTI": 247,
        "TBG": 2903,
    }


def test_hypothyroid_first_patient(patients):
    # hypothyroid,72,M,f,...,y,30,y,0.60,y,15,y,1.48,y,10,n,?
    expected = [72, 0, *[0] * 11, 30, 0.60, 15, 1.48, 10, np.nan]
    np.testing.assert_array_equal(patients.data[0], expected)


def test_hypothyroid_questions_are_yes_or_no(patients):
    questions = patients.data[:, 1:13]
    assert set(np.unique(questions[~np.isnan(questions)])) == {0.0, 1.0}


def test_hypothyroid_has_no_measured_flags(patients):
    assert not [name for name in patients.feature_names if "measured" in name]


def test_hypothyroid_fti_is_computed_from_its_inputs(patients):
    column = dict(zip(patients.feature_names, patients.data.T, strict=True))
    known = (column["T4U"] > 0) & (column["FTI"] > 0)
    ratio = column["TT4"][known] / column["T4U"][known] / column["FTI"][known]
    assert np.nanquantile(np.abs(ratio - 1), 0.95) < 0.05


@pytest.mark.parametrize(
    ("columns", "price"),
    [
        (["age"], 1.00),
        (["goitre", "sex"], 2.00),
        (["TSH"], 22.78),
        (["T3"], 11.41),
        (["TT4"], 14.51),
        (["T4U"], 11.41),
        (["TBG"], 11.41),
        (["TSH", "T3"], 22.78 + 11.41 - 2.10),
        (["FTI"], 14.51 + 11.41 - 2.10),
        (["FTI", "TT4", "T4U"], 14.51 + 11.41 - 2.10),
    ],
)
def test_hypothyroid_prices(patients, columns, price):
    assert patients.costs.of(columns) == pytest.approx(price)


def test_hypothyroid_items(patients):
    assert "blood draw" in patients.costs.items
    assert "FTI" not in patients.costs.items
