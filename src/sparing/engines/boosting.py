"""Adapt-Gbrt's engine: one LightGBM booster grows the cheap model f1 and the gate g and shares their wallet.

The booster has M_out + 1 outputs, f1's logits and g. Given q the loss separates in f1 and g, so both trees of a round
grow from the same scores. A split pays for a column at its first use only, in whatever tree that is
(``cegb_penalty_feature_coupled``): once f1 has bought a column, g has it for nothing, and the other way round.

*Buy, then regrow.* When a tree buys a column, LightGBM adds its price to the raw gains remembered for the other open
leaves, where it had never been taken off. So a round that bought something is rolled back and grown again with the
columns already paid: then the gains are right. That happens at most once per column in a whole fit.

Called by the alternation and by GreedyMiser. Knows prices, never a budget.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit
from sklearn.utils import check_random_state

from sparing._allocation import allocate
from sparing._lightgbm import lightgbm
from sparing._losses import cheap_loss
from sparing.costs import FeatureCosts
from sparing.engines.binning import BinnedData, ColumnEncoder
from sparing.engines.booster_params import checked_params, groups_within, safe_params
from sparing.engines.gradients import (
    FixedAllocation,
    RoundAllocation,
    RoundObjective,
    SolvedAllocation,
)
from sparing.engines.wallet import Wallet

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

_RATE_FLOOR = 1e-6
"""Start rates are kept this far from 0 and 1: log-odds must stay finite."""


def auto_cost_penalty(costs: FeatureCosts, newton: bool = True) -> float:
    """The default price of one unit of cost in units of mean loss: 0.05 divided by the price of everything.

    With it a cheap model bought 7 of 16 columns on Letters, 18 of 50 on MiniBooNE and 11 of 54 on Forest, each on the
    flat part of its curve of accuracy over cost. Least-squares trees see a quarter of a Newton tree's gain, or less.

    Examples
    --------
    >>> auto_cost_penalty(FeatureCosts([1, 1, 2]))
    0.0125
    """
    return (0.05 if newton else 0.0125) / costs.total if costs.total > 0 else 0.0


@dataclass(frozen=True)
class Grown:
    """What a run of the engine gives back.

    Attributes
    ----------
    booster : lightgbm.Booster or None
        None when no column can be split on: the start scores are then all there is.
    base : start scores of f1's outputs and of g.
    cheap : f1's scores on the training rows, of shape (n,) for two classes, (n, n_classes) otherwise.
    gate : g on the training rows; a very negative constant without a gate.
    q : allocation on the training rows.
    bought : tuple of (column, round), in the order of purchase; free columns that are used count as bought.
    history : dict of arrays, entry t after t rounds
        ``objective`` without the penalty (without ℓ0 if it was not given), ``mean_q``, ``n_columns``.
    penalty : cost_penalty × price of the items bought.
    has_gate : whether g has trees.
    n_classes : int
    encoder : ColumnEncoder of the rows.
    """

    booster: lightgbm.Booster | None
    base: Floats
    cheap: Floats
    gate: Floats
    q: Floats
    bought: tuple[tuple[int, int], ...]
    history: dict[str, Floats]
    penalty: float
    has_gate: bool
    n_classes: int
    encoder: ColumnEncoder = field(repr=False)

    @property
    def n_iterations(self) -> int:
        """Rounds grown; fewer than asked for when no split was worth its price any more."""
        return 0 if self.booster is None else int(self.booster.current_iteration())


class BoostingEngine:
    """Grows f1 and g as boosted trees that share the columns they pay for.

    Parameters
    ----------
    data : BinnedData
    y : class codes 0..n_classes−1.
    n_classes : int
    costs : FeatureCosts
    sample_weight : array of shape (n_rows,), optional
        Counts, as if rows were repeated (up to LightGBM's rounding of the number of rows per bin).
    n_estimators : int, default=100
        Rounds; each grows one tree per output.
    max_depth : int, default=4
    learning_rate : float, optional
        Default 0.2 with Newton steps, 1.0 without.
    newton : bool, default=True
        True hessians, or, as in the paper, least squares on the negative gradient.
    cost_penalty : float or "auto", default="auto"
        Price of one unit of cost in units of mean loss, whatever the number of rows: a first split on a column must
        lower the mean loss by ``cost_penalty`` × price (for Newton trees, to second order).
    gate : bool, default=True
        False grows f1 alone: GreedyMiser.
    random_state : int, RandomState or None
        Without subsampling in ``params`` nothing is random.
    n_jobs : int, optional
        Threads; changes the time, never the result.
    params : mapping, optional
        More LightGBM parameters, or other values for those set here.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> engine = BoostingEngine(BinnedData(X), y, 2, FeatureCosts([1, 1, 1]), n_estimators=5)
    >>> grown = engine.grow_one_pass(np.full(500, 0.1), full_rate=0.3)
    >>> grown.bought, bool(grown.q.mean() <= 0.3 + 1e-9)
    (((0, 0),), True)
    """

    def __init__(
        self,
        data: BinnedData,
        y: ArrayLike,
        n_classes: int,
        costs: FeatureCosts,
        *,
        sample_weight: ArrayLike | None = None,
        n_estimators: int = 100,
        max_depth: int = 4,
        learning_rate: float | None = None,
        newton: bool = True,
        cost_penalty: float | str = "auto",
        gate: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> None:
        if n_classes < 2:
            raise ValueError(f"Boosting needs at least two classes, there is {n_classes}.")
        if len(costs.columns) != data.n_columns:
            raise ValueError(f"{len(costs.columns)} prices for {data.n_columns} columns.")
        self.data = data
        self.y = np.asarray(y, dtype=np.intp)
        self.n_classes = n_classes
        self.costs = costs
        self.weight = np.ones(len(self.y))
        if sample_weight is not None:
            self.weight *= np.asarray(sample_weight, dtype=float)
        self.n_estimators = n_estimators
        self.newton = newton
        self.gate = gate
        if cost_penalty == "auto":
            cost_penalty = auto_cost_penalty(costs, newton)
        self.cost_penalty = float(cost_penalty)
        self._n_cheap = 1 if n_classes == 2 else n_classes
        self.params = checked_params(params or {})
        self._params = {
            **safe_params(data.n_rows, float(self.weight.sum()), newton),
            "max_depth": max_depth,
            "num_leaves": min(2**max_depth, 1024) if max_depth > 0 else 31,
            "num_threads": effective_n_jobs(n_jobs),
            "seed": int(check_random_state(random_state).randint(2**31 - 1)),
            **self.params,
        }
        if learning_rate is not None:
            self._params["learning_rate"] = learning_rate

    def grow(self, q: Floats, *, full_loss: Floats | None = None) -> Grown:
        """Grow all rounds from nothing with q fixed: one step of the alternation.

        Parameters
        ----------
        q : allocation per row; all zeros grow no gate.
        full_loss : losses of f0 per row, only for the history of the objective.
        """
        if not self.gate or not q.any():
            return self._grow_cheap_alone()
        return self._grow(FixedAllocation(q, self.weight, full_loss), self._base(q), q)

    def grow_one_pass(self, full_loss: Floats, full_rate: float) -> Grown:
        """Grow all rounds from nothing, solving for q before every round.

        Parameters
        ----------
        full_loss : losses of f0 per row.
        full_rate : upper bound on the mean of q; 0 grows no gate.
        """
        if not self.gate or full_rate <= 0.0:
            return self._grow_cheap_alone()
        allocation = SolvedAllocation(full_loss, full_rate, self.weight)
        grown = self._grow(allocation, self._best_constants(allocation), allocation.q)
        loss = cheap_loss(grown.cheap, self.y)
        exact = allocate(loss, full_loss, grown.gate, full_rate, self.weight, allocation.beta)
        return replace(grown, q=exact.q)

    def _best_constants(self, allocation: SolvedAllocation) -> Floats:
        """Start scores of a one-pass run: the same alternation, run on constants."""
        base = np.append(self._base(np.zeros(len(self.y)))[:-1], 0.0)
        for _ in range(3):
            cheap, _ = self._scores(base, None, self.n_classes)
            loss = cheap_loss(cheap, np.arange(self.n_classes))[self.y]
            gate = np.full(len(self.y), base[-1])
            allocation.update(loss, gate, np.logaddexp(0.0, gate))
            base = self._base(allocation.q)
        return base

    def without_prices(self, columns: NDArray[np.intp]) -> BoostingEngine:
        """The same engine for f1 alone on columns that are already paid for."""
        other = copy(self)
        other.cost_penalty, other.gate = 0.0, False
        groups = groups_within(self.params, columns.tolist())
        other._params = self._params | {"interaction_constraints": groups}
        if not groups:
            # To LightGBM an empty list of columns is no constraint at all.
            other.n_estimators = 0
        return other

    @property
    def seed(self) -> int:
        """What LightGBM's subsampling starts from."""
        return int(self._params["seed"])

    def reweighted(self, weight: Floats) -> BoostingEngine:
        """The same engine with other weights; rows without weight are scored but not learnt from."""
        other = copy(self)
        other.weight = weight
        return other

    def _grow_cheap_alone(self) -> Grown:
        nobody = np.zeros(len(self.y))
        return self._grow(None, self._base(nobody), nobody)

    def _grow(self, allocation: RoundAllocation | None, base: Floats, q: Floats) -> Grown:
        outputs = base if allocation is not None else base[:-1]
        objective = RoundObjective(
            self.y, self.n_classes, self.weight, outputs, self.newton, allocation
        )
        wallet = Wallet(self.costs, 2.0 * float(self.weight.sum()) * self.cost_penalty)
        booster, raw = None, None
        if self.data.usable.any():
            booster = self._boost(objective, wallet)
            raw = None if booster is None else _training_scores(booster)
        rounds = 0 if booster is None else booster.current_iteration()
        values = objective.history[:rounds]
        values.append(
            objective.evaluate(np.zeros((len(self.y), len(outputs))) if raw is None else raw)
        )
        bought = () if booster is None else wallet.receipts(_used(booster))
        cheap, gate = self._scores(base, raw, len(self.y))
        columns = np.array([column for column, _ in bought], dtype=np.intp)
        mask = np.isin(np.arange(self.data.n_columns), columns)
        counts = np.bincount([t + 1 for _, t in bought], minlength=rounds + 1)
        return Grown(
            booster=booster,
            base=base,
            cheap=cheap,
            gate=gate,
            q=q,
            bought=bought,
            history={
                "objective": np.array([value for value, _ in values]),
                "mean_q": np.array([rate for _, rate in values]),
                "n_columns": np.cumsum(counts).astype(float),
            },
            penalty=self.cost_penalty * self.costs.of(mask),
            has_gate=allocation is not None,
            n_classes=self.n_classes,
            encoder=self.data.encoder,
        )

    def _boost(self, objective: RoundObjective, wallet: Wallet) -> lightgbm.Booster | None:
        """All rounds; None when not even the first finds a split worth its price."""
        params = self._params | {"num_class": len(objective.base)} | wallet.penalties()
        booster = lightgbm.Booster(params, self.data.dataset)
        for t in range(self.n_estimators):
            stuck = booster.update(fobj=objective)
            while wallet.pay(_used(booster), t):
                booster.rollback_one_iter()
                booster.reset_parameter(wallet.penalties())
                stuck = booster.update(fobj=objective.again)
            if stuck:
                # LightGBM drops a round without splits, except the first one.
                return booster if t else None
        return booster

    def _base(self, q: Floats) -> Floats:
        """Start scores: log-odds of the classes among the rows f1 keeps, then of being sent to f0."""
        share = np.bincount(self.y, self.weight * (1.0 - q), minlength=self.n_classes)
        share = np.clip(share / max(share.sum(), np.finfo(float).tiny), _RATE_FLOOR, 1.0)
        cheap = np.log(share[1:] / share[:1]) if self._n_cheap == 1 else np.log(share)
        rate = np.clip(np.average(q, weights=self.weight), _RATE_FLOOR, 1.0 - _RATE_FLOOR)
        return np.append(cheap, logit(rate))

    def _scores(self, base: Floats, raw: Floats | None, n: int) -> tuple[Floats, Floats]:
        """f1's scores and g of n rows, from LightGBM's raw scores or, without any, the start scores."""
        scores = np.tile(base, (n, 1))
        if raw is not None:
            scores[:, : raw.shape[1]] += raw
        cheap = scores[:, : self._n_cheap]
        return cheap[:, 0].copy() if self._n_cheap == 1 else cheap.copy(), scores[:, -1].copy()


def _used(booster: lightgbm.Booster) -> NDArray[np.bool_]:
    return booster.feature_importance("split") > 0


def _training_scores(booster: lightgbm.Booster) -> Floats:
    """Raw scores of the training rows, of shape (n, n_outputs), without predicting them again."""
    kept = []

    def keep(raw: Floats, _: object) -> tuple[str, float, bool]:
        kept.append(raw.reshape(len(raw), -1).copy())
        return "scores", 0.0, True

    booster.eval_train(keep)
    return kept[0]
