import gzip
import os

import pandas as pd
import pyarrow as pa
import pytest

from sparing.tables import TableError, TableWriter, read_table, whole_file
from sparing.tables.writing import check_apart, check_folder


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("before")
    with pytest.raises(RuntimeError), whole_file(path) as beside:  # noqa: PT012
        beside.write_text("half")
        raise RuntimeError
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["a.txt"]
    with whole_file(path) as beside:
        beside.write_text("after")
        assert path.read_text() == "before"
    assert path.read_text() == "after"
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz", "out.parquet"])
def test_chunks_are_written_one_after_the_other(tmp_path, name):
    chunks = [
        pa.table({"a b": ["x", "y"], "n": [1.5, None]}),
        pa.table({"a b": ['q"r', "s,\nt"], "n": [2.0, 3.0]}),
    ]
    with TableWriter(tmp_path / name) as writer:
        for chunk in chunks:
            writer.write(chunk)
    expected = pa.concat_tables(chunks).to_pandas().astype({"a b": object})
    pd.testing.assert_frame_equal(read_table(tmp_path / name), expected)
    assert os.listdir(tmp_path) == [name]


def test_quotes_stand_only_where_a_chunk_needs_them(tmp_path):
    with TableWriter(tmp_path / "out.csv.gz", ";") as writer:
        writer.write(pa.table({"a": ["x"], "b;c": [1]}))
        writer.write(pa.table({"a": ["y;z"], "b;c": [2]}))
    text = gzip.decompress((tmp_path / "out.csv.gz").read_bytes()).decode()
    assert text == 'a;"b;c"\nx;1\n"y;z";2\n'


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_an_error_between_chunks_leaves_nothing(tmp_path, name):
    with pytest.raises(RuntimeError), TableWriter(tmp_path / name) as writer:  # noqa: PT012
        writer.write(pa.table({"a": [1]}))
        raise RuntimeError
    assert os.listdir(tmp_path) == []


def test_places_that_cannot_be_written(tmp_path):
    with pytest.raises(TableError, match="is a folder"):
        check_folder(tmp_path)
    with pytest.raises(TableError, match="does not exist: make it first"):
        check_folder(tmp_path / "no" / "a.csv")
    with pytest.raises(TableError, match="written to CSV"):
        TableWriter(tmp_path / "a.xlsx")


def test_what_is_read_is_not_written_to(tmp_path, monkeypatch):
    rows, link = tmp_path / "rows.csv", tmp_path / "link.csv"
    rows.write_text("a\n1\n")
    link.symlink_to(rows)
    monkeypatch.chdir(tmp_path)
    for name in (rows, link, "rows.csv", tmp_path / ".." / tmp_path.name / "rows.csv"):
        with pytest.raises(TableError, match="would be overwritten"):
            check_apart(name, "none.toml", None, rows)
    (tmp_path / "other.csv").write_text("a\n1\n")
    check_apart("other.csv", rows)
    check_apart("new.csv", rows, "none.csv")
