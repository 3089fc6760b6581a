"""Budgets between two stages that are far apart."""

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from sparing import CascadeClassifier, FeatureCosts
from sparing.cascade import gaps, learning, paths
from sparing.cascade.exits import pareto, trace
from sparing.cascade.gaps import Gap, Prefixes, bridges
from sparing.cascade.judges import Judge, NetworkJudge
from sparing.cascade.offers import Offers
from sparing.cascade.paths import Path, judged_paths

N = 3000
RNG = np.random.default_rng(0)
Y = RNG.integers(0, 2, N)
SIGN = 2 * Y - 1
# A question with two answers, a measurement that says about as much, a test that says nearly all, and noise.
QUESTION = np.where(RNG.random(N) < 0.7, SIGN, -SIGN) * np.log(7 / 3)
MEASURED, TEST = (2 * strength * (strength * SIGN + RNG.normal(size=N)) for strength in (0.5, 2.5))
LOGITS = np.column_stack([QUESTION, MEASURED, TEST, np.zeros(N)])
START = Prefixes([0, 2, 1, 3], [1, 2])


@dataclass(eq=False, kw_only=True)
class Knows(Judge):
    """What the columns say together, as they were made."""

    def proba(self, mask):
        right = 1 / (1 + np.exp(-LOGITS[:, mask].sum(axis=1)))
        return np.column_stack([1 - right, right])

    def worth(self, mask, groups):
        return np.array([self.loss(self.proba(mask & ~np.isin(range(4), g))) for g in groups])


def judge(prices=(1, 1, 20, 1), **options):
    costs = FeatureCosts(np.array(prices, dtype=float))
    return Knows(offers=Offers.of(costs), y=Y, full_cost=costs.total, **options)


def errors(own, stages, budgets):
    frontier = pareto(trace(own.scores(*stages)))
    return [min(c.error for c in frontier if c.cost <= budget) for budget in budgets]


def test_a_gap_is_bridged_by_what_tells_rows_apart():
    own = judge()
    (found,) = bridges(own, [START], 9)
    assert found.order == [0, 1, 2, 3]
    assert found.lengths == [1, 2, 3]
    budgets = [5, 8]
    for before, after in zip(errors(own, START, budgets), errors(own, found, budgets), strict=True):
        assert after < before - 0.03


@pytest.mark.parametrize(
    ("prices", "known"),
    [
        ((1, 1, 20, 1), [START, Prefixes([1, 2, 0, 3], [1, 2])]),  # the second has it all
        ((1, 15, 20, 15), [START]),  # nothing is cheap
        ((1, 1, 1, 1), [Prefixes([0, 1, 2, 3], [1, 2, 3])]),  # not wide
        ((1, 1, 20, 1), [Prefixes([0, 1, 2, 3], [])]),  # no stages
    ],
)
def test_where_nothing_is_missing_or_to_be_had_there_is_no_bridge(prices, known):
    assert bridges(judge(prices), known, 9) == []


@pytest.mark.parametrize(
    ("prices", "start", "first", "lengths"),
    [
        # Both cheap columns, and a stage with one of them alone; then the stages there were.
        ((1, 1, 20, 1), Prefixes([2, 0, 1, 3], [1, 2]), {0, 1}, [1, 2, 3]),
        # Only one of them is cheap.
        ((1, 15, 20, 1), Prefixes([2, 0, 1, 3], [1, 2]), {0}, [1, 2]),
        # It is a part of the first stage anyway.
        ((1, 15, 20, 1), Prefixes([2, 0, 1, 3], [2, 3]), {0}, [1, 2, 3]),
        # What is free needs no purchase: the measurement is bought on top.
        ((0, 1, 20, 1), Prefixes([1, 0, 2], [1, 2]), {0}, [0, 1, 2]),
    ],
)
def test_who_can_pay_for_less_than_the_cheapest_stage_gets_something(prices, start, first, lengths):
    own = judge(prices)
    cheapest = own.offers.price(start.order[: start.lengths[0]])
    found = bridges(own, [start], 9)[0]
    assert (set(found.order[: len(first)]), found.lengths) == (first, lengths)
    assert errors(own, found, [cheapest / 2])[0] < 0.4
    with pytest.raises(ValueError, match="empty"):
        errors(own, start, [cheapest / 2])


def test_a_cheap_beginning_or_no_cheaper_column_is_no_gap():
    # The first stage costs a twentieth of everything.
    assert bridges(judge((1, 1, 20, 1)), [Prefixes([0, 1, 2, 3], [1, 2, 3])], 9) == []
    # Whatever there is costs as much.
    assert bridges(judge((5, 5, 5, 5)), [Prefixes([2, 0, 1, 3], [1, 2, 3, 4])], 9) == []


def test_what_a_stage_behind_the_gap_has_anyway_is_not_bought_twice():
    gap = Gap(Prefixes([4, 0, 1, 2, 3], [1, 2, 3, 5]), 1, 1.0, 9.0)
    assert gap.bridged([2, 1]) == Prefixes([4, 2, 1, 0, 3], [1, 3, 4])
    assert gap.bridged([3]) == Prefixes([4, 3, 0, 1, 2], [1, 2, 3, 4])


def test_patience_ends(monkeypatch):
    monkeypatch.setattr(gaps, "_PATIENCE", 0)
    asked = {}
    for patience in (60, np.inf):
        own = judge(patience=patience)
        own.scores(*START)
        before = own.n_asked
        bridges(own, [START], 9)
        asked[patience] = own.n_asked - before
    # One candidate is looked at, with a stage of its own and one behind the gap, and then no other.
    assert asked[60] <= 2 < asked[np.inf]


def test_a_bridge_is_a_path_whose_stages_all_stay(monkeypatch):
    asked = []
    monkeypatch.setattr(
        paths,
        "bridges",
        lambda *args: asked.append(args[2]) or [Prefixes([0, 1, 2, 3], [1, 2, 3])],
    )
    heard = []
    found = judged_paths(judge(), 3, 0.0, heard.append)
    assert [path.whole for path in found] == [False, False, True]
    assert (found[2].order, found[2].few, found[2].every) == ([0, 1, 2, 3], [1, 2, 3], [1, 2, 3])
    assert "far apart" in heard[-1]
    assert asked == [3]


def test_bridges_have_no_more_stages_than_there_may_be():
    assert bridges(judge(), [START], 2) == []  # it would need three
    late = Prefixes([2, 0, 1, 3], [1, 2])
    (found, *_) = bridges(judge(), [late], 2)
    assert found.lengths == [1, 2]  # of three the cheaper ones


def test_a_cascade_fits_a_bridge_and_small_budgets_get_it(monkeypatch):
    # The search begins with the test, as a price of cost would have it; without a bridge nothing is cheaper.
    first = Path([2, 0, 1, 3], [1], [1])
    whole = Path([0, 1, 2, 3], [1, 2], [1, 2], whole=True)
    costs, least = [1.0, 1.0, 20.0, 1.0], {}
    for name, some in {"without": [first], "with": [first, whole]}.items():
        monkeypatch.setattr(learning, "judged_paths", lambda *_, some=some: some)
        clf = CascadeClassifier(
            LogisticRegression(), feature_costs=costs, stage_estimator="own", cv=3, random_state=0
        ).fit(LOGITS[:900], Y[:900])
        least[name] = clf.frontier_.costs.min()
    assert least == pytest.approx({"without": 20, "with": 1}, abs=0.1)
    small = clf.at(budget=6)
    assert [stage.columns.tolist() for stage in small.stages_[:-1]] == [[0], [0, 1]]
    assert small.order_[0] == ["0"]
    assert small.score(LOGITS[900:], Y[900:]) > 0.7


def test_rows_alike_have_one_doubt_whichever_network_judges_them():
    class Constant:
        """A network whose answers depend on nothing but the network."""

        def __init__(self, right, inputs):
            self.right, self.inputs = right, inputs

    class Inputs:
        owner = np.array([0, 1])

    rng = np.random.default_rng(1)
    parts = tuple(
        (
            (Constant(right, Inputs),),
            np.column_stack([np.tile([0, 1], 25), rng.normal(size=50)]).astype(np.float32),
        )
        for right in (0.6, 0.9)
    )

    class Told(NetworkJudge):
        def proba(self, mask):
            right = np.repeat([own.right for (own,), _ in self.parts], 50)
            return np.column_stack([1 - right, right])

    costs = FeatureCosts([1, 1])
    own = Told(offers=Offers.of(costs), y=np.ones(100, dtype=np.intp), full_cost=2, parts=parts)
    first, both = np.array([True, False]), np.array([True, True])
    assert len(np.unique(own.stage(first)[1])) == 2
    np.testing.assert_allclose(own.settled(first)[1], 0.25)
    np.testing.assert_allclose(own.settled(both)[1], np.repeat([0.4, 0.1], 50))


@pytest.mark.parametrize("n_stages", [None, 3, 2])
def test_a_stage_that_earns_nothing_answers_who_cannot_pay_for_more(monkeypatch, n_stages):
    weak_first = Path([1, 2, 0, 3], [1, 2], [1, 2])
    monkeypatch.setattr(learning, "judged_paths", lambda *_: [weak_first])
    clf = CascadeClassifier(
        LogisticRegression(),
        feature_costs=[1.0, 1.0, 1.0, 1.0],
        stage_estimator="own",
        n_stages=n_stages,
        round_trip_price=5,
        cv=3,
        random_state=0,
    ).fit(LOGITS[:900], Y[:900])
    usual = clf.at(budget=2.5)
    assert [stage.columns.tolist() for stage in usual.stages_[:-1]] == [[1, 2]]
    if n_stages == 2:  # it takes the place of the other
        small = clf.at(budget=1)
        assert [stage.columns.tolist() for stage in small.stages_[:-1]] == [[1]]
        return
    assert clf.frontier_.costs.min() == 1
    small = clf.at(budget=1.5)
    assert [stage.columns.tolist() for stage in small.stages_[:-1]] == [[1], [1, 2]]
    assert small.acquisition_cost(LOGITS[900:]).mean() == pytest.approx(1.5, abs=0.1)
    assert small.score(LOGITS[900:], Y[900:]) > 0.7


def test_an_order_whose_stages_another_one_has_dropped_is_kept(monkeypatch):
    # The best order drops its first stage, which the cheaper one ends with.
    first, cheaper = Path([1, 2, 0, 3], [1, 2], [1, 2]), Path([1, 0, 2, 3], [1], [1], whole=True)
    monkeypatch.setattr(learning, "judged_paths", lambda *_: [first, cheaper])
    clf = CascadeClassifier(
        LogisticRegression(),
        feature_costs=[1.0, 1.0, 1.0, 1.0],
        stage_estimator="own",
        round_trip_price=5,
        cv=3,
        random_state=0,
    ).fit(LOGITS[:900], Y[:900])
    stages = [[p.columns.tolist() for p in chain.predictors] for chain in clf._chains]
    assert [[1, 2]] in stages
    assert [[1]] in stages
