import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparing import FeatureCosts
from sparing.tables import draft_price_list
from sparing.tables.price_lists import id_columns, one_hot_attributes

NAMES = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=8)


@given(st.lists(NAMES, min_size=1, max_size=5, unique=True))
def test_the_draft_prices_every_column_whatever_its_name(tmp_path_factory, names):
    X = pd.DataFrame(np.ones((3, len(names))), columns=names)
    path = tmp_path_factory.mktemp("prices") / "costs.toml"
    path.write_text(draft_price_list(X, title="x\n[prices]"), encoding="utf-8", newline="\n")
    costs = FeatureCosts.from_toml(path)
    assert costs.columns == tuple(names)
    assert costs.total == len(names)


def test_one_attribute_written_as_zeros_and_ones_is_one_item(tmp_path):
    eye = np.eye(3)[[0, 1, 2, 2]]
    X = pd.DataFrame(eye, columns=["soil_1", "soil_2", "soil_3"])
    X["colour=red"], X["colour=blue"] = [1, 0, 0, 0], [0, 1, 1, 1]
    X["flag_a"], X["flag_b"] = [1, 1, 0, 0], [1, 0, 0, 1]  # both in one row: two questions
    X["soil"] = 7.0
    assert one_hot_attributes(X) == {
        "soil (attribute)": ["soil_1", "soil_2", "soil_3"],
        "colour": ["colour=red", "colour=blue"],
    }
    (tmp_path / "costs.toml").write_text(draft_price_list(X))
    costs = FeatureCosts.from_toml(tmp_path / "costs.toml")
    assert costs.of(["soil_1"]) == costs.of(["soil_1", "soil_2", "soil_3"]) == 1.0
    assert costs.of(["flag_a", "flag_b"]) == 2.0


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ([1.0, 2.5, np.nan, np.nan], "number, 1 to 2.5, 50% missing"),
        (np.array(["a", "b", "b", None], dtype=object), "text, 2 levels, 25% missing"),
        ([np.nan] * 4, "number, never there"),
    ],
)
def test_columns_are_described(values, says):
    assert f"a = 1.0  # {says}\n" in draft_price_list(pd.DataFrame({"a": values}))


def test_ids_are_commented_out_and_measurements_are_not(tmp_path):
    rng = np.random.default_rng(0)
    n = 40
    frame = pd.DataFrame(
        {
            "Unnamed": np.arange(n)[::-1],
            "patient": np.sort(rng.choice(10_000, n, replace=False)),
            "customerId": rng.choice(10_000, n, replace=False),
            "income": rng.choice(10_000, n, replace=False),
            "weight": np.sort(rng.normal(size=n)),
            "id": rng.integers(5, size=n),
            "paid": rng.choice(10_000, n, replace=False),
        }
    ).astype(float)
    assert id_columns(frame) == ["Unnamed", "patient", "customerId"]
    path = tmp_path / "costs.toml"
    path.write_text(draft_price_list(frame))
    assert FeatureCosts.from_toml(path).columns == ("income", "weight", "id", "paid")
    assert path.read_text().count("looks like an id") == 3
    assert "\n# patient = 1.0  #" in path.read_text()
    assert id_columns(frame[["patient"]]) == []
    assert id_columns(frame.head(10)) == []
