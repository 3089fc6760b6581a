import numpy as np
import pytest

from handmade import table, two_stages
from report.models import frontier_of, learnt
from sparing import BudgetedClassifier
from sparing.report._subject import same_system, subject_of


def test_what_is_no_model_is_refused_by_name():
    with pytest.raises(TypeError, match=r"a fitted model.*not dict"):
        subject_of({"not": "a model"})
    with pytest.raises(TypeError, match="not BudgetedClassifier"):
        subject_of(BudgetedClassifier())


def test_every_holder_of_a_system_gives_it():
    clf, _, _ = learnt()
    known = frontier_of(two_stages())
    assert subject_of(clf).system is clf.system_
    assert subject_of(clf.system_).system is clf.system_
    assert subject_of(known).frontier is known
    assert subject_of(known.points[2]).system is known.points[2].system


def test_systems_are_the_same_by_parts_and_thresholds():
    system = two_stages()
    assert same_system(system, system.with_thresholds(system.thresholds))
    assert not same_system(system, system.with_thresholds(-0.1))
    assert not same_system(system, two_stages())  # equal numbers, other parts


def test_settings_never_hold_rows():
    X, y = table(60)
    clf, _, _ = learnt()
    clf = BudgetedClassifier(validation=(X, y), budget=np.float64(3), scoring=[[0, 1], [5, 0]])
    clf.system_ = two_stages()
    settings = dict(subject_of(clf).settings["Model"])
    assert settings["validation"] == "tuple"
    assert settings["scoring"] == "list"
    assert settings["budget"] == 3
    assert settings["model"] == "BudgetedClassifier"
