import json
import os

import numpy as np
import pandas as pd
import pytest
from clinic import patients

from sparing.runtime import load
from sparing.tables import read_table


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_answers_stand_behind_the_rows(run, fitted, tmp_path, suffix):
    rows = patients(50, seed=1).drop(columns="sick").assign(id=range(50))
    path, out = tmp_path / f"new.{suffix}", tmp_path / f"answers.{suffix}"
    if suffix == "csv":
        rows.to_csv(path, index=False)
    else:
        rows.to_parquet(path)
    outcome = run("predict", path, "--model", fitted[1], "--out", out, "--json")
    assert outcome.exit_code == 0
    result, answers = json.loads(outcome.stdout), read_table(out)
    bundle = load(fitted[1])
    X = read_table(path)[list(bundle.costs.columns)]
    assert answers["prediction"].tolist() == bundle.predict(X).tolist()
    assert answers["stage"].tolist() == bundle.route(X).tolist()
    np.testing.assert_allclose(answers["cost"].mean(), result["mean_cost"])
    assert (result["rows"], sum(result["stages"])) == (50, 50)
    assert "\r" not in outcome.stderr
    text = run("predict", path, "--model", fitted[1], "--out", out, "--quiet")
    assert text.stderr == ""
    assert text.stdout.startswith("50 rows for ")


def test_rows_a_model_does_not_fit(run, fitted, tmp_path):
    rows = patients(5)
    cases = {
        "missing are 'lab'": rows.drop(columns="lab"),
        "column 'lab' holds 'high' in row 1": rows.assign(lab="high"),
        "already has a column 'stage'": rows.assign(stage=1),
        "no rows": rows.head(0),
    }
    for says, frame in cases.items():
        path = tmp_path / "new.csv"
        frame.to_csv(path, index=False)
        outcome = run("predict", path, "--model", fitted[1], "--out", tmp_path / "out.csv")
        assert outcome.exit_code == 2
        assert says in outcome.stderr
        assert outcome.stderr.count("\n") == 1
        assert os.listdir(tmp_path) == ["new.csv"]


def test_models_that_are_none(run, tmp_path):
    pd.DataFrame({"a": [1]}).to_csv(tmp_path / "new.csv", index=False)
    for content, says in ((b"not a zip", "not a zip"), (None, "there is no such file")):
        model = tmp_path / "m.sparing"
        model.unlink(missing_ok=True)
        if content is not None:
            model.write_bytes(content)
        outcome = run(
            "predict", tmp_path / "new.csv", "--model", model, "--out", tmp_path / "out.csv"
        )
        assert outcome.exit_code == 2
        assert says in outcome.stderr
        assert outcome.stderr.count("\n") == 1
        assert not (tmp_path / "out.csv").exists()
