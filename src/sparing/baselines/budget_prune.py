"""BudgetPrune: a forest without the splits that are not worth what they make rows pay.

Nan, Wang and Saligrama, "Pruning random forests for prediction on a budget" (2016). Here it is solved exactly, as a
maximum-weight closure (``_pruning``); their primal-dual method is the second way, for what is too large for the first.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.ensemble._forest import ForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from sparing._full_columns import column_use, unwrapped
from sparing._full_model import FullModel, default_full_model, is_legacy
from sparing._full_predictor import encode
from sparing._routed import RoutedClassifier, Training, text_named
from sparing._rows import take_rows
from sparing._settings import JOBS_CONSTRAINT, PENALTY_CONSTRAINT, penalties
from sparing.baselines._pruned_forest import PrunedForest, has_seen, held_out, out_of_bag
from sparing.baselines._pruning import ForestPruning
from sparing.baselines._pruning_closure import Closure, Solution, cut_path, dual_path
from sparing.system import Accounting, Stage, System

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

_NONE = np.empty((0, 0))
"""Probabilities of the full model on the training rows, which pruning does not ask for."""

_NO_TEXT = (
    "A forest has no place for an encoder: encode before, and let the columns that stand for one text share its price "
    "(FeatureCosts, shared)."
)

_MOST_EDGES = 50_000_000
"""Edges above which a cut takes more than about 6 GiB, and prices between trees are used instead."""


@dataclass(frozen=True, eq=False)
class _Forest(FullModel):
    """The forest to prune, and the rows to prune it by.

    Attributes
    ----------
    rows : pruning rows.
    counted : those among them whose errors count in each tree, None for all.
    """

    rows: Ints
    counted: list[Ints] | None


class BudgetPruneClassifier(RoutedClassifier):
    """A forest pruned so that its rows pay less, by the best trade of error for cost.

    There is one stage, the pruned forest: ``route`` is 0 everywhere. A row pays for the items of the columns tested on
    its paths (``accounting="path"``).

    Parameters
    ----------
    estimator : forest or None, default=None
        A ``RandomForestClassifier`` or ``ExtraTreesClassifier``. A fitted one is used as it is and the rows given to
        ``fit`` only prune it: they should be rows it was not trained on. None is a random forest of 100 trees.
    feature_costs : None, array, mapping or FeatureCosts, default=None
        Prices of the columns; None is 1 each.
    cost_penalty : float, "auto" or sequence of float, default="auto"
        λ, the price of one unit of cost in units of the trees' mean error rate. A sequence gives a system each
        (:meth:`staged_systems`), nested in one another; the smallest is the fitted one. "auto" is 0.05 over the price
        of all columns: to have everything for every row must be worth five points of error.
    pruning : {"auto", "oob"} or float, default="auto"
        Rows to prune by. "oob": a tree's errors are counted on the rows out of its bag; with a fitted forest, the rows
        given to ``fit`` must be its training rows in their order. A fraction: that share of the rows is held out and
        the forest fitted on the rest. "auto": all rows for a fitted forest; for others "oob", or 0.3 for forests
        without bootstrap.
    method : {"auto", "cut", "primal-dual"}, default="auto"
        "cut" is exact. It uses OR-tools if that is installed (extra ``prune``), else SciPy. "primal-dual" gives a
        good solution and a bound. "auto" is "cut" up to 50 million edges.
    keep_free : bool, default=False
        Also keep splits that raise the error of their own tree but need nothing a pruning row has not paid for anyway.
        They cost nothing, and the vote of the trees often gains.
    max_iter : int, default=300
        Steps of "primal-dual" for each λ.
    tol : float, default=1e-6
        Gap to the bound, in units of error rate, at which "primal-dual" stops.
    random_state : int, RandomState or None, default=None
        For the forest if it has no seed of its own, and for the rows held out.
    n_jobs : int or None, default=None
        For the default forest.
    verbose : int, default=0

    Attributes
    ----------
    system_ : System
    estimator_ : the forest, not pruned.
    history_ : dict of arrays
        One entry for each λ, the largest first: ``cost_penalty``, ``objective`` (mean error of the trees on the pruning
        rows plus λ times mean cost, before ``keep_free``) and ``bound``, which no pruning can beat; ``error`` and
        ``cost`` of the forest that is left, ``n_splits``, ``n_columns``, ``n_iter``.
    n_iter_ : steps of "primal-dual" for the fitted λ, 1 for a cut.

    Examples
    --------
    >>> from sparing import FeatureCosts
    >>> from sparing.baselines.budget_prune import BudgetPruneClassifier
    >>> from sparing.datasets import load_hypothyroid
    >>> data = load_hypothyroid()
    >>> clf = BudgetPruneClassifier(feature_costs=data.costs, cost_penalty=[1e-3, 1e-4], random_state=0)
    >>> clf = clf.fit(data.data, data.target)
    >>> cheap, dear = clf.staged_systems()
    >>> bool(cheap.acquisition_cost(data.data).mean() < dear.acquisition_cost(data.data).mean())
    True
    >>> clf.score(data.data, data.target) > 0.98
    True
    """

    _accounting: Accounting = "path"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "cost_penalty": PENALTY_CONSTRAINT,
        "pruning": [StrOptions({"auto", "oob"}), Interval(Real, 0, 1, closed="neither")],
        "method": [StrOptions({"auto", "cut", "primal-dual"})],
        "keep_free": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": JOBS_CONSTRAINT,
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        feature_costs: Any = None,
        cost_penalty: float | str | Sequence[float] = "auto",
        pruning: float | Literal["auto", "oob"] = "auto",
        method: Literal["auto", "cut", "primal-dual"] = "auto",
        keep_free: bool = False,
        max_iter: int = 300,
        tol: float = 1e-6,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.feature_costs = feature_costs
        self.cost_penalty = cost_penalty
        self.pruning = pruning
        self.method = method
        self.keep_free = keep_free
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(  # type: ignore[override]
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit the forest unless it is fitted, and prune it.

        Parameters
        ----------
        X : array or data frame of shape (n_rows, n_columns)
            With a fitted forest: the pruning rows.
        y : array of shape (n_rows,)
            Class labels.
        sample_weight : array of shape (n_rows,), optional
            Weights of the rows in the forest's own fit, in the errors and in the costs.

        Returns
        -------
        self
        """
        return super().fit(X, y, sample_weight)

    def staged_systems(self) -> list[System]:
        """The system of every λ, the largest λ and cheapest system first; each keeps the splits of those before it."""
        check_is_fitted(self, "system_")
        return list(self._systems)

    def _with_system(self, system: System) -> Any:
        other = super()._with_system(system)
        other._systems = [s.with_costs(system.costs) for s in self._systems]
        return other

    # -- the forest -----------------------------------------------------------------------------

    def _full_model(
        self,
        X: Any,
        y: NDArray[Any],
        weight: Floats | None,
        full_proba: Any,  # noqa: ARG002
        seed: int | None,
    ) -> _Forest:
        penalties(self.cost_penalty, 0.0)  # refused before a forest is fitted in vain
        given = self.estimator
        if given is None:
            given = default_full_model(None, self.n_jobs).set_params(oob_score=False)
        with text_named(X, _NO_TEXT):
            if is_legacy(given):
                model = _checked_forest(unwrapped(given))
                check_is_fitted(model)
                return self._fitted_forest(model, X, y)
            return self._new_forest(_checked_forest(given), X, y, weight, seed)

    def _fitted_forest(self, forest: ForestClassifier, X: Any, y: NDArray[Any]) -> _Forest:
        use, rows = column_use(forest, X), np.arange(len(y))  # raises when the columns are others
        if forest.n_outputs_ != 1:
            raise ValueError(
                f"The forest predicts {forest.n_outputs_} targets at once; only one can be pruned for."
            )
        codes = encode(y, forest.classes_, "The pruning rows have")
        if isinstance(self.pruning, Real):
            raise ValueError(
                f"pruning={self.pruning!r} holds rows out of the forest's fit, but the forest is fitted: leave "
                "pruning='auto' to prune by all rows given, or pass the forest unfitted (sklearn.base.clone)."
            )
        if self.pruning == "oob":
            trained = getattr(forest, "_n_samples", len(y))
            if forest.bootstrap and trained != len(y):
                raise ValueError(
                    f"The forest was fitted on {trained} rows, here are {len(y)}: pruning='oob' needs its training "
                    "rows, in their order. Leave pruning='auto' to prune by rows it has not seen."
                )
            return _Forest((), forest.classes_, _NONE, forest, rows, out_of_bag(forest, len(y)))
        frozen = isinstance(self.estimator, FrozenEstimator)
        if not frozen and len(y) >= 50 and has_seen(forest, use.inputs_of(X), codes):
            warnings.warn(
                f"The fitted {type(forest).__name__} seems to be trained on the rows given to fit, so few mistakes it "
                "makes on them. Nearly all its splits will look useful: use pruning='oob', or pass rows it has not "
                "seen. Wrap it in FrozenEstimator if it has not seen them.",
                UserWarning,
                stacklevel=5,
            )
        return _Forest((), forest.classes_, _NONE, forest, rows, None)

    def _new_forest(
        self,
        forest: ForestClassifier,
        X: Any,
        y: NDArray[Any],
        weight: Floats | None,
        seed: int | None,
    ) -> _Forest:
        forest = clone(forest)
        if seed is not None and forest.random_state is None:
            forest.set_params(random_state=seed)
        pruning = self.pruning
        if pruning == "auto":
            pruning = "oob" if forest.bootstrap else 0.3
        train = rows = np.arange(len(y))
        if pruning != "oob":
            held = held_out(y, float(pruning), seed)
            train, rows = np.flatnonzero(~held), np.flatnonzero(held)
        part = None if weight is None else weight[train]
        forest.fit(take_rows(X, train), y[train], sample_weight=part)
        counted = out_of_bag(forest, len(y)) if pruning == "oob" else None
        return _Forest((), forest.classes_, _NONE, forest, rows, counted)

    # -- pruning --------------------------------------------------------------------------------

    def _learn(self, training: Training, full: FullModel | None) -> System:
        assert isinstance(full, _Forest)
        forest, costs = full.estimator, training.costs
        total = costs.total
        path = penalties(self.cost_penalty, 0.05 / total if total > 0 else 0.0)
        X = take_rows(training.X, full.rows)
        use = column_use(forest, X)
        weight = None if training.weight is None else training.weight[full.rows]
        if weight is not None and not weight.sum() > 0:
            raise ValueError(
                f"sample_weight is 0 for all {len(weight)} rows held out to prune by: use pruning='oob'."
            )
        with text_named(X, _NO_TEXT):
            leaves = forest.apply(use.inputs_of(X))
        problem = ForestPruning(
            [tree.tree_ for tree in forest.estimators_],
            leaves,
            training.y[full.rows],
            costs.needs if use.inputs is None else costs.needs[use.inputs],
            costs.item_prices,
            weight=weight,
            counted=full.counted,
        )
        self._systems, entries = [], []
        for solution in self._solved(problem.closure, path):
            kept = problem.kept(solution.keep, harmful=self.keep_free)
            predictor = PrunedForest.of(forest, problem.by_tree(kept), X)
            stage = Stage(predictor, name="pruned")
            self._systems.append(System((stage,), costs, training.classes, self._accounting))
            entries.append(_entry(problem, solution, kept, predictor))
        self.history_ = {name: np.array([entry[name] for entry in entries]) for name in entries[0]}
        self.n_iter_ = int(self.history_["n_iter"][-1])
        return self._systems[-1]

    def _solved(self, closure: Closure, path: list[float]) -> list[Solution]:
        by_cut = self.method == "cut"
        if self.method == "auto":
            by_cut = len(closure.split) <= _MOST_EDGES
        if self.verbose:
            how = "a minimum cut" if by_cut else "prices between trees"
            print(
                f"BudgetPrune: {len(closure.benefit)} splits, {len(closure.cost)} purchases, "
                f"{len(closure.split)} edges; {len(path)} penalties by {how}"
            )
        if by_cut:
            return cut_path(closure, path)
        return dual_path(closure, path, max_iter=self.max_iter, tol=self.tol)


def _checked_forest(model: Any) -> ForestClassifier:
    if not isinstance(model, ForestClassifier):
        raise TypeError(
            f"estimator is a {type(model).__name__}, which is not a forest: pass a RandomForestClassifier or an "
            "ExtraTreesClassifier, fitted or not."
        )
    return model


def _entry(
    problem: ForestPruning, solution: Solution, kept: NDArray[np.bool_], predictor: PrunedForest
) -> dict[str, float]:
    return {
        "cost_penalty": solution.penalty,
        "objective": solution.objective,
        "bound": solution.bound,
        "error": problem.mean_error(kept),
        "cost": problem.mean_cost(kept),
        "n_splits": int(predictor.sizes.sum()),
        "n_columns": len(predictor.columns),
        "n_iter": solution.n_iter,
    }
