"""The linear engine (OPT2) against scikit-learn's SAGA, and a warm-started path against one cold fit.

    python benchmarks/speed/opt2.py [--rows 45000] [--columns 50] [--repeats 3]

Both solvers run in one process on one thread and stop at the same distance to the subdifferential, measured by the same
code: ours on f1 and g together, SAGA on an L1 logistic regression of the same size, f1 alone. SAGA's own tolerance is
lowered until the violation is reached, and only the run that reaches it counts. Features are correlated Gaussians, a
third of them matter, and q is a smooth function of two of them. Times are of the processor, so that other work on the
machine does not count.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from sparing.engines.linear import LinearProblem
from sparing.engines.penalty import GroupPenalty

SHARES = (0.1, 0.01)
"""Penalties, as shares of the smallest one at which nothing is bought."""


def make(n_rows: int, n_columns: int, correlation: float = 0.7) -> tuple[np.ndarray, ...]:
    """Design, labels and allocation."""
    rng = np.random.default_rng(0)
    position = np.arange(n_columns)
    covariance = correlation ** np.abs(position[:, None] - position)
    Z = rng.standard_normal((n_rows, n_columns)) @ np.linalg.cholesky(covariance).T
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    coef = np.where(position < n_columns // 3, rng.standard_normal(n_columns), 0.0)
    y = (rng.logistic(size=n_rows) < Z @ coef).astype(int)
    return Z, y, expit(Z[:, 1] - 0.3 * Z[:, 2] ** 2)


def timed(call: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Shortest of several runs, in seconds, and the last result."""
    seconds = []
    for _ in range(repeats):
        begin = time.process_time()
        result = call()
        seconds.append(time.process_time() - begin)
    return min(seconds), result


def saga_violation(
    Z: np.ndarray, y: np.ndarray, model: LogisticRegression, penalty: GroupPenalty
) -> float:
    """Distance to the subdifferential of mean log-loss + penalty, intercept included."""
    coef = model.coef_.T
    residual = (expit(Z @ coef[:, 0] + model.intercept_[0]) - y) / len(y)
    inside = penalty.violation(coef, (Z.T @ residual)[:, None])
    return float(np.hypot(inside, residual.sum()))


def saga(
    Z: np.ndarray, y: np.ndarray, penalty: GroupPenalty, gamma: float, goal: float, repeats: int
) -> tuple[float, float, int]:
    """Seconds, violation and epochs of the first tolerance that reaches the goal."""
    tol = 1e-3
    while True:
        model = LogisticRegression(
            solver="saga",
            l1_ratio=1.0,
            C=1.0 / (gamma * len(y)),
            tol=tol,
            max_iter=100_000,
            random_state=0,
        )
        begin = time.process_time()
        model.fit(Z, y)
        seconds = time.process_time() - begin
        violation = saga_violation(Z, y, model, penalty.scaled(gamma))
        if violation <= goal:
            if repeats > 1:
                seconds = min(seconds, timed(partial(model.fit, Z, y), repeats - 1)[0])
            return seconds, violation, int(model.n_iter_[0])
        tol /= 3.0


def main(arguments: list[str] | None = None) -> dict[str, float]:
    """Print the table; return the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=45_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--penalties", type=int, default=20, help="penalties of the path")
    parser.add_argument("--repeats", type=int, default=3, help="the shortest run counts")
    args = parser.parse_args(arguments)

    Z, y, q = make(args.rows, args.columns)
    problem = LinearProblem(Z, y, n_classes=2)
    penalty = GroupPenalty([[j] for j in range(args.columns)], np.ones(args.columns), args.columns)
    figures: dict[str, float] = {}
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        largest = problem.max_penalty(q, penalty)
        largest_saga = problem.max_penalty(None, penalty, gate=False)
        print(f"{args.rows:,} × {args.columns}, violation at most {args.tol:.0e}, one thread")
        print(f"{'':28}{'seconds':>9}{'violation':>11}{'steps':>7}{'columns':>9}{'ratio':>8}")
        for share in SHARES:
            seconds, fit = timed(
                lambda share=share: problem.solve(q, penalty.scaled(share * largest), tol=args.tol),
                args.repeats,
            )
            used = penalty.support(fit.coef).sum()
            print(
                f"{f'OPT2 at {share:g} of the largest':28}{seconds:9.3f}{fit.violation:11.0e}{fit.n_iter:7}{used:9}"
            )
            gamma = share * largest_saga
            other, violation, epochs = saga(Z, y, penalty, gamma, args.tol, args.repeats)
            ratio = figures[f"fit / saga at {share:g}"] = seconds / other
            print(
                f"{'  SAGA, f1 alone':28}{other:9.3f}{violation:11.0e}{epochs:7}{'':9}{ratio:8.3f}"
            )
        # The last fit above is the last of the path: what one would otherwise run for that penalty alone.
        gammas = largest * np.geomspace(1.0, SHARES[-1], args.penalties)
        whole, fits = timed(lambda: problem.path(q, penalty, gammas, tol=args.tol), args.repeats)
        ratio = figures["path / cold fit"] = whole / seconds
        steps, worst = sum(fit.n_iter for fit in fits), max(fit.violation for fit in fits)
        name = f"path of {args.penalties} down to {SHARES[-1]:g}"
        print(f"{name:28}{whole:9.3f}{worst:11.0e}{steps:7}{'':9}{ratio:8.3f}")
    return figures


if __name__ == "__main__":
    main()
