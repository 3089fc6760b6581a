"""Writes the stored files of the current format, once: ``python tests/runtime/bundles/make.py``.

Files of a format that was released are never written again; a new format or kind gets files beside them.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from sparing import (
    AdaptGbrtClassifier,
    AdaptLinClassifier,
    BudgetPruneClassifier,
    CascadeClassifier,
    FeatureCosts,
    GreedyMiserClassifier,
)
from sparing.cascade import training
from sparing.runtime import inspect, save

HERE = Path(__file__).parent
COSTS = FeatureCosts([1, 2, 3, 0.5], shared={"draw": (2.1, [1, 2])}, call_price=0.25)


def rows(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).round(2)
    return X, (X[:, 0] + X[:, 1] * (X[:, 2] > 0) > 0).astype(int) + (X[:, 3] > 1)


def write(name, system, X, **options):
    path = HERE / f"{name}.sparing"
    if path.exists():
        return
    save(system, path, **options)
    system = getattr(system, "system_", system)
    expected = {
        "format": inspect(path)["format"],
        "objects": isinstance(X, pd.DataFrame),
        "X": X.to_numpy(dtype=object).tolist() if isinstance(X, pd.DataFrame) else X.tolist(),
        "proba": system.predict_proba(X).tolist(),
        "labels": system.predict(X).tolist(),
        "route": system.route(X).tolist(),
        "cost": system.acquisition_cost(X).tolist(),
    }
    path.with_suffix(".json").write_text(json.dumps(expected))


def main():
    X, y = rows()
    some = X[:12]
    small = {"n_estimators": 4, "max_depth": 2, "random_state": 0}
    write("miser-1", GreedyMiserClassifier(feature_costs=COSTS, **small).fit(X, y > 0), some)
    # A penalty that leaves a cheap stage worth having.
    settings = {"cost_penalty": 0.001, "full_rate": 0.4, "cv": 2, "feature_costs": COSTS, **small}
    refit = AdaptGbrtClassifier(LogisticRegression(), **settings).fit(X, y > 0)
    write("gbrt-1", refit, some, metadata={"about": "exit gate, logistic regression"})
    sure = next(
        system
        for system in refit.staged_systems()
        if type(system.stages[0].gate).__name__ == "ConfidenceGate"
    )
    write("confidence-1", sure.with_thresholds(0.3), some)
    joint = AdaptGbrtClassifier(SVC(), gate="joint", **settings)
    write("joint-1", joint.fit(X, np.array(["a", "b", "c"])[y]), some)
    forest = RandomForestClassifier(3, max_depth=3, random_state=0)
    prune = BudgetPruneClassifier(forest, feature_costs=COSTS, random_state=0)
    write("prune-1", prune.fit(X, np.where(y > 0, 1, -1)), some)
    proba = LogisticRegression().fit(X, y > 0).predict_proba(X)
    logged = AdaptLinClassifier(full_rate=0.4, random_state=0).fit(X, y > 0, full_proba=proba)
    write("logged-1", logged.system_.with_thresholds(np.inf), some)

    # A column with a long tail, so that the map that spreads it is stored too.
    tail = np.column_stack([X[:, :3], np.exp(4 * X[:, 3])])
    stages = {"stages": [[0], [0, 1, 3]], "stage_estimator": "shared", "cv": 2, "random_state": 0}
    cascade = CascadeClassifier(LogisticRegression(), feature_costs=COSTS, **stages)
    write("cascade-1", cascade.fit(tail, y > 0), tail[:12])
    training._WIDTH = 8  # a small file
    cascade.set_params(stage_estimator="both")
    write("both-1", cascade.fit(tail, y > 0), tail[:12])

    frame = pd.DataFrame(X, columns=["age", "TSH", "T3", "weight"])
    frame["where"] = np.where(X[:, 3] > 0, "north", "south")
    frame.loc[::5, "TSH"] = np.nan
    full = LogisticRegression().fit(frame[["age", "T3"]], y > 0)
    mixed = AdaptLinClassifier(FrozenEstimator(full), cost_penalty=1e-4, random_state=0)
    write(
        "mixed-1",
        mixed.fit(frame, y > 0).with_thresholds(np.inf).system_,
        frame[:12],
        outside=["full"],
        like=frame,
    )


if __name__ == "__main__":
    main()
