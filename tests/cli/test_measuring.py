import pytest
from clinic import patients

from sparing.cli.measuring import load_whole, rows_to_measure
from sparing.runtime import load, save
from sparing.tables import read_labelled


def test_of_the_fitted_file_only_rows_kept_aside_are_measured(fitted, capsys):
    model = fitted[1]
    bundle, data = load(model), model.parent / "patients.csv"
    rows = rows_to_measure(bundle, data, None)
    assert len(rows.y) == 60
    assert "60 rows" in capsys.readouterr().err
    learnt, aside = read_labelled(data, "sick").split(0.2, seed=0)
    assert rows.X.equals(aside.X[list(bundle.costs.columns)])
    assert rows.y.tolist() == aside.y.tolist()
    assert not set(learnt.X["age"]) & set(aside.X["age"])
    assert len(learnt.y) == bundle.metadata["rows"] == 240


def test_of_other_files_all_rows_are_measured(fitted, tmp_path, capsys):
    patients(50, seed=5).to_csv(tmp_path / "other.csv", index=False)
    assert len(rows_to_measure(load(fitted[1]), tmp_path / "other.csv", "sick").y) == 50
    assert capsys.readouterr().err == ""


def test_rows_that_were_learnt_from_are_remarked(fitted, tmp_path, capsys):
    bundle, data = load(fitted[1]), fitted[1].parent / "patients.csv"
    save(bundle, tmp_path / "m.sparing", metadata={**bundle.metadata, "test": 0.0})
    assert len(rows_to_measure(load(tmp_path / "m.sparing"), data, None).y) == 300
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
