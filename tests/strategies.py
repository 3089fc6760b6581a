"""Shared hypothesis strategies: price lists, sets of columns, allocation problems."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from sparing.costs import FeatureCosts

PRICE = st.one_of(st.just(0.0), st.floats(0.01, 1000.0).map(lambda p: round(p, 2)))


@st.composite
def price_lists(draw, named: bool | None = None, n_columns: int | None = None):
    """Plain data of a price list: private prices, overlapping shared items, derived columns without circles."""
    n = draw(st.integers(1, 7)) if n_columns is None else n_columns
    named = draw(st.booleans()) if named is None else named
    columns = [f"c{i}" for i in range(n)] if named else list(range(n))
    prices = draw(st.lists(PRICE, min_size=n, max_size=n))
    some = st.lists(st.sampled_from(columns), min_size=1, unique=True)
    shared = {
        f"item {i}": {"price": draw(PRICE), "columns": draw(some)}
        for i in range(draw(st.integers(0, 3)))
    }
    derived = {}
    for i in range(1, n):  # from earlier columns only: derived of derived, never a circle
        if draw(st.integers(0, 4)) == 0:
            inputs = st.lists(st.sampled_from(columns[:i]), min_size=1, unique=True)
            derived[columns[i]] = draw(inputs)
    return {
        "prices": dict(zip(columns, prices, strict=True)) if named else prices,
        "shared": shared,
        "derived": derived,
        "call_price": draw(st.one_of(PRICE, st.lists(PRICE, min_size=1, max_size=4))),
    }


def feature_costs(**options):
    """Price lists as :class:`FeatureCosts`."""
    return price_lists(**options).map(FeatureCosts.from_dict)


@st.composite
def costs_and_masks(draw, n_masks: int = 1):
    """Prices and some sets of their columns, as masks."""
    costs = draw(feature_costs())
    mask = npst.arrays(bool, len(costs.columns))
    return costs, *(draw(mask) for _ in range(n_masks))


@st.composite
def costs_rows_owned(draw, max_rows: int = 6):
    """Prices, one set of columns per row, and the items each row owns."""
    costs = draw(feature_costs())
    n = draw(st.integers(0, max_rows))
    masks = draw(npst.arrays(bool, (n, len(costs.columns))))
    owned = draw(npst.arrays(bool, (n, len(costs.items))))
    return costs, masks, owned


@st.composite
def allocation_problems(draw, max_rows: int = 30, largest: float = 40.0):
    """Losses, gate scores, weights (or None) and a full rate strictly between 0 and 1."""
    n = draw(st.integers(1, max_rows))
    loss = npst.arrays(float, n, elements=st.floats(0.0, largest))
    gate = npst.arrays(float, n, elements=st.floats(-largest, largest))
    weight = st.one_of(st.none(), npst.arrays(float, n, elements=st.floats(0.01, 10.0)))
    rate = st.floats(1e-3, 1.0 - 1e-3)
    return draw(loss), draw(loss), draw(gate), draw(weight), draw(rate)


def class_codes(n_rows: int, n_classes: int):
    """Codes 0..n_classes-1 of some rows."""
    return npst.arrays(np.intp, n_rows, elements=st.integers(0, n_classes - 1))
