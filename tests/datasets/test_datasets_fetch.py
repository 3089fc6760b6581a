from __future__ import annotations

import zipfile
from io import BytesIO

import numpy as np
import pytest
from sklearn.utils import Bunch

import sparing.datasets
from sparing.datasets import fetch, fetch_forest, fetch_miniboone
from sparing.datasets.fetch import forest_costs

FOREST_COUNTS = [211840, 283301, 35754, 2747, 9493, 17367, 20510]


def npz(**arrays):
    content = BytesIO()
    np.savez_compressed(content, **arrays)
    return content.getvalue()


def sizes(split):
    return [len(split[part]) for part in ("train", "validation", "test")]


def test_public_names_are_sorted_and_there():
    assert sparing.datasets.__all__ == sorted(sparing.datasets.__all__)
    assert all(hasattr(sparing.datasets, name) for name in sparing.datasets.__all__)


@pytest.fixture
def forest_arrays():
    y = np.repeat(np.arange(1, 8, dtype=np.uint8), FOREST_COUNTS)
    return np.zeros((len(y), 54), dtype=np.int16), y


def check_forest(forest):
    assert isinstance(forest, Bunch)
    assert forest.data.shape == (581012, 54)
    assert forest.data.dtype == np.float32
    assert list(forest.costs.columns) == forest.feature_names
    assert len(forest.target_names) == 7
    assert sizes(forest.split) == [36603, 15688, 58101]
    rows = np.concatenate(list(forest.split.values()))
    assert len(np.unique(rows)) == len(rows)


def test_forest_from_a_folder(put, forest_arrays):
    X, y = forest_arrays
    forest = fetch_forest(data_home=put("covtype.npz", npz(X=X, y=y)))
    check_forest(forest)


def test_forest_from_scikit_learn(no_folder, monkeypatch, forest_arrays):
    monkeypatch.setattr(fetch, "fetch_covtype", lambda return_X_y: forest_arrays)
    one, same, other = fetch_forest(), fetch_forest(), fetch_forest(random_state=1)
    check_forest(one)
    np.testing.assert_array_equal(one.split.train, same.split.train)
    assert not np.array_equal(one.split.train, other.split.train)


def test_forest_offline(offline, monkeypatch):
    monkeypatch.setattr(fetch, "fetch_covtype", offline)
    with pytest.raises(ConnectionError, match="SPARING_DATA"):
        fetch_forest()


def test_forest_refuses_other_counts(put, forest_arrays):
    X, y = forest_arrays
    folder = put("covtype.npz", npz(X=X[1:], y=y[1:]))
    with pytest.raises(ValueError, match="Forest: rows per class"):
        fetch_forest(data_home=folder)


def test_forest_refuses_a_file_it_does_not_know(tmp_path, forest_arrays):
    X, y = forest_arrays
    (tmp_path / "covtype.npz").write_bytes(npz(X=X[:5], y=y[:5]))
    with pytest.raises(ValueError, match=r"covtype\.npz"):
        fetch_forest(data_home=tmp_path)


def test_forest_prices():
    columns, attributes = forest_costs("columns"), forest_costs("attributes")
    assert columns.columns == attributes.columns
    assert (len(columns.items), len(attributes.items)) == (54, 12)
    areas = [c for c in attributes.columns if c.startswith("Wilderness")]
    assert attributes.of(areas) == attributes.of(areas[:1]) == 1.0
    assert columns.of(areas) == 4.0
    with pytest.raises(ValueError, match="'sensors'"):
        forest_costs("sensors")


def test_forest_real(real_data):
    forest = fetch_forest(data_home=real_data)
    check_forest(forest)
    np.testing.assert_array_equal(np.bincount(forest.target)[1:], FOREST_COUNTS)
    # Exactly one wilderness area and one soil type per patch.
    assert (forest.data[:, 10:14].sum(axis=1) == 1).all()
    assert (forest.data[:, 14:].sum(axis=1) == 1).all()


def miniboone_text():
    rows = np.zeros((130064, 50), dtype="U1")
    rows[:] = "0"
    lines = " ".join(rows[0])
    return (" 36499  93565\n" + f"  {lines}\n" * 130064).encode()


def check_full(events):
    assert events.data.shape == (130064, 50)
    assert events.variant == "full"
    assert events.target[0] == 1
    assert events.target[-1] == 0
    assert sizes(events.split) == [45523, 19510, 65031]
    assert sum(sizes(events.split)) == len(np.unique(np.concatenate(list(events.split.values()))))
    assert list(events.costs.columns) == events.feature_names


def test_miniboone_full_from_a_folder(put):
    folder = put("MiniBooNE_PID.txt", miniboone_text())
    check_full(fetch_miniboone(variant="full", data_home=folder))


def test_miniboone_full_from_uci(serve):
    content = BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("MiniBooNE_PID.txt", miniboone_text())
    asked = serve(content.getvalue())
    check_full(fetch_miniboone())
    assert "/199/miniboone" in asked[0]


def test_miniboone_subset_keeps_its_own_split(put):
    rng = np.random.default_rng(0)
    arrays = {}
    for part, n in [("train", 2000), ("val", 1000), ("test", 2000)]:
        arrays[f"X_{part}"] = rng.normal(size=(n, 50))
        arrays[f"y_{part}"] = np.repeat(np.array([0, 1], dtype=np.uint8), n // 2)
    folder = put("miniboone_tiny.npz", npz(**arrays))
    events = fetch_miniboone(data_home=folder)
    assert events.variant == "subset"
    assert sizes(events.split) == [2000, 1000, 2000]
    np.testing.assert_array_equal(events.data[events.split.validation], arrays["X_val"])


def test_miniboone_subset_needs_a_folder(no_folder):
    with pytest.raises(ValueError, match=r"miniboone_tiny\.npz"):
        fetch_miniboone(variant="subset")


def test_miniboone_unknown_variant():
    with pytest.raises(ValueError, match="'half'"):
        fetch_miniboone(variant="half")


def test_miniboone_offline(offline):
    with pytest.raises(ConnectionError, match=r"archive\.ics\.uci\.edu.*SPARING_DATA"):
        fetch_miniboone()


def test_miniboone_real(real_data):
    events = fetch_miniboone(data_home=real_data)
    assert events.variant == "subset"
    assert events.data.shape == (5000, 50)
    assert (events.data == -999).all(axis=1).sum() == 12
    assert not np.isnan(events.data).any()
    for part in events.split.values():
        assert events.target[part].mean() == 0.5
