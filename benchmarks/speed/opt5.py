"""Allocation step of Adapt-Lstsq (OPT5): gap to the dual bound, iterations, time as a multiple of OPT1's.

    python benchmarks/speed/opt5.py [--quick]

Random problems have exponential losses and a gate that is right more often than not, at several scales; the larger the
scale, the less convex the rows. The Letters problem has the losses of a logistic regression on three columns and of a
forest out of its bag, and gates that Adapt-Lstsq would meet: 0 as in the first alternation, and one that was learnt.

For each, OPT5 as the library solves it (the dual first, ADMM from its multiplier), and ADMM alone from multiplier 0.
Gaps are relative, times are processor seconds of the fastest of three runs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from sparing import AdaptLstsqClassifier
from sparing._allocation import allocate, multiplier
from sparing._allocation_lstsq import admm, allocate_lstsq
from sparing._allocation_rows import Rows
from sparing.datasets import load_letters

Problem = tuple[np.ndarray, np.ndarray, np.ndarray]


def random_problem(n_rows: int, scale: float) -> Problem:
    rng = np.random.default_rng(0)
    cheap, full = rng.exponential(scale, n_rows), rng.exponential(0.3 * scale, n_rows)
    return cheap, full, rng.normal(0.5 * (cheap - full), scale)


def letters_problems() -> Iterator[tuple[str, Problem]]:
    data = load_letters(binary=True)
    X, y = data.data[data.split.train], data.target[data.split.train]
    forest = RandomForestClassifier(100, oob_score=True, random_state=0).fit(X, y)
    proba = forest.oob_decision_function_
    code = np.searchsorted(forest.classes_, y)
    few = X[:, :12:4]
    logistic = LogisticRegression().fit(few, y)
    losses = [
        -np.log(np.clip(p[np.arange(len(y)), code], 1e-6, 1))
        for p in (logistic.predict_proba(few), proba)
    ]
    yield "letters, g = 0", (*losses, np.zeros(len(y)))
    model = AdaptLstsqClassifier(cost_penalty=0.0, random_state=0).fit(X, y, full_proba=proba)
    cheap = -np.log(model.cheap_.predict_proba(X)[np.arange(len(y)), code])
    yield "letters, learnt", (cheap, losses[1], model.gate_function(X))


def fastest(run: Callable[[], Any]) -> tuple[Any, float]:
    times = []
    for _ in range(3):
        begin = time.process_time()
        result = run()
        times.append(time.process_time() - begin)
    return result, min(times)


def alone(problem: Problem, full_rate: float) -> tuple[float, int]:
    """Value and iterations of ADMM that knows no multiplier."""
    cheap, full, gate = problem
    n = len(gate)
    rows = Rows(cheap - full, gate, np.full(n, 1 / n), float(full.mean()))
    found = admm(rows, full_rate, rows.minimum(0.0, None), 0.0, tol=1e-5, max_iter=300)
    step, _ = multiplier(found.s, full_rate, rows.share, None)
    return rows.value(1 / (1 + np.exp(step - found.s))), found.n_iter


def main(quick: bool) -> None:
    sizes = (1_000,) if quick else (100, 1_000, 12_000)
    problems = [
        (f"random {n:,}, scale {scale:g}", random_problem(n, scale))
        for n in sizes
        for scale in (0.5, 2.0, 6.0)
    ]
    problems += [] if quick else list(letters_problems())
    print(
        f"{'problem':>24}  {'rate':>4}  {'gap':>8}  {'ADMM':>4}  {'passes':>6}  {'seconds':>7}  {'× OPT1':>6}  "
        f"{'warm ×':>6}  {'alone: gap':>10}  {'ADMM':>4}  {'× OPT1':>6}"
    )
    for name, problem in problems:
        for full_rate in (0.05, 0.3, 0.6):
            _, first = fastest(lambda p=problem, r=full_rate: allocate(*p, r))
            found, seconds = fastest(lambda p=problem, r=full_rate: allocate_lstsq(*p, r))
            near = (problem[0] * 1.001, *problem[1:])
            _, warm = fastest(
                lambda p=near, r=full_rate, b=found.beta: allocate_lstsq(*p, r, start=b)
            )
            (value, n_iter), by_itself = fastest(lambda p=problem, r=full_rate: alone(p, r))
            scale = 1 + abs(found.bound)
            print(
                f"{name:>24}  {full_rate:>4}  {(found.objective - found.bound) / scale:>8.0e}  {found.n_iter:>4}  "
                f"{found.n_passes:>6}  {seconds:>7.4f}  {seconds / first:>6.0f}  {warm / first:>6.0f}  "
                f"{(value - found.bound) / scale:>10.0e}  {n_iter:>4}  {by_itself / first:>6.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main("--quick" in sys.argv[1:])
