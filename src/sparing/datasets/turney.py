"""Prices of medical tests after Turney (1995), in Canadian dollars.

P. D. Turney, "Cost-sensitive classification: empirical evaluation of a hybrid genetic decision
tree induction algorithm", Journal of Artificial Intelligence Research 2, 1995. The numbers are the
fees of the Ontario Health Insurance Program; UCI distributes them beside the data as
``.expense`` (the full price, and the price when another test of the group is already taken) and
``.group`` files.

Turney's discount is a shared item: the first test of a group pays the full price, each later
one the discounted price. That is a private price each, the discounted one, and one payment of
the difference, which is the same for all tests of a group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sparing.costs import FeatureCosts

BLOOD_DRAW = 2.10
QUESTION = 1.00
# With the draw. TBG is not in Turney's list: T4U is the indirect measure of the same quantity
# (the capacity of the blood to bind thyroxine) by the same kind of assay, so it lends its price.
BLOOD_TESTS = {"TSH": 22.78, "T3": 11.41, "TT4": 14.51, "T4U": 11.41, "TBG": 11.41}


def thyroid_costs(columns: Sequence[str]) -> FeatureCosts:
    """Prices of thyroid columns: blood tests share one draw, FTI comes from TT4 and T4U.

    Parameters
    ----------
    columns : sequence of str
        Columns of the table, in its order. What is no blood test and not FTI is a question.

    Examples
    --------
    >>> costs = thyroid_costs(["age", "TSH", "TT4", "T4U", "FTI"])
    >>> round(costs.of(["age"]), 2), round(costs.of(["TSH", "TT4"]), 2), round(costs.of(["FTI"]), 2)
    (1.0, 35.19, 23.82)
    """
    full = {c: BLOOD_TESTS.get(c, QUESTION) for c in columns}
    drawn = [c for c in columns if c in BLOOD_TESTS]
    return group_costs(full, {"blood draw": (BLOOD_DRAW, drawn)}, {"FTI": ["TT4", "T4U"]})


def heart_costs() -> FeatureCosts:
    """Prices of the 13 columns of the Cleveland heart disease table, in its order.

    Cholesterol and fasting blood sugar share one blood draw; thalach and thal one thallium scan;
    exang, oldpeak and slope one exercise electrocardiogram.

    Examples
    --------
    >>> costs = heart_costs()
    >>> round(costs.of(["thal"]), 2), round(costs.of(["thal", "thalach"]), 2)
    (102.9, 103.9)
    """
    full = {
        "age": 1.00,
        "sex": 1.00,
        "cp": 1.00,
        "trestbps": 1.00,
        "chol": 7.27,
        "fbs": 5.20,
        "restecg": 15.50,
        "thalach": 102.90,
        "exang": 87.30,
        "oldpeak": 87.30,
        "slope": 87.30,
        "ca": 100.90,
        "thal": 102.90,
    }
    groups = {
        "blood draw": (BLOOD_DRAW, ["chol", "fbs"]),
        "thallium scan": (101.90, ["thalach", "thal"]),
        "exercise electrocardiogram": (86.30, ["exang", "oldpeak", "slope"]),
    }
    return group_costs(full, groups, {})


def group_costs(
    full: Mapping[str, float],
    groups: Mapping[str, tuple[float, Sequence[str]]],
    derived: Mapping[str, Sequence[str]],
) -> FeatureCosts:
    """Private prices and shared items from full prices and what each group shares.

    Parameters
    ----------
    full : mapping of column to price
        Price of a column taken alone, in the order of the table. A derived column keeps its place
        and gets no price of its own, whatever stands here.
    groups : mapping of item to (price, columns)
        What the columns of a group share; part of the full price of each.
    derived : mapping of column to columns
        Columns computed from others.
    """
    private = dict(full)
    for price, columns in groups.values():
        for column in columns:
            # Prices are whole cents; without rounding, 22.78 - 2.10 is 20.680000000000003.
            private[column] = round(private[column] - price, 2)
    private |= dict.fromkeys(derived, 0.0)
    return FeatureCosts(private, shared=dict(groups), derived=dict(derived))
