import json

import pytest
from clinic import PRICES, patients

from sparing import FeatureCosts
from sparing.cli.pricing import read_prices
from sparing.tables import read_labelled


def test_a_draft_prices_the_columns_of_the_file(run, files):
    out = files / "draft.toml"
    outcome = run("costs", "init", files / "patients.csv", "--target", "sick", "--out", out)
    assert outcome.exit_code == 0
    assert "Put your prices in" in outcome.stdout
    costs = FeatureCosts.from_toml(out)
    assert costs.columns == ("age", "blood pressure", "smoker", "lab")
    assert "text, 2 levels, " in out.read_text()
    again = run("costs", "init", files / "patients.csv", "--target", "sick", "--out", out)
    assert again.exit_code == 2
    assert "--force" in again.stderr
    forced = run(
        *("costs", "init", files / "patients.csv", "--target", "sick", "--out", out),
        *("--force", "--drop", "lab", "--json"),
    )
    assert json.loads(forced.stdout) == {
        "out": str(out),
        "columns": 3,
        "left_out": [],
        "shared": [],
    }


@pytest.mark.parametrize(
    ("prices", "says"),
    [
        ("[prices]\nage = 1\nweight = 2\n", "has a price for 'weight', which"),
        ("[prices]\nage = 1\nsick = 2\n", "has a price for 'sick', which is the target"),
        (
            "[prices]\nage = 1\n",
            "no price for 'blood pressure', 'smoker', 'lab': add it under [prices]",
        ),
        ("[prices]\nage = -1\n", "The price of column 'age' is -1"),
        ("[prices\n", "is not valid TOML"),
        ("", "needs the table [prices]"),
    ],
)
def test_price_lists_that_do_not_fit(run, files, prices, says):
    (files / "bad.toml").write_text(prices)
    outcome = run(
        *("fit", files / "patients.csv", "--target", "sick", "--costs", files / "bad.toml"),
        *("--out", files / "m.sparing"),
    )
    assert outcome.exit_code == 2
    assert says in outcome.stderr
    assert "bad.toml" in outcome.stderr
    assert outcome.stderr.count("\n") == 1
    assert not (files / "m.sparing").exists()


def test_a_price_list_that_is_not_there(run, files):
    outcome = run(
        *("fit", files / "patients.csv", "--target", "sick", "--costs", files / "no.toml"),
        *("--out", files / "m.sparing"),
    )
    assert outcome.exit_code == 2
    assert "sparing costs init" in outcome.stderr


def test_ids_have_no_price(run, files):
    patients().assign(id=range(300)).to_csv(files / "patients.csv", index=False)
    out = files / "draft.toml"
    command = ("costs", "init", files / "patients.csv", "--target", "sick", "--out", out)
    outcome = run(*command, "--text", "smoker")
    assert "'id': looks like an id" in outcome.stderr
    assert " --drop id --text smoker " in outcome.stdout
    assert "id" not in FeatureCosts.from_toml(out).columns
    assert json.loads(run(*command, "--force", "--json").stdout)["left_out"] == ["id"]


def test_prices_of_dropped_columns_are_ignored_with_a_note(files, capsys):
    path = files / "more.toml"
    text = PRICES.replace("lab = 20", "lab = 20\nid = 7\nratio = 0").replace(
        '["lab"]', '["lab", "id"]'
    )
    path.write_text(
        text + '[shared.card]\nprice = 1\ncolumns = ["id"]\n[derived]\nratio = ["id"]\n'
    )
    patients().assign(id=range(300), ratio=0.5).to_csv(files / "patients.csv", index=False)
    rows = read_labelled(files / "patients.csv", "sick", drop=["id", "ratio"])
    found = read_prices(path, rows, ["id", "ratio"])
    assert found == read_prices(files / "costs.toml", rows)
    assert "has a price for 'id', 'ratio', which --drop leaves out" in capsys.readouterr().err
    rows = read_labelled(files / "patients.csv", "sick", drop=["id"])
    with pytest.raises(ValueError, match="computes 'ratio' from 'id'"):
        read_prices(path, rows, ["id"])
