import json
import os

import numpy as np
import pandas as pd
import pytest

from sparing import Certificate
from sparing.cli.fitting import fitted_text
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
    assert text.endswith(f"next: sparing report {model} {model.parent / 'patients.csv'}")
    assert "l1-gate: " in outcome.stderr
    assert "\r" not in outcome.stderr


def test_one_number_of_systems_and_the_chosen_one_in_the_table(run, fitted):
    outcome, model = fitted
    result = json.loads(outcome.stdout)
    n = result["systems"]
    assert json.loads(run("inspect", model, "--json").stdout)["frontier"] == n
    assert len(json.loads(run("frontier", model, "--json").stdout)["points"]) == n
    assert f"\n{n} systems and the full model on " in outcome.stderr
    assert f"with {n} systems to choose from" in fitted_text(result)
    assert f"systems to choose from: {n};" in run("inspect", model).stdout
    starred = [line for line in outcome.stderr.splitlines() if line.endswith(" *")]
    assert len(starred) == 1
    assert starred[0].split()[:2] == [f"{result['cost']:.5g}", f"{result['score']:.4f}"]


def test_the_loss_has_an_interval(fitted):
    result = json.loads(fitted[0].stdout)
    loss = result["loss"]
    assert loss["value"] == pytest.approx(result["full_score"] - result["score"])
    assert loss["low"] < loss["high"]
    assert loss["low"] <= loss["value"] <= loss["high"]
    text = fitted_text(result)
    assert f"on new rows {loss['low']:.4f} to {loss['high']:.4f}" in text
    assert "--guarantee" in text
    assert "--guarantee" not in fitted_text(result | {"promised": True})
    assert "so few rows also chose" in text
    assert "a little too good" in fitted_text(result | {"validation_rows": 5000})


def test_rows_that_all_agree_do_not_make_certain(run, tmp_path):
    """Where system and full model never differ, the interval is that of no event in n rows."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=200)
    frame = pd.DataFrame({"a": a, "b": rng.normal(size=200), "y": (a > 0).astype(int)})
    frame["a"] += np.where(a > 0, 3, -3)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    outcome = run(
        *("fit", tmp_path / "rows.csv", "--target", "y", "--estimator", "logistic", "--json"),
        *("--method", "l1-gate", "--out", tmp_path / "m.sparing"),
    )
    result = json.loads(outcome.stdout)
    loss = result["loss"]
    assert loss["value"] == 0
    rare = 1 - 0.025 ** (1 / result["validation_rows"])
    assert (loss["low"], loss["high"]) == pytest.approx((-rare, rare))


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
    "a stray word": (
        "a,b,y\n" + "".join(f"{i},{i % 7},{i % 2}\n" for i in range(40)) + "abc,1,1\n",
        "column 'a' holds numbers, but 'abc' in row 41: mend the cell",
    ),
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
        (["--method", "magic"], "--method 'magic' is not known. Give auto, or one"),
        (["--method", "cascad"], "Did you mean 'cascade'?"),
        (["--method", "auto,cascade"], "auto alone"),
        (["--method", ","], "--method is ','"),
        (["--scoring", "beauty"], "--scoring 'beauty' is not known. Give accuracy"),
        (["--scoring", "acc"], "Did you mean 'accuracy'?"),
        (["--budget", "-1"], "--budget is -1: a cost per row is 0 or more"),
        (["--guarantee", "0.9", "--scoring", "roc_auc"], "tolerance of accuracy, not of roc_auc"),
        (["--seed", "-1"], "--seed is -1"),
        (["--jobs", "0"], "--jobs is 0"),
        (["--budget", "nan"], "--budget is nan"),
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
    assert outcome.stderr.count("\n") == 1
    assert os.listdir(tmp_path) == ["rows.csv"]


@pytest.mark.parametrize(
    ("tolerance", "says"),
    [("-2", "Give a part of the difference"), ("-0.9", "cheapest")],  # before and after the fit
)
def test_an_impossible_wish_names_what_is_possible(run, files, tolerance, says):
    outcome = run(
        *("fit", files / "patients.csv", "--target", "sick", "--costs", files / "costs.toml"),
        *("--tolerance", tolerance, "--estimator", "logistic", "--method", "l1-gate", "-q"),
        *("--out", files / "m.sparing"),
    )
    assert outcome.exit_code == 2
    assert says in outcome.stderr
    assert outcome.stderr.count("\n") == 1
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


def test_a_promise_is_on_the_screen(promised):
    outcome, model = promised
    certificate = Certificate.from_json(json.dumps(load(model).certificate))
    assert repr(certificate) in outcome.stdout
    assert "with confidence 0.9, from 96 calibration rows" in outcome.stdout
    assert "accuracy at most 0.1 below the full model's: estimated " in outcome.stdout
    assert ", upper bound " in outcome.stdout
    assert "for a promise give --guarantee" not in outcome.stdout


def test_nothing_is_said_about_promises_that_were_not_made(fitted):
    result = json.loads(fitted[0].stdout)
    assert result["certificate"] is None
    assert "Certificate" not in fitted_text(result)


def test_a_single_system_is_no_systems(fitted):
    result = json.loads(fitted[0].stdout)
    assert "with 1 system to choose from" in fitted_text(result | {"systems": 1})


def test_a_chosen_system_that_is_beaten_is_listed_and_stored(run, files, monkeypatch):
    """Of several methods, caution and promises may choose a system that one of another method beats."""

    def beaten_one(_, frontier):
        beaten = set(range(len(frontier))) - set(frontier.pareto_positions().tolist())
        return frontier.points[min(beaten, default=0)]

    monkeypatch.setattr("sparing._wishes.Wishes.choose", beaten_one)
    model = files / "m.sparing"
    outcome = run(
        *("fit", files / "patients.csv", "--target", "sick", "--costs", files / "costs.toml"),
        *("--estimator", "logistic", "--method", "l1-gate,greedy-miser", "--out", model, "--json"),
    )
    result = json.loads(outcome.stdout)
    points = load(model).frontier.points
    assert any(p.cost <= result["cost"] and p.score > result["score"] for p in points)
    assert result["systems"] == len(points)
    text = run("frontier", model).stdout
    line = [f"{result['cost']:.5g}", f"{result['score']:.4f}"]
    for shown in (text, outcome.stderr):
        assert [row.split()[:2] for row in shown.splitlines() if row.endswith(" *")] == [line]
        assert f"\n{len(points)} systems and the full model on " in shown
