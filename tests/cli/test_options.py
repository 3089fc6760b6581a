import pytest

from sparing._methods import SWEEPS
from sparing.cli.options import check_budget, known_scoring, methods, near


def test_methods():
    assert methods("auto") == "auto"
    assert methods("adapt-lin, cascade") == ["adapt-lin", "cascade"]
    assert methods(",".join(SWEEPS)) == list(SWEEPS)
    for names in ("", "auto,cascade", "magic"):
        with pytest.raises(ValueError, match="--method") as caught:
            methods(names)
        assert "routed" not in str(caught.value)


def test_scores():
    assert known_scoring("roc_auc") == "roc_auc"
    with pytest.raises(ValueError, match="Did you mean 'balanced_accuracy'") as caught:
        known_scoring("balanced")
    assert "(" not in str(caught.value)


def test_budgets():
    for budget in (None, 0, 2.5):
        check_budget(budget)
    for budget in (-0.1, float("nan")):
        with pytest.raises(ValueError, match="0 or more"):
            check_budget(budget)


def test_nothing_comes_near():
    assert near("xyz", ["age"]) == ""
