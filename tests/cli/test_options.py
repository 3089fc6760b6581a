import pytest

from sparing._methods import SWEEPS
from sparing.cli.options import (
    check_budget,
    check_guarantee,
    check_numbers,
    known_scoring,
    methods,
    near,
)


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


def test_promises_and_numbers_that_can_be_used():
    check_guarantee(0.95, 0.01, "accuracy")
    check_guarantee(0.95, None, "roc_auc")
    check_guarantee(None, 0.01, "roc_auc")
    check_numbers(0, None)
    check_numbers(3, -1)
    with pytest.raises(ValueError, match="--seed"):
        check_numbers(2**32, 1)
