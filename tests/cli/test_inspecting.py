import json
from dataclasses import replace

import pytest
from clinic import patients

from sparing import Certificate, Frontier
from sparing.cli.inspecting import frontier_text, systems_to_list
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


@pytest.fixture
def beaten(fitted, tmp_path):
    """A model whose own system is beaten by others on the rows of its frontier, as caution or a promise may have it."""
    bundle = load(fitted[1])
    stored = bundle.frontier
    system = stored.points[-1].system.with_thresholds(0.123)
    own = replace(stored.points[-1], system=system, cost=stored.points[-1].cost + 0.5)
    kept = Frontier(
        (own, *stored.points), stored.full, stored.scoring, stored.accounting, stored.n_rows
    )
    path = tmp_path / "beaten.sparing"
    save(
        system,
        path,
        frontier=systems_to_list(kept, own),
        metadata=bundle.metadata,
        like=bundle.like,
    )
    return path


def starred(text):
    return [line.split()[:2] for line in text.splitlines() if line.endswith(" *")]


def count_line(systems, rows):
    return f"{systems} systems and the full model on {rows} rows"


def test_the_frontier_shows_which_system_the_model_is(run, fitted):
    fit = json.loads(fitted[0].stdout)
    text = run("frontier", fitted[1]).stdout
    assert starred(text) == [[f"{fit['cost']:.5g}", f"{fit['score']:.4f}"]]
    assert f"* this model: accuracy {fit['score']:.4f} for {fit['cost']:.5g} a row" in text
    other = run("frontier", fitted[1], "--budget", "0").stdout
    assert len(starred(other)) == 1
    assert "* chosen: " in other
    assert "this model" not in other


def test_a_beaten_system_is_listed_when_it_is_the_models_own(run, beaten, tmp_path):
    n = len(load(beaten).frontier)
    data = tmp_path / "test.csv"
    patients(80, seed=3).to_csv(data, index=False)
    for arguments, rows in (([], 60), ([data], 80)):
        result = json.loads(run("frontier", beaten, *arguments, "--json").stdout)
        assert len(result["points"]) == n
        assert result["own"] in result["points"]
        costs = [point["cost"] for point in result["points"]]
        assert costs == sorted(costs)
        text = run("frontier", beaten, *arguments).stdout
        own = result["own"]
        assert starred(text) == [[f"{own['cost']:.5g}", f"{own['score']:.4f}"]]
        assert text.rstrip().endswith(count_line(n, rows))
    assert f"systems to choose from: {n}" in run("inspect", beaten).stdout


def test_a_frontier_without_systems_is_none(run, fitted, tmp_path):
    bundle = load(fitted[1])
    stored = bundle.frontier
    empty = Frontier((), stored.full, stored.scoring, stored.accounting, stored.n_rows)
    path = tmp_path / "empty.sparing"
    save(bundle.system, path, frontier=empty)
    outcome = run("frontier", path, "--budget", "5")
    assert outcome.exit_code == 2
    assert "no frontier" in outcome.stderr
    assert "systems to choose from: this one alone" in run("inspect", path).stdout


def listed(n, chosen=None, full=False):
    """A result with n systems."""
    points = [{"cost": i, "score": i / 50, "saving": None, "stages": [1.0]} for i in range(n)]
    alone = {"cost": 99, "score": 1.0, "saving": 0.0, "stages": [1.0], "label": "full model"}
    return {
        "scoring": "accuracy",
        "rows": 1000,
        "points": points,
        "full": alone if full else None,
        "chosen": None if chosen is None else points[chosen],
    }


def test_a_long_list_is_thinned_and_keeps_the_chosen_one():
    result = listed(20, chosen=7)
    lines = frontier_text(result, most=4).splitlines()
    shown = [int(line.split()[0]) for line in lines[1 : lines.index("")]]
    assert shown == [0, 6, 7, 13, 19]
    assert [line.endswith("*") for line in lines[1:6]] == [False, False, True, False, False]
    assert lines[-1] == "20 systems on 1,000 rows, 5 of the systems shown"
    assert len(frontier_text(result).splitlines()) == 1 + 20 + 4


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("n", [0, 1, 2, 8, 9, 10, 11, 40])
@pytest.mark.parametrize("most", [None, 0, 1, 8])
def test_the_count_is_that_of_the_lines(n, most, full):
    for chosen in [None, *range(n)]:
        text = frontier_text(listed(n, chosen, full), most=most)
        lines = text.splitlines()
        shown = lines.index("") - 1 - full
        said = f"{n} system{'' if n == 1 else 's'}{' and the full model' if full else ''} on 1,000 rows"
        assert lines[-1] == said + (f", {shown} of the systems shown" if shown < n else "")
        assert starred(text) == ([] if chosen is None else [[str(chosen), f"{chosen / 50:.4f}"]])
        if most is None or n <= most:
            assert shown == n
        else:
            assert most <= shown <= most + 1


def test_equal_lines_share_one_star():
    result = listed(3, chosen=1)
    result["points"][2] = dict(result["points"][1])
    assert len(starred(frontier_text(result))) == 1


def test_inspect_says_what_is_promised(run, promised, fitted):
    model = promised[1]
    text = run("inspect", model).stdout
    certificate = Certificate.from_json(json.dumps(load(model).certificate))
    assert repr(certificate) in text
    assert repr(certificate) in promised[0].stdout  # the same text as after the fit
    assert "--json" not in text
    assert "promised: nothing" in run("inspect", fitted[1]).stdout


@pytest.mark.parametrize(
    "own",
    [
        {"signed": "by hand"},
        ["a list"],
        {"format": 1, "promises": ["nothing"]},
        {"format": 1, "n": 0},
    ],
)
def test_certificates_of_another_make(run, fitted, tmp_path, own):
    path = tmp_path / "own.sparing"
    save(load(fitted[1]), path, certificate=own)
    outcome = run("inspect", path)
    assert outcome.exit_code == 0
    assert "promised: in words of its own, see --json" in outcome.stdout
    assert json.loads(run("inspect", path, "--json").stdout)["certificate"] == own


def test_a_certificate_that_is_ours_but_for_a_part(run, promised, tmp_path):
    bundle = load(promised[1])
    path = tmp_path / "own.sparing"
    for part in ({"n": 0}, {"stage_counts": ["many"]}, {"promises": "all"}):
        save(bundle, path, certificate=dict(bundle.certificate) | part)
        outcome = run("inspect", path)
        assert outcome.exit_code == 0
        assert "see --json" in outcome.stdout


def test_long_notes_in_a_file_are_cut(run, fitted, tmp_path):
    prices = {f"measurement {i}": i for i in range(400)}
    path = tmp_path / "wide.sparing"
    save(load(fitted[1]), path, metadata={"prices": prices, "names": list(prices), "who": "me"})
    text = run("inspect", path).stdout
    assert "prices measurement 0 0, measurement 1 1, " in text
    assert text.count("... and 392 more") == 2
    assert "who me" in text
    assert max(map(len, text.splitlines())) < 500


def test_another_system_takes_no_promise_along_and_that_is_said(run, promised, tmp_path):
    out = tmp_path / "other.sparing"
    result = run("frontier", promised[1], "--tolerance", "0.05", "--out", out)
    assert f"is about another system and is not in {out.name}" in result.stdout
    assert load(out).certificate is None
