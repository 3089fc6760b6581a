"""Promises with a finite-sample confidence: accuracy loss, average cost, error among the rows kept from the full model.

Validation rows order the systems, **calibration rows, used for nothing else**, decide. The systems are tested one after
the other along the frontier, the safest first, each at the full level δ = 1 − confidence, until one fails. This
fixed-sequence testing needs no correction for the number of tests: the order does not depend on the calibration rows,
so a promise is broken only if the first bad system of the sequence passes its test, which has probability δ at most.
Nor do several promises about one system: it passes when its largest p-value is at most δ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_consistent_length, column_or_1d

from sparing._calibration import Calibration
from sparing._certificate import Certificate, Finding, fingerprint, plain_settings
from sparing._drift import Drift, check_drift
from sparing._evaluation import loss_matrix, one_accounting, system_of
from sparing._guarantee import Guarantee, PromiseError, promises_of
from sparing._price_list import short
from sparing._promises import Facts, Promise
from sparing._sequence import safest_first
from sparing.frontier import Frontier, Point
from sparing.metrics.scoring import scoring_name
from sparing.system import Accounting, System

__all__ = [
    "Certificate",
    "Certified",
    "Drift",
    "Finding",
    "Guarantee",
    "PromiseError",
    "certify",
    "check_drift",
]

Floats = NDArray[np.float64]


class Certified(NamedTuple):
    """A system and the certificate of what it promises; made by :func:`certify`.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> from sparing import AdaptLinClassifier, Frontier, Guarantee, certify
    >>> from sparing.datasets import make_synthetic1
    >>> X, y = make_synthetic1()
    >>> clf = AdaptLinClassifier(SVC(), random_state=0).fit(X[::2], y[::2])
    >>> frontier = Frontier.evaluate(clf, X[1::4], y[1::4])
    >>> found = certify(frontier, X[3::4], y[3::4], Guarantee(budget=1.9))
    >>> found.certificate.n, bool(found.system.acquisition_cost(X[3::4]).mean() <= 1.9)
    (250, True)
    """

    system: System
    certificate: Certificate
    label: Any = None


def certify(
    systems: Any,
    X: Any,
    y: Any,
    guarantee: Guarantee,
    *,
    full: Any = None,
    scoring: Any = None,
    accounting: Accounting | None = None,
    sample_weight: Any = None,
    date: str | None = None,
    max_tests: int = 50,
) -> Certified:
    """Choose a system that keeps a promise with confidence, by rows used for nothing else.

    Parameters
    ----------
    systems : Frontier, or sequence of System or fitted routed classifiers
        A frontier evaluated on validation rows says in which order its systems are tested. A sequence is tested in the
        order given: **safest first**, an order that must not come from the calibration rows.
    X, y : calibration rows and labels
        Drawn like the rows to come, and never looked at before: not for training, not for choosing.
    guarantee : Guarantee
    full : System or fitted routed classifier, optional
        The full model alone; a frontier knows its own. Needed for a tolerance.
    scoring : "accuracy" or matrix of misclassification costs, optional
        What the tolerance speaks of; None is the frontier's, accuracy without one.
    accounting : {"stage", "path"} or None
    sample_weight : None
        Weighted rows are refused: no exact test is known for them.
    date : str, optional
        Written into the certificate.
    max_tests : int, default=50
        Systems of a frontier to test, spread over it; a longer sequence is more often interrupted by chance.

    Returns
    -------
    Certified
        ``system``, ``certificate``, ``label``. The cheapest system that passed; the best one when only a budget is
        promised.

    Raises
    ------
    PromiseError
        When no system can be promised to keep it.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.svm import SVC
    >>> from sparing import AdaptLinClassifier, Frontier, Guarantee, certify
    >>> from sparing.datasets import make_synthetic1
    >>> X, y = make_synthetic1()
    >>> train, validation, calibration = (np.arange(i, 1000, 3) for i in range(3))
    >>> clf = AdaptLinClassifier(SVC(), random_state=0).fit(X[train], y[train])
    >>> frontier = Frontier.evaluate(clf, X[validation], y[validation])
    >>> system, certificate, _ = certify(
    ...     frontier, X[calibration], y[calibration], Guarantee(tolerance=0.05)
    ... )
    >>> certificate
    Certificate: with confidence 0.95, from 333 calibration rows (sha256 ...)
      accuracy at most 0.05 below the full model's: estimated ...
    ...
    """
    if sample_weight is not None:
        raise ValueError(
            "A promise is not made from weighted rows: the tests are exact only when every calibration row is one "
            "independent draw from the rows to come. Draw such rows, without weights."
        )
    if hasattr(systems, "recalibrate"):
        raise TypeError(
            f"certify takes a Frontier or systems: pass the {type(systems).__name__}'s frontier_, or call its "
            "recalibrate(X, y, guarantee)."
        )
    if hasattr(systems, "frontier_"):
        systems = systems.frontier_
    if not isinstance(guarantee, Guarantee):
        raise TypeError(f"guarantee is a Guarantee, not {type(guarantee).__name__}.")
    X = X if hasattr(X, "shape") else np.asarray(X)
    y = column_or_1d(np.asarray(y))
    check_consistent_length(X, y)
    if not len(y):
        raise ValueError("There are no calibration rows.")
    candidates, full, scoring, accounting = _given(systems, full, scoring, accounting)
    _check_labels(y, candidates[0][0].classes)
    if guarantee.tolerance is not None and full is None:
        raise ValueError(
            "A tolerance compares with the full model: pass it as full=, or in the frontier."
        )
    promises = promises_of(guarantee, scoring, candidates[0][0].classes)
    if isinstance(systems, Frontier):
        order = safest_first(systems, guarantee, len(y), max_tests)
        if not order:
            raise PromiseError(_hopeless(systems, guarantee))
        candidates = [candidates[i] for i in order]
    calibration = Calibration(X, y, scoring, accounting, full)
    delta = 1.0 - guarantee.confidence
    chosen: tuple[int, Facts] | None = None
    failed: Facts | None = None
    tested = 0
    for index, (system, _) in enumerate(candidates):
        facts = calibration.facts(system)
        tested += 1
        if max(promise.p_value(facts, delta) for promise in promises) > delta:
            failed = facts
            break
        chosen = index, facts
    if chosen is None:
        assert failed is not None
        raise PromiseError(_unproven(promises, failed, delta))
    index, facts = chosen
    system, label = candidates[index]
    certificate = Certificate(
        confidence=guarantee.confidence,
        promises=tuple(promise.finding(facts, delta) for promise in promises),
        n=len(y),
        scoring=scoring_name(scoring),
        accounting=accounting,
        score=_score(scoring, facts.loss),
        full_score=np.nan if facts.full_loss is None else _score(scoring, facts.full_loss),
        cost=float(facts.cost.mean()),
        stages=tuple(stage.name for stage in system.stages),
        thresholds=system.thresholds,
        stage_counts=tuple(np.bincount(facts.answering, minlength=len(system.stages)).tolist()),
        **_cost_table(facts.cost),
        settings=plain_settings(label),
        n_candidates=len(candidates),
        n_tested=tested,
        data=fingerprint(X, y),
        date=date,
    )
    return Certified(system, certificate, label)


def _check_labels(y: NDArray[Any], classes: NDArray[Any]) -> None:
    """Raise for labels that no system can ever say: all would be wrong alike, and nothing be lost against f0."""
    unknown = [label for label in dict.fromkeys(y.tolist()) if label not in set(classes.tolist())]
    if unknown:
        raise ValueError(
            f"Calibration labels {short(unknown)} are none of the classes {short(classes.tolist())}: give labels as "
            "they were in training."
        )


def _given(
    systems: Any, full: Any, scoring: Any, accounting: Accounting | None
) -> tuple[list[tuple[System, Any]], System | None, Any, Accounting]:
    """Systems with their labels, full model, scoring and accounting, whatever was passed."""
    full = None if full is None else system_of(full)
    if isinstance(systems, Frontier):
        points: Sequence[Point] = systems.points
        if full is None and systems.full is not None:
            full = systems.full.system
        scoring = systems.scoring if scoring is None else scoring
        accounting = systems.accounting if accounting is None else accounting
        candidates = [(point.system, point.label) for point in points]
    else:
        candidates = [(system_of(system), None) for system in systems]
        if not candidates:
            raise ValueError("There is no system to promise anything about.")
    scoring = "accuracy" if scoring is None else scoring
    accounting = one_accounting([system for system, _ in candidates], accounting)
    return candidates, full, scoring, accounting


def _score(scoring: Any, loss: Floats) -> float:
    return float(loss_matrix(scoring) is None) - float(loss.mean())


def _cost_table(cost: Floats) -> dict[str, Any]:
    values, counts = np.unique(cost, return_counts=True)
    return {"cost_values": tuple(values.tolist()), "cost_counts": tuple(counts.tolist())}


# -- when nothing can be promised ---------------------------------------------------------------------------------


def _hopeless(frontier: Frontier, guarantee: Guarantee) -> str:
    cheapest = frontier.points[int(frontier.costs.argmin())]
    best = frontier.points[int(frontier.scores.argmax())]
    return (
        f"No system but the full model itself comes near {guarantee.wish} on the validation rows, so there is "
        f"nothing to promise. There, the cheapest costs {cheapest.cost:.4g} and scores {cheapest.score:.4g}; the best "
        f"scores {best.score:.4g} and costs {best.cost:.4g}."
    )


def _unproven(promises: Sequence[Promise], facts: Facts, delta: float) -> str:
    failed = [promise for promise in promises if promise.p_value(facts, delta) > delta]
    evidence = "; ".join(str(promise.finding(facts, delta)) for promise in failed)
    text = (
        f"No system can be promised to keep this with confidence {1 - delta:.4g} from {len(facts.y)} calibration rows. "
        f"The safest one: {evidence}."
    )
    if unseen := [promise for promise in failed if not promise.rows_among(facts.y)]:
        return text + f" No calibration row is{unseen[0].of_what}: bring some."
    needed = [promise.rows_needed(facts, delta) for promise in failed]
    if any(n is None for n in needed):
        return text + " No number of rows would do at the rates seen: ask for less."
    most = max(n for n in needed if n is not None)
    return text + f" At the rates seen, about {most} calibration rows would do."
