"""An order for many columns: a kernel machine gives up scales of columns as their prices rise.

With hundreds of columns, giving them up a dozen at a time by how much each is missed alone is rough: columns that say
the same are all dispensable until most of them are gone. Here every column has a scale s ≥ 0 in a Gaussian kernel
exp(-|s (x - x')|²), and all scales together follow the gradient of the loss of ridge regression with this kernel on
rows it was not fitted to, plus λ × price × s. While λ rises, scales reach 0, where they stay: the order in which
columns vanish, read backwards, is the order of purchases. On CIFAR-10 (400 columns, kernel regression on 8000 rows)
orders from 600 steps are 0.2 to 1.8 points of accuracy better at 10 to 150 columns than giving up by the size of the
gradients, and take 75 s.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from sparing.cascade.network import Codes, Floats, Singles
from sparing.cascade.offers import Offers

_STEPS = 600
_ROWS = 1500
"""Rows that a step fits, and as many that it judges by, at most; fresh ones for every step."""
_RIDGE = 1.0
_PENALTIES = 0.02, 1.0
"""What all columns at their first scales would cost, at first and at last; not knowing anything costs 0.5."""
_RATE = 0.02
"""Largest step of a scale, as a part of its first value."""
_DECAYS = 0.9, 0.99
_SMALL = 1e-6


def kernel_order(
    offers: Offers,
    owner: NDArray[np.intp],
    Z: Singles,
    y: Codes,
    n_classes: int,
    weight: Floats | None = None,
    seed: int = 0,
    steps: int | None = None,
) -> list[int]:
    """Order of offers, the one that is kept longest first.

    Parameters
    ----------
    offers : what can be bought.
    owner : column behind each input.
    Z : rows as standardised inputs.
    y : class codes.
    n_classes : number of classes.
    weight : weights of the rows, which are drawn by them.
    seed : of the rows of every step.
    steps : in all; None is 600.
    """
    rng, prices = np.random.default_rng(seed), _column_prices(offers)
    chances = None if weight is None else weight / weight.sum()
    there = len(y) if weight is None else int(np.count_nonzero(weight))
    n = min(_ROWS, there // 2)
    targets = _targets(y, n_classes)
    scales = np.full(len(prices), 1 / np.sqrt(len(prices)))
    penalties = np.geomspace(*_PENALTIES, steps or _STEPS) / (prices @ scales)
    rate, last_alive = _RATE * scales[0], np.zeros(len(prices))
    mean, square = np.zeros(len(prices)), np.zeros(len(prices))
    for step, penalty in enumerate(penalties):
        alive = scales > 0
        used = alive[owner]
        drawn = rng.choice(len(y), 2 * n, replace=False, p=chances)
        slopes = np.zeros(len(prices))
        of_inputs = _slopes(
            Z[np.ix_(drawn, used)], targets[drawn], scales[owner][used].astype(np.float32)
        )
        np.add.at(slopes, owner[used], of_inputs)
        slopes += penalty * prices
        # Adam's steps (Kingma and Ba, 2015), and never below 0.
        mean += (1 - _DECAYS[0]) * (slopes - mean)
        square += (1 - _DECAYS[1]) * (slopes**2 - square)
        size = np.sqrt(square / (1 - _DECAYS[1] ** (step + 1))) + _SMALL
        move = rate * mean / (1 - _DECAYS[0] ** (step + 1)) / size
        scales = np.where(alive, np.maximum(scales - move, 0), 0)
        last_alive[scales > 0] = step + 1
        if not scales.any():
            break
    return _by_columns(offers, last_alive, scales)


def _slopes(rows: Singles, targets: Singles, scales: Singles) -> Floats:
    """Slopes of the loss by the scales: the first half of the rows is fitted, the other half judges."""
    n = len(rows) // 2
    fitted, held_out = rows[:n] * scales, rows[n:] * scales
    among, across = _kernel(fitted, fitted), _kernel(held_out, fitted)
    ridge = among.copy()
    ridge[np.diag_indices(n)] += _RIDGE
    factor = cho_factor(ridge, overwrite_a=True, check_finite=False)
    dual = cho_solve(factor, targets[:n], check_finite=False)
    residual = (across @ dual - targets[n:]) / (len(rows) - n)
    adjoint = cho_solve(factor, across.T @ residual, check_finite=False)
    direct = _spread(across * (residual @ dual.T), rows[n:], rows[:n])
    refitted = _spread(among * (adjoint @ dual.T), rows[:n], rows[:n])
    return np.asarray(-2 * scales * (direct - refitted), dtype=float)


def _kernel(left: Singles, right: Singles) -> Singles:
    products = left @ right.T
    products *= 2
    products -= (left**2).sum(axis=1)[:, None]
    products -= (right**2).sum(axis=1)
    return np.exp(np.minimum(products, 0, out=products), out=products)


def _spread(weights: Singles, left: Singles, right: Singles) -> Singles:
    """Sum over i, k of weights[i, k] × (left[i, j] - right[k, j])², for every j."""
    both = ((weights @ right) * left).sum(axis=0)
    return weights.sum(axis=1) @ left**2 + weights.sum(axis=0) @ right**2 - 2 * both


def _targets(y: Codes, n_classes: int) -> Singles:
    """Indicators of the classes around their means, with a variance of 1 in all."""
    shares = np.bincount(y, minlength=n_classes) / len(y)
    indicators = np.eye(n_classes)[y] - shares
    return (indicators / np.sqrt(max(1 - (shares**2).sum(), 1e-12))).astype(np.float32)


def _column_prices(offers: Offers) -> Floats:
    """What each column costs: columns that come together share the price, free ones cost nothing."""
    prices = np.zeros(len(offers.costs.columns))
    for columns, price in _by_offer(offers):
        prices[columns] = price / max(len(columns), 1)
    return prices


def _by_offer(offers: Offers) -> list[tuple[NDArray[np.intp], float]]:
    """Columns that each offer alone opens, and its price."""
    free = offers.mask([])
    return [
        (np.flatnonzero(offers.mask([offer]) & ~free), offers.price([offer]))
        for offer in range(len(offers))
    ]


def _by_columns(offers: Offers, last_alive: Floats, scales: Floats) -> list[int]:
    """Offers by how long one of their columns was alive, then by the scales that are left for their price."""
    keys = [
        (-last_alive[columns].max(initial=0), -scales[columns].sum() / price, offer)
        for offer, (columns, price) in enumerate(_by_offer(offers))
    ]
    return [offer for *_, offer in sorted(keys)]
