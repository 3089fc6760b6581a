"""
Why the columns are chosen together
===================================

Synthetic-2 of the paper: four clusters, two columns at 1 each, an RBF-SVM that needs both. An L1 logistic regression
picks the first column, which is the best single one; with it three of four clusters must go to the SVM. Chosen together
with a gate, the second column is better: it answers two clusters by itself.
"""

import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from sparing import AdaptLinClassifier, Frontier, FrontierDisplay, RoutingDisplay
from sparing.datasets import make_synthetic2

X, y = make_synthetic2()

# %%
# The column an L1 penalty keeps longest.
l1 = LogisticRegression(C=0.2, l1_ratio=1.0, solver="liblinear").fit(X, y)
print("L1 coefficients", l1.coef_.round(2))

# %%
# Adapt-Lin with default settings: all points right at an average cost of 110/70.
clf = AdaptLinClassifier(SVC(), full_rate=0.6, random_state=0).fit(X, y)
cost = clf.acquisition_cost(X).mean()
print(f"Adapt-Lin: accuracy {clf.score(X, y):.3f} at {cost:.3f}, columns {clf.stages_[0].columns}")

# %%
# Who is sent on, and every system of the fit.
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
RoutingDisplay.from_estimator(clf, X, y, ax=left)
FrontierDisplay.from_frontier(Frontier.evaluate(clf.staged_systems(), X, y), ax=right)
