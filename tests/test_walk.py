import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from sparing._rows import ScoredRows
from sparing.costs import FeatureCosts
from sparing.system import ConfidenceGate, Stage, System
from three_stages import CLASSES, ColumnGate, Linear, everything, parts_of, rows, three_stages


def test_a_score_above_the_threshold_goes_on_and_one_at_it_stays():
    system = System(
        (
            Stage(Linear(np.array([1])), ColumnGate(np.array([0])), 0.5),
            Stage(Linear(np.array([2]))),
        ),
        FeatureCosts([1, 1, 1]),
        CLASSES,
    )
    X = np.zeros((4, 3))
    X[:, 0] = [0.4, 0.5, np.nextafter(0.5, 1), np.nan]
    assert system.route(X).tolist() == [0, 0, 1, 0]
    np.testing.assert_array_equal(system.exit_scores(X)[:, 0], X[:, 0])


def walk(system, x):
    """One row on its own: stage, scores, probabilities."""
    scores = []
    for index, stage in enumerate(system.stages):
        own = stage.predictor.predict_proba(x[None])
        if stage.gate is None:
            return index, scores, own[0]
        score = stage.gate.score(x[None], own if stage.gate.reads_predictor else None)[0]
        scores.append(score)
        if not score > stage.threshold:
            return index, scores, own[0]
    raise AssertionError


@given(
    npst.arrays(float, (7, 6), elements=st.floats(-2, 2)),
    st.lists(st.floats(-1, 1), min_size=2, max_size=2),
)
def test_answers_are_those_of_each_row_on_its_own(X, thresholds):
    system = three_stages(thresholds)
    stages, scores, proba = zip(*(walk(system, x) for x in X), strict=True)
    np.testing.assert_array_equal(system.route(X), stages)
    np.testing.assert_allclose(system.predict_proba(X), proba)
    np.testing.assert_array_equal(system.predict(X), CLASSES[np.argmax(proba, axis=1)])
    for found, expected in zip(system.exit_scores(X), scores, strict=True):
        np.testing.assert_allclose(found[: len(expected)], expected)
        assert np.isnan(found[len(expected) :]).all()


def test_parts_are_asked_only_for_rows_that_reach_them():
    system, X = three_stages(), rows()
    stage = system.route(X)
    assert set(stage) == {0, 1, 2}
    for part in parts_of(system):
        part.log.clear()
    system.predict_proba(X)
    (cheap, first), (more, second), (full, _) = ((s.predictor, s.gate) for s in system.stages)
    np.testing.assert_array_equal(np.concatenate(first.log), X)
    # A predictor its gate does not read is asked where rows stop, one that is read where they enter.
    np.testing.assert_array_equal(np.concatenate(cheap.log), X[stage == 0])
    np.testing.assert_array_equal(np.concatenate(second.log), X[stage >= 1])
    np.testing.assert_array_equal(np.concatenate(more.log), X[stage >= 1])
    np.testing.assert_array_equal(np.concatenate(full.log), X[stage == 2])


def test_nobody_is_asked_for_no_rows():
    system, X = three_stages((np.inf, 0.5)), rows()
    system.predict(X)
    system.acquisition_mask(X, accounting="path")
    assert not system.stages[1].predictor.log
    assert not system.stages[2].predictor.log
    assert system.predict_proba(X[:0]).shape == (0, 3)
    assert system.acquisition_cost(X[:0]).shape == (0,)
    assert system.explain(X[:0]) == []


def test_scored_rows_give_the_same_and_ask_once():
    X = rows()
    system = three_stages()
    systems = [system.with_thresholds(t) for t in ([-2, -2], [0, 0.5], [0.3, 0.1], [2, 2])]
    expected = [everything(s, X) for s in systems]
    for part in parts_of(system):
        part.log.clear()
    scored = ScoredRows(X)
    for s, values in zip(systems, expected, strict=True):
        np.testing.assert_equal(everything(s, scored), values)
    assert [len(part.log) for part in parts_of(system)] == [1] * 5


def test_one_gate_behind_several_predictors():
    X, gate = rows(), ConfidenceGate()
    scored = ScoredRows(X)
    for column in (0, 1, 2):
        stages = (Stage(Linear(np.array([column])), gate, 0.45), Stage(Linear(np.array([5]))))
        system = System(stages, FeatureCosts(np.ones(6)), CLASSES)
        np.testing.assert_array_equal(system.route(scored), system.route(X))
