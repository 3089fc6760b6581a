"""Adapt-Gbrt in plain NumPy, slow and exact: what the LightGBM engine must do, split by split.

Trees are greedy CART on the paper's impurity: least squares on the negative gradient plus the price of a column at its
first use. A round that bought something is grown again with the columns paid, as in the engine. Tried on small tables
of distinct numbers only: there is one best split then.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.special import expit, logit


@dataclass
class Node:
    rows: np.ndarray
    depth: int
    value: float
    column: int | None = None
    left: "Node | None" = None
    right: "Node | None" = None

    def form(self):
        """Nested tuples: column, rows sent left, and the same of both children."""
        if self.column is None:
            return None
        sent = frozenset(self.left.rows.tolist())
        return (self.column, sent, self.left.form(), self.right.form())

    def add_to(self, scores, rate):
        if self.column is None:
            scores[self.rows] += rate * self.value
        else:
            self.left.add_to(scores, rate)
            self.right.add_to(scores, rate)

    def columns(self):
        if self.column is None:
            return set()
        return {self.column} | self.left.columns() | self.right.columns()


@dataclass
class Wallet:
    """Prices in units of the gain of a split, which is twice the fall of the impurity."""

    costs: object
    unit: float
    bought: list = field(default_factory=list)

    def prices(self):
        needed = self.costs.needs[self.bought].any(axis=0)
        return self.unit * self.costs.marginal(needed)


def best_split(X, gradient, rows, prices, min_rows):
    """(gain − price, column, rows left, rows right) of the best split of these rows, or None."""
    best = None
    for column in range(X.shape[1]):
        order = rows[np.argsort(X[rows, column], kind="stable")]
        x, n = X[order, column], len(order)
        left = np.cumsum(gradient[order])[:-1]
        n_left = np.arange(1, n)
        gain = left**2 / n_left + (gradient[order].sum() - left) ** 2 / (n - n_left)
        gain -= gradient[order].sum() ** 2 / n
        gain[(x[1:] == x[:-1]) | (n_left < min_rows) | (n - n_left < min_rows)] = -np.inf
        if not len(gain) or not np.isfinite(gain.max()):
            continue
        k = int(gain.argmax())
        worth = gain[k] - prices[column]
        if best is None or worth > best[0]:
            best = (worth, column, np.sort(order[: k + 1]), np.sort(order[k + 1 :]))
    return best


def grow_tree(X, gradient, wallet, max_depth, min_rows):
    """Best leaf first; a column bought at one split is free at the next one, wherever it is."""

    def leaf(rows, depth):
        return Node(rows, depth, -gradient[rows].mean())

    root = leaf(np.arange(len(X)), 0)
    open_leaves = [root]
    while True:
        prices = wallet.prices()
        candidates = [
            (split, node)
            for node in open_leaves
            if node.depth < max_depth
            and (split := best_split(X, gradient, node.rows, prices, min_rows)) is not None
            and split[0] > 1e-8
        ]
        if not candidates:
            return root
        (_, column, left, right), node = max(candidates, key=lambda c: c[0][0])
        if column not in wallet.bought:
            wallet.bought.append(column)
        node.column = column
        node.left, node.right = leaf(left, node.depth + 1), leaf(right, node.depth + 1)
        open_leaves = [n for n in open_leaves if n is not node] + [node.left, node.right]


def boost(X, y, q, costs, cost_penalty, n_rounds, rate, max_depth, min_rows):
    """Trees of f1 and g, round by round: (forms of the trees, purchases (column, round), scores)."""
    n = len(y)
    wallet = Wallet(costs, 2.0 * n * cost_penalty)
    kept = np.bincount(y, 1.0 - q, minlength=2)
    cheap, gate = np.full(n, np.log(kept[1] / kept[0])), np.full(n, logit(q.mean()))
    forms, purchases = [], []
    for t in range(n_rounds):
        # LightGBM holds gradients in single precision.
        gradients = [
            ((1.0 - q) * (expit(cheap) - y)).astype(np.float32).astype(float),
            (expit(gate) - q).astype(np.float32).astype(float),
        ]
        while True:
            before = len(wallet.bought)
            trees = [grow_tree(X, gradient, wallet, max_depth, min_rows) for gradient in gradients]
            purchases += [(column, t) for column in sorted(wallet.bought[before:])]
            if len(wallet.bought) == before:
                break
        trees[0].add_to(cheap, rate)
        trees[1].add_to(gate, rate)
        forms.append(tuple(tree.form() for tree in trees))
    return forms, purchases, cheap, gate


def forms_of_booster(booster, X):
    """The trees of a booster in the form of :meth:`Node.form`, one tuple of trees per round."""
    n_outputs = booster.num_model_per_iteration()

    def form(node, rows):
        if "split_feature" not in node:
            return None
        left = X[rows, node["split_feature"]] <= node["threshold"]
        children = form(node["left_child"], rows[left]), form(node["right_child"], rows[~left])
        return (node["split_feature"], frozenset(rows[left].tolist()), *children)

    trees = booster.dump_model(num_iteration=-1)["tree_info"]
    forms = [form(tree["tree_structure"], np.arange(len(X))) for tree in trees]
    return [tuple(forms[i : i + n_outputs]) for i in range(0, len(forms), n_outputs)]
