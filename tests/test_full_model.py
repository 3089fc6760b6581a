import pickle
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_classification
from sklearn.ensemble import BaggingClassifier, ExtraTreesClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import (
    FixedThresholdClassifier,
    StratifiedKFold,
    cross_val_predict,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from sparing._full_model import default_full_model, fit_full_model, is_legacy
from sparing._full_predictor import StoredModel, encode
from sparing.costs import FeatureCosts
from sparing.system import ConfidenceGate, Stage, System


def table(n=200, n_classes=2, seed=0, **options):
    return make_classification(
        n,
        6,
        n_informative=4,
        n_redundant=0,
        n_classes=n_classes,
        flip_y=0.2,
        random_state=seed,
        **options,
    )


def noise(n=300, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 4)), rng.integers(n_classes, size=n)


def accuracy(full, y):
    return np.mean(full.classes[full.proba.argmax(axis=1)] == y)


def system_of(full, n_columns=6):
    return System(full.stages, FeatureCosts(np.ones(n_columns)), full.classes)


# -- honest probabilities -----------------------------------------------------------------------------


class Labels(ClassifierMixin, BaseEstimator):
    """Nothing but labels: those of the nearest training row."""

    def fit(self, X, y):
        self.model_ = KNeighborsClassifier(1).fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X):
        return self.model_.predict(X)


@pytest.mark.parametrize(
    "memory",
    [
        KNeighborsClassifier(1),
        DecisionTreeClassifier(random_state=0),
        SVC(C=1e6, gamma=100.0),
        Labels(),
        RandomForestClassifier(30, oob_score=True, random_state=0),
        RandomForestClassifier(30, random_state=0),
    ],
    ids=lambda m: type(m).__name__,
)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_whoever_memorises_noise_looks_no_better_than_chance(memory, n_classes):
    X, y = noise(n_classes=n_classes)
    full = fit_full_model(memory, X, y, cv=4, random_state=0)
    assert full.estimator.score(X, y) > 0.98
    assert accuracy(full, y) == pytest.approx(1 / n_classes, abs=0.1)
    # Not confident either, where a temperature or an accuracy is measured.
    if not hasattr(memory, "predict_proba"):
        assert log_loss(y, full.proba) < np.log(n_classes) + 0.05


def test_out_of_fold_is_scikit_learns():
    X, y = table(n_classes=3)
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    full = fit_full_model(GaussianNB(), X, y, cv=4, random_state=0)
    expected = cross_val_predict(GaussianNB(), X, y, cv=folds, method="predict_proba")
    np.testing.assert_array_equal(full.proba, expected)
    np.testing.assert_array_equal(fit_full_model(GaussianNB(), X, y, cv=folds).proba, expected)
    np.testing.assert_array_equal(
        fit_full_model(GaussianNB(), X, y, cv=list(folds.split(X, y))).proba, expected
    )
    # The model that answers has seen all rows.
    whole = GaussianNB().fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(full.stages[0].predictor.predict_proba(X), whole)


FITS = []


class Counting(RandomForestClassifier):
    def fit(self, X, y, sample_weight=None):
        FITS.append(len(X))
        return super().fit(X, y, sample_weight)


def test_forests_with_out_of_bag_scores_are_fitted_once():
    X, y = table(n_classes=3)
    FITS.clear()
    full = fit_full_model(Counting(50, oob_score=True), X, y, random_state=3)
    assert FITS == [200]
    np.testing.assert_array_equal(full.proba, full.estimator.oob_decision_function_)
    FITS.clear()
    fit_full_model(Counting(5), X, y, cv=4, random_state=3)
    assert FITS == [200, 150, 150, 150, 150]


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(1, oob_score=True),
        ExtraTreesClassifier(1, bootstrap=True, oob_score=True),
        BaggingClassifier(DecisionTreeClassifier(), 2, oob_score=True),
    ],
    ids=lambda m: type(m).__name__,
)
@pytest.mark.filterwarnings("ignore:invalid value encountered in divide:RuntimeWarning")
def test_rows_never_out_of_bag_get_the_class_shares(model):
    X, y = table(n_classes=3, weights=[0.6, 0.3])
    full = fit_full_model(model, X, y, random_state=0)
    shares = np.bincount(y) / len(y)
    never = np.isclose(full.proba, shares).all(axis=1)
    assert 0.1 < never.mean() < 0.9
    np.testing.assert_allclose(full.proba.sum(axis=1), 1)


def test_the_full_model_of_someone_who_brings_none():
    X, y = table()
    full = fit_full_model(None, X, y, random_state=1)
    same = default_full_model(1, None).fit(X, y)
    assert isinstance(full.estimator, RandomForestClassifier)
    np.testing.assert_array_equal(full.proba, same.oob_decision_function_)


# -- decision values ----------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize(
    "model", [SVC(), LinearSVC(), SGDClassifier(random_state=0)], ids=lambda m: type(m).__name__
)
@pytest.mark.parametrize("legacy", [True, False])
def test_a_temperature_keeps_every_decision(model, n_classes, legacy):
    X, y = table(n_classes=n_classes)
    fresh, _ = table(2000, n_classes, seed=1)
    if legacy:
        model = FrozenEstimator(clone(model).fit(X[:100], y[:100]))
    full = fit_full_model(model, X, y, cv=3, random_state=0)
    system = system_of(full)
    np.testing.assert_array_equal(system.predict(fresh), full.estimator.predict(fresh))
    proba = system.predict_proba(fresh)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    # A support vector machine breaks ties between classes by votes, which no probability can say.
    agree = np.mean(full.classes[proba.argmax(axis=1)] == system.predict(fresh))
    assert agree == 1 or (isinstance(full.estimator, SVC) and n_classes > 2 and agree > 0.97)


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e6])
def test_the_temperature_is_the_best_one_whatever_the_scale(scale):
    X, y = table(400)

    class Scaled:
        classes_ = np.array([0, 1])

        def decision_function(self, X):
            return scale * X[:, :2].sum(axis=1)

    full = fit_full_model(Scaled(), X, y)
    values = X[:, :2].sum(axis=1)[:, None] * [-0.5, 0.5]
    best = min(log_loss(y, softmax(values / t, axis=1)) for t in np.logspace(-3, 3, 400))
    assert log_loss(y, full.proba) == pytest.approx(best, abs=1e-4)


def test_weights_move_the_temperature():
    X, y = table(400)
    model = LinearSVC().fit(*table(400, seed=0))
    right = model.predict(X) == y
    trusting, doubting = (
        fit_full_model(FrozenEstimator(model), X, y, sample_weight=weight).proba.max(axis=1)
        for weight in (np.where(right, 2.0, 1.0), np.where(right, 1.0, 2.0))
    )
    assert (trusting > doubting).all()


def test_decision_values_of_pairs_are_refused():
    X, y = table(n_classes=3)
    with pytest.raises(ValueError, match=r"SVC are of pairs .*decision_function_shape='ovr'"):
        fit_full_model(SVC(decision_function_shape="ovo"), X, y)
    with pytest.raises(ValueError, match="of pairs of classes"):
        fit_full_model(make_pipeline(StandardScaler(), SVC(decision_function_shape="ovo")), X, y)
    fit_full_model(SVC(decision_function_shape="ovo"), *table(), cv=2)  # one pair is no problem


# -- labels of one's own ------------------------------------------------------------------------------


@pytest.mark.parametrize("legacy", [True, False])
def test_a_tuned_threshold_is_kept(legacy):
    X, y = table(weights=[0.8, 0.2])
    careful = FixedThresholdClassifier(LogisticRegression(), threshold=0.1)
    if legacy:
        careful = FrozenEstimator(careful.fit(X, y))
    full = fit_full_model(careful, X, y, cv=3, random_state=0)
    system = system_of(full)
    np.testing.assert_array_equal(system.predict(X), full.estimator.predict(X))
    np.testing.assert_array_equal(system.predict_proba(X), full.estimator.predict_proba(X))
    assert (system.predict(X) != system.predict_proba(X).argmax(axis=1)).any()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(system)).predict(X), system.predict(X))


@pytest.mark.parametrize("legacy", [True, False])
def test_labels_by_a_tuned_threshold_are_as_honest_as_probabilities(legacy):
    X, y = table(weights=[0.8, 0.2])
    careful = FixedThresholdClassifier(LogisticRegression(), threshold=0.1)
    expected = cross_val_predict(careful, X, y, cv=3)
    if legacy:
        careful = FrozenEstimator(careful.fit(X, y))
        expected = careful.predict(X)
    full = fit_full_model(careful, X, y, cv=StratifiedKFold(3), random_state=0)
    np.testing.assert_array_equal(full.codes, expected)
    assert (full.codes != full.proba.argmax(axis=1)).any()
    plain = fit_full_model(careful, X, y, cv=StratifiedKFold(3), own_labels=False)
    np.testing.assert_array_equal(plain.codes, plain.proba.argmax(axis=1))
    assert not hasattr(plain.stages[0].predictor, "decide")


def test_most_models_say_what_is_most_probable():
    X, y = table()
    for model in (GaussianNB(), SVC(), RandomForestClassifier(5, random_state=0)):
        full = fit_full_model(model, X, y, cv=2)
        assert not hasattr(full.stages[0].predictor, "decide")


# -- labels only --------------------------------------------------------------------------------------


@dataclass
class Rule:
    """An object without ``fit``, and how many rows it was shown."""

    column: int = 0
    labels: tuple = ("no", "yes")
    rows: int = 0

    def predict(self, X):
        self.rows += len(X)
        return np.asarray(self.labels)[(np.asarray(X)[:, self.column] > 0).astype(int)]


def test_labels_are_as_probable_as_they_are_right():
    X, _ = table()
    y = np.where(X[:, 0] > 0.3, "yes", np.where(X[:, 1] > 1, "maybe", "no"))
    rule = Rule()
    full = fit_full_model(rule, X, y)
    said, right = rule.predict(X), np.mean(rule.predict(X) == y)
    p = (200 * right + 1) / 202
    assert full.classes.tolist() == ["maybe", "no", "yes"]
    expected = np.where(full.classes == said[:, None], p, (1 - p) / 2)
    np.testing.assert_allclose(full.proba, expected)
    np.testing.assert_allclose(full.stages[0].predictor.predict_proba(X), expected)
    np.testing.assert_array_equal(system_of(full).predict(X), said)


def test_weights_count_in_the_accuracy():
    X, y = table()
    rule = Rule(labels=(0, 1))
    weight = np.where(rule.predict(X) == y, 9.0, 1.0)
    right = np.average(rule.predict(X) == y, weights=weight)
    full = fit_full_model(rule, X, y, sample_weight=weight)
    assert full.proba.max() == pytest.approx((200 * right + 1) / 202)


def test_a_rule_worse_than_chance_is_still_what_it_says():
    X, y = table()
    wrong = Rule(labels=(0, 1))
    wrong.labels = (1, 0) if np.mean(wrong.predict(X) == y) > 0.5 else (0, 1)
    full = fit_full_model(wrong, X, y)
    np.testing.assert_array_equal(full.classes[full.proba.argmax(axis=1)], wrong.predict(X))


def test_each_row_is_shown_to_a_legacy_object_once():
    X, y = table()
    rule = Rule(labels=(0, 1))
    fit_full_model(rule, X, y)
    assert rule.rows == 200

    class Both(Rule):
        def predict_proba(self, X):
            return np.eye(2)[self.predict(X)] * 0.8 + 0.1

    both = Both(labels=(0, 1))
    fit_full_model(both, X, y)
    assert both.rows == 200


def test_labels_nobody_knows():
    X, y = table()
    with pytest.raises(ValueError, match=r"full model answers labels .*\(0, 1\): 'no', 'yes'"):
        fit_full_model(Rule(), X, y)

    class Regressor:
        def predict(self, X):
            return X[:, 0]

    with pytest.raises(ValueError, match=r"are not among the classes .* 200 in all"):
        fit_full_model(Regressor(), X, y)


# -- legacy models ------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", ["matrix", "one column", "vector"])
def test_an_object_without_fit(shape):
    X, y = table()
    p = 1 / (1 + np.exp(-X[:, 0]))

    class Service:
        def predict_proba(self, X):
            p = 1 / (1 + np.exp(-X[:, 0]))
            return {"matrix": np.column_stack([1 - p, p]), "one column": p[:, None], "vector": p}[
                shape
            ]

    full = fit_full_model(Service(), X, y)
    np.testing.assert_allclose(full.proba, np.column_stack([1 - p, p]))
    assert full.stages[0].columns.tolist() == list(range(6))


def test_an_object_that_answers_nothing():
    with pytest.raises(TypeError, match="none of predict_proba, decision_function and predict"):
        fit_full_model(object(), *table())


@pytest.mark.parametrize("wrap", [FrozenEstimator, lambda model: model])
def test_legacy_models_are_used_as_they_are(wrap):
    X, y = table()
    model = GaussianNB().fit(X[:100], y[:100])
    expected = model.predict_proba(X)
    full = fit_full_model(wrap(model), X, y, cv="unused")
    assert full.estimator is model
    np.testing.assert_array_equal(full.proba, expected)


def test_what_is_a_legacy_model():
    X, y = table()
    assert not is_legacy(GaussianNB())
    assert is_legacy(GaussianNB().fit(X, y))
    assert is_legacy(FrozenEstimator(GaussianNB()))
    assert is_legacy(Rule())
    assert not is_legacy(make_pipeline(StandardScaler(), GaussianNB()))
    assert is_legacy(make_pipeline(StandardScaler(), GaussianNB()).fit(X, y))


def test_a_fitted_model_that_makes_no_mistakes_was_probably_trained_on_these_rows():
    X, y = table()
    memory = KNeighborsClassifier(1).fit(X, y)
    with pytest.warns(UserWarning, match=r"KNeighborsClassifier is nearly always right .*clone"):
        fit_full_model(memory, X, y)
    # No warning (an error in these tests): frozen on purpose, too few rows to tell, or mistakes made.
    fit_full_model(FrozenEstimator(memory), X, y)
    fit_full_model(memory, X[:40], y[:40])
    fit_full_model(KNeighborsClassifier(1).fit(X[:100], y[:100]), X, y)


class OtherLibrary:
    """Has ``fit`` and is not scikit-learn's."""

    classes_ = np.array([0, 1])

    def fit(self, X, y):
        raise AssertionError("was fitted")

    def predict_proba(self, X):
        return np.full((len(X), 2), 0.5)

    def predict(self, X):
        return np.zeros(len(X), dtype=int)


def test_models_of_other_libraries_are_frozen_or_refused():
    X, y = table()
    full = fit_full_model(FrozenEstimator(OtherLibrary()), X, y)
    np.testing.assert_array_equal(full.proba, 0.5)

    class Scores(OtherLibrary):
        def predict(self, X):
            return X[:, 0]

    class Silent(OtherLibrary):
        predict = None

    for other in (Scores, Silent):  # the probabilities speak for a model without labels
        full = fit_full_model(FrozenEstimator(other()), X, y)
        np.testing.assert_array_equal(system_of(full).predict(X), 0)
    with pytest.raises(TypeError, match="does not seem to be a scikit-learn estimator"):
        fit_full_model(OtherLibrary(), X, y)


def test_a_frozen_model_that_was_never_fitted():
    with pytest.raises(NotFittedError, match="GaussianNB instance is not fitted"):
        fit_full_model(FrozenEstimator(GaussianNB()), *table())
    pipeline = make_pipeline(StandardScaler(), GaussianNB())
    with pytest.raises(NotFittedError, match="Pipeline instance is not fitted"):
        fit_full_model(FrozenEstimator(pipeline), *table())


def test_a_legacy_model_may_know_more_classes():
    X, y = table(n_classes=3)
    model = GaussianNB().fit(X, y)
    some = y < 2
    full = fit_full_model(FrozenEstimator(model), X[some], y[some])
    assert full.classes.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(full.proba, model.predict_proba(X[some]))


def test_labels_the_legacy_model_does_not_know():
    X, y = table(n_classes=4)
    model = GaussianNB().fit(X[y < 2], y[y < 2])
    with pytest.raises(ValueError, match="does not know: 2, 3; it knows 0, 1"):
        fit_full_model(FrozenEstimator(model), X, y)
    words = np.array(["a", "b", "c", "d"])[y]
    with pytest.raises(ValueError, match="does not know: 'a', 'b', 'c', 'd'; it knows 0, 1"):
        fit_full_model(FrozenEstimator(model), X, words)


def test_a_service_with_more_columns_than_classes():
    class Service:
        def predict_proba(self, X):
            return np.full((len(X), 3), 1 / 3)

    with pytest.raises(ValueError, match=r"shape \(200, 3\) for 200 rows and 2 classes.*classes_"):
        fit_full_model(Service(), *table())


@pytest.mark.parametrize("bad", [np.nan, -0.1, 0.7])
def test_probabilities_that_are_none(bad):
    class Service:
        def predict_proba(self, X):
            proba = np.full((len(X), 2), 0.5)
            proba[17, 0] = bad
            return proba

    with pytest.raises(ValueError, match=r"full model's predict_proba, row 17 is \["):
        fit_full_model(Service(), *table())


# -- stored probabilities -----------------------------------------------------------------------------


def stored(y, right=0.8):
    return np.where(np.eye(2)[y] > 0, right, 1 - right)


def test_a_model_known_only_by_its_logs():
    X, y = table()
    full = fit_full_model(None, X, y, full_proba=stored(y))
    assert full.estimator is None
    assert isinstance(full.stages[0].predictor, StoredModel)
    np.testing.assert_array_equal(full.proba, stored(y))
    np.testing.assert_array_equal(
        fit_full_model(None, X, y, full_proba=stored(y)[:, 1]).proba, full.proba
    )
    system = System(
        (Stage(Naive(), ConfidenceGate(), 0.2), *full.stages),
        FeatureCosts(np.ones(6)),
        full.classes,
    )
    assert set(system.acquisition_cost(X)) == {1.0, 6.0}
    n_full = system.route(X).sum()
    with pytest.raises(
        RuntimeError, match=rf"^{n_full} rows are routed to the full model.*full_proba"
    ):
        system.predict(X)
    assert {row["prediction"] for row in system.explain(X)} == {0, 1, None}


@dataclass(frozen=True)
class Naive:
    n_classes: int = 2
    columns = np.array([0])

    def predict_proba(self, X):
        return softmax(X[:, :1] * np.arange(self.n_classes), axis=1)


def test_stored_probabilities_of_a_model_that_is_there():
    X, y = table()
    FITS.clear()
    full = fit_full_model(Counting(5), X, y, full_proba=stored(y), random_state=0)
    assert FITS == [200]  # nothing is cross-fitted
    np.testing.assert_array_equal(full.proba, stored(y))
    np.testing.assert_array_equal(
        full.stages[0].predictor.predict_proba(X), full.estimator.predict_proba(X)
    )


def test_the_model_answers_on_the_scale_of_its_stored_probabilities():
    X, y = table(400)
    svc = SVC().fit(X, y)
    values = svc.decision_function(X)
    known = softmax(np.column_stack([-values, values]) / 0.6, axis=1)
    answers = fit_full_model(FrozenEstimator(svc), X, y, full_proba=known).stages[0].predictor
    np.testing.assert_allclose(answers.predict_proba(X), known, atol=1e-3)
    rule = Rule(labels=(0, 1))
    known = np.where(np.eye(2)[rule.predict(X)] > 0, 0.9, 0.1)
    answers = fit_full_model(rule, X, y, full_proba=known).stages[0].predictor
    np.testing.assert_allclose(answers.predict_proba(X).max(axis=1), 0.9, atol=2e-3)


@pytest.mark.parametrize("estimator", [None, GaussianNB()])
def test_stored_probabilities_that_do_not_fit(estimator):
    X, y = table()
    for wrong, message in (
        (stored(y)[:-1], r"shape \(199, 2\); .*\(200, 2\), in the order 0, 1"),
        (np.full((200, 3), 1 / 3), r"shape \(200, 3\)"),
        (np.full(199, 0.5), r"shape \(199, 2\)"),
        (with_cell(stored(y), np.nan), r"full_proba, row 5 is \[nan"),
        (with_cell(stored(y), np.inf), r"full_proba, row 5 is \[inf"),
        (with_cell(stored(y), -0.2), r"full_proba, row 5 is \[-0.2"),
        (2 * stored(y), r"full_proba, row 0 is .* sum to 1"),
    ):
        with pytest.raises(ValueError, match=message):
            fit_full_model(estimator, X, y, full_proba=wrong)


def with_cell(proba, value):
    proba = proba.copy()
    proba[5, 0] = value
    return proba


# -- weights, seeds, folds ----------------------------------------------------------------------------

SEEN = []


class Weighted(GaussianNB):
    def fit(self, X, y, sample_weight=None):
        SEEN.append((X[:, 0].copy(), sample_weight))
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("piped", [True, False])
def test_weights_are_passed_on_with_their_rows(piped):
    X, y = table()
    weight = 1.0 + X[:, 0] ** 2
    model = make_pipeline("passthrough", Weighted()) if piped else Weighted()
    SEEN.clear()
    full = fit_full_model(model, X, y, cv=4, sample_weight=weight)
    assert [len(w) for _, w in SEEN] == [200, 150, 150, 150, 150]
    for first, w in SEEN:
        np.testing.assert_array_equal(w, 1.0 + first**2)
    expected = GaussianNB().fit(X, y, weight).predict_proba(X)
    np.testing.assert_array_equal(full.stages[0].predictor.predict_proba(X), expected)
    SEEN.clear()
    fit_full_model(model, X, y, cv=4)
    assert all(w is None for _, w in SEEN)


@pytest.mark.parametrize(
    "model", [KNeighborsClassifier(), make_pipeline(StandardScaler(), KNeighborsClassifier())]
)
def test_models_that_take_no_weights_do_without(model):
    X, y = table()
    full = fit_full_model(model, X, y, cv=3, sample_weight=np.ones(200), random_state=0)
    np.testing.assert_array_equal(
        full.proba, fit_full_model(model, X, y, cv=3, random_state=0).proba
    )


@pytest.mark.parametrize(
    "model",
    [
        None,
        RandomForestClassifier(5),
        make_pipeline(StandardScaler(), ExtraTreesClassifier(5)),
        SGDClassifier(),
    ],
)
def test_the_same_seed_gives_the_same_model(model):
    X, y = table()
    one, two, other = (fit_full_model(model, X, y, cv=3, random_state=seed) for seed in (0, 0, 1))
    fresh, _ = table(seed=1)
    np.testing.assert_array_equal(one.proba, two.proba)
    np.testing.assert_array_equal(
        system_of(one).predict_proba(fresh), system_of(two).predict_proba(fresh)
    )
    assert (one.proba != other.proba).any()


def test_the_number_of_jobs_changes_nothing():
    X, y = table()
    with parallel_config(backend="threading"):  # processes would take seconds to start
        one, two = (
            fit_full_model(ExtraTreesClassifier(5), X, y, cv=3, random_state=0, n_jobs=n)
            for n in (1, 2)
        )
    np.testing.assert_array_equal(one.proba, two.proba)


def test_a_seed_of_its_own_is_kept_and_the_estimator_left_alone():
    X, y = table()
    mine = RandomForestClassifier(5, random_state=7)
    full = fit_full_model(mine, X, y, cv=2, random_state=0)
    assert full.estimator.random_state == 7
    unseeded = make_pipeline(StandardScaler(), RandomForestClassifier(5))
    full = fit_full_model(unseeded, X, y, cv=2, random_state=3)
    assert full.estimator[-1].random_state == 3
    assert unseeded[-1].random_state is None
    assert not hasattr(unseeded[-1], "estimators_")


@pytest.mark.parametrize("members", [1, 2, 3])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "model",
    [SGDClassifier("log_loss"), SVC(), GaussianNB(), Labels(), RandomForestClassifier(5)],
    ids=lambda m: type(m).__name__,
)
def test_rare_classes(model, n_classes, members):
    X, y = table(n_classes=n_classes)
    rare = np.flatnonzero(y == n_classes - 1)
    keep = np.setdiff1d(np.arange(len(y)), rare[members:])
    X, y = X[keep], y[keep]
    full = fit_full_model(model, X, y, cv=5, random_state=0)
    assert full.proba.shape == (len(y), n_classes)
    np.testing.assert_allclose(full.proba.sum(axis=1), 1)
    if members == 1 and hasattr(model, "predict_proba"):  # it was never in a training fold
        assert full.proba[y == n_classes - 1, n_classes - 1] == 0


def test_every_row_its_own_class():
    X, y = np.eye(4), np.arange(4)
    full = fit_full_model(KNeighborsClassifier(1), X, y, cv=5, random_state=0)
    np.testing.assert_allclose(full.proba.sum(axis=1), 1)
    np.testing.assert_array_equal(np.diag(full.proba), 0)


def test_bootstrapped_training_folds_keep_rows_and_labels_together():
    X, y = table()
    rows = np.arange(200)
    again = np.random.default_rng(0).integers(100, size=200)  # as many rows as there are
    folds = [(100 + again, rows[:100]), (again, rows[100:])]
    full = fit_full_model(GaussianNB(), X, y, cv=folds)
    for train, test in folds:
        expected = GaussianNB().fit(X[train], y[train]).predict_proba(X[test])
        np.testing.assert_array_equal(full.proba[test], expected)


# -- labels and tables of all kinds -------------------------------------------------------------------


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["ill", "healthy", "unknown"]),
        np.array(["ill", "healthy", "unknown"], dtype=object),
        np.array([-7, 0, 3]),
        np.array([2.0, 1.0, 5.0]),
        np.array([True, False]),
    ],
)
@pytest.mark.parametrize(
    "model", [GaussianNB(), SVC(), Labels(), RandomForestClassifier(20, oob_score=True)]
)
def test_labels_of_any_kind(model, labels):
    X, codes = table(n_classes=len(labels))
    y = labels[codes]
    full = fit_full_model(model, X, y, cv=3, random_state=0)
    np.testing.assert_array_equal(full.classes, np.unique(labels))
    expected = fit_full_model(model, X, np.unique(labels).searchsorted(y), cv=3, random_state=0)
    np.testing.assert_allclose(full.proba, expected.proba)
    answers = system_of(full).predict(X)
    assert answers.dtype == full.classes.dtype
    np.testing.assert_array_equal(answers, full.estimator.predict(X))
    assert accuracy(full, y) > 1.1 / len(labels)


def test_frames_reach_the_model_as_frames():
    X, y = table()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    full = fit_full_model(GaussianNB(), frame, y, cv=3, random_state=0)
    assert full.estimator.feature_names_in_.tolist() == list("abcdef")
    np.testing.assert_array_equal(
        full.proba, fit_full_model(GaussianNB(), X, y, cv=3, random_state=0).proba
    )
    np.testing.assert_array_equal(
        system_of(full).predict_proba(frame[::2]), full.estimator.predict_proba(frame[::2])
    )


def test_encode():
    classes = np.array(["b", "a"])
    assert encode(np.array(["a", "b", "a"]), classes).tolist() == [1, 0, 1]
    with pytest.raises(ValueError, match=r"y has labels .*\('b', 'a'\): 'c'"):
        encode(np.array(["a", "c"]), classes)


# -- a system as the full model of another ------------------------------------------------------------


class Routed(ClassifierMixin, BaseEstimator):
    """Two stages: one column, and all of them when it is not sure."""

    def __init__(self, legacy=None):
        self.legacy = legacy

    def fit(self, X, y):
        self.classes_ = np.unique(y) if self.legacy is None else self.legacy.classes_
        self.n_features_in_ = X.shape[1]
        if hasattr(X, "columns"):
            self.feature_names_in_ = np.array(X.columns)
        full = fit_full_model(self.legacy or GaussianNB(), np.asarray(X), y, cv=2)
        cheap = Stage(Naive(len(self.classes_)), ConfidenceGate(), 0.2, "cheap")
        self.system_ = System(
            (cheap, *full.stages),
            FeatureCosts(np.ones(X.shape[1])),
            self.classes_,
        )
        return self

    def predict_proba(self, X):
        return self.system_.predict_proba(np.asarray(X))

    def predict(self, X):
        return self.system_.predict(np.asarray(X))


@pytest.mark.parametrize("wrap", [lambda m, X, y: m, lambda m, X, y: FrozenEstimator(m.fit(X, y))])
def test_a_system_inside_a_system_is_one_longer_system(wrap):
    X, y = table()
    full = fit_full_model(wrap(Routed(), X, y), X, y, cv=2, random_state=0)
    assert [stage.name for stage in full.stages] == ["cheap", "full"]
    system = system_of(full)
    np.testing.assert_array_equal(system.predict_proba(X), full.estimator.predict_proba(X))
    assert set(system.acquisition_cost(X)) == {1.0, 6.0}


def test_a_system_that_knows_more_classes_than_y():
    X, y = table(n_classes=3)
    legacy = FrozenEstimator(GaussianNB().fit(X, y))
    some = y < 2
    full = fit_full_model(Routed(legacy), X[some], y[some], cv=2, random_state=0)
    assert full.classes.tolist() == [0, 1, 2]
    assert full.proba.shape == (some.sum(), 3)
    np.testing.assert_array_equal(system_of(full).predict_proba(X), full.estimator.predict_proba(X))


def test_a_system_of_other_columns_stays_one_stage():
    X, y = table()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = FrozenEstimator(Routed().fit(frame[["f", "a"]], y))
    full = fit_full_model(model, frame, y)
    assert [stage.name for stage in full.stages] == ["full"]
    assert full.stages[0].columns.tolist() == [0, 5]
    np.testing.assert_array_equal(
        system_of(full).predict_proba(frame), model.predict_proba(frame[["f", "a"]])
    )
