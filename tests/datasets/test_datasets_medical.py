from __future__ import annotations

import gzip
import zipfile
from io import BytesIO

import numpy as np
import pytest

from sparing.datasets import fetch_heart, fetch_thyroid
from sparing.datasets.medical import _THYROID_COLUMNS
from sparing.datasets.turney import heart_costs, thyroid_costs

THYROID = {"train": [93, 191, 3488], "test": [73, 177, 3178]}
HEART = [164, 55, 36, 35, 13]


def zipped(**members):
    content = BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return content.getvalue()


def thyroid_lines(part, separator):
    lines = []
    for label, n in enumerate(THYROID[part], start=1):
        lines += [separator.join([*["0.5"] * 21, str(label)])] * n
    return "\n".join(lines) + "\n"


def heart_lines():
    lines = []
    for degree, n in enumerate(HEART):
        lines += [",".join([*["1.0"] * 12, "?", str(degree)])] * n
    return "\n".join(lines) + "\n"


def check_thyroid(thyroid):
    assert thyroid.data.shape == (7200, 21)
    assert list(thyroid.costs.columns) == thyroid.feature_names
    assert [len(part) for part in thyroid.split.values()] == [2640, 1132, 3428]
    np.testing.assert_array_equal(thyroid.split.test, np.arange(3772, 7200))
    np.testing.assert_array_equal(
        np.bincount(thyroid.target[thyroid.split.test])[1:], THYROID["test"]
    )
    # Every class in its share, so that the rare one is in both parts.
    validation = np.bincount(thyroid.target[thyroid.split.validation])[1:]
    np.testing.assert_allclose(validation, 0.3 * np.array(THYROID["train"]), atol=1)


def test_thyroid_from_a_folder(put):
    for part in THYROID:
        text = ",".join([*_THYROID_COLUMNS, "class"]) + "\n" + thyroid_lines(part, ",")
        folder = put(f"thyroid/ann_thyroid_{part}.csv.gz", gzip.compress(text.encode()))
    thyroid = fetch_thyroid(data_home=folder)
    check_thyroid(thyroid)
    same = fetch_thyroid(data_home=folder, random_state=0)
    np.testing.assert_array_equal(thyroid.split.validation, same.split.validation)


def test_thyroid_from_uci(serve):
    members = {f"ann-{part}.data": thyroid_lines(part, " ") for part in THYROID}
    asked = serve(zipped(**members))
    check_thyroid(fetch_thyroid())
    assert len(asked) == 1


def test_thyroid_refuses_other_counts(serve):
    serve(zipped(**{"ann-train.data": thyroid_lines("test", " ")}))
    with pytest.raises(ValueError, match="Thyroid, train: rows per class"):
        fetch_thyroid()


@pytest.mark.parametrize("fetch", [fetch_thyroid, fetch_heart])
def test_offline(fetch, offline):
    with pytest.raises(ConnectionError, match=r"archive\.ics\.uci\.edu.*SPARING_DATA"):
        fetch()


@pytest.mark.parametrize("source", ["folder", "uci"])
def test_heart(source, put, serve):
    if source == "folder":
        header = ",".join([*heart_costs().columns, "num"]) + "\n"
        text = gzip.compress((header + heart_lines()).encode())
        home = put("heart/heart_cleveland.csv.gz", text)
    else:
        home = None
        serve(zipped(**{"processed.cleveland.data": heart_lines()}))
    heart, binary = fetch_heart(data_home=home), fetch_heart(binary=True, data_home=home)
    assert heart.data.shape == (303, 13)
    assert np.isnan(heart.data[:, -1]).all()
    assert list(heart.costs.columns) == heart.feature_names
    np.testing.assert_array_equal(np.bincount(heart.target), HEART)
    np.testing.assert_array_equal(binary.target, heart.target > 0)
    assert heart.split is None


def expenses(folder, stem):
    """Turney's files: column -> (full, discounted), and column -> group."""
    full = {}
    for line in (folder / f"{stem}.expense").read_text().splitlines():
        if line.strip():
            name, _, prices = line.partition(":")
            full[name] = tuple(float(price) for price in prices.split(","))
    group = {}
    for line in (folder / f"{stem}.group").read_text().splitlines():
        if ":" in line:
            name, _, letter = line.partition(":")
            group[name] = letter.strip(" .\t")
    return full, group


@pytest.mark.parametrize(
    ("stem", "costs"),
    [
        ("thyroid/ann-thyroid", thyroid_costs(_THYROID_COLUMNS)),
        ("heart/heart-disease", heart_costs()),
    ],
)
def test_prices_are_those_of_turneys_files(real_data, stem, costs):
    prices, group = expenses((real_data / stem).parent, stem.rpartition("/")[2])
    assert set(costs.columns) - set(prices) <= {"FTI"}
    for column, (full, discounted) in prices.items():
        assert costs.of([column]) == pytest.approx(full)
        for other in prices:
            if other == column:
                continue
            together = costs.of([column, other]) - costs.of([other])
            same = column in group and group.get(other) == group[column]
            assert together == pytest.approx(discounted if same else full)


def test_thyroid_real(real_data):
    thyroid = fetch_thyroid(data_home=real_data)
    check_thyroid(thyroid)
    assert not np.isnan(thyroid.data).any()
    # FTI is TT4 / T4U in UCI's scaling: it can be computed and has no price.
    column = dict(zip(thyroid.feature_names, thyroid.data.T, strict=True))
    ratio = column["TT4"] / column["T4U"] / column["FTI"]
    assert np.quantile(np.abs(ratio / 10 - 1), 0.95) < 0.05
    assert thyroid.costs.of(["FTI"]) == thyroid.costs.of(["TT4", "T4U"])


def test_heart_real(real_data):
    heart = fetch_heart(data_home=real_data)
    assert np.isnan(heart.data).sum() == 6
    np.testing.assert_array_equal(np.bincount(heart.target), HEART)
