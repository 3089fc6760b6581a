"""Networks of the folds: no row is answered out of fold by a network that has learnt from it."""

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold

from small_cascade import X, Y, cascade
from sparing.cascade import shared_network

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
    return taught


@pytest.mark.parametrize(
    ("folds", "rows"), [(by_number(3), 750), (by_number(5), 810), (by_group(3), 600)]
)
def test_no_network_answers_for_rows_it_has_learnt_from(lessons, folds, rows):
    cascade(stages=STAGES, stage_estimator="shared", cv=folds).fit(X, Y)
    assert len(lessons) == 2 * (folds if isinstance(folds, int) else 3)
    assert {len(Z) for Z, _ in lessons} == {rows}  # half of a fold held out, or all of it


def test_halves_of_a_fold_have_all_classes(lessons):
    rare = np.where(np.arange(len(Y)) % 60 == 0, 2, Y)  # fifteen rows, five in a fold
    cascade(stages=STAGES, stage_estimator="shared").fit(X, rare)
    held_out = 15 - np.array([np.sum(y == 2) for _, y in lessons])
    assert set(held_out) == {2, 3}
