"""
How sure is a promise
=====================

A system chosen on a few hundred rows is partly a lucky one. A certificate comes from rows used for nothing else: with
confidence 0.95 the accuracy lost stays below a limit. More rows certify cheaper systems; with too few there is an
error that says how many would do.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from sparing import AdaptLinClassifier, Frontier, Guarantee, PromiseError, certify

# %%
# Rows to play with: 1000 to learn, 500 to choose, 6000 to promise by, 5000 to see whether it holds.
X, y = make_classification(
    12500, 6, n_informative=4, n_redundant=0, n_clusters_per_class=3, flip_y=0.02, random_state=17
)
X, X_world, y, y_world = train_test_split(X, y, test_size=5000, random_state=0)
clf = AdaptLinClassifier(
    SVC(), full_rate=[0.3, 0.6], cost_penalty=[0.03, 0.01, 0.003], cv=3, random_state=0
).fit(X[:1000], y[:1000])
frontier = Frontier.evaluate(clf, X[1000:1500], y[1000:1500])
rest, rest_y = X[1500:], y[1500:]

# %%
# The same wish with more and more calibration rows, eight times each with other rows.
wish = Guarantee(tolerance=0.02, confidence=0.95)
sizes = [250, 500, 1000, 2000]
rng = np.random.default_rng(0)
costs, losses = {size: [] for size in sizes}, {size: [] for size in sizes}
full = (frontier.full.system.predict(X_world) == y_world).mean()
for size in sizes:
    for _ in range(8):
        rows = rng.choice(len(rest), size, replace=False)
        try:
            system = certify(frontier, rest[rows], rest_y[rows], wish).system
        except PromiseError:
            continue
        costs[size].append(system.acquisition_cost(X_world).mean())
        losses[size].append(full - (system.predict(X_world) == y_world).mean())

# %%
# Left: what the promised system costs. Right: what it loses on 5000 other rows. A promise with confidence 0.95 may be
# broken one time in twenty, and 5000 rows themselves measure a loss to about half a point.
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
for size in sizes:
    place = np.full(len(costs[size]), size)
    left.plot(place, costs[size], "o", color="#0072B2", alpha=0.6)
    right.plot(place, 100 * np.array(losses[size]), "o", color="#0072B2", alpha=0.6)
right.axhline(100 * wish.tolerance, color="#D55E00")
left.axhline(frontier.full.cost, color="#6E6E6E", linestyle=":")
left.set(xlabel="calibration rows", ylabel="average cost", title="promised systems")
right.set(xlabel="calibration rows", ylabel="points lost", title="what they lose")

# %%
# One of the certificates, and the error when there are too few rows.
print(certify(frontier, rest[:2000], rest_y[:2000], wish).certificate)
try:
    certify(frontier, rest[:60], rest_y[:60], wish)
except PromiseError as error:
    print(error)
