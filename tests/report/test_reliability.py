import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparing.report._reliability import reliability, wilson


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=300))
def test_bins_are_a_partition_in_order(rows):
    said = np.array([s for s, _ in rows])
    right = np.array([r for _, r in rows])
    told = reliability(said, right, 0.95)
    bins = told["bins"]
    n = np.array([b["n"] for b in bins])
    assert n.sum() == told["n"] == len(rows)
    assert len(bins) <= 10
    assert np.all(np.diff([b["said"] for b in bins]) > 0)
    assert n @ [b["said"] for b in bins] == pytest.approx(said.sum())
    assert n @ [b["right"] for b in bins] == pytest.approx(right.sum())
    assert all(b["low"] - 1e-9 <= b["right"] <= b["high"] + 1e-9 for b in bins)
    assert abs(told["said"] - told["right"]) <= told["error"] + 1e-9


def test_an_honest_stage_has_no_error_and_a_boaster_has_one():
    rng = np.random.default_rng(0)
    said = rng.uniform(0.5, 1, 20_000)
    right = rng.random(20_000) < said
    assert reliability(said, right, 0.95)["error"] < 0.02
    assert reliability(np.minimum(1, said + 0.2), right, 0.95)["error"] > 0.1


def test_a_stage_that_answers_nobody_says_nothing():
    assert reliability(np.empty(0), np.empty(0, dtype=bool), 0.95)["bins"] == []


def test_intervals_cover_as_often_as_stated():
    rng = np.random.default_rng(0)
    n = 60
    share = rng.binomial(n, 0.8, 4000) / n
    low, high = wilson(share, n, 0.9)
    assert np.mean((low <= 0.8) & (high >= 0.8)) == pytest.approx(0.9, abs=0.03)
