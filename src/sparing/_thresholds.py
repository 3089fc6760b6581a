"""Thresholds of a gate that was learnt once: every one of them is another system."""

from __future__ import annotations

from typing import Any

from sparing._cuts import threshold_cuts
from sparing._evaluation import system_of
from sparing.system import System


def threshold_systems(system: Any, X: Any, n: int = 100) -> list[System]:
    """Systems that differ by the threshold of the one gate: one fitted system is a whole curve.

    Parameters
    ----------
    system : System or fitted routed classifier
        With two stages.
    X : rows
        Rows whose gate scores say where to cut: training or validation rows, not those of the final report.
    n : int, default=100
        Systems at most.

    Returns
    -------
    list of System
        The first sends no row on, the last every row; between them thresholds stand strictly between distinct scores,
        at evenly spaced shares of rows sent on.

    Examples
    --------
    >>> from sparing import AdaptLinClassifier
    >>> from sparing.datasets import make_synthetic1
    >>> from sparing.frontier import threshold_systems
    >>> X, y = make_synthetic1()
    >>> clf = AdaptLinClassifier(cv=2, random_state=0).fit(X, y)
    >>> [float(s.route(X).mean()) for s in threshold_systems(clf, X, n=5)]
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    system = system_of(system)
    if len(system.stages) != 2:
        raise ValueError(
            f"threshold_systems moves the threshold of one gate; this system has {len(system.stages) - 1}. "
            "Set several at once by system.with_thresholds."
        )
    if n < 2:
        raise ValueError(f"n is at least 2, not {n!r}.")
    scores = system.exit_scores(X)[:, 0]
    return [system.with_thresholds(cut) for cut in threshold_cuts(scores, n).tolist()]
