import os

import numpy as np
import pandas as pd
import pytest

from sparing import AdaptLinClassifier, FeatureCosts
from sparing.runtime import load, save
from sparing.tables import TableError, full_model, predict_table, read_table
from sparing.tables import reading as reading_module
from sparing.tables.answering import column_kinds


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A stored system on numbers with gaps and words, and rows for it."""
    rng = np.random.default_rng(0)
    n = 300
    X = pd.DataFrame(
        {
            "a": rng.normal(size=n),
            "b": rng.normal(size=n),
            "word": pd.Series(
                rng.choice(np.array(["x", "y", None], dtype=object), n), dtype=object
            ),
        }
    )
    y = np.where(X["b"] + (X["word"] == "x") + 0.5 * X["a"] > 0.5, "yes", "no")
    X.loc[::9, "a"] = np.nan
    costs = FeatureCosts({"a": 1, "b": 5, "word": 2})
    clf = AdaptLinClassifier(full_model("logistic", X), feature_costs=costs, random_state=0, cv=2)
    path = tmp_path_factory.mktemp("model") / "m.sparing"
    save(clf.fit(X, y), path, like=X)
    return load(path), X


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("out", ["out.csv", "out.parquet"])
def test_answers_are_those_of_the_system(tmp_path, monkeypatch, model, form, out):
    monkeypatch.setattr(reading_module, "_BLOCK", 1500)
    monkeypatch.setattr(reading_module, "_CHUNK", 3000)
    monkeypatch.setattr(reading_module, "_ROWS", 70)
    system, X = model
    rows = X[["word", "b"]].assign(id=[f"r{i}" for i in range(len(X))], a=X["a"])
    path = tmp_path / f"rows.{form}"
    if form == "csv":
        rows.to_csv(path, index=False)
    else:
        rows.to_parquet(path)
    counted = []
    done = predict_table(system, path, tmp_path / out, progress=counted.append)
    again = read_table(tmp_path / out)
    assert list(again) == ["word", "b", "id", "a", "prediction", "stage", "cost"]
    assert again["prediction"].tolist() == system.predict(X).tolist()
    assert again["stage"].tolist() == system.route(X).tolist()
    np.testing.assert_allclose(again["cost"], system.acquisition_cost(X))
    pd.testing.assert_frame_equal(again[list(X)], X)
    assert len(counted) > 3
    assert done["rows"] == sum(counted) == sum(done["stages"]) == len(X)
    assert done["total_cost"] == pytest.approx(system.acquisition_cost(X).sum())
    assert sum(done["predictions"].values()) == len(X)


def test_csv_is_kept_word_for_word(tmp_path, model):
    (tmp_path / "rows.csv").write_text("id;word;b;a\n007;x;1.50;NA\n8;;-0;+1e0\n")
    predict_table(model[0], tmp_path / "rows.csv", tmp_path / "out.csv", prefix="new_")
    head, *lines = (tmp_path / "out.csv").read_text().splitlines()
    assert head == "id;word;b;a;new_prediction;new_stage;new_cost"
    assert [line.rsplit(";", 3)[0] for line in lines] == ["007;x;1.50;NA", "8;;-0;+1e0"]


def test_errors_leave_nothing_behind(tmp_path, model, monkeypatch):
    monkeypatch.setattr(reading_module, "_BLOCK", 100)
    monkeypatch.setattr(reading_module, "_CHUNK", 500)
    path = tmp_path / "rows.csv"
    path.write_text("word,b,a\n" + "x,1,2\n" * 200 + "x,one,2\n")
    with pytest.raises(TableError, match="column 'b' holds 'one' in row 201"):
        predict_table(model[0], path, tmp_path / "out.csv")
    assert os.listdir(tmp_path) == ["rows.csv"]
    path.write_text("word,b\nx,1\n")
    with pytest.raises(TableError, match="missing are 'a'"):
        predict_table(model[0], path, tmp_path / "out.csv")
    path.write_text("word,a,b,cost\nx,1,2,3\n")
    with pytest.raises(TableError, match=r"already has a column 'cost'.*--prefix"):
        predict_table(model[0], path, tmp_path / "out.csv")
    path.write_text("word,a,b\n")
    with pytest.raises(TableError, match="no rows"):
        predict_table(model[0], path, tmp_path / "out.csv")
    assert os.listdir(tmp_path) == ["rows.csv"]


def test_kinds_come_from_the_file_of_the_model(tmp_path, model):
    system, X = model
    assert column_kinds(system) == {"a": "number", "b": "number", "word": "text"}
    assert column_kinds(system.system) == dict.fromkeys(X, "number")
    y = (X["b"] > 0).to_numpy()
    unnamed = AdaptLinClassifier(cv=2, random_state=0).fit(X[["b"]].to_numpy(), y)
    with pytest.raises(TableError, match="without names"):
        column_kinds(unnamed.system_)
