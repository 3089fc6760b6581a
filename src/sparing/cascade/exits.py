"""When to stop: thresholds of all gates together, for every price η of cost in units of error.

Stopping a row at stage k costs error_k + η × cost_k; going on costs what the later stages make of the row. Bottom up,
each gate's threshold is the cut of its sorted scores at which the sum of the two over the rows that reach it is
smallest (the paper's oracle gating, stage by stage); as rows that reach a gate depend on the gates before, the sweep is
repeated until nothing moves. One η after the other traces the frontier. Scores must be out-of-fold, or of held-out
rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sparing._cuts import cut_above

Floats = NDArray[np.float64]
Thresholds = tuple[float, ...]

ByDoubt = tuple[NDArray[np.intp], Floats, NDArray[np.bool_]]
"""Rows in the order of a gate's scores, the scores in that order, and where a cut may stand."""

_SWEEPS = 2
"""Sweeps over the gates per price: the first without regard to who reaches a gate. A third changes next to nothing."""

_CAREFUL = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""How far careful systems are on the way to the full model alone."""
_BETWEEN = 3
"""Thresholds tried between two neighbours of the frontier, at least."""
_GAP = 0.01
"""Steps of cost that are aimed at where neighbours are far apart, as a share of the full model's.

On ann-thyroid no corner lies between one question for a dollar and a blood test for 23.78: a budget in between has only
what stands in the gap.
"""
_APART = 8
"""Steps of the grid of prices, of a factor 1.24 each, that telling prices are chosen from at least."""


@dataclass(frozen=True, eq=False)
class StageScores:
    """What every stage says about the same rows, computed once: each point of a frontier is arithmetic from here on.

    Attributes
    ----------
    errors : float of shape (n_stages, n_rows), 1 where a stage would answer wrongly.
    doubts : float of shape (n_stages − 1, n_rows), the gates' scores.
    costs : float of shape (n_stages,), what a row answered there has cost.
    weight : float of shape (n_rows,), sums to 1.
    by_doubt : rows in the order of each gate's scores.

    Examples
    --------
    >>> import numpy as np
    >>> errors = np.array([[0.0, 1, 0, 1], [0, 0, 0, 0]])
    >>> scores = StageScores.of(errors, np.array([[0.1, 0.4, 0.2, 0.3]]), np.array([1.0, 5.0]))
    >>> thresholds = scores.thresholds(price=0.1)
    >>> thresholds
    (0.25,)
    >>> scores.cost_and_error(thresholds)
    (3.0, 0.0)
    """

    errors: Floats
    doubts: Floats
    costs: Floats
    weight: Floats
    by_doubt: tuple[ByDoubt, ...]

    @classmethod
    def of(
        cls,
        errors: Floats,
        doubts: Floats,
        costs: Floats,
        weight: Floats | None = None,
        by_doubt: Sequence[ByDoubt] | None = None,
    ) -> StageScores:
        """Sort the scores of every gate, once, unless they come sorted."""
        n = errors.shape[1]
        # In a fold without any weight all rows count alike.
        if weight is None or not weight.sum() > 0:
            weight = np.ones(n)
        weight = weight / weight.sum()
        if by_doubt is None:
            by_doubt = [sorted_by_doubt(column) for column in doubts]
        return cls(errors, doubts, costs, weight, tuple(by_doubt))

    def thresholds(self, price: float) -> Thresholds:
        """Thresholds that make mean error + ``price`` × mean cost as small as gate after gate can make it."""
        n_gates, n = self.doubts.shape
        total = (self.errors + price * self.costs[:, None]) * self.weight
        cuts = np.full(n_gates, -np.inf)
        # The first sweep takes every gate for one that all rows reach: gates that start closed would keep those
        # behind them without rows to learn from.
        reaches = np.ones((n_gates, n), dtype=bool)
        for _ in range(_SWEEPS):
            before, later = cuts.copy(), total[-1]
            for k in range(n_gates - 1, -1, -1):
                if reaches[k].any():
                    cuts[k] = self._cut(k, (total[k] - later) * reaches[k])
                later = np.where(self.doubts[k] > cuts[k], later, total[k])
            if np.array_equal(before, cuts):
                break
            for k in range(1, n_gates):
                np.logical_and(reaches[k - 1], self.doubts[k - 1] > cuts[k - 1], out=reaches[k])
        return tuple(cuts.tolist())

    def _cut(self, gate: int, regret: Floats) -> float:
        """The cut below which stopping pays: ``regret`` is what stopping a row costs more than going on."""
        order, values, allowed = self.by_doubt[gate]
        sums = np.concatenate([[0.0], np.cumsum(regret[order])])
        sums[~allowed] = np.inf
        return cut_above(values, int(np.argmin(sums)))

    def answering(self, thresholds: Sequence[float]) -> NDArray[np.intp]:
        """The stage that answers each row."""
        goes_on = self.doubts > np.reshape(np.asarray(thresholds, dtype=float), (-1, 1))
        return np.logical_and.accumulate(goes_on, axis=0).sum(axis=0)

    def cost_and_error(self, thresholds: Sequence[float]) -> tuple[float, float]:
        """Mean cost and mean error at some thresholds."""
        stage = self.answering(thresholds)
        error = self.errors[stage, np.arange(len(stage))]
        return float(self.weight @ self.costs[stage]), float(self.weight @ error)

    def choice(self, thresholds: Thresholds) -> Choice:
        """Some thresholds with what they cost and miss."""
        stage = self.answering(thresholds)
        shares = np.bincount(stage, self.weight, minlength=len(self.costs))
        shares = shares / shares.sum()
        error = self.errors[stage, np.arange(len(stage))]
        losses = error - self.errors[-1]
        return Choice(
            thresholds,
            # By shares, so that who is answered by one stage pays its price to the last digit.
            float(shares @ self.costs),
            float(self.weight @ error),
            tuple(shares.tolist()),
            mean_and_error(losses, self.weight)[1],
        )

    def only(self, stages: Sequence[int]) -> StageScores:
        """Some of the stages; the last one must be among them."""
        kept = np.array(stages, dtype=np.intp)
        gates = kept[:-1]
        return StageScores(
            self.errors[kept],
            self.doubts[gates],
            self.costs[kept],
            self.weight,
            tuple(self.by_doubt[k] for k in gates),
        )

    def value(self, prices: Sequence[float], trip: float = 0.0) -> float:
        """How good these stages are: (error + η × cost) / η at the best thresholds, averaged over some prices η.

        What a round trip is worth is added for every stage after the first that a row enters. Thresholds know nothing
        of it, as nobody pays it when they are tuned in the end.
        """
        values = []
        for price in prices:
            thresholds = self.thresholds(price)
            cost, error = self.cost_and_error(thresholds)
            trips = float(self.weight @ self.answering(thresholds)) if trip else 0.0
            values.append(error / price + cost + trip * trips)
        return float(np.mean(values))

    def fair_value(self, prices: Sequence[float]) -> float:
        """Like ``value``, halfway to what thresholds tuned on every other row are worth on the rows between.

        Many stages fit the rows they are tuned on better than few, so ``value`` is too kind to them; half as many rows
        tune worse than all rows of a fit will, so the other is too harsh. Compare different numbers of stages by this.
        Prices count by their size: at a small one cost hardly matters, and chance in a few errors would outweigh it.
        """
        alternate = np.arange(self.errors.shape[1]) % 2 == 0
        parts = [(self, self)] * 2
        for tuned in (alternate, ~alternate):
            parts.append((self._of_rows(tuned), self._of_rows(~tuned)))
        total = 0.0
        for here, there in parts:
            for price in prices:
                cost, error = there.cost_and_error(here.thresholds(price))
                total += error + price * cost
        return total / (len(parts) * sum(prices))

    def _of_rows(self, rows: NDArray[np.bool_]) -> StageScores:
        return StageScores.of(
            self.errors[:, rows], self.doubts[:, rows], self.costs, self.weight[rows]
        )


def mean_and_error(differences: Floats, weight: Floats) -> tuple[float, float]:
    """Weighted mean of paired differences and its standard error; weights sum to 1."""
    mean = float(weight @ differences)
    around = weight * (differences - mean)
    return mean, float(np.sqrt(around @ around))


def sorted_by_doubt(doubt: Floats) -> ByDoubt:
    """Sort the rows by a gate's scores."""
    order = np.argsort(doubt, kind="stable")
    values = doubt[order].astype(float)
    # A cut may stand before the first row, behind the last, or between distinct scores.
    return order, values, np.concatenate([[True], values[1:] > values[:-1], [True]])


@dataclass(frozen=True)
class Choice:
    """Thresholds, and what they do on the rows they were tuned on.

    Attributes
    ----------
    thresholds : of the gates.
    cost, error : on average.
    shares : of the rows, by the stage that answers them.
    loss_error : standard error of what is lost against the last stage.
    """

    thresholds: Thresholds
    cost: float
    error: float
    shares: tuple[float, ...]
    loss_error: float


def trace(scores: StageScores, n: int = 60) -> list[Choice]:
    """The frontier: thresholds that no others found beat in cost and error, and careful ones; the cheapest first.

    Prices fall from one at which buying everything is worth any error to one at which cost hardly counts. A sweep over
    prices only finds corners of the frontier; thresholds halfway between neighbours, at shares of the rows, fill it.
    """
    if not len(scores.doubts):
        return [scores.choice(())]
    found = dict[Thresholds, Choice]()

    def add(every: Iterable[Thresholds]) -> None:
        found.update({t: scores.choice(t) for t in every if t not in found})

    nobody = (-np.inf,) * len(scores.doubts)
    add([*_corners(scores, n), nobody])
    # The cheapest there is: everybody is answered by the first stage, however little that is worth.
    cheapest = min(found.values(), key=lambda choice: choice.cost)
    add([(np.inf, *cheapest.thresholds[1:])])
    largest = float(scores.costs.max()) or 1.0
    for left, right in pairwise(pareto(found.values())):
        n_between = max(_BETWEEN, round((right.cost - left.cost) / (_GAP * largest)))
        shares = np.linspace(0, 1, n_between + 2)[1:-1]
        add(_between(scores, left.thresholds, right.thresholds, float(s)) for s in shares)
    choices = pareto(found.values())
    found = {choice.thresholds: choice for choice in choices}
    add(_careful(scores, choices[-1], n))
    return sorted(found.values(), key=lambda c: (c.cost, c.error))


def unbeaten(choices: Iterable[Choice], others: Iterable[Choice]) -> list[Choice]:
    """Of some choices the non-dominated that none of the others beats in cost and error; the cheapest first."""
    known = pareto(others)
    return [
        one
        for one in pareto(choices)
        if not any(o.cost <= one.cost and o.error <= one.error for o in known)
    ]


def _corners(scores: StageScores, n: int) -> list[Thresholds]:
    """Thresholds at falling prices."""
    largest = float(scores.costs.max()) or 1.0
    return [scores.thresholds(float(price)) for price in np.logspace(0.5, -4, n) / largest]


def _careful(scores: StageScores, best: Choice, n: int) -> list[Thresholds]:
    """Thresholds of systems that lose less than it seems from the rows they were tuned on.

    A cascade is often better than its full model on these rows: what it gets wrong is made up for by what the full
    model does. Whoever chooses by other rows, where luck is spread otherwise, needs systems that count losses alone;
    and, from the best of both kinds, steps to the full model. With the same stages (ann-thyroid, five splits) the
    cut at which validation rows lose nothing rises from 37 to 50% by these.
    """
    full = scores.errors[-1]
    strict = replace(scores, errors=np.where(full > 0, 1.0, scores.errors))
    strictest = pareto([strict.choice(t) for t in _corners(strict, n)])
    nobody = (-np.inf,) * len(scores.doubts)
    starts = [best.thresholds, strictest[-1].thresholds]
    steps = [_between(scores, start, nobody, share) for start in starts for share in _CAREFUL]
    return [*(choice.thresholds for choice in strictest), *steps]


def price_grid(scores: StageScores) -> list[float]:
    """Prices η from one at which buying everything is worth any error to one at which cost hardly counts."""
    return (np.logspace(0.5, -4, 50) / (float(scores.costs.max()) or 1.0)).tolist()


def telling_prices(scores: StageScores, n: int = 2) -> list[float]:
    """Prices η that matter: a little is lost against a cascade for which cost hardly counts, but not too much.

    Little is 0.1 points of error, much 1.5; or a fiftieth and a fifth of what could be lost at most, if that is less.
    Where the loss falls from much to nothing in one step, prices somewhat below that step are taken: at the step itself
    a slightly better cascade would already be given up for none.
    """
    grid = price_grid(scores)
    errors = [scores.cost_and_error(scores.thresholds(price))[1] for price in grid]
    loss = np.array(errors) - min(errors)
    first = int(np.argmax(loss <= min(0.015, 0.2 * loss.max())))
    far = np.flatnonzero(loss >= min(0.001, 0.02 * loss.max()))
    last = min(max(first + _APART, int(far[-1])), len(grid) - 1)
    places = np.unique(np.linspace(first, last, n + 2)[1:-1].round().astype(int))
    return [grid[place] for place in places]


def wider(prices: Sequence[float]) -> list[float]:
    """Telling prices and a higher one, at which more is given up than what they stand for.

    Orders and stages are found at these: on one split of Letters two orders that differ by 1% at the telling prices
    differ by 9% at the higher one, which is 1.4 points of accuracy for five columns.
    """
    return [5 * max(prices), *prices]


def pareto(choices: Iterable[Choice]) -> list[Choice]:
    """The choices that no other one beats in cost and error, the cheapest first."""
    kept = list[Choice]()
    for choice in sorted(choices, key=lambda c: (c.cost, c.error)):
        if not kept or choice.error < kept[-1].error - 1e-12:
            kept.append(choice)
    return kept


def _between(scores: StageScores, left: Thresholds, right: Thresholds, share: float) -> Thresholds:
    """Thresholds between two neighbours, gate by gate at a share of the rows between them."""
    middle = []
    for (_, values, _), low, high in zip(scores.by_doubt, left, right, strict=True):
        ends = np.searchsorted(values, [low, high])
        place = round(ends[0] + share * (ends[1] - ends[0]))
        if place < len(values):  # not in the midst of equal scores
            place = int(np.searchsorted(values, values[place]))
        middle.append(low if low == high else cut_above(values, place))
    return tuple(middle)
