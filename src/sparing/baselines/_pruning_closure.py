"""Maximum-weight closure of a forest's splits: by one minimum cut, or by prices between trees (primal-dual).

Splits have benefits and need their parent and some purchases; purchases have costs, paid once whoever needs them. See
``_pruning`` for the equation. Both ways give the objective reached and a bound no solution can beat. Solutions shrink
as λ grows, so a path over λ is solved from the middle: what a larger λ keeps is kept, what a smaller λ prunes is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Booleans = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Closure:
    """Splits with benefits, purchases with costs, and who needs what.

    Attributes
    ----------
    benefit : fall in error by each split, (e_h − e_left − e_right)/T; may be negative.
    parent : position of each split's parent, −1 for roots. Parents stand before their children, level by level.
    level : start of every level, and the end of the last.
    cost : cost of each purchase at λ = 1: prices of item and row over N, summed over the rows that share it.
    split, first : splits that need purchase p are ``split[first[p]:first[p + 1]]``, at least one.
    error : error of the trees when they are cut down to their roots.
    """

    benefit: Floats
    parent: NDArray[np.int32]
    level: Ints
    cost: Floats
    split: NDArray[np.int32]
    first: Ints
    error: float

    @property
    def n_needing(self) -> Ints:
        """Number of splits that need each purchase."""
        return np.diff(self.first)

    def bought(self, keep: Booleans) -> Booleans:
        """Purchases that the kept splits need."""
        if not len(self.cost):
            return np.zeros(0, dtype=bool)
        return np.logical_or.reduceat(keep[self.split], self.first[:-1])

    def objective(self, keep: Booleans, penalty: float) -> float:
        """Error plus λ times cost when these splits are kept."""
        cost = float(self.cost[self.bought(keep)].sum())
        return self.error - float(self.benefit[keep].sum()) + penalty * cost

    def between(self, inside: Booleans, outside: Booleans) -> tuple[Closure, Ints]:
        """The problem that is left when some splits are surely kept and others surely not.

        Parameters
        ----------
        inside, outside : closed sets of splits; ``inside`` is kept, what is not in ``outside`` is pruned.

        Returns
        -------
        Closure over the splits in between, and their positions here.
        """
        free = outside & ~inside
        places = np.flatnonzero(free)
        number = np.cumsum(free, dtype=np.int32) - 1
        parent = self.parent[places]
        parent = np.where((parent >= 0) & free[parent], number[parent], -1).astype(np.int32)
        edge = free[self.split] & np.repeat(~self.bought(inside), self.n_needing)
        ends = np.concatenate([[0], np.cumsum(edge)])[self.first]
        needed = np.diff(ends) > 0
        rest = Closure(
            self.benefit[places],
            parent,
            np.searchsorted(places, self.level),
            self.cost[needed],
            number[self.split[edge]],
            np.concatenate([[0], ends[1:][needed]]),
            0.0,
        )
        return rest, places


@dataclass(frozen=True, eq=False)
class Solution:
    """Splits kept at one λ.

    Attributes
    ----------
    keep : bool per split.
    penalty : λ.
    objective : error plus λ times cost.
    bound : no set of splits has a smaller objective.
    n_iter : steps taken, 1 for a cut.
    """

    keep: Booleans
    penalty: float
    objective: float
    bound: float
    n_iter: int = 1


# -- by minimum cut ---------------------------------------------------------------------------------


def cut_path(
    closure: Closure, penalties: Sequence[float], *, tol: float = 1e-8, ortools: bool | None = None
) -> list[Solution]:
    """Optimal splits for each λ.

    Parameters
    ----------
    closure : Closure
    penalties : values of λ, the largest first.
    tol : largest gap between objective and bound.
    ortools : whether to use the flow solver of OR-tools; None if it is installed.
    """
    if ortools is None:
        ortools = find_spec("ortools") is not None
    found: dict[int, Solution] = {}

    def solve(first: int, last: int, inside: Booleans, outside: Booleans) -> None:
        if first > last:
            return
        middle = (first + last) // 2
        rest, places = closure.between(inside, outside)
        keep, gap = _cut(rest, penalties[middle], tol, ortools)
        kept = inside.copy()
        kept[places[keep]] = True
        objective = closure.objective(kept, penalties[middle])
        found[middle] = Solution(kept, penalties[middle], objective, objective - gap)
        solve(first, middle - 1, inside, kept)
        solve(middle + 1, last, kept, outside)

    n = len(closure.benefit)
    solve(0, len(penalties) - 1, np.zeros(n, dtype=bool), np.ones(n, dtype=bool))
    return [found[index] for index in range(len(penalties))]


def _cut(closure: Closure, penalty: float, tol: float, ortools: bool) -> tuple[Booleans, float]:
    """Largest optimal closure, and the gap that rounding to whole numbers may have left.

    Costs flow from the source into the benefits of the splits that ask for them, and on to the splits below. A split
    that unpaid cost still reaches in the end is not worth keeping. (Benefits into costs is the same cut, but takes
    SciPy two to six times as long.)
    """
    n, m = len(closure.benefit), len(closure.cost)
    gains, losses = closure.benefit > 0, closure.benefit < 0
    total = float(closure.benefit[gains].sum())
    if not total > 0:
        return np.zeros(n, dtype=bool), 0.0
    source, sink = n + m, n + m + 1
    splits, purchases = np.arange(n), np.arange(n, n + m)
    below = closure.parent >= 0
    arcs = [
        (np.full(m, source), purchases, np.minimum(penalty * closure.cost, 2 * total)),
        (np.repeat(purchases, closure.n_needing), closure.split, 2 * total),
        (closure.parent[below], splits[below], 2 * total),
        (np.full(losses.sum(), source), splits[losses], -closure.benefit[losses]),
        (splits[gains], np.full(gains.sum(), sink), closure.benefit[gains]),
    ]
    tails, heads = (np.concatenate([arc[i] for arc in arcs]).astype(np.int32) for i in (0, 1))
    capacity = np.concatenate([np.broadcast_to(np.asarray(c), len(t)) for t, _, c in arcs])
    flow = _flow_by_ortools if ortools else _flow_by_scipy
    reached, gap = flow(tails, heads, capacity, (source, sink), total, tol)
    return ~reached[:n], gap


def _flow_by_scipy(
    tails: NDArray[np.int32],
    heads: NDArray[np.int32],
    capacity: Floats,
    ends: tuple[int, int],
    total: float,
    tol: float,
) -> tuple[Booleans, float]:
    """Nodes on the source's side of a minimum cut, and its excess over the flow, in rounds of whole numbers.

    SciPy's capacities have 32 bits. One round rounds them down in units of 2^-30 of the flow that is still possible;
    the next one does the same for the capacity that is left, which is 10^4 times less or better.
    """
    n = max(ends) + 1
    left = csr_array((capacity, (tails, heads)), shape=(n, n))
    # Twice this must not overflow: an arc may carry it back and then forth.
    largest = 2**30 - 1
    for _ in range(6):
        unit = total / largest
        whole = csr_array(
            (np.minimum(left.data / unit, largest).astype(np.int32), left.indices, left.indptr),
            shape=left.shape,
        )
        flow = maximum_flow(whole, *ends).flow
        reached = np.zeros(n, dtype=bool)
        reached[breadth_first_order(whole - flow, ends[0], return_predecessors=False)] = True
        left = left - flow * unit
        left.data = np.maximum(left.data, 0)
        crossing = np.repeat(reached, np.diff(left.indptr)) & ~reached[left.indices]
        total = float(left.data[crossing].sum())
        if total <= tol:
            break
    return reached, total


def _flow_by_ortools(
    tails: NDArray[np.int32],
    heads: NDArray[np.int32],
    capacity: Floats,
    ends: tuple[int, int],
    total: float,
    tol: float,  # noqa: ARG001
) -> tuple[Booleans, float]:
    """The same with 64 bits, where one round is enough."""
    unit = total / 2**50
    solver = import_module("ortools.graph.python.max_flow").SimpleMaxFlow()
    solver.add_arcs_with_capacity(tails, heads, (capacity / unit).astype(np.int64))
    status = solver.solve(*ends)
    if status != solver.OPTIMAL:
        raise RuntimeError(f"The flow solver of OR-tools gave up: {status}.")
    reached = np.zeros(max(ends) + 1, dtype=bool)
    reached[solver.get_source_side_min_cut()] = True
    cut = float(capacity[reached[tails] & ~reached[heads]].sum())
    return reached, max(0.0, cut - solver.optimal_flow() * unit)


# -- by prices between trees ------------------------------------------------------------------------


def dual_path(
    closure: Closure, penalties: Sequence[float], *, max_iter: int = 300, tol: float = 1e-6
) -> list[Solution]:
    """Good splits for each λ and a bound, by the primal-dual method of Nan, Wang and Saligrama (2016).

    Every tree pays β ≥ 0 of its own for a purchase, instead of all trees sharing one cost. Given β the trees are
    separate: V(h) = min(e_h/T, Σ_{(k,i): u=h} β + V(left) + V(right)), and a purchase is made if the trees together pay
    more than its cost. That is a bound, and the trees' splits together are a solution. Polyak steps raise the bound.

    Parameters
    ----------
    closure : Closure
    penalties : values of λ, the largest first; β and the splits kept are carried on.
    max_iter : steps for each λ.
    tol : gap between objective and bound that is good enough.
    """
    n, n_needing = len(closure.benefit), closure.n_needing
    # Steps in proportion to the cost: a purchase of many rows is then worth as much as many purchases of one.
    weight = np.repeat(closure.cost, n_needing)
    purchase = np.repeat(np.arange(len(closure.cost), dtype=np.int32), n_needing)
    beta, before = weight / np.repeat(n_needing, n_needing), 1.0
    inside = np.zeros(n, dtype=bool)
    solutions = []
    for penalty in penalties:
        beta = beta * (penalty / before) if before > 0 else np.zeros(len(beta))
        before = penalty
        best = Solution(inside, penalty, closure.objective(inside, penalty), -np.inf)
        for iteration in range(max_iter):
            if iteration % 100 == 0:  # afresh, or rounding adds up
                net = closure.benefit - np.bincount(closure.split, weights=beta, minlength=n)
                over = _sums(beta, closure.first) - penalty * closure.cost
            keep, value = _separate_trees(closure, net)
            bound = closure.error - value - float(np.maximum(over, 0).sum())
            objective = closure.objective(keep | inside, penalty)
            if objective < best.objective:
                best = Solution(keep | inside, penalty, objective, best.bound)
            best = replace(best, bound=max(bound, best.bound), n_iter=iteration + 1)
            gap = best.objective - best.bound
            buys, wants = np.repeat(over > 0, n_needing), keep[closure.split]
            disputed = np.flatnonzero(buys != wants)
            if gap <= tol or not len(disputed):
                break
            some = weight[disputed]
            step = 501 / (iteration + 501) * (best.objective - bound) / some.sum()
            old = beta[disputed]
            new = np.maximum(old + np.where(wants[disputed], step, -step) * some, 0)
            beta[disputed] = new
            net -= np.bincount(closure.split[disputed], weights=new - old, minlength=n)
            over += np.bincount(purchase[disputed], weights=new - old, minlength=len(over))
        solutions.append(best)
        inside = best.keep
    return solutions


def _sums(values: Floats, first: Ints) -> Floats:
    """Sums of ``values[first[i]:first[i + 1]]``, none of them empty."""
    return np.add.reduceat(values, first[:-1]) if len(first) > 1 else np.zeros(0)


def _separate_trees(closure: Closure, benefit: Floats) -> tuple[Booleans, float]:
    """Best splits of every tree on its own, and their total benefit."""
    gain = benefit.copy()
    spans = list(zip(closure.level[:-1], closure.level[1:], strict=True))
    for above, here in zip(spans[-2::-1], spans[:0:-1], strict=True):
        size = above[1] - above[0]
        add = np.maximum(gain[slice(*here)], 0)
        gain[slice(*above)] += np.bincount(
            closure.parent[slice(*here)] - above[0], weights=add, minlength=size
        )
    keep = gain > 0
    for start, end in spans[1:]:
        keep[start:end] &= keep[closure.parent[start:end]]
    roots = gain[: closure.level[1]] if len(spans) else gain
    return keep, float(np.maximum(roots, 0).sum())
