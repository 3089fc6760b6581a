import warnings

import pytest
import typer

from sparing.cli.console import examples, in_short, plain_errors, row_counter, table


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (ValueError("bad\n  value"), 2, "sparing: bad value\n"),
        (
            FileNotFoundError(2, "No such file or directory", "a.csv"),
            2,
            "sparing: a.csv: there is no such file.",
        ),
        (ImportError("pip install 'sparing[cli]'"), 1, "sparing: pip install"),
    ],
)
def test_errors_are_one_line_and_a_code(capsys, error, code, says):
    with pytest.raises(typer.Exit) as caught, plain_errors():
        raise error
    assert caught.value.exit_code == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(says)
    assert err.count("\n") == 1


def test_our_own_mistakes_are_not_hidden():
    with pytest.raises(ZeroDivisionError), plain_errors():
        raise ZeroDivisionError


@pytest.mark.filterwarnings("default")
def test_warnings_are_remarks(capsys):
    with plain_errors():
        warnings.warn("mind\nthis", UserWarning, stacklevel=1)
    assert capsys.readouterr().err == "sparing: note: mind this\n"


def test_rows_are_counted_on_a_terminal_only(capsys, monkeypatch):
    with row_counter(quiet=False) as count:
        assert count is None
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with row_counter(quiet=False) as count:
        count(1000)
        count(500)
    assert capsys.readouterr().err == "\r1,000 rows\r1,500 rows\n"
    with row_counter(quiet=True) as count:
        assert count is None


def test_tables_line_up():
    lines = table(["a", "long name"], [["xyz", "1"], ["", "12345678901"]]).split("\n")
    assert lines == ["a      long name", "xyz            1", "     12345678901"]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ([], ""),
        (list(range(8)), "0, 1, 2, 3, 4, 5, 6, 7"),
        (list(range(9)), "0, 1, 2, 3, 4, 5, 6, 7, ... and 1 more"),
        ({"a": 1, "b": [2, 3]}, "a 1, b 2, 3"),
        (None, "None"),
    ],
)
def test_long_values_are_cut_with_a_count(value, says):
    assert in_short(value) == says


def test_examples_are_kept_line_by_line():
    assert examples("\na\nb\n") == "\b\nExamples:\n  a\n  b"


def test_no_command_overwrites_what_it_reads(run, fitted, tmp_path):
    """Through links and other paths as well, each with one line and code 2, before anything is done."""
    for name in ("patients.csv", "costs.toml", "patients.sparing"):
        (tmp_path / name).write_bytes((fitted[1].parent / name).read_bytes())
        (tmp_path / f"link-{name}").symlink_to(tmp_path / name)
    data, prices, model = (
        tmp_path / name for name in ("patients.csv", "costs.toml", "patients.sparing")
    )
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    fit = ["fit", data, "--target", "sick", "--costs", prices]
    commands = [
        (fit, [data, prices]),
        (["report", model, data], [data, model]),
        (["predict", data, "--model", model], [data, model]),
        (["frontier", model, data, "--budget", "99"], [data, model]),
        (["costs", "init", data, "--target", "sick", "--force"], [data]),
    ]
    for command, outs in commands:
        for out in outs:
            for other in (
                out,
                tmp_path / ".." / tmp_path.name / out.name,
                out.with_name(f"link-{out.name}"),
            ):
                outcome = run(*command, "--out", other)
                assert outcome.exit_code == 2, (command, other)
                assert "would be overwritten: name another file" in outcome.stderr
                assert outcome.stderr.count("\n") == 1
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
