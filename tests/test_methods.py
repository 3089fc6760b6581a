import pytest

from sparing import (
    AdaptGbrtClassifier,
    AdaptLinClassifier,
    BudgetedClassifier,
    BudgetPruneClassifier,
    FeatureCosts,
)
from sparing._methods import AUTO, SWEEPS, settings_of

COSTS = FeatureCosts([1, 3])


@pytest.mark.parametrize("name", SWEEPS)
def test_every_method_has_a_first_look(name):
    first, second = settings_of(name, COSTS)
    assert first
    assert {s.method for s in first + second} == {name}
    assert all(s.label["method"] == name for s in first + second)
    for setting in first + second:
        setting.model._validate_params()


def test_linear_methods_look_at_some_rows_first():
    for name in ("adapt-lin", "adapt-lstsq"):
        first, second = settings_of(name, COSTS)
        assert [s.n_rows for s in first] == [3000]
        assert {s.n_rows for s in second} == {None}


def test_what_a_fit_tells():
    (cascade,), _ = settings_of("cascade", COSTS)
    (boosted,), _ = settings_of(AdaptGbrtClassifier(), COSTS)
    assert [cascade.verbose(n) for n in (0, 1, 2)] == [0, 1, 2]
    assert [boosted.verbose(n) for n in (0, 1, 2)] == [0, 0, 1]


def test_auto_is_a_list_of_names():
    first, second = settings_of("auto", COSTS)
    assert [s.method for s in first] == list(AUTO)
    assert {s.method for s in second} <= set(AUTO)


@pytest.mark.parametrize("factor", [0.01, 100])
def test_penalties_scale_with_prices(factor):
    for name in ("adapt-gbrt", "greedy-miser", "adapt-lin"):
        plain, scaled = (
            settings_of(name, FeatureCosts([f, 3 * f]))[0][0].model.cost_penalty
            for f in (1, factor)
        )
        assert [factor * p for p in scaled] == pytest.approx(plain)


def test_free_columns_have_no_penalty():
    for name in ("adapt-gbrt", "greedy-miser", "adapt-lin"):
        assert settings_of(name, FeatureCosts([0, 0]))[0][0].model.cost_penalty == [0.0]


def test_own_classifiers_are_copied_and_told_apart():
    mine = AdaptGbrtClassifier(n_estimators=7)
    first, second = settings_of(
        [mine, AdaptGbrtClassifier(), "adapt-lin", AdaptLinClassifier()], COSTS
    )
    assert [s.method for s in first] == [
        "AdaptGbrtClassifier",
        "AdaptGbrtClassifier 2",
        "adapt-lin",
        "AdaptLinClassifier",
    ]
    assert first[0].model is not mine
    assert first[0].model.n_estimators == 7
    assert {s.method for s in second} == {"adapt-lin"}


@pytest.mark.parametrize(
    ("method", "error", "message"),
    [
        ("magic", ValueError, "method='magic' is not known"),
        ([], ValueError, "empty list"),
        (3, TypeError, "a routed classifier or a list of these, not 3"),
        (BudgetedClassifier(), ValueError, "a BudgetedClassifier, which is a race itself"),
        (
            BudgetPruneClassifier(),
            ValueError,
            r"BudgetPruneClassifier\(\) cannot be raced: .* takes no full model .* Fit it by itself",
        ),
    ],
)
def test_what_is_no_method(method, error, message):
    with pytest.raises(error, match=message):
        settings_of(method, COSTS)
