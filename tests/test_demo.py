import json
import subprocess
import sys
from pathlib import Path

import pytest

from sparing.demo import demo_text, run_demo

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return run_demo(tmp_path_factory.mktemp("demo"), quiet=True)


def test_the_demo_keeps_the_sick_and_saves_more_than_half(result):
    full, cheap, adaptive = result["rows"]
    assert adaptive["price"] < 0.5 * full["price"]
    assert adaptive["recall"] >= full["recall"] - 0.06  # two of 38 patients
    assert adaptive["accuracy"] >= full["accuracy"] - 0.005
    assert cheap["recall"] < adaptive["recall"]
    assert (cheap["asked"], full["asked"]) == (0.0, 1.0)
    assert cheap["price"] == pytest.approx(sum(result["items"].values()))


def test_the_demo_draws_the_trade_off(result):
    assert Path(result["plot"]).read_bytes().startswith(b"\x89PNG")


def test_the_table_says_what_the_result_says(result):
    text = demo_text(result)
    adaptive = result["rows"][2]
    assert f"{adaptive['recall']:.3f}" in text
    assert f"${adaptive['price']:.2f}" in text
    assert all(item in text for item in result["items"])
    json.dumps(result)


def test_progress_goes_to_stderr_and_the_table_to_stdout(tmp_path):
    run = subprocess.run(
        [sys.executable, "-m", "sparing", "demo", "--out", str(tmp_path), "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(run.stdout)["n_test"] == 791
    assert "patients" in run.stderr


def test_without_the_extra_the_command_names_it():
    code = "import sys; sys.modules['typer'] = None; from sparing.__main__ import main; main()"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "sparing[cli,plot]" in run.stderr


def test_the_readme_shows_the_stored_result(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    from readme import RESULT, with_block

    text = (ROOT / "README.md").read_text()
    assert with_block(text, json.loads(RESULT.read_text())) == text
    assert "make demo" in text
    assert "make test" in text


def test_the_readme_examples_run(capsys):
    text = (ROOT / "README.md").read_text()
    names = {}
    for part in text.split("```python\n")[1:]:
        exec(compile(part.split("```")[0], "README.md", "exec"), names)  # the README is ours
    out = capsys.readouterr().out
    assert "items" in out
    assert "Point(cost=" in out
