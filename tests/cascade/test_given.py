"""Stages that a user names, and what is refused before a full model is asked."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from sparing import BudgetedClassifier, CascadeClassifier, FeatureCosts

RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 4))
Y = (X[:, 0] + 0.5 * X[:, 1] + 0.3 * RNG.normal(size=240) > 0).astype(int)
FOREST = RandomForestClassifier(10, random_state=0)


def cascade(**options):
    options = {"stages": [[0], [0, 1]], "stage_estimator": "own", "cv": 3} | options
    return CascadeClassifier(FOREST, random_state=0, **options)


class Never(RandomForestClassifier):
    """A full model that must not be fitted."""

    def fit(self, *args, **kwargs):
        raise AssertionError("the full model was fitted first")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"stages": [["zz"]]}, "Column 'zz' is not known"),
        ({"stages": []}, "stages is empty"),
        ({"stages": [[0, 1], [0]]}, "Stage 1 .* lacks column 1 of the stage before"),
        ({"stages": {"full": [0]}}, "the name of the last one"),
        ({"stages": [("a", [0]), ("b", [0, 1])]}, "Stages with names are a mapping"),
        ({"stage_estimator": "bosted"}, "not 'bosted'"),
        ({"stage_estimator": []}, "empty list"),
        ({"n_jobs": 0}, "'n_jobs'"),
        (
            {"stages": None, "feature_costs": FeatureCosts(np.ones(4), call_price=[1, 2])},
            "the stages are yet to be found",
        ),
    ],
)
def test_what_can_be_refused_is_refused_before_the_full_model_is_fitted(options, says):
    clf = cascade(**options).set_params(estimator=Never(5))
    with pytest.raises((TypeError, ValueError), match=says):
        clf.fit(X, Y)


def test_arrays_of_positions_are_stages():
    by_lists, by_arrays = (
        cascade(stages=stages).fit(X, Y).acquisition_cost(X)
        for stages in ([[0], [0, 1]], [np.array([0]), np.array([[0, 1]])])
    )
    np.testing.assert_array_equal(by_lists, by_arrays)


def test_folds_that_test_what_they_have_learnt_from_are_refused():
    every = np.arange(240)
    folds = [(every[100:], every[:100]), (every[:120], every[100:])]
    with pytest.raises(ValueError, match="Fold 1 of cv tests row 100 and learns from it too, 20"):
        cascade(cv=folds).fit(X, Y)
    with pytest.raises(ValueError, match="every row into a test fold once"):
        cascade(cv=[(every[100:], every[:100]), (every[:90], every[90:])]).fit(X, Y)


def test_a_full_model_that_gives_too_few_answers_is_named():
    class Short:
        classes_ = np.array([0, 1])

        def predict(self, X):
            return np.zeros(len(X) - 1, dtype=int)

    with pytest.raises(ValueError, match=r"answers of shape \(239,\) for 240 rows"):
        cascade(stage_estimator="boosted").set_params(estimator=Short()).fit(X, Y)


# -- prices per stage ---------------------------------------------------------------------------------


def test_a_full_model_that_is_cheaper_than_the_calls_before_it_is_taken():
    costs = FeatureCosts(np.ones(4), call_price=[50, 0, 0])
    clf = cascade(feature_costs=costs).fit(X, Y)
    assert [stage.name for stage in clf.stages_] == ["full"]
    assert clf.acquisition_cost(X).mean() == 4
    assert clf.stage_kind_ == "none"
    assert clf.at(budget=20).acquisition_cost(X).mean() == 4
    # At other prices the stages are worth their calls.
    cheaper = clf.with_costs(FeatureCosts(np.ones(4), call_price=[0, 0, 50]))
    assert cheaper.frontier_.full.cost == 54
    assert len(cheaper.at(budget=10).stages_) == 3
    assert cheaper.at(budget=10).with_costs(costs).acquisition_cost(X).min() >= 51


def test_a_stage_that_answers_nobody_and_is_paid_is_named():
    costs = FeatureCosts([1.0, 1.0, 30.0, 30.0], call_price=[0.5, 0, 0])
    labels = (X[:, 1] > 0).astype(int)
    with pytest.warns(UserWarning, match=r"no row is answered by noise \(0.5 per call\)"):
        cascade(stages={"noise": [0], "both": [0, 1]}, feature_costs=costs, tolerance=0.0).fit(
            X, labels
        )


def test_prices_per_stage_can_be_promised_about():
    costs = FeatureCosts(np.ones(4), call_price=[0, 1, 5])
    method = CascadeClassifier(stages=[[0], [0, 1]], stage_estimator="own")
    clf = BudgetedClassifier(
        FOREST, method=method, feature_costs=costs, tolerance=0.1, random_state=0
    ).fit(X, Y)
    assert clf.frontier_.full.cost == 9


# -- wishes -------------------------------------------------------------------------------------------


def test_advice_about_stages_is_given_for_small_budgets_alone():
    clf = cascade().fit(X, Y)
    with pytest.raises(ValueError, match="A first stage with cheaper columns") as error:
        clf.at(budget=0.1)
    with pytest.raises(ValueError, match="not NaN") as error:
        clf.at(budget=np.nan)
    assert "first stage" not in str(error.value)
