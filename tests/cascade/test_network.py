import numpy as np
import pytest
from sklearn.datasets import make_classification

from sparing import FeatureCosts
from sparing.cascade.inputs import NetworkInputs
from sparing.cascade.judges import random_masks
from sparing.cascade.network import MaskedNetwork, MaskedPredictor, mean_proba
from sparing.cascade.offers import Offers
from sparing.cascade.training import train_network


def trained(X, y, n_classes=2, **options):
    inputs = NetworkInputs.fit(X)
    Z = inputs.transform(X)
    offers = Offers.of(FeatureCosts(np.ones(X.shape[1])))
    network = train_network(
        inputs, Z, y, n_classes, random_masks(offers), width=32, visits=60_000, **options
    )
    return network, Z


@pytest.fixture(scope="module")
def rows():
    return make_classification(
        600, 5, n_informative=4, n_redundant=0, class_sep=1.5, random_state=0
    )


@pytest.fixture(scope="module")
def network(rows):
    return trained(*rows)


def test_more_columns_answer_better(rows, network):
    _, y = rows
    network, Z = network
    every = np.ones(5, dtype=bool)
    accuracy = [
        (network.proba(Z, every & (np.arange(5) < k)).argmax(axis=1) == y).mean() for k in (0, 3, 5)
    ]
    assert accuracy[0] < accuracy[1] < accuracy[2]
    assert accuracy[2] > 0.9


def test_columns_that_are_not_there_are_not_read(rows, network):
    network, _ = network
    X = rows[0].copy()
    mask = np.array([True, False, True, False, True])
    predictor = MaskedPredictor((network,), mask)
    before = predictor.predict_proba(X)
    X[:, ~mask] = np.nan
    assert np.array_equal(predictor.predict_proba(X), before)
    assert predictor.columns.tolist() == [0, 2, 4]
    assert np.allclose(before.sum(axis=1), 1)


def test_leaving_out_a_group_is_the_same_as_masking_it(network):
    network, Z = network
    mask = np.array([True, True, True, True, False])
    groups = [np.array([0]), np.array([1, 2]), np.array([4])]
    for group, proba in zip(groups, network.proba_without(Z, mask, groups), strict=True):
        rest = mask.copy()
        rest[group] = False
        assert np.allclose(proba, network.proba(Z, rest), atol=1e-5)


def test_stored_and_restored(rows, network):
    network, _ = network
    predictor = MaskedPredictor((network,), np.arange(5) < 3)
    again = MaskedPredictor.restored(predictor.stored())
    inner = MaskedNetwork.restored(network.stored())
    assert np.array_equal(again.predict_proba(rows[0]), predictor.predict_proba(rows[0]))
    assert np.array_equal(inner.weights[0], network.weights[0])


def test_several_networks_are_averaged_stored_and_restored(rows, network):
    first, Z = network
    second = train_network(
        first.inputs, Z, rows[1], 2, np.ones((1, 5), dtype=bool), width=8, visits=2000, seed=1
    )
    mask = np.arange(5) < 4
    both = mean_proba((first, second), Z, mask)
    assert np.allclose(both, (first.proba(Z, mask) + second.proba(Z, mask)) / 2)
    predictor = MaskedPredictor((first, second), mask)
    assert np.allclose(predictor.predict_proba(rows[0]), both, atol=1e-5)
    stored = predictor.stored()
    assert list(stored.parts) == ["network", "network_2"]
    again = MaskedPredictor.restored(stored)
    assert np.array_equal(again.predict_proba(rows[0]), predictor.predict_proba(rows[0]))


def test_networks_of_other_inputs_are_not_averaged(rows, network):
    first, _ = network
    other = MaskedNetwork(NetworkInputs.fit(rows[0] * 2), first.weights, first.biases)
    stored = MaskedPredictor((first, other), np.ones(5, dtype=bool)).stored()
    with pytest.raises(ValueError, match="same inputs"):
        MaskedPredictor.restored(stored)


def test_layers_that_do_not_fit_are_refused(network):
    network, _ = network
    stored = network.stored()
    arrays = {**stored.arrays, "weight_1": np.zeros((3, 3), dtype=np.float32)}
    with pytest.raises(ValueError, match="fit each other"):
        MaskedNetwork.restored(type(stored)(stored.kind, arrays=arrays, parts=stored.parts))
