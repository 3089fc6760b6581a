"""Training of the network: gradients are right, weights count, seeds repeat."""

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.datasets import make_classification

from sparing import FeatureCosts
from sparing.cascade.inputs import NetworkInputs
from sparing.cascade.judges import random_masks
from sparing.cascade.offers import Offers
from sparing.cascade.training import _batches, _Layers, _rate, train_network


def trained(X, y, n_classes=2, **options):
    inputs = NetworkInputs.fit(X)
    Z = inputs.transform(X)
    masks = random_masks(Offers.of(FeatureCosts(np.ones(X.shape[1]))), n=200)
    options = {"width": 32, "visits": 60_000, **options}
    return train_network(inputs, Z, y, n_classes, masks, **options), Z


@pytest.fixture(scope="module")
def rows():
    return make_classification(
        600, 5, n_informative=4, n_redundant=0, class_sep=1.5, random_state=0
    )


def test_the_same_seed_gives_the_same_network(rows):
    first, second = (trained(*rows, seed=1)[0] for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(first.weights, second.weights, strict=True))


def test_a_class_without_rows_is_known_and_unlikely(rows):
    X, y = rows
    network, Z = trained(X, y, n_classes=4)
    proba = network.proba(Z, np.ones(5, dtype=bool))
    assert proba.shape == (600, 4)
    assert (proba.argmax(axis=1) < 2).mean() > 0.99


def test_rows_without_weight_teach_nothing(rows):
    X, y = rows
    wrong = y.copy()
    wrong[300:] = 1 - y[300:]
    weight = (np.arange(600) < 300).astype(float)
    network, Z = trained(X, wrong, weight=weight)
    proba = network.proba(Z[300:], np.ones(5, dtype=bool))
    assert (proba.argmax(axis=1) == y[300:]).mean() > 0.85


def test_gradients_are_those_of_the_log_loss():
    rng = np.random.default_rng(0)
    # In double precision, so that differences of the loss are worth something.
    layers = _Layers([4, 6, 6, 3], rng, np.float64)
    for bias in layers.biases:
        bias[:] = rng.normal(size=bias.shape)
    X, y, share = rng.normal(size=(20, 4)), rng.integers(0, 3, 20), rng.random(20)

    def loss():
        hidden = X
        for weight, bias in zip(layers.weights[:-1], layers.biases[:-1], strict=True):
            hidden = np.maximum(hidden @ weight + bias, 0)
        logs = log_softmax(hidden @ layers.weights[-1] + layers.biases[-1], axis=1)
        return -(share * logs[np.arange(20), y]).mean()

    layers.learn(X, y, share)
    parameters, small = layers.parameters, 1e-6
    for i, before in enumerate(parameters.copy()):
        values = []
        for shift in (small, -small):
            parameters[i] = before + shift
            values.append(loss())
        parameters[i] = before
        assert layers.gradient[i] == pytest.approx((values[0] - values[1]) / (2 * small), abs=1e-6)


def test_every_row_is_shown_once_before_any_is_shown_twice():
    shown = np.concatenate(list(_batches(12, 4, 6, np.random.default_rng(0))))
    assert sorted(shown[:12]) == sorted(shown[12:]) == list(range(12))


def test_the_rate_rises_and_then_falls():
    rates = [_rate(step, 4000) for step in range(4000)]
    top = int(np.argmax(rates))
    assert 0 < top < 500
    assert np.all(np.diff(rates[:top]) > 0)
    assert np.all(np.diff(rates[top:]) < 0)
    assert rates[-1] > 0


def test_fewer_rows_than_a_batch(rows):
    X, y = rows
    network, Z = trained(X[:20], y[:20], visits=4_000)
    assert (network.proba(Z, np.ones(5, dtype=bool)).argmax(axis=1) == y[:20]).mean() > 0.9
