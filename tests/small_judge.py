"""A judge of orders of five columns."""

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from sparing.cascade.inputs import NetworkInputs
from sparing.cascade.judges import NetworkJudge, RefitJudge, random_masks, small
from sparing.cascade.offers import Offers
from sparing.cascade.training import train_network


def judge_of(costs, n=1500, seed=0, refit=False):
    """Columns 0 and 1 say it all on most rows, column 2 the rest, 3 and 4 are noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    hard = np.abs(X[:, 0]) < 0.5
    y = (np.where(hard, X[:, 2], X[:, 0]) > 0).astype(np.intp)
    inputs, offers = NetworkInputs.fit(X), Offers.of(costs)
    Z = inputs.transform(X)
    half = n // 2
    network = train_network(
        inputs, Z[:half], y[:half], 2, random_masks(offers), width=32, visits=100_000
    )
    common = {"offers": offers, "y": y[half:], "full_cost": costs.total}
    if refit:
        forest = RandomForestClassifier(200, oob_score=True, random_state=0)
        return RefitJudge(
            **common,
            model=small(forest),
            X=X[:half],
            labels=y[:half],
            held_out=X[half:],
            n_classes=2,
            patience=60,
        )
    return NetworkJudge(**common, parts=(((network,), Z[half:]),))
