"""
Who is sent to the full model
=============================

The first figure of the paper: Synthetic-1, two columns, an RBF-SVM as the full model, no prices. A cheap model answers
where it can; the gate keeps the ambiguous middle for the SVM.
"""

import matplotlib.pyplot as plt
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.svm import SVC

from sparing import AdaptGbrtClassifier, AdaptLinClassifier, RoutingDisplay
from sparing.datasets import make_synthetic1

X, y = make_synthetic1()
svm = SVC(gamma=1.0)

# %%
# The linear pair, after one alternation and after ten; up to 60% of the rows may go to the SVM.
lin = {
    n: AdaptLinClassifier(
        svm, full_rate=0.6, cost_penalty=0, max_iter=n, tol=0, random_state=0
    ).fit(X, y)
    for n in (1, 10)
}

# %%
# The boosted pair, five least-squares trees of depth two each, as in the paper. Their leaves are mean gradients, a
# quarter of a Newton step or less: with five trees only, the rate makes up for it.
gbrt = {
    n: AdaptGbrtClassifier(
        svm,
        full_rate=0.6,
        cost_penalty=0,
        n_estimators=5,
        max_depth=2,
        learning_rate=4.0,
        newton=False,
        schedule="alternate",
        gate="joint",
        max_iter=n,
        tol=0,
        random_state=0,
    ).fit(X, y)
    for n in (1, 10)
}

# %%
# Six panels: data, linear after 1 and 10 alternations; the SVM, boosted after 1 and 10.
figure, axes = plt.subplots(2, 3, figsize=(13, 8), layout="constrained")
axes[0, 0].scatter(*X.T, c=y, s=8, cmap="coolwarm")
axes[0, 0].set_title("(a) data")
full = lin[10].estimator_
DecisionBoundaryDisplay.from_estimator(
    full, X, response_method="decision_function", ax=axes[1, 0], alpha=0.5, cmap="coolwarm"
)
axes[1, 0].set_title(f"(d) full model, accuracy {full.score(X, y):.3f}")
for row, (name, learnt) in enumerate({"linear": lin, "boosted": gbrt}.items()):
    for column, (n, clf) in enumerate(learnt.items(), start=1):
        RoutingDisplay.from_estimator(clf, X, y, ax=axes[row, column])
        sent = clf.route(X).mean()
        letter = "bcef"[2 * row + column - 1]
        axes[row, column].set_title(
            f"({letter}) {name}, {n} alternation{'s' * (n > 1)}: {clf.score(X, y):.3f}, {sent:.0%} sent"
        )

# %%
# Accuracy of the composite, and the share that is sent on.
print(f"full model {full.score(X, y):.4f}")
for name, learnt in {"Adapt-Lin": lin, "Adapt-Gbrt": gbrt}.items():
    print(f"{name} {learnt[10].score(X, y):.4f}, {learnt[10].route(X).mean():.0%} sent")
