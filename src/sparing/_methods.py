"""The methods that can be raced, and what each tries: sweeps are data.

A sweep has two rounds. The first is a short look at every method; those worth more get the second. One setting is one
fit, which holds many systems: several prices of cost, sizes and thresholds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import clone

from sparing._price_list import short
from sparing._routed import RoutedClassifier
from sparing.adapt import AdaptGbrtClassifier, AdaptLinClassifier, AdaptLstsqClassifier
from sparing.baselines import GreedyMiserClassifier, L1GateClassifier
from sparing.cascade import CascadeClassifier
from sparing.costs import FeatureCosts

AUTO = ("greedy-miser", "adapt-gbrt", "adapt-lin", "cascade")
"""What ``method="auto"`` races, the quick ones first: whoever interrupts it has something by then."""


_ENOUGH_FOR_LINES = 3000
"""Rows of the first look at linear methods: more of them do not bend a line, and a fit on all can take minutes."""


@dataclass(frozen=True)
class Setting:
    """One fit.

    Attributes
    ----------
    method : its name.
    model : the unfitted classifier; full model, prices, folds and seed are put in later.
    about : what distinguishes it from other settings of the method.
    effort : time it takes in units of the others, roughly; for telling how much is left.
    n_rows : rows it learns from, at most; None for all. A first look need not see them all.
    """

    method: str
    model: RoutedClassifier
    about: dict[str, Any] = field(default_factory=dict)
    effort: float = 1.0
    n_rows: int | None = None

    @property
    def label(self) -> dict[str, Any]:
        """Label of its systems on the frontier."""
        return {"method": self.method, **self.about}

    def verbose(self, wanted: int) -> int:
        """How much the fit itself tells: a cascade a line per stage, the others, asked for more, one per iteration."""
        return wanted if isinstance(self.model, CascadeClassifier) else max(0, wanted - 1)


Rounds = tuple[list[Setting], list[Setting]]


def settings_of(method: Any, costs: FeatureCosts) -> Rounds:
    """Settings of both rounds for whatever ``method`` is: "auto", a name, a classifier, or a list of these.

    Examples
    --------
    >>> first, second = settings_of("adapt-gbrt", FeatureCosts([1, 1]))
    >>> len(first), len(second)
    (1, 2)
    >>> settings_of("adept", FeatureCosts([1, 1]))
    Traceback (most recent call last):
    ...
    ValueError: method='adept' is not known: use 'auto', 'adapt-gbrt', ..., a routed classifier or a list of these.
    """
    if isinstance(method, str) and method == "auto":
        method = list(AUTO)
    several = (
        list(method) if isinstance(method, Sequence) and not isinstance(method, str) else [method]
    )
    if not several:
        raise ValueError("method is an empty list: name at least one method.")
    first: list[Setting] = []
    second: list[Setting] = []
    names: set[str] = set()
    for one in several:
        if isinstance(one, str):
            if one not in SWEEPS:
                raise ValueError(
                    f"method={one!r} is not known: use 'auto', {short(sorted(SWEEPS))}, a routed classifier or a list "
                    "of these."
                )
            now, later = SWEEPS[one](costs)
        elif isinstance(one, RoutedClassifier):
            _check_bare(one)
            name = _unused(type(one).__name__, names)
            now, later = [Setting(name, clone(one))], []
        else:
            raise TypeError(
                f"method is 'auto', the name of a method, a routed classifier or a list of these, not {one!r}."
            )
        names.add(now[0].method)
        first += now
        second += later
    return first, second


def _check_bare(model: RoutedClassifier) -> None:
    """Raise when a classifier to race comes with a full model or prices: those of the race are the same for all."""
    name = type(model).__name__
    if "guarantee" in model.get_params(deep=False):
        raise ValueError(f"method is a {name}, which is a race itself: name what it is to race.")
    takes = signature(model.fit).parameters
    if "full_proba" not in takes and not any(p.kind is p.VAR_KEYWORD for p in takes.values()):
        raise ValueError(
            f"method={name}() cannot be raced: its fit takes no full model (full_proba). Fit it by itself and compare: "
            "Frontier.evaluate([*budgeted.staged_systems(), *other.staged_systems()], X, y, accounting='path')."
        )
    for what, parameter in (("full model", "estimator"), ("prices", "feature_costs")):
        if getattr(model, parameter, None) is not None:
            raise ValueError(
                f"method={name}({parameter}=...) brings its own {what}, but all methods are compared with the same: "
                f"give {parameter} to BudgetedClassifier instead."
            )


def _unused(name: str, names: set[str]) -> str:
    number = 2
    wanted = name
    while wanted in names:
        wanted = f"{name} {number}"
        number += 1
    return wanted


# -- sweeps ---------------------------------------------------------------------------------------------------------


def _shares(costs: FeatureCosts, exponents: Sequence[float]) -> list[float]:
    """Penalties at which buying everything costs 10^exponent in units of mean loss."""
    if not costs.total > 0:
        return [0.0]
    return (np.power(10.0, exponents) / costs.total).tolist()


def _adapt_gbrt(costs: FeatureCosts) -> Rounds:
    def setting(rate: float, exponents: Sequence[float]) -> Setting:
        model = AdaptGbrtClassifier(full_rate=rate, cost_penalty=_shares(costs, exponents))
        return Setting("adapt-gbrt", model, {"full_rate": rate}, len(exponents) / 2)

    fine = np.linspace(-2.3, -0.3, 6).tolist()
    return [setting(0.3, [-2.0, -1.2, -0.6])], [setting(0.15, fine), setting(0.5, fine)]


def _greedy_miser(costs: FeatureCosts) -> Rounds:
    def setting(rate: float, exponents: Sequence[float]) -> Setting:
        model = GreedyMiserClassifier(learning_rate=rate, cost_penalty=_shares(costs, exponents))
        return Setting("greedy-miser", model, {"learning_rate": rate}, len(exponents) / 10)

    fine = np.linspace(-2.3, -0.3, 6).tolist()
    return [setting(0.2, [-2.0, -1.2, -0.6])], [setting(0.2, fine), setting(0.1, fine)]


def _linear(kind: type, name: str, costs: FeatureCosts) -> Rounds:
    def setting(rate: float, exponents: Sequence[float], n_rows: int | None = None) -> Setting:
        average = costs.total / len(costs.columns)
        penalties = np.power(10.0, exponents) / average if average > 0 else np.zeros(1)
        model = kind(full_rate=rate, cost_penalty=penalties.tolist())
        return Setting(name, model, {"full_rate": rate}, float(len(exponents)), n_rows)

    # Each gives up item after item: a few penalties are many systems.
    fine = [-4.0, -3.0, -2.0, -1.0]
    look = setting(0.3, [-3.5, -2.5, -1.5], _ENOUGH_FOR_LINES)
    return [look], [setting(0.15, fine), setting(0.6, fine)]


def _cascade(costs: FeatureCosts) -> Rounds:  # noqa: ARG001
    return [Setting("cascade", CascadeClassifier(), effort=20.0)], []


def _l1_gate(costs: FeatureCosts) -> Rounds:  # noqa: ARG001
    return [Setting("l1-gate", L1GateClassifier())], []


SWEEPS: dict[str, Callable[[FeatureCosts], Rounds]] = {
    "adapt-gbrt": _adapt_gbrt,
    "adapt-lin": lambda costs: _linear(AdaptLinClassifier, "adapt-lin", costs),
    "adapt-lstsq": lambda costs: _linear(AdaptLstsqClassifier, "adapt-lstsq", costs),
    "cascade": _cascade,
    "greedy-miser": _greedy_miser,
    "l1-gate": _l1_gate,
}
