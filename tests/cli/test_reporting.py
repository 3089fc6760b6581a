import json

from clinic import patients


def test_the_page_is_written_and_its_numbers_printed(run, fitted, tmp_path):
    model, out = fitted[1], tmp_path / "report.html"
    data = model.parent / "patients.csv"
    outcome = run("report", model, data, "--out", out, "--segment", "smoker", "--json")
    assert outcome.exit_code == 0, outcome.stderr
    summary = json.loads(outcome.stdout)
    assert summary["data"]["n_rows"] == 60
    assert out.read_text("utf-8").startswith("<!doctype html>")
    text = run("report", model, data, "--out", out).stdout
    assert text.startswith(f"on 60 rows: accuracy {summary['headline']['score']['value']:.4f} (")
    assert f"saved {summary['headline']['saving']['value']:.0%} (" in text
    assert str(out) in text


def test_the_page_says_when_the_rows_are_others(run, fitted, tmp_path):
    model, out, other = fitted[1], tmp_path / "report.html", tmp_path / "other.csv"
    data = model.parent / "patients.csv"
    run("report", model, data, "--out", out)
    assert "not the file the model was fitted on" not in out.read_text("utf-8")
    patients(50).to_csv(other, index=False)
    outcome = run("report", model, other, "--out", out, "--json")
    note = json.loads(outcome.stdout)["note"]
    assert "is not the file the model was fitted on: all 50 rows were measured." in note
    assert f'<p class="note name">{note}</p>' in out.read_text("utf-8")
    assert note in outcome.stderr


def test_what_cannot_be_reported_leaves_no_page(run, fitted, tmp_path):
    model, out = fitted[1], tmp_path / "report.html"
    data = model.parent / "patients.csv"
    for arguments, says in (
        ([model, tmp_path / "none.csv"], "there is no such file"),
        ([model, data, "--target", "ill"], "has no column 'ill'"),
        ([model, data, "--segment", "town"], "--segment 'town' is not a column of"),
        ([model, data, "--segment", "smokr"], "Did you mean 'smoker'?"),
        ([data, data], "patients.csv"),
    ):
        outcome = run("report", *arguments, "--out", out, "--quiet")
        assert outcome.exit_code == 2
        assert says in outcome.stderr
        assert outcome.stderr.count("\n") == 1
        assert not out.exists()


def test_nothing_is_saved_of_a_full_model_that_costs_nothing(run, tmp_path):
    data, model = tmp_path / "patients.csv", tmp_path / "free.sparing"
    patients(120).drop(columns="smoker").to_csv(data, index=False)
    prices = tmp_path / "costs.toml"
    prices.write_text('[prices]\nage = 0\n"blood pressure" = 0\nlab = 0\n')
    done = run(
        *("fit", data, "--target", "sick", "--costs", prices, "--estimator", "logistic", "-q"),
        *("--method", "l1-gate", "--out", model),
    )
    assert done.exit_code == 0, done.stderr
    outcome = run("report", model, data, "--out", tmp_path / "report.html")
    assert outcome.exit_code == 0, outcome.stderr
    assert "the full model alone" in outcome.stdout
    assert "; saved" not in outcome.stdout
