import pickle

import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pytest
from lightgbm import LGBMClassifier
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.feature_selection import SelectFromModel, SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, Normalizer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from sparing._full_columns import column_use, unwrapped
from sparing._full_model import fit_full_model
from sparing.costs import FeatureCosts
from sparing.system import System

N_COLUMNS = 8
NAMES = ["age", "TSH", "T3", "TT4", "T4U", "FTI", "TBG", "sex"]


def table(n=300, seed=0):
    """Three classes; column 7 says nothing and columns 5 and 6 hardly anything."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, N_COLUMNS))
    score = 2 * X[:, 0] - X[:, 1] * (X[:, 2] > 0) + X[:, 3]
    return X, np.digitize(score, [-1, 1])


def lasso():
    return LogisticRegression(C=0.03, l1_ratio=1.0, solver="saga", max_iter=5000)


def boosted(**options):
    small = {"n_estimators": 8, "num_leaves": 4, "verbose": -1, "n_jobs": 1}
    return LGBMClassifier(**{**small, **options})


def small_forest():
    return RandomForestClassifier(4, max_depth=3, random_state=0)


TREES = {
    "tree": DecisionTreeClassifier(max_depth=3, random_state=0),
    "forest": small_forest(),
    "extra trees": ExtraTreesClassifier(4, max_depth=3, random_state=0),
    "gradient boosting": GradientBoostingClassifier(n_estimators=2, max_depth=2, random_state=0),
    "LightGBM": boosted(),
    "scaled forest": make_pipeline(StandardScaler(), small_forest()),
    "scaled LightGBM": make_pipeline(MinMaxScaler(), boosted()),
    "selected forest": make_pipeline(SelectKBest(k=4), small_forest()),
    "imputed forest": make_pipeline(SimpleImputer(), StandardScaler(), small_forest()),
    "searched forest": GridSearchCV(small_forest(), {"max_depth": [2, 3]}, cv=2),
}
OTHERS = {
    "lasso": lasso(),
    "scaled lasso": make_pipeline(StandardScaler(), lasso()),
    "selected by model": make_pipeline(SelectFromModel(lasso()), GaussianNB()),
    "nothing but a model": Pipeline([("model", lasso())]),
    "passed through": Pipeline([("none", "passthrough"), ("model", lasso())]),
    "frozen in a pipeline": make_pipeline(StandardScaler(), FrozenEstimator(lasso().fit(*table()))),
    "neighbours": KNeighborsClassifier(5),
    "kernel": SVC(),
    "linear kernel": SVC(kernel="linear"),
    "histogram boosting": HistGradientBoostingClassifier(max_iter=5),
    "linear trees": boosted(linear_tree=True),
    "boosting after a model": GradientBoostingClassifier(init=GaussianNB(), n_estimators=2),
}


def raw(model, X):
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.decision_function(X)


# -- the promise: an answer depends on nothing but the columns read -----------------------------------


@pytest.mark.parametrize("name", [*TREES, *OTHERS])
def test_answers_depend_only_on_the_columns_used(name):
    X, y = table()
    model = {**TREES, **OTHERS}[name].fit(X, y)
    use, other = column_use(model, X), table(seed=1)[0]
    unused = np.setdiff1d(np.arange(N_COLUMNS), use.columns)
    changed = X.copy()
    changed[:, unused] = other[:, unused]
    np.testing.assert_array_equal(raw(model, changed), raw(model, X))
    read = use.read(X)
    assert not read[:, unused].any()
    np.testing.assert_array_equal(raw(model, np.where(read, X, other)), raw(model, X))
    np.testing.assert_array_equal(use.read(np.where(read, X, other)), read)


@pytest.mark.parametrize("name", TREES)
def test_trees_read_by_row(name):
    X, y = table()
    use = column_use(TREES[name].fit(X, y), X)
    read = use.read(X)
    np.testing.assert_array_equal(np.flatnonzero(read.any(axis=0)), np.sort(use.columns))
    assert not read[:, use.columns].all()


def test_no_column_is_said_to_be_used_that_is_not():
    X, y = table()
    assert column_use(DecisionTreeClassifier(max_depth=1).fit(X, y), X).columns.tolist() == [0]
    assert column_use(boosted(n_estimators=1, num_leaves=2).fit(X, y), X).columns.tolist() == [0]
    model = lasso().fit(X, y)
    nonzero = np.flatnonzero(np.abs(model.coef_).sum(axis=0))
    assert 0 < len(nonzero) < N_COLUMNS
    assert column_use(model, X).columns.tolist() == nonzero.tolist()
    scaled = make_pipeline(StandardScaler(), lasso()).fit(X, y)
    nonzero = np.flatnonzero(scaled[-1].coef_.any(axis=0))
    assert column_use(scaled, X).columns.tolist() == nonzero.tolist()


class RowNorm(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        self.fitted_ = True
        return self

    def transform(self, X):
        return X / np.abs(X).sum(axis=1, keepdims=True)


@pytest.mark.parametrize(
    "model",
    [
        # Keeps the columns in place, but each of them depends on all of the row.
        make_pipeline(Normalizer(), DecisionTreeClassifier(max_depth=1)),
        make_pipeline(RowNorm(), lasso()),
        make_pipeline(StandardScaler(), Normalizer(), lasso()),
        make_pipeline(SimpleImputer(add_indicator=True), lasso()),
        KNeighborsClassifier(),
        SVC(),
        HistGradientBoostingClassifier(max_iter=3),
        boosted(linear_tree=True),
        GradientBoostingClassifier(init=GaussianNB(), n_estimators=2),
    ],
)
def test_what_is_not_known_counts_as_everything(model):
    X, y = table()
    X[0, 0] = np.nan if isinstance(getattr(model, "steps", [[0, 0]])[0][1], SimpleImputer) else 0
    use = column_use(model.fit(X, y), X)
    assert use.columns.tolist() == list(range(N_COLUMNS))
    assert use.read(X).all()


def test_a_selector_in_front_of_trees():
    X, y = table()
    model = make_pipeline(SelectKBest(k=3), boosted()).fit(X, y)
    use = column_use(model, X)
    assert set(use.columns) <= set(model[0].get_support(indices=True))
    assert not use.read(X)[:, ~model[0].get_support()].any()


def test_a_column_transformer_uses_what_it_takes():
    X, y = table()
    frame = pd.DataFrame(X, columns=NAMES).assign(sex=np.where(X[:, 7] > 0, "f", "m"))
    taken = ColumnTransformer(
        [
            ("numbers", StandardScaler(), ["TT4", "age"]),
            ("kinds", OneHotEncoder(), ["sex"]),
            ("dropped", "drop", ["TSH"]),
            ("nothing", StandardScaler(), []),
        ]
    )
    model = make_pipeline(taken, RandomForestClassifier(3, random_state=0)).fit(frame, y)
    use = column_use(model, frame)
    assert [NAMES[i] for i in use.columns] == ["age", "TT4", "sex"]
    assert use.read(frame)[0].tolist() == [name in ("age", "TT4", "sex") for name in NAMES]
    rest = ColumnTransformer([("drop", "drop", ["sex"])], remainder="passthrough")
    everything_else = make_pipeline(rest, GaussianNB()).fit(frame, y)
    assert column_use(everything_else, frame).columns.tolist() == list(range(7))


def test_wrappers_are_looked_through():
    X, y = table()
    forest = RandomForestClassifier(3, max_depth=2, random_state=0).fit(X, y)
    frozen = FrozenEstimator(FrozenEstimator(forest))
    assert unwrapped(frozen) is forest
    np.testing.assert_array_equal(column_use(frozen, X).read(X), column_use(forest, X).read(X))
    search = GridSearchCV(Pipeline([("model", lasso())]), {"model__C": [0.03]}, cv=2).fit(X, y)
    nonzero = np.flatnonzero(search.best_estimator_[-1].coef_.any(axis=0))
    assert column_use(search, X).columns.tolist() == nonzero.tolist()


# -- LightGBM -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_booster_as_the_full_model_pays_by_stage_and_by_path(n_classes):
    X, y = table()
    y = np.minimum(y, n_classes - 1)
    full = fit_full_model(boosted(num_leaves=8), X, y, cv=3, random_state=0)
    system = System(full.stages, FeatureCosts(np.arange(1.0, 9.0)), full.classes)
    used = np.unique(np.concatenate([t["split_feature"] for t in splits(full.estimator)]))
    np.testing.assert_array_equal(system.stage_columns()[0], np.isin(range(N_COLUMNS), used))
    by_stage = system.acquisition_cost(X)
    np.testing.assert_array_equal(by_stage, (used + 1).sum())
    by_path = system.acquisition_cost(X, accounting="path")
    assert (by_path <= by_stage).all()
    assert len(np.unique(by_path)) > 1
    np.testing.assert_array_equal(system.predict(X), full.estimator.predict(X))


def splits(model):
    for tree in model.booster_.dump_model()["tree_info"]:
        columns, todo = [], [tree["tree_structure"]]
        while todo:
            node = todo.pop()
            if "split_feature" in node:
                columns.append(node["split_feature"])
                todo += [node["left_child"], node["right_child"]]
        yield {"split_feature": columns}


def test_trees_after_the_best_iteration_are_not_read():
    X, y = table()
    model = boosted(n_estimators=30).fit(X, y)
    model.booster_.best_iteration = 1
    use, first = column_use(model, X), boosted(n_estimators=1).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), first.predict_proba(X))
    np.testing.assert_array_equal(use.columns, column_use(first, X).columns)
    np.testing.assert_array_equal(use.read(X), column_use(first, X).read(X))
    assert len(use.columns) < N_COLUMNS


def test_early_stopping():
    X, y = table()
    stop = lightgbm.early_stopping(2, verbose=False)
    model = boosted(n_estimators=200, learning_rate=0.5)
    model.fit(X[:200], y[:200], eval_X=X[200:], eval_y=y[200:], callbacks=[stop])
    assert 0 < model.best_iteration_ < 200
    use, other = column_use(model, X), table(seed=1)[0]
    changed = np.where(use.read(X), X, other)
    np.testing.assert_array_equal(model.predict_proba(changed), model.predict_proba(X))


@pytest.mark.parametrize(
    "frame", [pd.DataFrame, lambda X, columns: pl.DataFrame(X, schema=columns)]
)
def test_lightgbm_writes_names_its_own_way(frame):
    X, y = table()
    named = frame(X, columns=["blood pressure", *NAMES[1:]])
    model = boosted().fit(named, y)
    assert column_use(model, named).inputs is None
    nameless = column_use(boosted().fit(X, y), X)
    np.testing.assert_array_equal(column_use(model, named).read(named), nameless.read(X))


def test_lightgbm_fitted_without_names_takes_a_frame_by_position():
    X, y = table()
    model = boosted().fit(X, y)
    frame = pd.DataFrame(X, columns=NAMES)
    assert column_use(model, frame).inputs is None
    default_names = pd.DataFrame(X, columns=[f"Column_{i}" for i in range(N_COLUMNS)])
    assert column_use(boosted().fit(default_names, y), frame).inputs is None


# -- models that know only some of the columns --------------------------------------------------------

KNOWN = ["TT4", "age", "TSH"]


@pytest.mark.parametrize("kind", ["pandas", "polars"])
@pytest.mark.parametrize(
    "model",
    [
        small_forest(),
        make_pipeline(StandardScaler(), small_forest()),
        make_pipeline(StandardScaler(), lasso()),
        KNeighborsClassifier(),
        boosted(),
    ],
    ids=lambda m: type(m[-1] if isinstance(m, Pipeline) else m).__name__,
)
def test_a_legacy_model_of_some_columns_in_another_order(model, kind):
    X, y = table()
    frame = pd.DataFrame(X, columns=NAMES) if kind == "pandas" else pl.DataFrame(X, schema=NAMES)
    known = frame[KNOWN]
    model.fit(known, y)
    full = fit_full_model(FrozenEstimator(model), frame, y)
    answers = full.stages[0].predictor
    np.testing.assert_array_equal(full.proba, model.predict_proba(known))
    np.testing.assert_array_equal(
        answers.predict_proba(frame[::2]), model.predict_proba(known[::2])
    )
    positions = [NAMES.index(name) for name in KNOWN]
    assert set(answers.columns) <= set(positions)
    read = answers.columns_read(frame)
    own = column_use(model, known).read(known)
    np.testing.assert_array_equal(read[:, positions], own)
    assert not np.delete(read, positions, axis=1).any()


def test_columns_the_model_needs_and_x_lacks():
    X, y = table()
    frame = pd.DataFrame(X, columns=NAMES)
    model = GaussianNB().fit(frame[KNOWN], y)
    with pytest.raises(ValueError, match=r"columns that X does not have: \['TT4', 'TSH'\]"):
        column_use(model, frame[["age", "T3"]])
    nameless = GaussianNB().fit(X[:, :3], y)
    with pytest.raises(ValueError, match="fitted on 3 columns, X has 8"):
        column_use(nameless, X)
    with pytest.raises(ValueError, match="fitted on 3 columns, X has 8"):
        column_use(nameless, frame)


def test_the_same_columns_are_handed_on_untouched():
    X, y = table()
    frame = pd.DataFrame(X, columns=NAMES)
    use = column_use(GaussianNB().fit(frame, y), frame)
    assert use.inputs is None
    assert use.inputs_of(frame) is frame


@pytest.mark.parametrize("name", ["forest", "LightGBM", "scaled LightGBM"])
def test_pickle(name):
    X, y = table()
    use = column_use(TREES[name].fit(X, y), X)
    again = pickle.loads(pickle.dumps(use))
    np.testing.assert_array_equal(again.read(X), use.read(X))
