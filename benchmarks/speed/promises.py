"""Promises: how many are broken, what they cost, and which test needs the fewest rows.

    python benchmarks/speed/promises.py [n_resamplings]

A population of 400,000 rows, so that the truth about every system is known. Again and again validation rows are drawn
and a frontier is evaluated, then calibration rows, and a system is certified at confidence 0.95. A promise is broken
when the certified system breaks it in the population; that may happen in 5 % of the resamplings. What the promise costs
is the average cost of the certified system beside that of the system validation alone would choose, and of the cheapest
one that keeps the promise in the population (for a budget, the dearest).
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom, norm

from sparing import FeatureCosts, Frontier, Guarantee, PromiseError, certify
from sparing._bounds import mean_p_value, paired_p_value
from sparing.system import Stage, System

CONFIDENCE = 0.95
N_POPULATION, N_VALIDATION, N_CALIBRATION = 400_000, 1000, 1000


@dataclass(frozen=True, eq=False)
class Stored:
    """A predictor and gate that look their rows up: the first column is the number of the row."""

    proba: np.ndarray
    columns: np.ndarray
    reads_predictor = True

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return self.proba[X[:, 0].astype(int)]

    def score(self, X: np.ndarray, proba: np.ndarray) -> np.ndarray:  # noqa: ARG002
        return 1.0 - proba.max(axis=1)


@dataclass(frozen=True, eq=False)
class Population:
    """Rows, labels, and systems with a known truth."""

    X: np.ndarray
    y: np.ndarray
    systems: list[System]
    full: System
    truth: dict[str, np.ndarray]

    def draw(self, rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        rows = rng.integers(len(self.y), size=n)
        return self.X[rows], self.y[rows]


def population(n: int, stages: int, seed: int = 0) -> Population:
    """Three signals of growing price; a stage answers by those bought so far, the full model by all."""
    rng = np.random.default_rng(seed)
    signals = rng.normal(size=(n, 3)) * [1.0, 0.8, 0.8]
    noise = 0.35
    y = (signals.sum(axis=1) + noise * rng.normal(size=n) > 0).astype(int)
    X = np.zeros((n, 3))
    X[:, 0] = np.arange(n)
    bought = [1, 3] if stages == 2 else [1, 2, 3]
    parts = []
    for k in bought:
        unknown = np.sqrt(noise**2 + 0.64 * (3 - k))
        p = norm.cdf(signals[:, :k].sum(axis=1) / unknown)
        parts.append(Stored(np.column_stack([1 - p, p]), np.arange(k)))
    costs = FeatureCosts([1.0, 2.0, 3.0])
    systems = []
    for t in np.linspace(0.0, 0.5, 41):
        gated = tuple(Stage(part, part, float(t)) for part in parts[:-1])
        systems.append(System((*gated, Stage(parts[-1])), costs, np.array([0, 1])))
    full = System((Stage(parts[-1]),), costs, np.array([0, 1]))
    frontier = Frontier.evaluate(systems, X, y, full=full)
    answers = [system.predict(X) for system in systems]
    truth = {
        "cost": frontier.costs,
        "tolerance": full_score(frontier) - frontier.scores,
        "budget": frontier.costs,
        "max_error": np.array([point.kept_error for point in frontier]),
        "min_recall": np.array([np.mean(a[y == 1] == 0) for a in answers]),
    }
    return Population(X, y, systems, full, truth)


def full_score(frontier: Frontier) -> float:
    assert frontier.full is not None
    return frontier.full.score


PROMISES = {
    "loss ≤ 0.02": (2, Guarantee(tolerance=0.02, confidence=CONFIDENCE)),
    "loss ≤ 0.02, three stages": (3, Guarantee(tolerance=0.02, confidence=CONFIDENCE)),
    "cost ≤ 3": (2, Guarantee(budget=3.0, confidence=CONFIDENCE)),
    "cost ≤ 3, three stages": (3, Guarantee(budget=3.0, confidence=CONFIDENCE)),
    "error of the kept ≤ 0.15": (2, Guarantee(max_error=0.15, confidence=CONFIDENCE)),
    "recall of class 1 ≥ 0.85": (2, Guarantee(min_recall={1: 0.85}, confidence=CONFIDENCE)),
    "loss ≤ 0.03 and cost ≤ 5": (
        2,
        Guarantee(tolerance=0.03, budget=5.0, confidence=CONFIDENCE),
    ),
}


def limits(guarantee: Guarantee) -> dict[str, float]:
    named = {
        "tolerance": guarantee.tolerance,
        "budget": guarantee.budget,
        "max_error": guarantee.max_error,
        "min_recall": None if not guarantee.min_recall else 1 - guarantee.min_recall[1],
    }
    return {kind: limit for kind, limit in named.items() if limit is not None}


def resample(
    known: Population, guarantee: Guarantee, n_resamplings: int, seed: int = 1
) -> dict[str, float]:
    """Shares and average costs over the resamplings."""
    rng = np.random.default_rng(seed)
    wished = limits(guarantee)
    keeps = np.all([known.truth[kind] <= limit for kind, limit in wished.items()], axis=0)
    position = {id(system): i for i, system in enumerate(known.systems)}
    certified, plain, none, broken, plain_broken = [], [], 0, 0, 0
    for _ in range(n_resamplings):
        frontier = Frontier.evaluate(known.systems, *known.draw(rng, N_VALIDATION), full=known.full)
        X, y = known.draw(rng, N_CALIBRATION)
        if set(wished) <= {"tolerance", "budget"}:
            only = next(iter(wished))
            chosen = position[id(frontier.at(**{only: wished[only]}).system)]
            plain.append(known.truth["cost"][chosen])
            plain_broken += not keeps[chosen]
        try:
            index = position[id(certify(frontier, X, y, guarantee).system)]
        except PromiseError:
            none += 1
            continue
        certified.append(known.truth["cost"][index])
        broken += not keeps[index]
    best = known.truth["cost"][keeps]
    only_budget = set(wished) == {"budget"}
    return {
        "broken": broken / n_resamplings,
        "none": none / n_resamplings,
        "cost": float(np.mean(certified)) if certified else np.nan,
        "validation_cost": float(np.mean(plain)) if plain else np.nan,
        "validation_broken": plain_broken / n_resamplings if plain else np.nan,
        "best_cost": float(best.max() if only_budget else best.min()),
    }


# -- which test --------------------------------------------------------------------------------------------------------


def hoeffding_bentkus(values: np.ndarray, limit: float) -> float:
    """P-value of Bates et al. (2021) for numbers in [−1, 1]."""
    n, mean, m = len(values), (values.mean() + 1) / 2, (limit + 1) / 2
    if mean >= m:
        return 1.0
    divergence = mean * np.log(mean / m) + (1 - mean) * np.log((1 - mean) / (1 - m))
    return float(min(1.0, np.exp(-n * divergence), np.e * binom.cdf(np.ceil(n * mean), n, m)))


def compare_tests(n_resamplings: int) -> None:
    """Share of the samples in which a true promise about the loss can be made."""
    rng = np.random.default_rng(0)
    delta = 1 - CONFIDENCE
    print(
        f"{'rows':>6} {'worse':>6} {'better':>6}   exact  betting  Hoeffding-Bentkus  (promise: loss ≤ 0.01)"
    )
    for n in (500, 2000, 8000):
        for worse, better in ((0.02, 0.02), (0.006, 0.002), (0.03, 0.024)):
            kept = np.zeros(3)
            for _ in range(n_resamplings):
                x = rng.choice([1.0, 0.0, -1.0], size=n, p=[worse, 1 - worse - better, better])
                kept += [
                    paired_p_value(int((x > 0).sum()), int((x < 0).sum()), n, 0.01, delta) <= delta,
                    mean_p_value(x, 0.01, -1.0, 1.0, delta) <= delta,
                    hoeffding_bentkus(x, 0.01) <= delta,
                ]
            shares = kept / n_resamplings
            print(
                f"{n:>6} {worse:>6} {better:>6} {shares[0]:>7.2f} {shares[1]:>8.2f} {shares[2]:>18.2f}"
            )


def main(n_resamplings: int) -> None:
    compare_tests(max(20, n_resamplings // 5))
    known = {stages: population(N_POPULATION, stages) for stages in (2, 3)}
    allowed = 1 - CONFIDENCE
    chance = allowed + 2 * np.sqrt(allowed * CONFIDENCE / n_resamplings)
    print(
        f"\n{n_resamplings} resamplings, {N_VALIDATION} validation and {N_CALIBRATION} calibration rows; broken at "
        f"most {allowed:.1%}, by chance {chance:.1%}. The full model costs 6."
    )
    print(
        f"{'promise':<28}{'broken':>8}{'not given':>10}{'cost':>7}{'validation alone':>18}{'(broken)':>10}{'truth':>7}"
        f"{'seconds':>9}"
    )
    for name, (stages, guarantee) in PROMISES.items():
        began = time.perf_counter()
        row = resample(known[stages], guarantee, n_resamplings)
        seconds = time.perf_counter() - began
        print(
            f"{name:<28}{row['broken']:>8.1%}{row['none']:>10.1%}{row['cost']:>7.2f}{row['validation_cost']:>18.2f}"
            f"{row['validation_broken']:>10.1%}{row['best_cost']:>7.2f}{seconds:>9.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
