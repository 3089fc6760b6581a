import json
import os

import pytest

from sparing.cli.fitting import fitted_text, methods
from sparing.runtime import load


def test_the_result_says_what_the_model_does(fitted):
    outcome, model = fitted
    result = json.loads(outcome.stdout)
    bundle = load(model, digest=result["digest"])
    assert result["stages"][-1]["price"] == bundle.costs.total == 26.0
    assert result["cost"] <= result["full_cost"]
    assert result["score"] >= result["full_score"] - 0.02 - 1e-12
    assert sum(stage["share"] for stage in result["stages"]) == pytest.approx(1)
    assert result["cost"] == pytest.approx(
        sum(stage["share"] * stage["price"] for stage in result["stages"])
    )
    assert bundle.metadata["target"] == "sick"
    assert [str(t) for t in bundle.like.dtypes] == ["float64", "float64", "object", "float64"]
    text = fitted_text(result)
    assert f"{result['saving']:.0%} saved" in text
    assert "l1-gate: " in outcome.stderr
    assert "\r" not in outcome.stderr


def test_methods():
    assert methods("auto") == "auto"
    assert methods("adapt-lin, cascade") == ["adapt-lin", "cascade"]


def csv(folder, content, name="rows.csv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


GOOD = "a,b,y\n" + "1,2,0\n2,1,1\n" * 10
BAD = {
    "missing file": (None, "there is no such file"),
    "empty file": ("", "is empty"),
    "only a header": ("a,y\n", "no rows"),
    "unknown target": ("a,b,yy\n1,2,0\n2,1,1\n", "has no column 'y' for the target"),
    "a class with one row": (GOOD + "3,3,2\n", "there is one row"),
    "an id": ("a,y\n" + "".join(f"k{i},{i % 2}\n" for i in range(100_000)), "--drop a"),
    "non-UTF-8 bytes": (b"a,y\ncaf\xe9,1\nte,0\n", "iconv"),
    "ragged rows": (GOOD + "1,2\n", "line 22 has 2 columns, the header 3"),
    "target again": ("a,b,y\n" + "1,0,0\n2,1,1\n" * 10, "--drop b"),
    "quantity": ("a,y\n" + "".join(f"{i},{i / 7}\n" for i in range(30)), "Cut it into classes"),
}


@pytest.mark.parametrize("case", BAD)
def test_rows_that_cannot_be_used(run, tmp_path, case):
    content, says = BAD[case]
    path = tmp_path / "rows.csv" if content is None else csv(tmp_path, content)
    before = os.listdir(tmp_path)
    outcome = run("fit", path, "--target", "y", "--out", tmp_path / "m.sparing")
    assert outcome.exit_code == 2
    assert says in outcome.stderr
    assert "rows.csv" in outcome.stderr
    assert outcome.stderr.count("\n") == 1
    assert outcome.stdout == ""
    assert os.listdir(tmp_path) == before


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--out", "no/folder/m.sparing"], "make it first"),
        (["--method", "magic"], "method='magic' is not known"),
        (["--scoring", "beauty"], "beauty"),
        (["--drop", "c"], "no column 'c' to leave out"),
        (["--drop", "y"], "is the target"),
        (["--guarantee", "2"], "confidence"),
    ],
)
def test_options_that_cannot_be_used(run, tmp_path, options, says):
    path = csv(tmp_path, GOOD)
    outcome = run("fit", path, "--target", "y", "--out", tmp_path / "m.sparing", "-q", *options)
    assert outcome.exit_code == 2
    assert says in outcome.stderr
    assert os.listdir(tmp_path) == ["rows.csv"]


def test_an_impossible_budget_names_what_is_possible(run, files):
    outcome = run(
        *("fit", files / "patients.csv", "--target", "sick", "--costs", files / "costs.toml"),
        *("--budget", "-1", "--estimator", "logistic", "--method", "l1-gate", "-q"),
        *("--out", files / "m.sparing"),
    )
    assert outcome.exit_code == 2
    assert "cheapest" in outcome.stderr
    assert not (files / "m.sparing").exists()


def test_a_promise_that_cannot_be_made(run, files):
    outcome = run(
        *("fit", files / "patients.csv", "--target", "sick", "--costs", files / "costs.toml"),
        *("--tolerance", "0.0001", "--guarantee", "0.999", "--estimator", "logistic"),
        *("--method", "l1-gate", "-q", "--out", files / "m.sparing"),
    )
    assert outcome.exit_code == 2
    assert "No model was written: loosen --tolerance" in outcome.stderr
    assert "frontier_" not in outcome.stderr
    assert not (files / "m.sparing").exists()
