"""The order that a kernel machine finds by giving up columns."""

import numpy as np
import pytest
from scipy.optimize import check_grad
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from sparing import CascadeClassifier, FeatureCosts
from sparing.cascade import kernel_path, learning, paths
from sparing.cascade.kernel_path import _kernel, _slopes, _targets, kernel_order
from sparing.cascade.offers import Offers


def rows(n=800, n_columns=8, seed=0):
    """Columns 0 and 2 decide, the others are noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, n_columns))
    y = (X[:, 0] + 2 * (X[:, 2] > 0.5) + 0.3 * rng.standard_normal(n) > 0.7).astype(int)
    return X.astype(np.float32), y


def order_of(costs, weight=None, steps=120, **options):
    X, y = rows(**options)
    offers = Offers.of(costs)
    return kernel_order(offers, np.arange(X.shape[1]), X, y, 2, weight, 0, steps)


def test_slopes_are_those_of_the_held_out_loss():
    X, y = rows(60, 4)
    X, targets = X.astype(float), _targets(y, 2).astype(float)

    def loss(scales):
        fitted, held_out = X[:30] * scales, X[30:] * scales
        dual = np.linalg.solve(_kernel(fitted, fitted) + np.eye(30), targets[:30])
        return 0.5 * ((_kernel(held_out, fitted) @ dual - targets[30:]) ** 2).sum() / 30

    def slopes(scales):
        return _slopes(X, targets, scales)

    assert check_grad(loss, slopes, np.array([0.5, 0.1, 0.7, 0.3])) < 1e-5


def test_targets_have_a_variance_of_one():
    targets = _targets(np.array([0, 0, 1, 2, 2, 2]), 4)
    assert targets.shape == (6, 4)
    assert (targets**2).sum() / 6 == pytest.approx(1, abs=1e-6)
    np.testing.assert_allclose(targets.mean(axis=0), 0, atol=1e-6)


def test_what_decides_is_kept_longest():
    order = order_of(FeatureCosts([1.0] * 8))
    assert set(order[:2]) == {0, 2}
    assert sorted(order) == list(range(8))
    assert order == order_of(FeatureCosts([1.0] * 8))


def test_a_high_price_moves_a_column_back():
    order = order_of(FeatureCosts([1, 1, 200, 1, 1, 1, 1, 1]))
    assert order[0] == 0
    assert order.index(2) > 1


def test_columns_that_come_together_are_one_offer_and_free_ones_are_none():
    costs = FeatureCosts([1, 0, 0, 1, 1, 1, 0, 1], shared={"panel": (2.0, [1, 2])})
    order = order_of(costs)
    offers = Offers.of(costs)
    assert sorted(order) == list(range(len(offers)))
    first = {name for offer in order[:2] for name in offers.names(offer)}
    assert "panel" in first


def test_rows_without_weight_are_not_drawn():
    X, y = rows()
    weight = np.ones(len(y))
    weight[:300] = 0
    spoilt = X.copy()
    spoilt[:300] = 0
    offers, owner = Offers.of(FeatureCosts([1.0] * 8)), np.arange(8)
    orders = [kernel_order(offers, owner, Z, y, 2, weight, 0, 30) for Z in (X, spoilt)]
    assert orders[0] == orders[1]


@pytest.fixture
def few_are_many(monkeypatch):
    """Six purchases count as many, and the kernel machine takes few steps."""
    monkeypatch.setattr(learning, "_MANY", 5)
    monkeypatch.setattr(kernel_path, "_STEPS", 40)


@pytest.mark.parametrize("stage_estimator", ["own", "auto"])
def test_a_cascade_over_many_columns(few_are_many, stage_estimator, capsys):
    X, y = rows()
    clf = CascadeClassifier(
        make_pipeline(StandardScaler(), SVC()),
        stage_estimator=stage_estimator,
        cv=2,
        random_state=0,
        verbose=1,
    ).fit(X, y)
    assert "a kernel machine" in capsys.readouterr().err
    assert {name for names in clf.order_[:2] for name in names} == {"0", "2"}
    unseen = rows(2000, seed=1)
    assert clf.acquisition_cost(unseen[0]).mean() < 6
    assert clf.score(*unseen) > clf.estimator_.score(*unseen) - 0.03


def test_of_many_rows_some_are_drawn(few_are_many, monkeypatch):
    monkeypatch.setattr(paths, "_TRIED", 300)
    seen = []

    def spy(offers, owner, Z, *rest):
        seen.append(len(Z))
        return kernel_order(offers, owner, Z, *rest)

    monkeypatch.setattr(paths, "kernel_order", spy)
    X, y = rows()
    clf = CascadeClassifier(SVC(), stage_estimator="own", cv=2, random_state=0)
    clf.fit(X, y, sample_weight=np.arange(len(y)) % 4 > 0)
    assert seen == [300]
    assert {name for names in clf.order_[:2] for name in names} == {"0", "2"}


def test_a_limit_of_stages_holds_over_many_columns(few_are_many):
    X, y = rows()
    clf = CascadeClassifier(SVC(), n_stages=2, stage_estimator="own", cv=2, random_state=0)
    assert len(clf.fit(X, y).stages_) <= 2


def test_a_full_model_that_cannot_be_cloned_keeps_the_first_order(few_are_many, capsys):
    class Given:
        classes_ = np.array([0, 1])

        def predict_proba(self, X):
            return np.column_stack([X[:, 0] <= 0, X[:, 0] > 0]).astype(float)

        def predict(self, X):
            return (X[:, 0] > 0).astype(int)

    X, y = rows()
    y = (X[:, 0] > 0).astype(int)
    CascadeClassifier(Given(), stage_estimator="shared", cv=2, random_state=0, verbose=1).fit(X, y)
    assert "a kernel machine" not in capsys.readouterr().err
