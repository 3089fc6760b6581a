from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.svm import SVC

from sparing import FeatureCosts
from sparing._progress import Progress
from sparing._routed import Training
from sparing.cascade import judging
from sparing.cascade.inputs import NetworkInputs
from sparing.cascade.judges import Judge, NetworkJudge, RefitJudge
from sparing.cascade.judging import judge_for
from sparing.cascade.offers import Offers


@dataclass(eq=False, kw_only=True)
class Scripted(Judge):
    """Is wrong about its first rows, ever more of them the fewer columns there are; remembers what it was asked."""

    wrong_per_missing_column: int

    def proba(self, mask):
        right = np.ones(len(self.y))
        right[: self.wrong_per_missing_column * int((~mask).sum())] = 0.0
        return np.eye(2)[np.where(right == 1.0, self.y, 1 - self.y)]

    def worth(self, mask, groups):
        return np.array([1.0 + group[0] for group in groups])


def scripted(n_rows, wrong, weight=None, prices=(1,) * 8):
    offers = Offers.of(FeatureCosts(prices))
    return Scripted(
        offers=offers,
        y=np.zeros(n_rows, dtype=np.intp),
        full_cost=8.0,
        weight=weight,
        wrong_per_missing_column=wrong,
    )


def test_judges_are_compared_on_few_columns_and_on_the_rows_that_both_know():
    # Two of eight columns are left out: 2 x 10 rows of 100 are wrong, against 2 x 2 of the first 100 of 300.
    assert judging._behind_on_few(scripted(100, 10), scripted(300, 2)) == pytest.approx(0.16)
    weight = np.where(np.arange(100) < 20, 2.0, 0.5)
    heavier = judging._behind_on_few(scripted(100, 10, weight), scripted(300, 2))
    assert heavier == pytest.approx(2 * 16 / weight.sum())


def test_few_columns_are_those_worth_most_for_their_price():
    judge = scripted(50, 1, prices=(1, 1, 1, 1, 1, 1, 1, 100))
    copies = scripted(50, 0, prices=(1, 1, 1, 1, 1, 1, 1, 100))
    judging._behind_on_few(judge, copies)
    asked = [np.flatnonzero(np.unpackbits(np.frombuffer(key, np.uint8))) for key in copies._known]
    assert asked[0].tolist() == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("on_few", "own", "wanted"),
    [
        (0.20, RandomForestClassifier(10), RefitJudge),
        (0.01, RandomForestClassifier(10), NetworkJudge),
        (0.20, SVC(), NetworkJudge),
        (KeyError("age"), RandomForestClassifier(10), NetworkJudge),
    ],
    ids=["far behind", "near", "too slow to copy", "copies need every column"],
)
def test_copies_judge_where_networks_are_behind_on_few_columns(monkeypatch, on_few, own, wanted):
    def found(judge, copies):
        if isinstance(on_few, Exception):
            raise on_few
        return on_few

    quick = partial(judging.train_network, width=8, visits=500)
    monkeypatch.setattr(judging, "train_network", quick)
    monkeypatch.setattr(judging, "_behind_on_few", found)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = (X[:, 0] > 0).astype(np.intp)
    costs = FeatureCosts([1.0] * 3)
    training = Training(X, y, None, costs, np.array([0, 1]), 0)
    inputs = NetworkInputs.fit(X)
    judge, behind = judge_for(
        training,
        Offers.of(costs),
        inputs,
        inputs.transform(X),
        full_cost=3.0,
        full_error=np.ones(120),  # no network is behind a full model that is always wrong
        own=own,
        n_jobs=None,
        progress=Progress(verbose=0),
    )
    assert isinstance(judge, wanted)
    assert behind == (on_few if wanted is RefitJudge else 0.0)


def test_without_an_offer_free_columns_stay(monkeypatch):
    judge, gone = scripted(20, 1, prices=(1, 0, 4)), []

    def worth(mask, groups):
        gone.extend(group.tolist() for group in groups)
        return np.array([2.0, 2.0])

    monkeypatch.setattr(judge, "worth", worth)
    assert sorted(judge.worth_for_price([0, 1]).tolist()) == [0.5, 2.0]
    assert sorted(gone) == [[0], [2]]
