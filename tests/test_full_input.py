import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestRegressor, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, OneClassSVM
from sklearn.tree import DecisionTreeClassifier

from routed_models import FOREST, HOLES, X, Y, as_frame, gbrt, lin
from sparing._full_input import refuse_other_models, takes_missing


@pytest.mark.parametrize("make", [lin, gbrt])
def test_text_that_the_full_model_does_not_take_is_named(make):
    frame = as_frame(X).assign(colour="red", size="large")
    with pytest.raises(ValueError, match=r"'colour', 'size'.*Pipeline"):
        make().fit(frame, Y)


@pytest.mark.parametrize(
    "full",
    [
        None,
        FOREST,
        make_pipeline(SimpleImputer(), SVC()),
        make_pipeline(StandardScaler(), SimpleImputer(), LogisticRegression()),
        make_pipeline(
            ColumnTransformer([("fill", SimpleImputer(), slice(0, 4))]), LogisticRegression()
        ),
        GridSearchCV(DecisionTreeClassifier(random_state=0), {"max_depth": [2]}, cv=2),
        VotingClassifier(
            [("tree", FOREST), ("line", make_pipeline(SimpleImputer(), LogisticRegression()))],
            voting="soft",
        ),
    ],
    ids=lambda full: type(full).__name__,
)
def test_missing_cells_are_fine_where_the_full_model_takes_them(full):
    for table in (HOLES, as_frame(HOLES)):
        model = lin(full, cv=2).fit(table, Y)
        assert model.__sklearn_tags__().input_tags.allow_nan
        assert np.isfinite(model.predict_proba(table)).all()


@pytest.mark.parametrize(
    ("full", "message"),
    [
        (
            LinearRegression(),
            "LinearRegression is a regressor.*pass a classifier, LogisticRegression",
        ),
        (
            RandomForestRegressor(2),
            "RandomForestRegressor is a regressor.*, RandomForestClassifier",
        ),
        (LinearRegression().fit(X, Y), "LinearRegression is a regressor"),
        (FrozenEstimator(LinearRegression().fit(X, Y)), "LinearRegression is a regressor"),
        (make_pipeline(StandardScaler(), SVR()), "SVR is a regressor"),
        (KMeans(2), "KMeans is a clusterer"),
        (OneClassSVM(), "OneClassSVM is an outlier detector"),
    ],
)
@pytest.mark.parametrize("make", [lin, gbrt])
def test_models_that_are_no_classifiers_are_named(make, full, message):
    with pytest.raises(TypeError, match=message):
        make(full).fit(X, Y)


class SaysNothing:
    """A model that does not say what it is."""

    def predict(self, X):
        return (np.asarray(X)[:, 0] > 0).astype(int)


@pytest.mark.parametrize(
    "full", [FOREST, SVC(), SaysNothing(), FrozenEstimator(SaysNothing()), FrozenEstimator(FOREST)]
)
def test_classifiers_and_models_that_say_nothing_pass(full):
    refuse_other_models(full)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (SaysNothing(), True),
        (FrozenEstimator(SaysNothing()), True),
        (FrozenEstimator(SVC()), False),
        (SVC(), False),
        (DecisionTreeClassifier(), True),
        (make_pipeline(SimpleImputer(), SVC()), True),
        (make_pipeline(StandardScaler(), SVC()), False),
        (lin(SVC()), False),
        (lin(FOREST), True),
    ],
)
def test_takes_missing(model, expected):
    assert takes_missing(model) is expected
