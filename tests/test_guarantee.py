import numpy as np
import pytest

from sparing import Guarantee, PromiseError
from sparing._guarantee import check_calibration_rows, promises_of

CLASSES = np.array(["ill", "well"])
MATRIX = [[0, 9], [1, 0]]


def test_every_wish_is_a_promise():
    wish = Guarantee(tolerance=0.1, budget=3, max_error=0.2, min_recall={"ill": 0.9, "well": 0.5})
    promises = promises_of(wish, "accuracy", CLASSES)
    assert [p.kind for p in promises] == ["tolerance", "budget", "max_error", *["min_recall"] * 2]
    assert [p.wish for p in promises] == [
        "tolerance=0.1",
        "budget=3",
        "max_error=0.2",
        "min_recall={'ill': 0.9}",
        "min_recall={'well': 0.5}",
    ]
    assert wish.wish.startswith("tolerance=0.1 and budget=3 and max_error=0.2 and min_recall={")
    (costs,) = promises_of(Guarantee(tolerance=0.1), MATRIX, CLASSES)
    assert costs.reach == 9
    with pytest.raises(ValueError, match="min_recall names the class 'dead'"):
        promises_of(Guarantee(min_recall={"dead": 0.9}), "accuracy", CLASSES)
    with pytest.raises(ValueError, match="it is no mean over rows"):
        promises_of(Guarantee(tolerance=0.1), "roc_auc", CLASSES)


@pytest.mark.parametrize(
    ("wish", "scoring"),
    [
        (Guarantee(tolerance=0.05), "accuracy"),
        (Guarantee(tolerance=0.5), MATRIX),
        (Guarantee(max_error=0.05, confidence=0.9), "accuracy"),
        (Guarantee(min_recall={"ill": 0.8}), "accuracy"),
    ],
)
def test_the_least_number_of_rows_is_enough_and_one_less_is_not(wish, scoring):
    promises = promises_of(wish, scoring, CLASSES)
    least = promises[0].least_rows(1 - wish.confidence)
    labels = np.repeat("ill", least)
    check_calibration_rows(wish, promises, labels)
    with pytest.raises(PromiseError, match=f"at least {least} are needed"):
        check_calibration_rows(wish, promises, labels[1:])


def test_the_least_number_of_rows_for_rates_is_that_of_the_binomial():
    (promise,) = promises_of(Guarantee(max_error=0.01), "accuracy", CLASSES)
    assert promise.least_rows(0.05) == int(np.ceil(np.log(0.05) / np.log(0.99)))


def test_only_rows_of_the_class_speak_of_its_recall():
    wish = Guarantee(min_recall={"ill": 0.9})
    promises = promises_of(wish, "accuracy", CLASSES)
    with pytest.raises(PromiseError, match="5 calibration rows of class 'ill' are too few"):
        check_calibration_rows(wish, promises, np.repeat(CLASSES, [5, 5000]))


def test_what_needs_no_rows_and_what_no_number_proves():
    for wish in (Guarantee(budget=3), Guarantee(tolerance=0.0), Guarantee(max_error=1.0)):
        check_calibration_rows(wish, promises_of(wish, "accuracy", CLASSES), CLASSES)
    wish = Guarantee(min_recall={"ill": 1.0})
    with pytest.raises(PromiseError, match=r"No number .* proves min_recall=\{'ill': 1\}"):
        check_calibration_rows(wish, promises_of(wish, "accuracy", CLASSES), CLASSES)
