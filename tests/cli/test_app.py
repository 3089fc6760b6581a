import subprocess
import sys

import pytest

import sparing

COMMANDS = [
    ["fit"],
    ["frontier"],
    ["predict"],
    ["inspect"],
    ["report"],
    ["serve"],
    ["costs", "init"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_shows_examples_that_name_the_command(run, command):
    outcome = run(*command, "--help")
    assert outcome.exit_code == 0
    assert f"Examples:\n    sparing {' '.join(command)} " in outcome.stdout


def test_the_commands_the_version_and_completion(run):
    page = run("--help").stdout
    assert all(f"\n  {name} " in page for name in ("fit", "frontier", "predict", "inspect", "demo"))
    assert "--install-completion" in page
    assert "..." not in page.partition("Commands:")[2]  # every line is whole
    assert run("--version").stdout.strip() == sparing.__version__


def test_wrong_usage_is_code_two(run):
    assert run("fit").exit_code == 2
    assert run("fit", "a.csv", "--target", "y", "--out", "m", "--estimator", "tree").exit_code == 2
    assert run("nothing").exit_code == 2


def test_results_and_errors_of_the_real_command(fitted):
    command = [sys.executable, "-m", "sparing"]
    done = subprocess.run(
        [*command, "inspect", str(fitted[1])], capture_output=True, text=True, check=True
    )
    assert "blood draw" in done.stdout
    assert done.stderr == ""
    failed = subprocess.run(
        [*command, "inspect", "none.sparing"], capture_output=True, text=True, check=False
    )
    assert failed.returncode == 2
    assert failed.stdout == ""
    assert failed.stderr.count("\n") == 1
