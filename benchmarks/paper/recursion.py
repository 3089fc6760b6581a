"""Two gates against one (Remark 1 of the paper): a system is again a full model, and one more gate can stand before it.

    python benchmarks/paper/recursion.py [--quick]

On Letters with an RBF-SVM as full model, Adapt-Gbrt systems at several penalties are the "one gate" ones. Each of the
weaker penalties then stands in ``FrozenEstimator`` as the full model of an Adapt-Gbrt with a stronger one: "two gates".
The outer gate needs honest probabilities of the inner system on the training rows, so the inner one is fitted again
without each of three folds. Thresholds are cut at even shares of training rows; validation rows choose, test rows
report.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import StratifiedKFold

HERE = Path(__file__).parents[1]
sys.path.insert(0, str(HERE))

from paper.datasets import DATASETS  # noqa: E402
from paper.problem import Problem, prepare  # noqa: E402
from paper.store import Store, cache_folder  # noqa: E402
from sparing import AdaptGbrtClassifier, Frontier, System  # noqa: E402

SHARES = (0.003, 0.006, 0.012, 0.025, 0.05, 0.1)
"""Penalties, as the price of all columns in units of mean loss."""
INNER = SHARES[:3]
FULL_RATE = 0.5
CUTS = 1600
"""Combinations of thresholds tried of each system, whether it has one gate or two."""
TOLERANCES = (0.01, 0.005, 0.0)


def learner(problem: Problem, estimator: Any, share: float, trees: int) -> AdaptGbrtClassifier:
    return AdaptGbrtClassifier(
        estimator,
        feature_costs=problem.costs,
        full_rate=FULL_RATE,
        cost_penalty=share / problem.costs.total,
        n_estimators=trees,
        random_state=0,
        n_jobs=1,
    )


def honest_proba(problem: Problem, share: float, trees: int) -> np.ndarray:
    """Probabilities of the inner system on the training rows, by systems that did not see them."""
    X, y, known = problem.train.X, problem.train.y, problem.full_proba
    proba = np.empty_like(known)
    for learn, held in StratifiedKFold(3, shuffle=True, random_state=0).split(X, y):
        clf = learner(problem, problem.full_model, share, trees)
        clf.fit(X[learn], y[learn], full_proba=known[learn])
        sent = clf.route(X[held]) > 0
        proba[held] = np.where(sent[:, None], known[held], clf.cheap_.predict_proba(X[held]))
    return proba


def with_cuts(system: System, X: np.ndarray) -> list[System]:
    """The system at all combinations of thresholds, at even shares of the rows each gate may see."""
    axes, n_cuts = [], round(CUTS ** (1 / (len(system.stages) - 1)))
    for stage in system.stages[:-1]:
        needs = stage.gate.reads_predictor
        scores = stage.gate.score(X, stage.predictor.predict_proba(X) if needs else None)
        inside = np.quantile(scores, np.linspace(0.0, 1.0, n_cuts)[1:-1])
        axes.append(np.concatenate([[-np.inf], inside, [np.inf]]))
    grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, len(axes))
    return [system.with_thresholds(list(row)) for row in np.unique(grid, axis=0)]


def report(name: str, chosen: Frontier, tested: Frontier) -> None:
    for tolerance in TOLERANCES:
        best = chosen.at(tolerance=tolerance)
        point = tested.points[chosen.points.index(best)]
        shares = " ".join(f"{share:.2f}" for share in point.stage_rates)
        loss = 100 * (point.score - tested.full.score)
        print(
            f"{name:>9}  {100 * tolerance:>4} points  cost {point.cost:6.3f}  accuracy {point.score:.4f} "
            f"({loss:+.2f})  rows by stage {shares}  columns {[len(s.columns) for s in point.system.stages]}",
            flush=True,
        )


def main(quick: bool) -> None:
    begin = time.process_time()
    problem = prepare("letters-svm", DATASETS["letters-svm"], 0, Store(cache_folder()))
    train, validation, test = problem.train, problem.validation, problem.test
    trees, shares, inner = (20, SHARES[1:4:2], INNER[1:2]) if quick else (200, SHARES, INNER)
    one: list[System] = []
    two: list[System] = []
    fitted = {}
    for share in shares:
        clf = learner(problem, problem.full_model, share, trees)
        fitted[share] = clf.fit(train.X, train.y, full_proba=problem.full_proba)
        one += with_cuts(clf.system_, train.X)
    for share in inner:
        proba = honest_proba(problem, share, trees)
        for outer in (s for s in shares if s > share):
            clf = learner(problem, FrozenEstimator(fitted[share]), outer, trees)
            clf.fit(train.X, train.y, full_proba=proba)
            two += with_cuts(clf.system_, train.X)
            print(
                f"inner {share:g}, outer {outer:g}: {time.process_time() - begin:.0f} s", flush=True
            )
    for name, systems in (("one gate", one), ("two gates", two), ("both", one + two)):
        chosen = Frontier.evaluate(systems, validation.X, validation.y, full=problem.full)
        # Only what may be chosen is worth a look at the test rows.
        chosen = chosen.pareto()
        tested = Frontier.evaluate(
            [point.system for point in chosen], test.X, test.y, full=problem.full
        )
        print(f"{name}: {len(systems)} systems, {len(chosen)} not dominated on validation rows")
        report(name, chosen, tested)
    print(f"{time.process_time() - begin:.0f} s of one processor")


if __name__ == "__main__":
    main("--quick" in sys.argv[1:])
