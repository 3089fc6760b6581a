import numpy as np
import pytest

from sparing.tables import TableError, read_labelled


def written(folder, text):
    path = folder / "rows.csv"
    path.write_text(text)
    return path


def test_labels_are_whole_numbers_or_words(tmp_path):
    rows = read_labelled(written(tmp_path, "a,y\n1,0\n2,1.0\n3,1\n4,0\n"), "y")
    assert rows.y.dtype == np.int64
    assert rows.y.tolist() == [0, 1, 1, 0]
    assert list(rows.X) == ["a"]
    rows = read_labelled(written(tmp_path, "a,y\n1,no\n2,yes\n3,1\n4,no\n5,yes\n6,1\n"), "y")
    assert rows.y.tolist() == ["no", "yes", "1", "no", "yes", "1"]


def test_labels_have_the_type_of_the_classes_of_a_model(tmp_path):
    path = written(tmp_path, "a,y,z\n1,0,k\n2,1,l\n")
    known = read_labelled(path, "y", like={"a": "number"}, classes=np.array(["0", "1"]))
    assert known.y.tolist() == ["0", "1"]
    assert list(known.X) == ["a"]
    with pytest.raises(TableError, match=r"holds 0, which the model does not know; it knows 1, 2"):
        read_labelled(path, "y", like={"a": "number"}, classes=np.array([1, 2]))
    with pytest.raises(TableError, match="it cannot be the target"):
        read_labelled(path, "a", like={"a": "number"})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a,yy\n1,0\n", "has no column 'y' for the target; it has 'a', 'yy'. Did you mean 'yy'?"),
        ("a,y\n1,0\n2,\n3,1\n", "1 rows have no value in the target 'y' (the first is row 2)"),
        ("a,y\n1,0\n2,0\n", "nothing to tell apart"),
        ("a,y\n1,0\n2,0\n3,1\n", "of 1 in the target 'y' there is one row"),
        ("a,y\n1,0.5\n2,0.7\n3,1\n", "predicts classes"),
        ("y\n1\n0\n1\n0\n", "no column beside the target"),
        ("a,b,y\n1,,0\n2,,0\n3,,1\n4,,1\n", "column 'b' is empty in every row"),
        ("a,b,y\n1,0,0\n2,0,0\n3,1,1\n4,1,1\n", "column 'b' is the target 'y' again"),
        ("a,b,y\n1,u,u\n2,v,v\n3,u,u\n4,v,v\n", "--drop b"),
    ],
)
def test_rows_that_cannot_be_learnt_from(tmp_path, text, says):
    with pytest.raises(TableError) as caught:
        read_labelled(written(tmp_path, text), "y")
    assert says in str(caught.value)


def test_ids_are_named(tmp_path):
    rows = "".join(f"c{i},{i % 2}\n" for i in range(100))
    with pytest.raises(TableError, match=r"'the id' has 100 different values.*--drop \"the id\""):
        read_labelled(written(tmp_path, "the id,y\n" + rows), "y")
    few = "".join(f"c{i % 40},{i % 2}\n" for i in range(100))
    assert read_labelled(written(tmp_path, "town,y\n" + few), "y").X["town"].nunique() == 40


def test_the_target_cannot_be_dropped(tmp_path):
    with pytest.raises(TableError, match="cannot be left out"):
        read_labelled(written(tmp_path, "a,y\n1,0\n"), "y", drop=["y"])


def test_a_split_is_the_same_again_and_loses_no_row(tmp_path):
    path = written(tmp_path, "a,y\n" + "".join(f"{i},{i % 3}\n" for i in range(90)))
    rows = read_labelled(path, "y")
    learn, test = rows.split(0.2, seed=1)
    assert len(test.y) == 18
    assert np.bincount(test.y).tolist() == [6, 6, 6]
    assert sorted([*learn.X["a"], *test.X["a"]]) == list(range(90))
    assert read_labelled(path, "y").split(0.2, seed=1)[1].X.equals(test.X)
    assert not rows.split(0.2, seed=2)[1].X.equals(test.X)
    with pytest.raises(TableError, match="between 0 and 1"):
        rows.split(1.5, seed=0)


def test_content_is_known_by_its_values(tmp_path):
    def content(text):
        return read_labelled(written(tmp_path, text), "y").content()

    base = content("a,b,y\n1,u,0\n,v,1\n0,,0\n3,u,1\n")
    assert base == content('b,a,y\r\nu,1.0,0\r\n"v",NA,1\r\n,-0.0,0\r\nu,3e0,1\r\n')
    for other in (
        "a,b,y\n1,u,1\n,v,0\n0,,0\n3,u,1\n",
        "a,b,y\n1,u,0\n,v,1\n0,v,0\n3,u,1\n",
        "a,b,y\n1,u,0\n0,v,1\n,,0\n3,u,1\n",
        "a,c,y\n1,u,0\n,v,1\n0,,0\n3,u,1\n",
        "a,b,y\n1,u,0\n,v,1\n3,u,1\n0,,0\n",
    ):
        assert content(other) != base


def test_a_stray_word_does_not_make_text_of_numbers(tmp_path):
    cells = [str(i % 60) for i in range(300)]
    cells[41] = "abc"

    def table(words):
        body = "".join(f"{word},{i % 2}\n" for i, word in enumerate(words))
        return written(tmp_path, "the age,y\n" + body)

    says = r"'the age' holds numbers, but 'abc' in row 42: mend.*--text \"the age\""
    with pytest.raises(TableError, match=says):
        read_labelled(table(cells), "y")
    assert read_labelled(table(cells), "y", text=["the age"]).X["the age"].nunique() == 61
    cells[50] = "x"
    with pytest.raises(TableError, match="'abc' in row 42 and 1 more such cells"):
        read_labelled(table(cells), "y")
    cells[100:150] = ["low"] * 50
    assert read_labelled(table(cells), "y").X["the age"].dtype == object
