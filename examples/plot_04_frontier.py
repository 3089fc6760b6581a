"""
What does a budget buy
======================

One fit of ``BudgetedClassifier`` is a whole frontier. Two methods are raced on the hypothyroid patients; a quarter of
the training rows chooses, and rows that took no part show what the chosen systems really cost and score.
"""

import matplotlib.pyplot as plt
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from sparing import AdaptGbrtClassifier, BudgetedClassifier, FrontierDisplay, GreedyMiserClassifier
from sparing.datasets import load_hypothyroid

data = load_hypothyroid()
X, X_test, y, y_test = train_test_split(
    data.data, data.target, stratify=data.target, random_state=0
)

# %%
# A method may be a name, or a classifier with settings of your own; several penalties give a system each.
penalties = [0.02, 0.01, 0.005, 0.002, 0.0005]
clf = BudgetedClassifier(
    RandomForestClassifier(100, oob_score=True),
    method=[
        AdaptGbrtClassifier(n_estimators=50, cost_penalty=penalties),
        GreedyMiserClassifier(n_estimators=100, cost_penalty=penalties),
    ],
    feature_costs=data.costs,
    tolerance=0.005,
    random_state=0,
).fit(X, y)
print(clf.choice_)

# %%
# Left: on the rows that chose, where the best of many looks better than it is. Right: the same systems on other rows,
# with bootstrap bands, still chosen by the first.
figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.5), sharey=True, layout="constrained")
FrontierDisplay.from_frontier(clf.frontier_, ax=left)
report = clf.frontier_.on(X_test, y_test)
FrontierDisplay.from_frontier(report, tolerance=0.005, level=0.95, ax=right)
left.set_title("validation rows: they choose")
right.set_title("test rows: they report")

# %%
# Other wishes, nothing refitted.
for budget in (1, 5, 15, 30):
    chosen = clf.at(budget=budget)
    cost = chosen.acquisition_cost(X_test).mean()
    print(
        f"budget {budget:2d}: {cost:5.2f} paid on test rows, accuracy {chosen.score(X_test, y_test):.4f}"
    )
