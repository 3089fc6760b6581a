"""Has the world moved since a promise was made? Exact tests of routing and cost against the calibration rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import fisher_exact

from sparing._certificate import Certificate
from sparing._rows import n_rows
from sparing.system import System

_RESAMPLES = 9999
"""Random relabellings of the test of costs; with the one observed they make its level exact."""


@dataclass(frozen=True, repr=False)
class Drift:
    """Whether cost or routing have moved since calibration; made by :func:`check_drift`.

    Attributes
    ----------
    moved : bool
        Whether something moved, with an error probability of at most ``level`` when nothing did.
    level : float
    n : int
        Rows looked at.
    stages : tuple of str
    shares_before, shares_now : tuples of float
        Share of rows answered by each stage.
    stage_p_values : tuple of float
        Per stage, whether its share moved.
    cost_before, cost_now : float
    cost_p_value : float
    text : str
        The same in words.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> from sparing import AdaptLinClassifier, Frontier, Guarantee, certify
    >>> from sparing.datasets import make_synthetic1
    >>> from sparing.guarantees import check_drift
    >>> X, y = make_synthetic1()
    >>> clf = AdaptLinClassifier(SVC(), random_state=0).fit(X[::2], y[::2])
    >>> frontier = Frontier.evaluate(clf, X[1::4], y[1::4])
    >>> system, certificate, _ = certify(frontier, X[3::4], y[3::4], Guarantee(budget=1.9))
    >>> drift = check_drift(certificate, system, X[1::4])
    >>> drift.n, drift.moved
    (250, False)
    """

    moved: bool
    level: float
    n: int
    stages: tuple[str, ...]
    shares_before: tuple[float, ...]
    shares_now: tuple[float, ...]
    stage_p_values: tuple[float, ...]
    cost_before: float
    cost_now: float
    cost_p_value: float
    text: str

    def __repr__(self) -> str:
        return self.text


def check_drift(certificate: Certificate, system: System, X: Any, *, level: float = 0.01) -> Drift:
    """Compare the routing and the cost of new rows, whose labels need not be known, with the calibration rows.

    Parameters
    ----------
    certificate : Certificate
    system : System
        The one the certificate is about.
    X : rows that have come in since
        Independent of each other, and not chosen by what the system did with them.
    level : float, default=0.01
        Probability of a false alarm, over all tests together.

    Returns
    -------
    Drift

    Notes
    -----
    Half of the level goes to the routing: Fisher's exact test of every stage's share, Bonferroni over the stages. The
    other half goes to the average cost: a permutation test, which needs no assumption about the prices. Where all
    costs follow from the stages it is one more look at the same counts.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> from sparing import AdaptLinClassifier, Guarantee, certify
    >>> from sparing.datasets import make_synthetic1
    >>> from sparing.guarantees import check_drift
    >>> (X, y), (X_cal, y_cal) = (make_synthetic1(random_state=i) for i in range(2))
    >>> clf = AdaptLinClassifier(SVC(), random_state=0).fit(X, y)
    >>> _, certificate, _ = certify([clf], X_cal, y_cal, Guarantee(budget=2))
    >>> check_drift(certificate, clf.system_, X_cal).moved
    False
    >>> check_drift(certificate, clf.system_, X_cal + 3)
    The rows have moved since calibration (level 0.01, 1000 rows against 1000).
    ...
    """
    if not 0 < level < 1:
        raise ValueError(f"level is between 0 and 1, not {level!r}.")
    if len(system.stages) != len(certificate.stages) or system.thresholds != certificate.thresholds:
        raise ValueError(
            "The certificate is about another system: it has the stages "
            f"{list(certificate.stages)} and thresholds {list(certificate.thresholds)}."
        )
    if not n_rows(X):
        raise ValueError("There are no rows to compare.")
    answering = system.route(X)
    n, k = len(answering), len(system.stages)
    now = np.bincount(answering, minlength=k)
    before = np.array(certificate.stage_counts)
    stage_p = tuple(
        float(fisher_exact([[b, certificate.n - b], [a, n - a]]).pvalue)
        for b, a in zip(before.tolist(), now.tolist(), strict=True)
    )
    cost = system.acquisition_cost(X, accounting=certificate.accounting)
    cost_p = _permutation_p_value(certificate, cost)
    # With two stages the second test is the first one again.
    tests = k if k > 2 else 1
    stage_moved = [p <= level / 2 / tests for p in stage_p]
    cost_moved = cost_p <= level / 2
    shares_before, shares_now = before / certificate.n, now / n
    text = _text(
        certificate,
        n,
        level,
        shares_before,
        shares_now,
        stage_moved,
        float(cost.mean()),
        cost_moved,
    )
    return Drift(
        moved=any(stage_moved) or cost_moved,
        level=level,
        n=n,
        stages=certificate.stages,
        shares_before=tuple(shares_before.tolist()),
        shares_now=tuple(shares_now.tolist()),
        stage_p_values=stage_p,
        cost_before=certificate.cost,
        cost_now=float(cost.mean()),
        cost_p_value=cost_p,
        text=text,
    )


def _permutation_p_value(certificate: Certificate, cost: NDArray[np.float64]) -> float:
    """Two-sided: how often the mean of as many rows drawn from all is as far off as that of the new ones."""
    old = np.array(certificate.cost_values)
    values, code = np.unique(np.concatenate([old, cost]), return_inverse=True)
    if len(values) == 1:
        return 1.0
    counts = np.bincount(code[len(old) :], minlength=len(values))
    np.add.at(counts, code[: len(old)], certificate.cost_counts)
    rng = np.random.default_rng(0)
    drawn = rng.multivariate_hypergeometric(counts, len(cost), size=_RESAMPLES, method="marginals")
    expected = counts @ values / counts.sum()
    distance = np.abs(drawn @ values / len(cost) - expected)
    observed = abs(float(cost.mean()) - expected)
    return float(
        (1 + np.sum(distance >= observed - 1e-12 * max(1.0, abs(expected)))) / (1 + _RESAMPLES)
    )


def _text(
    certificate: Certificate,
    n: int,
    level: float,
    before: NDArray[np.float64],
    now: NDArray[np.float64],
    stage_moved: list[bool],
    cost: float,
    cost_moved: bool,
) -> str:
    any_moved = any(stage_moved) or cost_moved
    verdict = "The rows have moved" if any_moved else "Nothing shows that the rows have moved"
    lines = [f"{verdict} since calibration (level {level:g}, {n} rows against {certificate.n})."]
    for name, a, b, moved in zip(certificate.stages, before, now, stage_moved, strict=True):
        lines.append(f"  answered by {name}: {a:.1%} then, {b:.1%} now{', moved' * moved}")
    lines.append(
        f"  average cost: {certificate.cost:.4g} then, {cost:.4g} now{', moved' * cost_moved}"
    )
    if any_moved:
        lines.append(
            "  The promises were made for rows like the old ones: recalibrate on new ones."
        )
    return "\n".join(lines)
