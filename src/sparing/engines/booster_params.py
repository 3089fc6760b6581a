"""LightGBM's parameters: defaults that hold for any table, and a check of those a user adds.

Called by ``boosting`` alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

_OURS = ("objective", "num_class", "metric", "boost_from_average", "linear_tree", "boosting")
_OF_THE_DATA = (
    *("max_bin", "max_bin_by_feature", "min_data_in_bin", "bin_construct_sample_cnt"),
    *("categorical_feature", "feature_pre_filter", "use_missing", "zero_as_missing"),
)
_ALIASES = {
    alias: name
    for name, aliases in {
        "learning_rate": "eta shrinkage_rate",
        "num_leaves": "num_leaf max_leaves max_leaf max_leaf_nodes",
        "min_data_in_leaf": "min_data min_data_per_leaf min_child_samples min_samples_leaf",
        "min_sum_hessian_in_leaf": "min_sum_hessian min_sum_hessian_per_leaf min_hessian min_child_weight",
        "lambda_l2": "reg_lambda lambda l2_regularization",
        "min_gain_to_split": "min_split_gain",
        "num_threads": "num_thread nthread nthreads n_jobs",
        "seed": "random_seed random_state",
        "verbosity": "verbose",
    }.items()
    for alias in aliases.split()
}


def safe_params(n_rows: int, total_weight: float, newton: bool) -> dict[str, Any]:
    """Defaults that hold from ten rows to millions, for two classes and for many."""
    # Without a floor under the hessian the logits of rare classes run away (Forest, 7 classes).
    ridge = min(1.0, total_weight / 100)
    few = max(1, n_rows // 50)
    return {
        "objective": "none",
        "metric": "None",
        "boost_from_average": False,
        "learning_rate": 0.2 if newton else 1.0,
        "lambda_l2": ridge if newton else 0.0,
        # Without Newton steps the hessian is the weight: twenty rows, or a fiftieth of a small table. LightGBM's sums
        # fall a few last digits short of whole numbers.
        "min_sum_hessian_in_leaf": ridge if newton else min(20.0, total_weight / 50) - 1e-6,
        # LightGBM guesses the rows of a leaf from its hessian; two minima in one currency are one too many.
        "min_data_in_leaf": 0,
        "min_data_per_group": min(100, few),
        "cat_smooth": min(10.0, n_rows / 100),
        "cat_l2": min(10.0, total_weight / 100),
        # A gain this small is rounding.
        "min_gain_to_split": 1e-10 * total_weight,
        "deterministic": True,
        "force_row_wise": True,
        "verbosity": -1,
    }


def checked_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Extra LightGBM parameters, refused where they would break the objective or the prices.

    Examples
    --------
    >>> checked_params({"bagging_fraction": 0.5})
    {'bagging_fraction': 0.5}
    >>> checked_params({"eta": 0.1})
    Traceback (most recent call last):
    ValueError: eta: use LightGBM's main name for it, learning_rate.
    """
    for name, value in params.items():
        if name in _OURS or name.startswith("cegb_"):
            raise ValueError(f"{name} is set by the engine.")
        if name in _OF_THE_DATA:
            raise ValueError(f"{name} belongs to the binned data, a booster cannot change it.")
        # There the prices are ignored, or the workers disagree about them.
        if name in ("device", "device_type") and value != "cpu":
            raise ValueError(f"{name}={value!r}: LightGBM knows prices on the cpu only.")
        if name in ("tree_learner", "tree", "tree_type") and value != "serial":
            raise ValueError(f"{name}={value!r}: LightGBM knows prices in serial learning only.")
        if name in _ALIASES:
            # Given both, LightGBM takes the main name, set here, and says nothing.
            raise ValueError(f"{name}: use LightGBM's main name for it, {_ALIASES[name]}.")
    return dict(params)


def groups_within(params: Mapping[str, Any], columns: Sequence[int]) -> list[list[int]]:
    """Interaction constraints that leave only some columns to be split on, and of these the groups a user gave.

    Examples
    --------
    >>> groups_within({}, [0, 2])
    [[0, 2]]
    >>> groups_within({"interaction_constraints": [[0, 1], [2, 3], [3]]}, [0, 2])
    [[0], [2]]
    """
    given = params.get("interaction_constraints") or [columns]
    if isinstance(given, str):  # as on LightGBM's command line
        given = json.loads(f"[{given}]")
    groups = [[int(c) for c in columns if c in set(group)] for group in given]
    return [group for group in groups if group]
