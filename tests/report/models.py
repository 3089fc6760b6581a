"""Models to report on, and names that would like to be markup."""

from functools import cache

import numpy as np
from sklearn.linear_model import LogisticRegression

from handmade import Halves, Margin, Sigmoid, table
from sparing import AdaptLinClassifier, FeatureCosts
from sparing.frontier import Frontier, threshold_systems
from sparing.system import Stage, System

HOSTILE = [
    "</script><script>window.hacked=1</script>",
    '"><img src=x onerror="window.hacked=1">',
    "{{ 7 * 7 }}\u2028<!-- ]]> 'quoted' &amp;",
]


def three_stages(names=("first", "second", "full"), columns=None, classes=(0, 1), **options):
    prices = [1.0, 2.0, 3.0]
    return System(
        (
            Stage(Sigmoid(0), Margin(0), -1.0, name=names[0]),
            Stage(Sigmoid(0, 3.0, also=(1,)), Margin(0), -0.4, name=names[1]),
            Stage(Halves(2, 5.0, also=(1,)), name=names[2]),
        ),
        FeatureCosts(prices if columns is None else dict(zip(columns, prices, strict=True))),
        np.array(classes),
        **options,
    )


def hostile_rows(n=300):
    """A frame, labels and a system whose every name is hostile."""
    import pandas

    X, y = table(n, seed=3)
    classes = np.array(["</script>", "<b>sick</b>"])
    system = three_stages(tuple(HOSTILE), columns=HOSTILE, classes=classes)
    return pandas.DataFrame(X, columns=HOSTILE), classes[y], system


def frontier_of(system, scoring="accuracy"):
    """Systems chosen on rows of their own."""
    X, y = table(300, seed=11)
    return Frontier.evaluate(threshold_systems(system, X, 12), X, y, scoring=scoring)


@cache
def learnt():
    """A learnt classifier on named columns, and rows it has not seen."""
    import pandas

    X, y = table(400, seed=5)
    X_test, y_test = table(250, seed=6)
    names = ["a", "b", "c"]
    clf = AdaptLinClassifier(
        LogisticRegression(),
        feature_costs={"a": 1, "b": 2, "c": 3},
        full_rate=0.5,
        cv=2,
        random_state=0,
    ).fit(pandas.DataFrame(X, columns=names), y)
    return clf, pandas.DataFrame(X_test, columns=names), y_test
