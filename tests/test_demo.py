import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from printed import reader  # noqa: F401
from sparing import Certificate, PromiseError, demo
from sparing.datasets import load_hypothyroid
from sparing.demo import CONFIDENCE, MIN_RECALL, TOLERANCE, demo_text, run_demo

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def result(folder):
    return run_demo(folder, quiet=True)


@pytest.fixture(scope="module")
def quick():
    return run_demo(method="greedy-miser", quiet=True)


def test_the_demo_saves_more_than_half_within_its_tolerance(result):
    full, promised, within_budget, healthy = result["rows"]
    assert promised["price"] < 0.5 * full["price"]
    assert promised["accuracy"] >= full["accuracy"] - TOLERANCE
    assert promised["recall"] >= MIN_RECALL
    assert within_budget["price"] < 1.1 * result["budget"]  # it was kept on other patients
    assert (full["asked"], healthy["recall"], healthy["missed"]) == (1.0, 0.0, result["n_sick"])


def test_what_the_full_model_never_looks_at_is_named_and_not_billed(result):
    total = load_hypothyroid().costs.total
    assert result["rows"][0]["price"] == pytest.approx(total - sum(result["unread"].values()))
    assert all(name in demo_text(result) for name in result["unread"])


def test_intervals_enclose_what_was_measured(result):
    for row in result["rows"][1:3]:
        for name in ("saving", "loss"):
            low, high = row[f"{name}_interval"]
            assert low <= row[name] <= high
    full, promised, *_ = result["rows"]
    assert promised["saving"] == pytest.approx(1 - promised["price"] / full["price"])


def test_stages_add_up_to_the_price(result):
    stages, promised = result["stages"], result["rows"][1]
    paid = sum(stage["reached"] * sum(stage["items"].values()) for stage in stages)
    assert paid == pytest.approx(promised["price"])
    assert stages[0]["reached"] == 1
    assert stages[-1]["reached"] == promised["asked"]
    names = [name for stage in stages for name in stage["items"]]
    assert len(names) == len(set(names))


def test_the_promise_is_the_one_asked_for_and_stands_in_the_folder(result, folder):
    certificate = Certificate.from_json(json.dumps(result["certificate"]))
    assert certificate.confidence == CONFIDENCE
    kinds = {finding.kind: finding for finding in certificate.promises}
    assert kinds["tolerance"].limit == TOLERANCE
    assert kinds["min_recall"].limit == pytest.approx(1 - MIN_RECALL)
    assert all(finding.p_value <= 1 - CONFIDENCE for finding in certificate.promises)
    assert certificate.n < result["n_learn"]
    assert Certificate.from_json((folder / "certificate.json").read_text()) == certificate


def test_the_demo_draws_the_frontier(result):
    assert Path(result["plot"]).read_bytes().startswith(b"\x89PNG")


def test_the_text_says_what_the_result_says(result):
    text = demo_text(result)
    promised = result["rows"][1]
    assert f"{promised['recall']:.3f}" in text
    assert f"${promised['price']:.2f}" in text
    assert f"{promised['saving']:.0%} of the price" in text
    assert "at most 1 point below the full model's" in text
    assert "at least 70% of the sick" in text
    assert all(item in text for item in result["stages"][0]["items"])
    json.dumps(result, allow_nan=False)


def test_report_rows_are_used_for_nothing_else(quick, monkeypatch):
    """With other labels on the report rows everything that was learnt, chosen and promised stays the same."""
    split = demo.train_test_split

    def turned(X, y, **options):
        X_learn, X_report, y_learn, y_report = split(X, y, **options)
        return X_learn, X_report, y_learn, 1 - y_report

    monkeypatch.setattr(demo, "train_test_split", turned)
    other = run_demo(method="greedy-miser", quiet=True)
    assert other["certificate"] == quick["certificate"]
    assert other["stages"] == quick["stages"]
    assert other["rows"][1]["price"] == quick["rows"][1]["price"]
    assert other["rows"][1]["accuracy"] == pytest.approx(1 - quick["rows"][1]["accuracy"])


def test_without_a_promise_the_demo_says_so_and_progress_goes_to_stderr(
    monkeypatch, capsys, tmp_path
):
    (tmp_path / "certificate.json").write_text("of an earlier run")
    fit = demo.BudgetedClassifier.fit

    def unkept(self, X, y):
        fit(self, X, y)
        raise PromiseError("Too few rows.")

    monkeypatch.setattr(demo.BudgetedClassifier, "fit", unkept)
    result = run_demo(tmp_path, method="greedy-miser")
    assert not (tmp_path / "certificate.json").exists()
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "3163 patients" in captured.err
    assert "greedy-miser" in captured.err
    assert result["certificate"] is None
    assert result["rows"][1]["name"] == "unpromised system"
    assert "No promise: Too few rows." in demo_text(result)


def test_without_the_extra_the_command_names_it():
    code = "import sys; sys.modules['typer'] = None; from sparing.__main__ import main; main()"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "sparing[cli,plot]" in run.stderr


@pytest.fixture
def readme(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    return importlib.import_module("readme")


def test_the_readme_shows_the_stored_results(readme):
    text = (ROOT / "README.md").read_text()
    written = readme.with_blocks(text, json.loads(readme.RESULT.read_text()), readme.read_results())
    assert written == text, "run `python docs/readme.py results`, or `make readme` for the demo too"


def test_the_table_of_results_is_chosen_by_validation_rows(readme):
    def row(method, validation_cost, cut, accounting="stage", splits="1"):
        return {
            "data": "letters",
            "method": method,
            "accounting": accounting,
            "tolerance": "0.01",
            "splits": splits,
            "validation_cost": validation_cost,
            "cut": cut,
            "difference": "-0.004",
            "over": "1",
            "score": "accuracy",
            "paper_cut": "0.31",
        }

    rows = [
        row("budgeted", "5.98", "0.7"),  # about as good, but on one split only
        row("cascade", "6", "0.5", splits="5"),
        row("adapt-gbrt", "7", "0.9"),  # cheaper on test rows, where nothing is chosen
        row("adapt-gbrt-paper", "5", "0.6"),
        row("adapt-gbrt-paper", "5", "0.3", "path"),
        row("lightgbm-confidence", "8", "0.4"),
        row("budget-prune", "16", "0"),
    ]
    assert readme.results_block(rows).splitlines()[2] == (
        "| letters | 31% | **30%**, -0.40 (1 split) | **50%**, -0.40 (cascade, 5 splits) | "
        "**40%**, -0.40 (lightgbm-confidence, 1 split) | the full model |"
    )
    assert "the cascade loses more on 1 of 5 splits" in readme.results_block(rows)


def test_the_readme_runs_as_printed(reader, capsys):  # noqa: F811
    followed = reader(ROOT / "README.md").follow()
    names, out = followed.names, capsys.readouterr().out
    assert "Point(cost=" in out
    assert "Certificate: with confidence 0.95" in out
    assert "Answer(entity=" in out
    assert Path("thyroid.sparing").exists()
    assert names["cheaper"].choice_.cost <= 17 < names["clf"].choice_.cost
    assert (names["bundle"].predict(names["X_test"]) == names["clf"].predict(names["X_test"])).all()
    assert followed.answers[0]["status"] in ("answered", "items_needed")
    assert ["make", "demo"] in followed.commands
    assert ["make", "test"] in followed.commands


def test_the_readme_is_short_and_begins_with_commands_and_picture():
    text = (ROOT / "README.md").read_text()
    lines = text.splitlines()
    assert len(lines) < 240
    assert lines.index("make demo    # trains on bundled patients, prints the table below") < 10
    assert text.index("make test") < text.index("docs/images/hypothyroid.png") < text.index("## ")
