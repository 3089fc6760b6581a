import numpy as np
import pandas as pd
import pytest

from sparing import GreedyMiserClassifier
from sparing._full_model import fit_full_model
from sparing.runtime import load, save
from sparing.system import System
from sparing.tables import ESTIMATORS, full_model


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    n = 200
    X = pd.DataFrame(
        {
            "a": rng.normal(size=n),
            "b": rng.normal(size=n),
            "word": pd.Series(
                rng.choice(np.array(["x", "y", None], dtype=object), n), dtype=object
            ),
        }
    )
    y = (X["b"] + 2 * (X["word"] == "x") > 0.5).to_numpy().astype(int)
    X.loc[::9, "a"] = np.nan
    return X, y


@pytest.mark.parametrize("text", [True, False])
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_every_kind_takes_gaps_and_words_and_is_stored(tmp_path, rows, kind, text):
    X, y = rows
    X = X if text else X[["a", "b"]]
    full = fit_full_model(full_model(kind, X), X, y, cv=2, random_state=0)
    costs = GreedyMiserClassifier(n_estimators=2, random_state=0).fit(X, y).system_.costs
    system = System(full.stages, costs, full.classes)
    save(system, tmp_path / "full.sparing", like=X)
    again = load(tmp_path / "full.sparing")
    unseen = X.copy()
    unseen.iloc[:20, 0] = np.nan
    if text:
        unseen.iloc[:10, 2] = "never seen"
        unseen.iloc[10:20, 2] = None
    np.testing.assert_array_equal(again.predict_proba(unseen), system.predict_proba(unseen))
    assert (again.predict(X) == y).mean() > (0.8 if text else 0.6)  # half of it is in the word


def test_all_columns_made_of_one_are_one_column(rows):
    X, y = rows
    full = fit_full_model(full_model("svm", X), X, y, cv=2, random_state=0)
    assert full.stages[0].columns.tolist() == [0, 1, 2]


def test_unknown_kinds_are_named(rows):
    with pytest.raises(ValueError, match="estimator='tree' is not known: use one of forest, "):
        full_model("tree", rows[0])
