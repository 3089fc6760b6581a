from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from sparing.datasets import make_synthetic1, make_synthetic2

CENTRES = {(1, 1): 1, (-1, 1): 0, (-1, -1): 1, (-1, -3): 0}


def clusters(X):
    centres = np.array(list(CENTRES))
    return np.argmax((np.round(X)[:, None, :] == centres).all(axis=2), axis=1)


def first_on_the_l1_path(X, y):
    """Columns in the order in which they enter as the penalty is relaxed."""
    entered: list[int] = []
    for C in np.logspace(-3, 1, 200):
        model = LogisticRegression(l1_ratio=1.0, C=C, solver="saga", max_iter=5000, tol=1e-6)
        model.fit(X, y)
        entered += [j for j in np.flatnonzero(model.coef_[0]) if j not in entered]
        if entered:
            return entered
    return entered


def test_synthetic1_is_the_papers_call():
    X, y = make_synthetic1()
    expected_X, expected_y = make_classification(
        n_samples=1000,
        flip_y=0.01,
        n_features=2,
        n_redundant=0,
        n_informative=2,
        random_state=17,
        n_clusters_per_class=2,
    )
    np.testing.assert_array_equal(X, expected_X)
    np.testing.assert_array_equal(y, expected_y)


@pytest.mark.parametrize(("equal", "sizes"), [(False, [20, 20, 15, 15]), (True, [20, 20, 20, 20])])
def test_synthetic2_clusters_sizes_labels_noise(equal, sizes):
    X, y = make_synthetic2(equal=equal)
    cluster = clusters(X)
    np.testing.assert_array_equal(np.bincount(cluster), sizes)
    np.testing.assert_array_equal(y, np.array(list(CENTRES.values()))[cluster])
    deviation = X - np.array(list(CENTRES))[cluster]
    assert 0.008 < deviation.std() < 0.012


def test_synthetic2_is_deterministic_and_shuffled():
    X, _ = make_synthetic2(random_state=3)
    np.testing.assert_array_equal(X, make_synthetic2(random_state=3)[0])
    assert not np.array_equal(X, make_synthetic2(random_state=4)[0])
    assert np.any(np.diff(clusters(X)) < 0)


@pytest.mark.parametrize("seed", range(5))
def test_l1_picks_feature_1_first(seed):
    X, y = make_synthetic2(random_state=seed)
    assert first_on_the_l1_path(X, y) == [0]


def test_l1_picks_feature_1_first_for_equal_sizes_once_scaled():
    X, y = make_synthetic2(equal=True)
    assert first_on_the_l1_path(StandardScaler().fit_transform(X), y) == [0]


def test_feature_1_is_the_best_single_feature():
    X, y = make_synthetic2()
    best = []
    for column in np.round(X).T:  # cuts between clusters, not inside one
        cuts = np.unique(column)[:, None]
        right = ((column > cuts) == y).mean(axis=1)
        best.append(max(right.max(), (1 - right).max()))
    np.testing.assert_allclose(best, [55 / 70, 50 / 70])


def test_gating_by_feature_2_is_the_cheaper_perfect_system():
    for equal, by_one, by_two in [(False, 120 / 70, 110 / 70), (True, 1.75, 1.5)]:
        X, y = make_synthetic2(equal=equal)
        full = SVC(gamma=1.0).fit(X, y)
        assert full.score(X, y) == 1.0
        # Feature 1: cluster 1 is settled, the rest goes on.
        answer = np.where(X[:, 0] > 0, 1, full.predict(X))
        assert (answer == y).all()
        assert np.where(X[:, 0] > 0, 1, 2).mean() == pytest.approx(by_one)
        # Feature 2: clusters 1 and 2 go on, 3 and 4 are settled by a linear rule on feature 2.
        goes_on = X[:, 1] > 0
        answer = np.where(goes_on, full.predict(X), X[:, 1] > -2)
        assert (answer == y).all()
        assert np.where(goes_on, 2, 1).mean() == pytest.approx(by_two)


def test_no_line_separates_synthetic2():
    X, y = make_synthetic2()
    assert LogisticRegression(C=1e6).fit(X, y).score(X, y) < 1
