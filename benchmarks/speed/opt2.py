"""Speed of the linear engine (OPT2): against scikit-learn's saga to the same optimality, and along a path.

Run ``python benchmarks/speed/opt2.py``; times are processor seconds of one run, to be read as ratios.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from sparing.engines.linear import LinearProblem
from sparing.engines.penalty import GroupPenalty


def make(n: int, k: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Correlated Gaussian columns, labels of a sparse logistic model, an allocation."""
    rng = np.random.default_rng(seed)
    mixing = np.linalg.cholesky(0.5 ** np.abs(np.subtract.outer(np.arange(k), np.arange(k))))
    Z = rng.standard_normal((n, k)) @ mixing.T
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    coef = np.where(np.arange(k) % 5 == 0, rng.standard_normal(k), 0.0)
    y = (Z @ coef + rng.logistic(size=n) > 0).astype(int)
    return Z, y, rng.uniform(size=n)


def l1_violation(Z: np.ndarray, y: np.ndarray, coef: np.ndarray, b: float, price: float) -> float:
    """Distance to the subdifferential of mean log-loss + price × ‖coef‖₁, as the engine measures it."""
    residual = (1 / (1 + np.exp(-(Z @ coef + b))) - y) / len(y)
    slope = Z.T @ residual
    at_zero = np.maximum(np.abs(slope) - price, 0.0)
    gap = np.where(coef == 0, at_zero, slope + price * np.sign(coef))
    return float(np.hypot(np.linalg.norm(gap), residual.sum()))


def saga(Z: np.ndarray, y: np.ndarray, price: float, goal: float) -> tuple[float, float]:
    """Processor seconds saga takes to a violation of ``goal``, and the violation reached."""
    tol = 1e-3
    while True:
        model = LogisticRegression(
            l1_ratio=1.0, C=1 / (len(y) * price), solver="saga", tol=tol, max_iter=5000
        )
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(Z, y)
        seconds = time.process_time() - began
        reached = l1_violation(Z, y, model.coef_[0], model.intercept_[0], price)
        if reached <= goal or tol < 1e-9:
            return seconds, reached
        tol /= 10


def main() -> None:
    """Print a small table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=45_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--goal", type=float, default=1e-6)
    given = parser.parse_args()
    Z, y, q = make(given.rows, given.columns)
    problem = LinearProblem(Z, y, 2)
    prices = GroupPenalty(
        [[j] for j in range(given.columns)], np.ones(given.columns), given.columns
    )
    alone = 0.1 * problem.max_penalty(None, prices, ridge=0.0, gate=False)
    joint = 0.1 * problem.max_penalty(q, prices)

    def timed(call):
        began = time.process_time()
        result = call()
        return time.process_time() - began, result

    seconds, fit = timed(
        lambda: problem.solve(None, prices.scaled(alone), ridge=0.0, gate=False, tol=given.goal)
    )
    theirs, reached = saga(Z, y, alone, given.goal)
    cold, pair = timed(lambda: problem.solve(q, prices.scaled(joint), tol=given.goal))
    gammas = joint * 10 * np.logspace(0, -2, 20)
    last, _ = timed(lambda: problem.solve(q, prices.scaled(gammas[-1]), tol=given.goal))
    path, _ = timed(lambda: problem.path(q, prices, gammas, tol=given.goal))
    print(f"{given.rows} x {given.columns}, violation {given.goal:g}")
    print(f"f1 alone      {seconds:8.3f} s  violation {fit.violation:.1e}")
    print(f"saga          {theirs:8.3f} s  violation {reached:.1e}  ratio {seconds / theirs:.4f}")
    print(f"f1 and g      {cold:8.3f} s  violation {pair.violation:.1e}")
    print(f"path of 20    {path:8.3f} s  multiple of that cold fit {path / cold:.2f}")
    print(f"its last one  {last:8.3f} s  cold; the path is {path / last:.2f} times that")


if __name__ == "__main__":
    main()
