"""Ctrl-C keeps what is ready."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from small_cascade import COSTS, X, Y, cascade
from sparing.cascade import learning, paths, shared_network


def test_an_interrupt_keeps_the_stages_that_are_fitted():
    class Slow(LogisticRegression):
        fits = 0

        def fit(self, X, y, sample_weight=None):
            Slow.fits += 1
            if Slow.fits > 6:
                raise KeyboardInterrupt
            return super().fit(X, y, sample_weight)

    with pytest.warns(UserWarning, match="1 of 2 stages"):
        clf = cascade(stages=[[0], [0, 1]], stage_estimator=Slow()).fit(X, Y)
    assert len(clf.stages_) == 2
    Slow.fits = 7
    with pytest.warns(UserWarning, match="full model alone"):
        clf = cascade(stages=[[0], [0, 1]], stage_estimator=Slow()).fit(X, Y)
    assert len(clf.stages_) == 1
    assert np.array_equal(clf.predict(X), clf.estimator_.predict(X))


@pytest.mark.parametrize(("kept", "says"), [(2, "1 of 3 folds"), (1, "full model alone")])
def test_an_interrupt_keeps_the_networks_that_are_ready(monkeypatch, kept, says):
    fits = []

    def train(*args, **options):
        if len(fits) == kept:
            raise KeyboardInterrupt
        fits.append(train_one(*args, **options))
        return fits[-1]

    train_one = shared_network.train_network
    monkeypatch.setattr(shared_network, "train_network", train)
    with pytest.warns(UserWarning, match=says):
        clf = cascade(stages=[[0], [0, 1, 2]], stage_estimator="shared").fit(X, Y)
    assert clf.score(X, Y) > 0.85
    assert len(clf.stages_) == (3 if kept > 1 else 1)


def test_an_interrupt_while_an_order_is_searched_leaves_the_full_model(monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(paths, "best_order", interrupted)
    with pytest.warns(UserWarning, match="full model alone"):
        clf = cascade().fit(X, Y)
    assert clf.acquisition_cost(X).tolist() == [sum(COSTS)] * len(X)


def test_an_interrupt_while_kinds_are_compared_keeps_the_order(monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(learning, "best_kinds", interrupted)
    with pytest.warns(UserWarning, match="full model alone; order_ is the order that was found"):
        clf = cascade().fit(X, Y)
    assert len(clf.stages_) == 1
    assert sorted(item for bought in clf.order_ for item in bought) == ["0", "1", "2", "3", "4"]


def test_an_interrupt_while_kinds_are_compared_leaves_those_that_are_through():
    class Never(LogisticRegression):
        fits = 0

        def fit(self, X, y, sample_weight=None):
            Never.fits += 1
            if Never.fits > 3:  # tried out with few and all columns, and with all on a fold
                raise KeyboardInterrupt
            return super().fit(X, y, sample_weight)

    kinds = [LogisticRegression(), Never()]
    with pytest.warns(UserWarning, match="the best of those that are through is fitted now"):
        clf = cascade(stages=[[0], [0, 1]], stage_estimator=kinds).fit(X, Y)
    assert clf.stage_kind_ == "LogisticRegression"
    assert len(clf.stages_) == 3
    Never.fits = 0
    with pytest.warns(UserWarning, match="full model alone"):
        clf = cascade(stages=[[0], [0, 1]], stage_estimator=kinds[::-1]).fit(X, Y)
    assert len(clf.stages_) == 1
