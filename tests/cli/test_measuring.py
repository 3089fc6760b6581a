import json

import pytest
from clinic import patients

from sparing.cli.measuring import load_whole, rows_to_measure
from sparing.runtime import load, save
from sparing.tables import read_labelled


def test_of_the_fitted_file_only_rows_kept_aside_are_measured(fitted, capsys):
    model = fitted[1]
    bundle, data = load(model), model.parent / "patients.csv"
    measured = rows_to_measure(bundle, data, None)
    rows = measured.rows
    assert (measured.kept_aside, measured.note) == (True, None)
    assert len(rows.y) == 60
    assert "60 rows" in capsys.readouterr().err
    learnt, aside = read_labelled(data, "sick").split(0.2, seed=0)
    assert rows.X.equals(aside.X[list(bundle.costs.columns)])
    assert rows.y.tolist() == aside.y.tolist()
    assert not set(learnt.X["age"]) & set(aside.X["age"])
    assert len(learnt.y) == bundle.metadata["rows"] == 240


def test_of_other_files_all_rows_are_measured(fitted, tmp_path, capsys):
    patients(50, seed=5).to_csv(tmp_path / "other.csv", index=False)
    measured = rows_to_measure(load(fitted[1]), tmp_path / "other.csv", "sick", quiet=True)
    assert len(measured.rows.y) == 50
    assert not measured.kept_aside
    assert capsys.readouterr().err == f"sparing: note: {measured.note}\n"
    assert "not the file the model was fitted on: all 50 rows were measured" in measured.note


def test_the_rows_are_known_again_in_another_form(fitted, tmp_path):
    bundle, data = load(fitted[1]), fitted[1].parent / "patients.csv"
    aside = rows_to_measure(bundle, data, None).rows
    text, frame = data.read_text(), patients()
    (tmp_path / "crlf.csv").write_bytes(text.replace("\n", "\r\n").encode())
    (tmp_path / "tab.tsv").write_text(text.replace(",", "\t"))
    frame.assign(more=1)[["more", *reversed(frame.columns)]].to_parquet(tmp_path / "a.parquet")
    for name in ("crlf.csv", "tab.tsv", "a.parquet"):
        again = rows_to_measure(bundle, tmp_path / name, None)
        assert again.kept_aside, name
        assert again.rows.X.equals(aside.X)
    changed = frame.copy()
    changed.loc[7, "lab"] += 1
    for other in (changed, frame.iloc[::-1], frame.iloc[1:]):
        other.to_csv(tmp_path / "other.csv", index=False)
        assert not rows_to_measure(bundle, tmp_path / "other.csv", None).kept_aside


def test_rows_are_known_by_their_bytes_as_well(fitted, tmp_path):
    bundle, data = load(fitted[1]), fitted[1].parent / "patients.csv"
    without = {key: value for key, value in bundle.metadata.items() if key != "content"}
    for about in (without, {**without, "content": "of another way to read"}):
        save(bundle, tmp_path / "m.sparing", metadata=about)
        assert rows_to_measure(load(tmp_path / "m.sparing"), data, None).kept_aside


def test_json_says_what_was_measured(run, fitted, tmp_path):
    patients(50, seed=5).to_csv(tmp_path / "other.csv", index=False)
    for data, aside in ((fitted[1].parent / "patients.csv", True), (tmp_path / "other.csv", False)):
        for command in (["report", "--out", tmp_path / "page.html"], ["frontier"]):
            outcome = run(*command, fitted[1], data, "--json")
            measured = json.loads(outcome.stdout)["measured"]
            assert measured["kept_aside"] is aside
            assert (measured["note"] is None) is aside
            assert ("too good" in outcome.stderr) is not aside


def test_rows_that_were_learnt_from_are_remarked(fitted, tmp_path, capsys):
    bundle, data = load(fitted[1]), fitted[1].parent / "patients.csv"
    save(bundle, tmp_path / "m.sparing", metadata={**bundle.metadata, "test": 0.0})
    assert len(rows_to_measure(load(tmp_path / "m.sparing"), data, None).rows.y) == 300
    assert "has learnt from" in capsys.readouterr().err
    save(bundle, tmp_path / "m.sparing", metadata={})
    with pytest.raises(ValueError, match="give --target"):
        rows_to_measure(load(tmp_path / "m.sparing"), data, None)


def test_a_model_that_lacks_a_part_cannot_answer_here(run, fitted, tmp_path):
    bundle = load_whole(fitted[1])
    path, data = tmp_path / "outside.sparing", fitted[1].parent / "patients.csv"
    save(bundle, path, outside=[bundle.stages[-1].name])
    for arguments in (["predict", data, "--model", path], ["report", path, data]):
        outcome = run(*arguments, "--out", tmp_path / "out.csv")
        assert outcome.exit_code == 2
        assert "was left outside the file" in outcome.stderr
    assert "not inside" in run("inspect", path).stdout
