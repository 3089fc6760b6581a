"""A routed classifier that keeps its whole frontier: other wishes, other prices and promises without another fit."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_is_fitted

from sparing._certificate import Certificate, fingerprint
from sparing._drift import Drift, check_drift
from sparing._frontier_merging import FULL_ALONE
from sparing._routed import RoutedClassifier
from sparing._wishes import Wishes
from sparing.frontier import Frontier, Point
from sparing.guarantees import Guarantee, certify
from sparing.system import System


class FrontierClassifier(RoutedClassifier):
    """Base of :class:`~sparing.BudgetedClassifier`: what a fitted one can do with its frontier."""

    frontier_: Frontier
    choice_: Point
    certificate_: Certificate

    budget: float | None
    tolerance: float | None
    min_recall: Any

    @abstractmethod
    def _wishes(self) -> Wishes:
        """What was asked for."""

    @abstractmethod
    def _guarantee(self) -> Guarantee | None:
        """What is to be promised."""

    # -- the same fit, otherwise ------------------------------------------------------------------

    def at(self, *, budget: float | None = None, tolerance: float | None = None) -> Self:
        """The classifier for another wish; nothing is refitted and nothing promised.

        Parameters
        ----------
        budget, tolerance : float
            As for the class; with both, the cheapest within the tolerance, if the budget pays for it.

        Returns
        -------
        BudgetedClassifier
            A fitted copy, whose parameters say what was wished.
        """
        check_is_fitted(self, "frontier_")
        if budget is None and tolerance is None:
            raise ValueError("Give budget or tolerance: at(budget=3) or at(tolerance=0.01).")
        wishes = Wishes(budget, tolerance, self.min_recall)
        other = self._at_point(wishes.choose(self.frontier_))
        other.budget, other.tolerance = budget, tolerance
        return other

    def _at_point(self, point: Point) -> Self:
        other = self._with_system(point.system)
        other.choice_ = point
        return other

    def with_costs(self, feature_costs: Any) -> Self:
        """A copy at other prices, chosen again by the same wishes; nothing is refitted and nothing promised.

        Without a budget and a tolerance of its own those of the last :class:`~sparing.Guarantee` count.
        """
        check_is_fitted(self, "frontier_")
        frontier = self.frontier_.reprice(feature_costs)
        wishes, promised = self._wishes(), self._last_promise()
        if promised is not None and wishes.budget is None and wishes.tolerance is None:
            wishes = replace(wishes, budget=promised.budget, tolerance=promised.tolerance)
        other = self._at_point(wishes.choose(frontier))
        other.frontier_, other.feature_costs = frontier, feature_costs
        return other

    def _with_system(self, system: System) -> Self:
        other = super()._with_system(system)
        for name in ("certificate_", "choice_"):
            other.__dict__.pop(name, None)
        return other

    def staged_systems(self) -> list[System]:
        """All systems of the frontier; the full model alone only where there is no other."""
        check_is_fitted(self, "frontier_")
        learnt = [point.system for point in self.frontier_ if point.label != FULL_ALONE]
        return learnt or [point.system for point in self.frontier_]

    # -- promises ---------------------------------------------------------------------------------

    def _promise(
        self, X: Any, y: NDArray[Any], guarantee: Guarantee, date: str | None = None
    ) -> System:
        system, self.certificate_, _ = certify(self.frontier_, X, y, guarantee, date=date)
        self._promised = guarantee
        self.choice_ = next(point for point in self.frontier_ if point.system is system)
        return system

    def recalibrate(
        self, X: Any, y: Any, guarantee: Guarantee | float | None = None, *, date: str | None = None
    ) -> Self:
        """A copy whose system is chosen and certified again on new rows; nothing is refitted.

        Parameters
        ----------
        X, y : calibration rows and labels
            Used for nothing else before.
        guarantee : Guarantee or float, optional
            None is what was promised last, by ``fit`` or by this method; a number is another confidence in it.
        date : str, optional
            Written into the certificate.

        Returns
        -------
        BudgetedClassifier
        """
        check_is_fitted(self, "frontier_")
        X, y = self._check_rows(X, reset=False), column_or_1d(np.asarray(y))
        if fingerprint(X, y) == getattr(self, "_learnt_from", None):
            raise ValueError(
                "These are the rows that fit has learnt from: a promise needs rows that were used for nothing else. "
                "Keep some aside, or let fit do it: guarantee=0.95."
            )
        other = self._with_system(self.system_)
        other.system_ = other._promise(X, y, self._to_promise(guarantee), date)
        return other

    def _remember(self, X: Any, y: Any) -> None:
        """Keep what tells these rows from others, so that nothing is promised from rows that were learnt from."""
        self._learnt_from = fingerprint(
            self._check_rows(X, reset=False), column_or_1d(np.asarray(y))
        )

    def _last_promise(self) -> Guarantee | None:
        """What was promised last, by recalibrate or else by fit."""
        return getattr(self, "_promised", None) or self._guarantee()

    def _to_promise(self, wish: Guarantee | float | None) -> Guarantee:
        """A guarantee as it is given, or that of the last time, which may not be the one of fit."""
        last = self._last_promise()
        if wish is None:
            if last is None:
                raise ValueError("There is nothing to promise: pass a Guarantee.")
            return last
        if not isinstance(wish, int | float):
            return wish
        if last is None:
            raise ValueError(
                f"A confidence of {wish:g} alone says nothing of what is promised: pass "
                f"Guarantee(tolerance=0.01, confidence={wish:g}) or the like."
            )
        return replace(last, confidence=float(wish))

    def check_drift(self, X: Any, *, level: float = 0.01) -> Drift:
        """Whether cost or routing have moved since calibration; see :func:`sparing.guarantees.check_drift`.

        Parameters
        ----------
        X : rows that have come in since
        level : float, default=0.01
            Probability of a false alarm.

        Returns
        -------
        Drift
        """
        X = self._rows(X)
        certificate = getattr(self, "certificate_", None)
        if not isinstance(certificate, Certificate):
            raise ValueError(
                "Nothing was promised, so there is nothing to compare with: fit with a guarantee, or recalibrate(X, y)."
            )
        return check_drift(certificate, self.system_, X, level=level)
