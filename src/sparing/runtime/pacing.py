"""Spending on a target while traffic drifts: the exit price as a live price, moved a little after every answer.

Online dual ascent. The system's thresholds lie on a *path* from cheap to dear, and the pacer stands somewhere on it, at
a position between 0 (cheapest) and 1. After an answer that cost c, with the target B per answer,

    position ← position − rate × (c − B) / B,      kept within the bounds.

What makes it work is that the steps add up: while no bound is touched, the mean cost of n answers differs from B by
exactly B × (first position − last position) / (rate × n), whatever the traffic does. The path is at most 1 long, so
5,000 answers at a rate of 0.002 are within 10% of the target in the worst case, and far closer in every other.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparing.system import System

__all__ = ["Pacer"]

Floats = NDArray[np.float64]


class Pacer:
    """Moves a system's thresholds so that the average spend follows a target.

    Parameters
    ----------
    target : float
        Money per answer.
    path : array of shape (n_points, n_gates)
        Thresholds from the cheapest system to the dearest; between neighbours they are interpolated. Infinite ones,
        which let nobody or everybody go on, hold up to the middle of the way to a finite one.
    start : float, default=0.5
        Where to begin, as a share of the path.
    rate : float, default=0.002
        Share of the path it moves when an answer costs twice the target. Larger follows faster and sways more.
    bounds : pair of float, default=(0.0, 1.0)
        Part of the path it may use.
    name : str, default="pacer"
        Under which a ledger keeps its state.

    Attributes
    ----------
    position : float
    n_answers : int
    spent : float

    See Also
    --------
    Pacer.for_gate : path of a system with one gate.
    Pacer.along : path along the systems of a frontier.

    Examples
    --------
    >>> pacer = Pacer(target=10.0, path=[[2.0], [0.0], [-1.0]])
    >>> pacer.thresholds
    (0.0,)
    >>> for _ in range(100):  # far too dear: fewer may go on
    ...     pacer.update(20.0)
    >>> round(pacer.thresholds[0], 3), round(pacer.position, 3)
    (0.8, 0.3)
    """

    def __init__(
        self,
        target: float,
        path: ArrayLike,
        *,
        start: float = 0.5,
        rate: float = 0.002,
        bounds: tuple[float, float] = (0.0, 1.0),
        name: str = "pacer",
    ) -> None:
        self.path = np.array(path, dtype=float)
        if self.path.ndim != 2 or len(self.path) < 2 or np.isnan(self.path).any():
            raise ValueError(
                "A path has at least two points, one row of thresholds without NaN each, cheapest first; got "
                f"{np.asarray(path).tolist()!r}."
            )
        if not (target > 0 and np.isfinite(target)):
            raise ValueError(f"target is {target!r}, must be money per answer, > 0.")
        if not rate > 0:
            raise ValueError(f"rate is {rate!r}, must be > 0.")
        low, high = bounds
        if not 0 <= low < high <= 1:
            raise ValueError(
                f"bounds are {bounds!r}; give two shares of the path, 0 ≤ low < high ≤ 1."
            )
        if not low <= start <= high:
            raise ValueError(f"start is {start!r}, outside the bounds {bounds!r}.")
        self.target = float(target)
        self.rate = float(rate)
        self.bounds = (float(low), float(high))
        self.name = name
        self.position = float(start)
        self.n_answers = 0
        self.spent = 0.0
        self._lock = threading.Lock()
        self._now = self._at(self.position)

    @classmethod
    def for_gate(
        cls, system: System, target: float, *, scores: ArrayLike, points: int = 65, **options: Any
    ) -> Self:
        """A pacer for a system with one gate, starting at its fitted threshold.

        Parameters
        ----------
        system : System
        target : float
        scores : array of shape (n_rows,)
            Gate scores of rows as they come, ``system.exit_scores(X)[:, 0]`` of validation rows. Quantiles of them make
            the path: a step moves the share of rows that go on, whatever the unit of the scores.
        points : int, default=65
            Points of the path.
        options : more parameters of :class:`Pacer`.
        """
        if len(system.stages) != 2:
            raise ValueError(
                f"The system has {len(system.stages) - 1} gates: use Pacer.along with systems of a frontier."
            )
        values = np.asarray(scores, dtype=float)
        values = values[~np.isnan(values)]
        if not len(values):
            raise ValueError("scores holds no numbers: give gate scores of some rows.")
        cuts = np.quantile(values, np.linspace(1.0, 0.0, points))
        # Past both ends a little, so that nobody or everybody can go on.
        spread = max(float(cuts[0] - cuts[-1]), 1e-6)
        cuts = np.concatenate([[cuts[0] + 0.05 * spread], cuts, [cuts[-1] - 0.05 * spread]])
        options.setdefault("start", _place(cuts, system.thresholds[0]))
        return cls(target, cuts[:, None], **options)

    @classmethod
    def along(cls, systems: Sequence[System], target: float, **options: Any) -> Self:
        """A pacer along systems that differ in their thresholds alone, cheapest first, such as a frontier's.

        ``start`` is given as the position in ``systems`` divided by their number less one.
        """
        kinds = {tuple((id(s.predictor), id(s.gate)) for s in system.stages) for system in systems}
        if len(kinds) > 1:
            raise ValueError(
                "The systems differ in more than their thresholds: a pacer moves along systems with the same stages."
            )
        return cls(target, [system.thresholds for system in systems], **options)

    @property
    def thresholds(self) -> tuple[float, ...]:
        """Thresholds of the gates now."""
        return self._now

    @property
    def at_bound(self) -> bool:
        """Whether it can go no further: while it stays here the target is out of reach."""
        return self.position in self.bounds

    def update(self, cost: float) -> None:
        """Take note of what an answer cost, and move."""
        with self._lock:
            step = self.rate * (cost - self.target) / self.target
            low, high = self.bounds
            self.position = min(max(self.position - step, low), high)
            self.n_answers += 1
            self.spent += cost
            self._now = self._at(self.position)

    def _at(self, position: float) -> tuple[float, ...]:
        place = position * (len(self.path) - 1)
        before = min(int(place), len(self.path) - 2)
        share = place - before
        return tuple(
            _between(a, b, share)
            for a, b in zip(self.path[before].tolist(), self.path[before + 1].tolist(), strict=True)
        )

    # -- resuming ---------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Where it stands, as plain data; :meth:`resume` goes on from there.

        Examples
        --------
        >>> Pacer(10.0, [[1.0], [0.0]]).state()
        {'position': 0.5, 'n_answers': 0, 'spent': 0.0}
        """
        with self._lock:
            return {
                "position": self.position,
                "n_answers": self.n_answers,
                "spent": self.spent,
            }

    def resume(self, state: Mapping[str, Any]) -> Self:
        """Go on from a state, kept within the bounds."""
        with self._lock:
            low, high = self.bounds
            self.position = min(max(float(state["position"]), low), high)
            self.n_answers = int(state["n_answers"])
            self.spent = float(state["spent"])
            self._now = self._at(self.position)
        return self

    def __repr__(self) -> str:
        mean = self.spent / self.n_answers if self.n_answers else float("nan")
        text = (
            f"Pacer(target={self.target:.10g}): {self.n_answers} answers at {mean:.4g} each, "
            f"position {self.position:.3f}"
        )
        return text + (", at its bound" if self.at_bound else "")


def _between(a: float, b: float, share: float) -> float:
    """The threshold on the way from one to another; the nearer one where there is nothing between them."""
    if math.isinf(a) or math.isinf(b):
        return a if share < 0.5 else b
    return (1.0 - share) * a + share * b


def _place(cuts: Floats, threshold: float) -> float:
    """Share of a falling path at which a threshold stands."""
    falling = -cuts
    places = np.arange(len(cuts)) / (len(cuts) - 1)
    # Equal quantiles stand at several places; the first will do.
    distinct, first = np.unique(falling, return_index=True)
    return float(np.interp(-threshold, distinct, places[first]))
