import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from routed_models import (
    FOREST,
    HOLES,
    X,
    Y,
    as_frame,
    lin,
    with_cells,
)
from sparing._cells import missing


@pytest.mark.parametrize(
    "full",
    [
        SVC(),
        make_pipeline(StandardScaler(), SVC()),
        FrozenEstimator(SVC().fit(X, Y)),
        GridSearchCV(LogisticRegression(), {"C": [1.0]}),
        FrozenEstimator(lin(LogisticRegression()).fit(X, Y)),
    ],
    ids=lambda full: type(full).__name__,
)
def test_missing_cells_that_the_full_model_refuses_are_named(full):
    with pytest.raises(ValueError, match=r"NaN in column 1 \(2 of 160 rows\), 3 \(1 of 160 rows\)"):
        lin(full).fit(HOLES, Y)
    model = lin(full).fit(X, Y)
    assert not model.__sklearn_tags__().input_tags.allow_nan
    with pytest.raises(
        ValueError, match=rf"NaN in column 1 .* the full model {type(full).__name__}"
    ):
        model.predict(HOLES)


def test_missing_cells_of_frames_are_named():
    frame = as_frame(HOLES).assign(e=[None, *range(159)])
    for table in (frame, pl.from_pandas(frame)):
        with pytest.raises(ValueError, match=r"'b' \(2 of 160 rows\), 'd' \(1 .*'e' \(1 "):
            lin(SVC()).fit(table, Y)
    with pytest.raises(ValueError, match="NaN in column 'b'"):
        lin(SVC()).fit(as_frame(X), Y).route(as_frame(HOLES))


def test_a_frozen_model_of_some_columns_minds_only_those():
    full = FrozenEstimator(LogisticRegression().fit(as_frame(X)[["a", "c"]], Y))
    model = lin(full).fit(as_frame(HOLES), Y)  # holes in b and d
    assert model.with_thresholds(-np.inf).acquisition_mask(as_frame(HOLES))[:, [0, 2]].all()
    with pytest.raises(ValueError, match=r"NaN in column 'c' \(1 of 160"):
        lin(full).fit(as_frame(with_cells(np.nan, (0, 2), (0, 3))), Y)
    with pytest.raises(ValueError, match=r"columns that X does not have.*'c'"):
        lin(full).fit(as_frame(X)[["a", "b"]], Y)


@pytest.mark.parametrize("full", [None, FOREST, SVC()], ids=lambda full: type(full).__name__)
def test_infinite_cells_are_named(full):
    infinite = with_cells(-np.inf, (7, 2))
    with pytest.raises(ValueError, match="infinity in column 2"):
        lin(full).fit(infinite, Y)
    with pytest.raises(ValueError, match="infinity in column 'c'"):
        lin(full).fit(as_frame(infinite), Y)
    with pytest.raises(ValueError, match="infinity in column 'c'"):
        lin(full).fit(as_frame(X), Y).predict(pl.from_pandas(as_frame(infinite)))


def test_huge_cells_are_not_infinite():
    huge = X.copy()
    huge[:, 3] *= 1e308 / np.abs(huge[:, 3]).max()  # their sum overflows
    full = FrozenEstimator(LogisticRegression().fit(as_frame(X)[["a"]], Y))
    assert np.isfinite(lin(full).fit(as_frame(huge), Y).predict_proba(as_frame(huge))).all()


COMPLEX = X.astype(complex) + 1j * (np.arange(4) == 2)


@pytest.mark.parametrize("full", [None, FOREST], ids=lambda full: type(full).__name__)
def test_complex_cells_are_named(full):
    mixed = as_frame(X).astype(object)
    mixed.iloc[5, 1] = 1j
    for table, column in [
        (COMPLEX, "0, 1, 2, 3"),
        (mixed.to_numpy(), "1"),
        (mixed, "'b'"),
        (as_frame(X).assign(c=COMPLEX[:, 2]), "'c'"),
    ]:
        with pytest.raises(ValueError, match=f"not supported: column {column} holds complex"):
            lin(full).fit(table, Y)
    with pytest.raises(ValueError, match="column 0, 1, 2, 3 holds complex"):
        lin(full).fit(X, Y).predict(COMPLEX)


def test_columns_of_the_same_name_are_named():
    frame = pd.DataFrame(X, columns=["a", "b", "a", "b"])
    with pytest.raises(ValueError, match=r"more than one column named 'a', 'b'.*rename or drop"):
        lin().fit(frame, Y)
    model = lin().fit(as_frame(X), Y)
    with pytest.raises(ValueError, match="more than one column named 'a'"):
        model.predict(pd.concat([as_frame(X), as_frame(X)[["a"]]], axis=1))


def test_cells_without_a_value():
    words = np.array(["a", None, np.nan, pd.NA, pd.NaT, 1.0], dtype=object)
    assert missing(words).tolist() == [False, True, True, True, True, False]
    assert missing(np.array([1.0, np.nan])).tolist() == [False, True]
    assert missing(np.array(["2020", "NaT"], dtype="datetime64[D]")).tolist() == [False, True]
    assert not missing(np.array(["a", "nan"])).any()
    assert not missing(np.array([1, 2])).any()


def test_dates_are_refused_by_name():
    frame = as_frame(X).assign(
        seen=pd.date_range("2020-01-01", periods=len(X)),
        waited=pd.to_timedelta(np.arange(len(X)), unit="h"),
    )
    for table in (frame, pl.from_pandas(frame)):
        with pytest.raises(ValueError, match=r"'seen', 'waited'.* holds dates or durations"):
            lin(FOREST).fit(table, Y)
