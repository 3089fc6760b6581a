"""The alternation every two-level learner runs: allocation ⇄ cheap model and gate, until both settle.

An engine minimises (OPT) over f1 and g for a given allocation; an allocator minimises it over q for given f1 and g.
Neither step can increase the objective when it is solved exactly, so its history is a check as well as a stop rule.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from sparing._allocation import Allocation, allocate
from sparing._losses import cheap_loss, objective
from sparing.costs import FeatureCosts

Floats = NDArray[np.float64]
History = dict[str, NDArray[np.float64]]


class EngineFit(Protocol):
    """What an engine returns for one allocation."""

    @property
    def cheap(self) -> Floats:
        """Scores of f1 on the training rows."""

    @property
    def gate(self) -> Floats:
        """G on the training rows."""

    @property
    def penalty(self) -> float:
        """Feature costs and whatever else the engine adds to the objective."""

    @property
    def columns(self) -> NDArray[np.intp]:
        """Columns f1 and g use."""


Fit = TypeVar("Fit", bound=EngineFit)


@dataclass(frozen=True)
class Problem:
    """What stays the same over all alternations of one learning problem.

    Attributes
    ----------
    y : class codes.
    full_loss : honest losses of f0 per row.
    weight : weights of the rows, or None.
    full_rate : bound on the mean allocation.
    costs : prices, for the record of what is bought.
    """

    y: NDArray[np.intp]
    full_loss: Floats
    weight: Floats | None
    full_rate: float
    costs: FeatureCosts

    def allocate(self, cheap: Floats, gate: Floats, start: float | None = None) -> Allocation:
        """OPT1 at the current scores of f1 and g."""
        loss = cheap_loss(cheap, self.y)
        return allocate(loss, self.full_loss, gate, self.full_rate, self.weight, start)

    def objective(self, cheap: Floats, gate: Floats, q: Floats) -> float:
        """Losses and gating approximation of (OPT), without the feature costs."""
        return objective(cheap_loss(cheap, self.y), self.full_loss, gate, q, self.weight)


@dataclass(frozen=True)
class Outcome(Generic[Fit]):
    """Where an alternation ended."""

    fit: Fit
    q: Floats
    objective: float
    history: History


REACH = 2.0
"""Factor by which an extrapolation grows from one alternation to the next while it pays."""


def alternate(
    problem: Problem,
    step: Callable[[Floats, Fit | None], Fit],
    start: tuple[Floats, Floats],
    *,
    max_iter: int,
    tol: float,
    extrapolate: bool = False,
    verbose: int = 0,
    name: str = "",
) -> Outcome[Fit]:
    """Alternate until q and the objective settle.

    Parameters
    ----------
    problem : what is given.
    step : the engine: minimises over f1 and g for a given q, from the previous fit if that helps.
    start : scores of f1 and g to begin with.
    max_iter : alternations at most.
    tol : stop when the mean change of q and the relative change of the objective are below it.
    extrapolate : allocate at scores further along the last move, as long as the objective keeps falling; for engines
        that minimise exactly. A gate that starts at 0 gains only the difference of the losses per alternation, so that
        plain ones need hundreds to grow it. (Adaptive overrelaxed bound optimisation, Salakhutdinov and Roweis 2003.)
    verbose : 1 prints a line per alternation to stderr.
    """

    def turn(cheap: Floats, gate: Floats) -> tuple[Allocation, Fit, float]:
        allocation = problem.allocate(cheap, gate, beta)
        following = step(allocation.q, fit)
        value = problem.objective(following.cheap, following.gate, allocation.q)
        return allocation, following, value + following.penalty

    cheap, gate = start
    move = (np.zeros_like(cheap), np.zeros_like(gate))
    fit: Fit | None = None
    record: list[dict[str, float]] = []
    beta, previous, reach = None, None, 0.0
    for iteration in range(1, max_iter + 1):
        allocation, following, value = turn(cheap + reach * move[0], gate + reach * move[1])
        if reach and previous is not None and value > previous[1]:
            # Too far; from the scores themselves the objective cannot rise.
            reach = 0.0
            allocation, following, value = turn(cheap, gate)
        elif extrapolate and fit is not None:
            reach = max(0.5, REACH * reach)
        fit, q, beta = following, allocation.q, allocation.beta
        move = (fit.cheap - cheap, fit.gate - gate)
        cheap, gate = fit.cheap, fit.gate
        rate = float(np.average(q, weights=problem.weight))
        price = problem.costs.of(column_mask(fit.columns, len(problem.costs.columns)))
        record.append(
            {
                "iteration": iteration,
                "objective": value,
                "allocation_rate": rate,
                "n_columns": len(fit.columns),
                "cost": price,
                **allocation.record,
            }
        )
        if verbose:
            print(
                f"{name}{iteration:3d}  objective {value:.6f}  to f0 {rate:.3f}  "
                f"columns {len(fit.columns)} for {price:g}",
                file=sys.stderr,
                flush=True,
            )
        if previous is not None:
            moved = float(np.average(np.abs(q - previous[0]), weights=problem.weight))
            if moved <= tol and abs(value - previous[1]) <= tol * max(1.0, abs(value)):
                break
        previous = (q, value)
    assert fit is not None
    history = {name: np.array([entry[name] for entry in record], float) for name in record[0]}
    return Outcome(fit, q, value, history)


def column_mask(columns: NDArray[np.intp], n: int) -> NDArray[np.bool_]:
    """Positions as a mask of ``n`` columns."""
    mask = np.zeros(n, dtype=bool)
    mask[columns] = True
    return mask
