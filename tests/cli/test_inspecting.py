import json

import pytest
from clinic import patients

from sparing.cli.inspecting import frontier_text
from sparing.runtime import load, save


def test_inspect_says_what_is_bought_at_which_price(run, fitted):
    bundle = load(fitted[1])
    result = json.loads(run("inspect", fitted[1], "--json").stdout)
    prices = bundle.costs.of(bundle.stage_columns()) + bundle.call_prices()
    assert [stage["price"] for stage in result["stages"]] == pytest.approx(prices.tolist())
    assert result["classes"] == ["no", "yes"]
    assert result["frontier"] == len(bundle.frontier)
    text = run("inspect", fitted[1]).stdout
    assert "lab (20), blood draw (3)" in text
    assert "target sick" in text
    assert "answers" not in text  # unknown without rows


def test_the_frontier_rises(run, fitted):
    outcome = run("frontier", fitted[1], "--json")
    result = json.loads(outcome.stdout)
    costs = [point["cost"] for point in result["points"]]
    scores = [point["score"] for point in result["points"]]
    assert costs == sorted(costs)
    assert scores == sorted(scores)
    assert result["full"]["saving"] == 0
    assert "full model" in run("frontier", fitted[1]).stdout


def test_the_frontier_on_other_rows(run, fitted, tmp_path):
    path = tmp_path / "test.csv"
    patients(80, seed=3).to_csv(path, index=False)
    outcome = run("frontier", fitted[1], path, "--target", "sick", "--json")
    result = json.loads(outcome.stdout)
    assert result["rows"] == 80
    first = load(fitted[1]).frontier.points[0].system
    X = patients(80, seed=3)
    assert result["points"][0]["cost"] <= first.costs.total
    assert len(X) == 80


def test_another_choice_is_stored_without_fitting(run, fitted, tmp_path):
    points = json.loads(run("frontier", fitted[1], "--json").stdout)["points"]
    out = tmp_path / "cheaper.sparing"
    budget = points[0]["cost"]
    outcome = run("frontier", fitted[1], "--budget", budget, "--out", out, "--json")
    assert outcome.exit_code == 0
    chosen, again = json.loads(outcome.stdout)["chosen"], load(out)
    assert chosen["cost"] == budget
    assert len(again.frontier) == len(points)
    assert again.like.dtypes.tolist() == load(fitted[1]).like.dtypes.tolist()
    text = run("frontier", out, "--tolerance", 0.02)
    assert "chosen: accuracy" in text.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--out", "x.sparing"], "give --budget or --tolerance"),
        (["--target", "sick"], "give DATA as well"),
        (["--budget", "-1"], "--budget is -1: a cost per row"),
        (["--tolerance", "-2"], "cheapest"),
        (["--budget", "99", "--out", "no/folder/x.sparing"], "make it first"),
        (["rows.csv", "--target", "sick"], "there is no such file"),
    ],
)
def test_wishes_that_cannot_be_met(run, fitted, arguments, says):
    outcome = run("frontier", fitted[1], *arguments)
    assert outcome.exit_code == 2
    assert says in outcome.stderr
    assert outcome.stderr.count("\n") == 1


def test_files_that_are_no_bundles(run, tmp_path, fitted):
    bad = tmp_path / "bad.sparing"
    bad.write_bytes(b"PK nothing")
    for command in ("inspect", "frontier"):
        outcome = run(command, bad)
        assert outcome.exit_code == 2
        assert "bad.sparing" in outcome.stderr
        assert outcome.stderr.count("\n") == 1
    alone = tmp_path / "alone.sparing"
    save(load(fitted[1]).system, alone)
    assert "no frontier" in run("frontier", alone).stderr


def test_a_long_list_is_thinned_and_keeps_the_chosen_one():
    points = [{"cost": i, "score": i / 20, "saving": None, "stages": [1.0]} for i in range(20)]
    result = {"scoring": "accuracy", "rows": 9, "full": None, "points": points, "chosen": points[7]}
    lines = frontier_text(result, most=4).splitlines()
    shown = [int(line.split()[0]) for line in lines[1 : lines.index("")]]
    assert shown == [0, 6, 7, 13, 19]
    assert [line.endswith("*") for line in lines[1:6]] == [False, False, True, False, False]
    assert lines[-1] == "20 systems on 9 rows, 4 of them shown"
    assert len(frontier_text(result).splitlines()) == 1 + 20 + 4
