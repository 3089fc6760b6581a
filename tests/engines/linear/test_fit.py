import numpy as np
import pytest
from numpy.testing import assert_allclose

from sparing.engines.linear import LinearProblem

from .problems import make


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores(n_classes):
    Z, y, q, _ = make(n_classes=n_classes)
    problem = LinearProblem(Z, y, n_classes)
    fit = problem.solve(q, None)
    cheap, gate = problem.scores(fit)
    assert cheap.shape == ((200,) if n_classes == 2 else (200, 3))
    assert_allclose(gate, Z @ fit.coef[:, -1] + fit.intercept[-1])
    assert np.corrcoef(gate, q)[0, 1] > 0
    alone = problem.solve(q, None, gate=False)
    cheap, gate = problem.scores(alone)
    assert cheap.shape == ((200,) if n_classes == 2 else (200, 3))
    assert not gate.any()
