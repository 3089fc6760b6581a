"""Allocation step (OPT1) on ten million rows: passes over the data, seconds, peak memory.

    python benchmarks/speed/opt1.py [n_rows]

Losses and gate scores are drawn to look like those of a half-trained system: exponential losses, f1's larger, and a
gate that is right more often than not.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

from sparing._allocation import allocate


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(n_rows: int) -> None:
    rng = np.random.default_rng(0)
    cheap, full = rng.exponential(1.0, n_rows), rng.exponential(0.3, n_rows)
    gate = rng.normal(0.5 * (cheap - full), 2.0)
    weight = rng.uniform(0.5, 1.5, n_rows)
    allocate(cheap[:1000], full[:1000], gate[:1000], 0.3)  # imports and caches
    before = peak_megabytes()
    print(f"{n_rows:,} rows; data {4 * 8 * n_rows / 1e6:.0f} MB")
    print(
        f"{'full_rate':>9}  {'weights':>7}  {'start':>6}  {'passes':>6}  {'seconds':>7}  {'error':>8}"
    )
    for full_rate in (0.05, 0.3, 0.9):
        for weights in (None, weight):
            beta = None
            for start in ("sample", "warm"):
                begin = time.perf_counter()
                solution = allocate(cheap, full, gate, full_rate, weights, start=beta)
                seconds = time.perf_counter() - begin
                total = n_rows if weights is None else weights.sum()
                rate = (solution.q.sum() if weights is None else solution.q @ weights) / total
                error = rate - full_rate if solution.beta else 0.0
                print(
                    f"{full_rate:>9}  {'no' if weights is None else 'yes':>7}  {start:>6}  {solution.n_passes:>6}  "
                    f"{seconds:>7.2f}  {error:>8.0e}"
                )
                beta = solution.beta * 1.001  # as after a small change of the losses
                del solution
    extra = peak_megabytes() - before
    print(
        f"peak memory above the data: {extra:.0f} MB, {extra * 1e6 / n_rows / 8:.1f} doubles per row"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000)
