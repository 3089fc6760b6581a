import gzip
from datetime import date

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sparing.tables import TableError, read_table, table_chunks
from sparing.tables import reading as module


def written(folder, content, name="rows.csv"):
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "number": rng.normal(size=500),
            "whole": rng.integers(0, 9, 500).astype(float),
            "word": pd.Series(
                rng.choice(np.array(["a", "b, c", 'd"e', "ü\n", None], dtype=object), 500),
                dtype=object,
            ),
        }
    )
    frame.loc[::7, "number"] = np.nan
    return frame


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "csv.gz"])
def test_a_frame_comes_back(tmp_path, frame, suffix):
    path = tmp_path / f"rows.{suffix}"
    if suffix == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if suffix == "tsv" else ",")
    again = read_table(path)
    # Blanks around a value are not part of it.
    words = [None if word is None else word.strip() for word in frame["word"]]
    pd.testing.assert_frame_equal(again, frame.assign(word=pd.Series(words, dtype=object)))
    assert [str(t) for t in again.dtypes] == ["float64", "float64", "object"]


def test_chunks_are_the_whole(tmp_path, frame, monkeypatch):
    monkeypatch.setattr(module, "_BLOCK", 500)
    monkeypatch.setattr(module, "_CHUNK", 2000)
    monkeypatch.setattr(module, "_ROWS", 60)
    kinds = {"word": "text", "number": "number"}
    for suffix in ("csv", "parquet"):
        path = tmp_path / f"rows.{suffix}"
        if suffix == "csv":
            frame.to_csv(path, index=False)
        else:
            frame.to_parquet(path)
        parts = [part for _, part in table_chunks(path, kinds)]
        assert len(parts) > 5
        whole = read_table(path, like=kinds)
        pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), whole)
        assert list(whole) == ["word", "number"]


def test_semicolons_byte_order_marks_and_windows_lines(tmp_path):
    path = written(tmp_path, b'\xef\xbb\xbf"a b";c\r\n1;"x;y"\r\n2;z\r\n')
    assert read_table(path).to_dict("list") == {"a b": [1.0, 2.0], "c": ["x;y", "z"]}


def test_codes_are_text_when_told_so(tmp_path):
    path = written(tmp_path, b"zip,b\n01234,1\n99,2\n")
    assert read_table(path, text=["zip"])["zip"].tolist() == ["01234", "99"]
    assert read_table(path)["zip"].tolist() == [1234.0, 99.0]
    assert list(read_table(path, drop=["b"])) == ["zip"]


def test_text_in_parquet_stays_text(tmp_path):
    pd.DataFrame({"code": ["01", "02"]}).to_parquet(tmp_path / "rows.parquet")
    assert read_table(tmp_path / "rows.parquet")["code"].tolist() == ["01", "02"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"\n1,2\n", "first line is empty"),
        (b"a,b\n", "no rows"),
        (b"a,b", "no rows"),
        (b"a,b\n1,2\n3\n", "line 3 has 1 columns, the header 2"),
        (b"a,b\n1,2\n3,4,5\n", "line 3 has 3 columns, the header 2"),
        (b"a,b\n1,caf\xe9\n", "not UTF-8 text (column 'b')"),
        (b"caf\xe9,b\n1,2\n", "not UTF-8 text (byte 4 of the header)"),
        (b"a,a\n1,2\n", "more than one column named 'a'"),
        (b"a,\n1,2\n", "column 2 has no name"),
        (b"a,b\n1,2\ninf,3\n", "column 'a' holds 'inf' in row 2"),
    ],
)
def test_csv_that_cannot_be_used(tmp_path, content, says):
    with pytest.raises(TableError) as caught:
        read_table(written(tmp_path, content))
    assert says in str(caught.value)
    assert "rows.csv" in str(caught.value)


def test_the_row_of_a_bad_value_counts_over_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_BLOCK", 1000)
    monkeypatch.setattr(module, "_CHUNK", 3000)
    path = written(tmp_path, b"a,b\n" + b"1,2\n" * 3000 + b"1,two\n")
    with pytest.raises(TableError, match=r"column 'b' holds 'two' in row 3001"):
        list(table_chunks(path, {"b": "number"}))
    ragged = written(tmp_path, b"a,b\n" + b"1,2\n" * 3000 + b"1\n")
    with pytest.raises(TableError, match="line 3002 has 1 columns"):
        list(table_chunks(ragged, {"b": "number"}))


def test_other_files_that_cannot_be_used(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.csv: there is no such file"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(TableError, match=r"CSV .* and Parquet"):
        read_table(tmp_path / "rows.xlsx")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(TableError, match="is a folder"):
        read_table(tmp_path / "folder.csv")
    with pytest.raises(TableError, match="not a Parquet file"):
        read_table(written(tmp_path, b"nothing", "rows.parquet"))
    with pytest.raises(TableError, match="cannot be unpacked"):
        read_table(written(tmp_path, b"nothing", "rows.csv.gz"))
    table = pa.table({"a": [1], "day": [date(2026, 1, 1)]})
    pq.write_table(table, tmp_path / "dates.parquet")
    with pytest.raises(TableError, match=r"'day' holds date32.*--drop day"):
        read_table(tmp_path / "dates.parquet")
    assert list(read_table(tmp_path / "dates.parquet", drop=["day"])) == ["a"]


def test_columns_that_are_not_there(tmp_path):
    path = written(tmp_path, gzip.compress(b"a,b\n1,2\n"), "rows.csv.gz")
    with pytest.raises(TableError, match=r"no column 'c' to leave out; it has 'a', 'b'"):
        read_table(path, drop=["c"])
    with pytest.raises(TableError, match=r"fitted on: missing are 'c'"):
        list(table_chunks(path, {"a": "number", "c": "text"}))


def test_a_quote_that_is_never_closed_is_guessed(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_BLOCK", 1000)
    path = written(tmp_path, b'a,b\n1,"2\n' + b"1,2\n" * 3000)
    with pytest.raises(TableError, match="a double quote is never closed"):
        read_table(path)


def test_memory_does_not_grow_with_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_BLOCK", 1 << 14)
    monkeypatch.setattr(module, "_CHUNK", 1 << 16)
    path = written(tmp_path, b"a,b\n" + b"1.2345,2.3456\n" * 700_000)  # 10 MB
    before, most = pa.total_allocated_bytes(), 0
    for _ in table_chunks(path, {"b": "number"}):
        most = max(most, pa.total_allocated_bytes() - before)
    assert most < 3 << 20
