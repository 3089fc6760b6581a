"""Networks of the folds: no row is answered out of fold by a network that has learnt from it."""

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold

from small_cascade import COSTS, X, Y, cascade, make_rows
from sparing import FeatureCosts
from sparing._folds import checked_folds
from sparing._progress import Progress
from sparing._routed import Training
from sparing.cascade import points, shared_network
from sparing.cascade import training as network_training
from sparing.cascade.inputs import NetworkInputs
from sparing.cascade.shared_network import SharedNetwork

STAGES = [[0], [0, 1, 2]]
TRIPLES = np.arange(len(X)) // 3  # rows that belong together, three by three


def by_number(n_splits):
    return n_splits


def by_group(n_splits):
    return list(GroupKFold(n_splits).split(X, Y, TRIPLES))


@pytest.fixture
def lessons(monkeypatch):
    """Rows that every network has learnt from; while a cascade is fitted, networks refuse to answer for these."""
    taught = []

    def watched(inputs, Z, y, *args, **options):
        network = train_one(inputs, Z, y, *args, **options)
        learnt = {row.tobytes() for row in Z}

        class Honest:
            def proba(self, rows, mask):
                assert learnt.isdisjoint(row.tobytes() for row in rows)
                return network.proba(rows, mask)

        taught.append((Z, y))
        return Honest()

    train_one = shared_network.train_network
    monkeypatch.setattr(shared_network, "train_network", watched)
    # The fitted stages are asked about rows they have learnt from, but never believed about them.
    monkeypatch.setattr(points, "_served", lambda choices, *_: list(choices))
    return taught


@pytest.mark.parametrize(
    ("folds", "rows"), [(by_number(3), 720), (by_number(5), 792), (by_group(3), 600)]
)
def test_no_network_answers_for_rows_it_has_learnt_from(lessons, folds, rows):
    cascade(stages=STAGES, stage_estimator="shared", cv=folds).fit(X, Y)
    assert len(lessons) == 2 * (folds if isinstance(folds, int) else 3)
    # Half of a fold held out and a fifth of the other half, or all of it.
    assert {len(Z) for Z, _ in lessons} == {rows}


def test_halves_of_a_fold_have_all_classes(lessons):
    rare = np.where(np.arange(len(Y)) % 60 == 0, 2, Y)  # fifteen rows, five in a fold
    cascade(stages=STAGES, stage_estimator="shared").fit(X, rare)
    held_out = 15 - np.array([np.sum(y == 2) for _, y in lessons])
    assert set(held_out) == {2, 3}


def test_networks_of_all_folds_are_as_sure_of_new_rows_as_they_are_out_of_fold(monkeypatch):
    # As large as for real: networks that have learnt less are less sure.
    for setting, real in {
        "_VISITS": (4_000, 110_000),
        "_STEPS": 2000,
        "_LAYERS": 4,
        "_WIDTH": 128,
    }.items():
        monkeypatch.setattr(network_training, setting, real)
    rows, noise = X[:400], np.random.default_rng(0).random(400) < 0.2
    y = np.where(noise, 1 - Y[:400], Y[:400])
    training = Training(rows, y, None, FeatureCosts(COSTS), np.array([0, 1]), 0)
    inputs, masks = NetworkInputs.fit(rows), np.tri(5, dtype=bool)[[2, 4]]
    shared = SharedNetwork(inputs, inputs.transform(rows), masks, one_by_one=True)
    learnt = shared.fit(training, masks, checked_folds(5, y, 0), None, Progress(verbose=0))
    new, _ = make_rows(4000, seed=1)
    for predictor, proba in zip(learnt.predictors, learnt.proba, strict=True):
        expected = np.mean(1 - predictor.predict_proba(new).max(axis=1))
        # Unsoftened it is 0.8 and 0.4 of that.
        assert np.mean(1 - proba.max(axis=1)) == pytest.approx(expected, rel=0.15)


def test_softening_changes_no_decision():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([0.3, 0.3, 0.3], size=200)
    weight = rng.random(200)
    wanted = 0.4
    temperature = shared_network._temperature(proba, wanted, weight)
    softer = shared_network._softened(proba, temperature)
    assert temperature > 1
    assert np.average(1 - softer.max(axis=1), weights=weight) == pytest.approx(wanted)
    assert np.array_equal(softer.argmax(axis=1), proba.argmax(axis=1))
    assert softer.sum(axis=1) == pytest.approx(1)


def test_answers_are_never_made_surer():
    proba = np.full((5, 2), 0.5)
    assert shared_network._temperature(proba, 0.1, np.ones(5)) == 1
