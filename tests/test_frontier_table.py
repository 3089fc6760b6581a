import sys

import numpy as np
import pytest

from handmade import table, two_stages
from small_frontier import curve, small_frontier
from sparing.frontier import Frontier, stage_alone


@pytest.fixture
def frontier():
    return small_frontier()


def test_frame():
    X, y = table(seed=1)
    labels = [{"method": "hand", "cost": i} for i in range(9)]
    frontier = Frontier.evaluate(curve(), X, y, labels=labels)
    mixed = frontier + Frontier.evaluate([stage_alone(two_stages(), 0)], X, y, labels=["alone"])
    frame = mixed.frame()
    assert list(frame) == [
        "cost", "score", "saving", "pareto", "stage_0", "stage_1", "method", "label_cost", "label",
    ]  # fmt: skip
    assert frame["pareto"].sum() == len(mixed.pareto())
    assert frame["saving"].tolist() == pytest.approx((1 - mixed.costs / 5).tolist())
    assert np.isnan(frame["stage_1"].iloc[-1])
    tested = frontier.on(*table(seed=5)).frame()
    assert tested["chosen_score"].tolist() == frontier.pareto().scores.tolist()
    assert tested["pareto"].all()


def test_frame_without_pandas(frontier, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"sparing\[bench\]"):
        frontier.frame()


def test_repr():
    X, y = table(seed=1)
    many = curve(60)
    frontier = Frontier.evaluate(many, X, y, labels=[{"threshold": s.thresholds[0]} for s in many])
    text = repr(frontier).splitlines()
    assert text[0].startswith("Frontier: 60 systems, ")
    assert "accuracy on 400 rows, cost by stage; 10 of them:" in text[0]
    assert len(text) == 13
    assert "threshold=inf" in text[2]
    assert text[-1].endswith("0%  full model")
    assert repr(frontier.points[0]) == (
        f"Point(cost=1, score={frontier.points[0].score:.4g}, stages 1.00 0.00, threshold=inf)"
    )
    free = frontier.reprice([0, 0, 0])
    assert "%" not in repr(free)
    assert "saving" not in free.frame()
