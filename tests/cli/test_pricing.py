import json

import pytest

from sparing import FeatureCosts


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
    assert json.loads(forced.stdout) == {"out": str(out), "columns": 3, "shared": []}


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
