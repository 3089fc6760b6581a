"""
What a shared needle changes
============================

Five blood tests need one blood draw. A price list that says so charges the second test of a patient less than the
first. One fit is counted here by three lists: the draw at 2.10 and paid once, at 20 and paid once, and at 20 for every
test as if each had a needle of its own. Nothing is refitted in between.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestClassifier

from sparing import AdaptGbrtClassifier, FeatureCosts, Frontier, FrontierDisplay
from sparing.datasets import load_hypothyroid

data = load_hypothyroid()
rows = np.arange(len(data.target))
learn, look = rows % 2 == 0, rows % 2 == 1
print(data.costs)

# %%
# Shared items are paid once per row; a derived column such as FTI needs what its inputs need and has no price itself.
lab = ["TSH", "T3", "TT4", "T4U", "TBG"]
content = data.costs.to_dict()
dear = content | {"shared": {"blood draw": {"price": 20.0, "columns": lab}}}
needles = {f"needle for {test}": {"price": 20.0, "columns": [test]} for test in lab}
lists = {
    "one draw at 2.10": data.costs,
    "one draw at 20": FeatureCosts.from_dict(dear),
    "20 for every test": FeatureCosts.from_dict(content | {"shared": needles}),
}

# %%
# One test and two tests, by the three lists; and FTI, which is two tests.
for name, costs in lists.items():
    prices = [costs.of(columns) for columns in (["TSH"], ["TSH", "TT4"], ["FTI"])]
    print(f"{name:18s} TSH {prices[0]:.2f}, TSH and TT4 {prices[1]:.2f}, FTI {prices[2]:.2f}")

# %%
# One fit, at the real prices, with a system for each of four penalties.
clf = AdaptGbrtClassifier(
    RandomForestClassifier(100, oob_score=True),
    feature_costs=data.costs,
    cost_penalty=[0.01, 0.003, 0.001, 0.0003],
    n_estimators=50,
    random_state=0,
).fit(data.data[learn], data.target[learn])

# %%
# Its systems, re-priced. Where the draw is paid once, everything moves to the right by at most one needle; where every
# test brings its own, systems with several tests move much further.
frontier = Frontier.evaluate(clf, data.data[look], data.target[look])
curves = {name: frontier.reprice(costs) for name, costs in lists.items()}
figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
FrontierDisplay.from_frontier(curves, ax=ax)
for name, curve in curves.items():
    print(f"{name}: within half a point of the full model for {curve.at(tolerance=0.005).cost:.2f}")
