"""Where rows leave, as a lever: the live position on the frontier, the thresholds, or the pacer's target."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparing.runtime._service_client import ClientDesk
from sparing.runtime._service_log import LOGGER
from sparing.runtime._service_problem import Problem, finite
from sparing.runtime.ledger import Ledger
from sparing.runtime.pacing import Pacer
from sparing.runtime.session import Session
from sparing.system import System

STATE = "service exit"
"""Name under which a ledger keeps the position of the lever."""


@dataclass(frozen=True, eq=False)
class Serving:
    """A system at work: the session for those the server buys for, the desk for those who buy themselves."""

    session: Session
    desk: ClientDesk
    position: int = 0


@dataclass(frozen=True, eq=False)
class Place:
    """A system that can be served, and what it costs and scores where the frontier was evaluated."""

    system: System
    cost: float | None = None
    score: float | None = None
    stage_rates: tuple[float, ...] = ()


def places_of(system: System) -> tuple[list[Place], int]:
    """The systems of a bundle that no other one beats, cheapest first, and which of them is the bundle's own.

    A system without a frontier is the only one.

    Examples
    --------
    >>> from sparing.runtime._examples import lender
    >>> places, own = places_of(lender()[0])
    >>> len(places), own, places[0].cost
    (1, 0, None)
    """
    frontier = getattr(system, "frontier", None)
    if frontier is None:
        return [Place(system)], 0
    # Validation rows choose, test rows report: where both are stored, the first say who is beaten.
    judge = frontier if frontier.chosen is None else frontier.chosen
    shown = [*frontier.points, *([] if frontier.full is None else [frontier.full])]
    judged = [*judge.points, *([] if judge.full is None else [judge.full])]
    if len(judged) != len(shown):
        shown, judged = list(frontier.points), list(judge.points)
    kept = _pareto([point.cost for point in judged], [point.score for point in judged])
    is_own = [_same(point.system, system) for point in shown]
    if True in is_own and not any(is_own[i] for i in kept):
        kept = sorted([*kept, is_own.index(True)], key=lambda i: shown[i].cost)
    places = [
        Place(p.system, float(p.cost), float(p.score), tuple(p.stage_rates))
        for p in (shown[i] for i in kept)
    ]
    own = next((n for n, i in enumerate(kept) if is_own[i]), None)
    if own is None:
        return [*places, Place(system)], len(places)
    return places, own


def _pareto(costs: Sequence[float], scores: Sequence[float]) -> list[int]:
    cost, score = np.array(costs, dtype=float), np.array(scores, dtype=float)
    order = np.lexsort((-score, cost))
    best = np.concatenate([[-np.inf], np.maximum.accumulate(score[order])[:-1]])
    return order[score[order] > best].tolist() if len(order) else []


def _same(one: System, other: System) -> bool:
    return len(one.stages) == len(other.stages) and all(
        a.predictor is b.predictor and a.gate is b.gate and a.threshold == b.threshold
        for a, b in zip(one.stages, other.stages, strict=True)
    )


class Lever:
    """The lever of a service.

    With a pacer it sets the money per answer that the pacer aims at. Otherwise it chooses a system of the frontier, or
    sets the thresholds of the one that is served. Answers under way end as they began.

    Parameters
    ----------
    system : System or Bundle
    open_serving : callable
        Makes a :class:`Serving` of a system and its position; all of them share sources, books and breakers.
    pacer : Pacer, optional
    ledger : Ledger, optional
        Keeps the position over restarts. One that can no longer be served stays in it, and the fitted one serves.
    digest : str
        Of the model; a position kept for another model is not taken up.
    """

    def __init__(
        self,
        system: System,
        open_serving: Callable[[System, int], Serving],
        *,
        pacer: Pacer | None = None,
        ledger: Ledger | None = None,
        digest: str = "",
    ) -> None:
        self.places, self._own = places_of(system)
        if pacer is not None:  # its path is that of one system's gates
            self.places, self._own = [Place(system)], 0
        self._open = open_serving
        self._pacer, self._ledger, self._digest = pacer, ledger, digest
        self._lock, self._moving = threading.Lock(), threading.Lock()
        self._opened: dict[int, Serving] = {}
        self._now = self.serving_at(self._own)
        self._take_up()

    @property
    def serving(self) -> Serving:
        """What serves now."""
        return self._now

    @property
    def position(self) -> int:
        """Where it stands among the places."""
        return self._now.position

    @property
    def system(self) -> System:
        """The system that serves now."""
        return self._now.session.system

    @property
    def thresholds(self) -> tuple[float, ...]:
        """Thresholds of its gates at this moment."""
        return self.system.thresholds if self._pacer is None else self._pacer.thresholds

    @property
    def is_fitted(self) -> bool:
        """Whether the system serves as it was fitted, and its certificate holds of it."""
        fitted = self.places[self._own].system.thresholds
        return self.position == self._own and self.thresholds == fitted

    def serving_at(self, position: int) -> Serving:
        """The system of a position, with its own thresholds."""
        with self._lock:
            if position not in self._opened:
                self._opened[position] = self._open(self.places[position].system, position)
            return self._opened[position]

    def move(
        self,
        *,
        position: int | None = None,
        thresholds: Sequence[float] | None = None,
        target: float | None = None,
    ) -> None:
        """Move the lever, or raise a :class:`Problem`."""
        with self._moving:
            self._move(position, thresholds, target)
            self._keep()

    def _move(
        self, position: int | None, thresholds: Sequence[float] | None, target: float | None
    ) -> None:
        if target is not None:
            if self._pacer is None:
                raise Problem(409, "exit", "This service has no pacer: move the position instead.")
            self._pacer.target = target
            return
        if self._pacer is not None:
            raise Problem(409, "exit", "A pacer moves the thresholds here: set its target instead.")
        position = self.position if position is None else position
        if not 0 <= position < len(self.places):
            raise Problem(
                422, "exit", f"position must be from 0 to {len(self.places) - 1}, cheapest first."
            )
        if thresholds is not None:
            n_gates = len(self.places[position].system.stages) - 1
            if len(thresholds) != n_gates:
                raise Problem(
                    422,
                    "exit",
                    f"Give one threshold per gate, {n_gates} here, got {len(thresholds)}.",
                )
        try:
            serving = self.serving_at(position)
            if thresholds is not None:
                serving = self._open(
                    self.places[position].system.with_thresholds(thresholds), position
                )
        except ValueError:
            raise Problem(
                409, "exit", "The sources of this service do not sell what this system needs."
            ) from None
        self._now = serving

    def state(self) -> dict[str, Any]:
        """Where the lever stands, as plain data."""
        return {
            "kind": "frontier" if self._pacer is None else "pacer",
            "position": self.position,
            "fitted_position": self._own,
            "as_fitted": self.is_fitted,
            "at_place": self.thresholds == self.places[self.position].system.thresholds,
            "thresholds": [finite(t) for t in self.thresholds],
            "stages": [stage.name for stage in self.system.stages],
            "target": None if self._pacer is None else self._pacer.target,
        }

    def _keep(self) -> None:
        if self._ledger is not None:
            self._ledger.save_state(
                STATE,
                {
                    "model": self._digest,
                    "position": self.position,
                    "thresholds": self.system.thresholds,
                    "target": None if self._pacer is None else self._pacer.target,
                },
            )

    def _take_up(self) -> None:
        kept = None if self._ledger is None else self._ledger.load_state(STATE)
        if kept is None or kept["model"] != self._digest:
            return
        if self._pacer is not None:
            if kept["target"] is not None:
                self._pacer.target = kept["target"]
        elif kept["target"] is None and kept["position"] < len(self.places):
            try:
                self.move(position=kept["position"], thresholds=kept["thresholds"])
            except Problem:  # its items are no longer sold: no reason not to serve
                fields = {"kept_position": kept["position"], "position": self.position}
                LOGGER.warning(
                    "the sources do not sell what the kept position of the lever needs: it stays as fitted",
                    extra={"fields": fields},
                )
