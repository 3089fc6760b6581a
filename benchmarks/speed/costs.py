"""Cost of one set of columns per row: seconds for a million rows of fifty columns.

python benchmarks/speed/costs.py [n_rows]
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

from sparing import FeatureCosts

N_COLUMNS = 50


def price_lists() -> dict[str, FeatureCosts]:
    prices = np.random.default_rng(0).uniform(1.0, 20.0, N_COLUMNS)
    panels = {f"panel {i}": (5.0, range(5 * i, 5 * i + 5)) for i in range(6)}
    derived = {49: [0, 7], 48: [49, 12]}
    return {
        "one price per column": FeatureCosts(prices),
        "six panels, two derived columns": FeatureCosts(prices, shared=panels, derived=derived),
    }


def main(n_rows: int) -> None:
    rng = np.random.default_rng(1)
    mask = rng.random((n_rows, N_COLUMNS)) < 0.3
    print(f"{n_rows:,} rows of {N_COLUMNS} columns")
    print(f"{'price list':<32}  {'owned':>5}  {'seconds':>7}")
    for name, costs in price_lists().items():
        owned = rng.random((n_rows, len(costs.items))) < 0.1
        for items in (None, owned):
            begin = time.perf_counter()
            costs.of(mask, owned=items)
            seconds = time.perf_counter() - begin
            print(f"{name:<32}  {'no' if items is None else 'yes':>5}  {seconds:>7.2f}")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
