import numpy as np
import pytest
from numpy.testing import assert_allclose

from sparing.engines.linear import columns as module
from sparing.engines.linear.columns import Columns


def make(n=90, chosen=(0, 2, 3)):
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((n, 5))
    design = Columns(Z, np.array(chosen))
    return rng, np.column_stack([Z[:, list(chosen)], np.ones(n)]), design


def test_scores_and_gradients_are_products_with_the_columns_and_ones():
    rng, A, design = make()
    W, residual = rng.standard_normal((4, 2)), rng.standard_normal((2, 90))
    assert_allclose(design.scores(W), (A @ W).T)
    assert_allclose(design.gradient(residual), A.T @ residual.T)
    assert design.width == 4


@pytest.mark.parametrize("cells", [1, 1 << 18])
def test_gram_matrices_whatever_the_size_of_a_chunk(cells, monkeypatch):
    monkeypatch.setattr(module, "_CHUNK_CELLS", cells)
    rng, A, design = make()
    weight = rng.uniform(size=90)
    assert_allclose(design.gram(weight), A.T @ (weight[:, None] * A), atol=1e-12)


@pytest.mark.parametrize("cells", [1, 1 << 18])
def test_softmax_gram_but_for_moves_of_all_classes_together(cells, monkeypatch):
    monkeypatch.setattr(module, "_CHUNK_CELLS", cells)
    rng, A, design = make()
    weight, proba = rng.uniform(size=90), rng.dirichlet(np.ones(3), size=90).T
    found = design.softmax_gram(proba, weight)
    between = np.stack([np.diag(p) - np.outer(p, p) for p in proba.T])
    expected = np.einsum("i,ikl,ia,ib->kalb", weight, between, A, A).reshape(12, 12)
    centre = np.kron(np.eye(3) - 1 / 3, np.eye(4))
    assert_allclose(centre @ found @ centre, centre @ expected @ centre, atol=1e-12)
    assert np.linalg.eigvalsh(found)[0] > 0


def test_all_columns_are_not_copied():
    Z = np.zeros((4, 3))
    assert Columns(Z, np.arange(3)).Z is Z
