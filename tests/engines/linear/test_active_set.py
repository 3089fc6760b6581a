import numpy as np
import pytest
from numpy.testing import assert_allclose

from sparing.engines.linear import active_set
from sparing.engines.linear.active_set import ActiveSet
from sparing.engines.linear.losses import Logistic

from .problems import make, singles


def solver(d=40, share=0.5, allowed=None):
    Z, y, q, _ = make(n=150, d=d, seed=2)
    weight = np.full((2, 150), 1 / 150)
    losses = [Logistic(np.stack([y == 1, q]), weight)]
    allowed = np.ones(d, dtype=bool) if allowed is None else allowed
    free = ActiveSet(Z, losses, singles(d).with_free_rows(1), 1e-4, np.append(allowed, True))
    largest = free.penalty.dual_norm(free.at(np.zeros((d + 1, 2))).gradient)
    free.penalty = free.penalty.scaled(share * largest)
    return free


def test_columns_out_of_play_are_not_copied_and_content_at_the_end():
    problem = solver()
    fit, point = problem.run(problem.at(np.zeros((41, 2))), 1e-8, 200, True)
    assert 0 < len(problem.design.columns) < 40
    assert fit.converged
    assert problem.penalty.violation(point.W, point.gradient) <= 1e-8


def test_all_columns_at_once_find_the_same(monkeypatch):
    problem = solver()
    fit, _ = problem.run(problem.at(np.zeros((41, 2))), 1e-9, 200, True)
    monkeypatch.setattr(active_set, "_MOST", 0.0)
    everything = solver()
    other, _ = everything.run(everything.at(np.zeros((41, 2))), 1e-9, 200, True)
    assert len(everything.design.columns) == 40
    assert_allclose(fit.coef, other.coef, atol=1e-7)


@pytest.mark.parametrize("share", [0.5, 0.01])
def test_columns_that_are_not_allowed_stay_zero(share):
    allowed = np.arange(40) % 2 == 0
    problem = solver(share=share, allowed=allowed)
    start = np.ones((41, 2))
    fit, _ = problem.run(problem.at(start), 1e-8, 200, True)
    assert fit.converged
    assert not fit.coef[~allowed].any()
    assert fit.coef[allowed].any()


def test_the_design_is_renewed_when_far_fewer_columns_are_needed():
    problem = solver(share=0.01)
    problem.run(problem.at(np.zeros((41, 2))), 1e-8, 200, True)
    wide = len(problem.design.columns)
    problem.penalty = problem.penalty.scaled(90.0)
    fit, _ = problem.run(problem.at(np.zeros((41, 2))), 1e-8, 200, True)
    assert fit.converged
    assert len(problem.design.columns) < wide
