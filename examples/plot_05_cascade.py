"""
Questions, then one blood test, then the laboratory
===================================================

The stages of a clinic are known: first what the patient says, then one blood test, then the whole laboratory.
``CascadeClassifier`` takes them as they are, fits a model for each and finds out how sure one must be to stop. Who pays
for what is drawn item by item.
"""

import matplotlib.pyplot as plt
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from sparing import AcquisitionDisplay, CascadeClassifier, Frontier, FrontierDisplay
from sparing.datasets import load_hypothyroid

data = load_hypothyroid(as_frame=True)
X, X_test, y, y_test = train_test_split(
    data.data, data.target, stratify=data.target, random_state=0
)

# %%
# Every stage has the columns of the one before. The last stage, everything, is the full model and need not be named.
said = list(X.columns[:13])
cascade = CascadeClassifier(
    RandomForestClassifier(100, oob_score=True, min_samples_leaf=2),
    feature_costs=data.costs,
    stages={"questionnaire": said, "TSH": [*said, "TSH"], "TT4": [*said, "TSH", "TT4"]},
    stage_estimator="own",
    tolerance=0.002,
    cv=3,
    random_state=0,
).fit(X, y)
print(cascade.system_)

# %%
# A bar is one item, as long as the share of the patients that pay for it, coloured by the stage that answers them.
AcquisitionDisplay.from_estimator(cascade, X_test)

# %%
# One fit is a frontier here too: the same stages, other thresholds.
figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
FrontierDisplay.from_frontier(Frontier.evaluate(cascade, X_test, y_test), tolerance=0.005, ax=ax)

# %%
# Accuracy and average price on patients that took no part.
for tolerance in (0.0, 0.005, 0.02):
    other = cascade.at(tolerance=tolerance)
    stops = [f"{(other.route(X_test) == stage).mean():.0%}" for stage in range(4)]
    price = other.acquisition_cost(X_test).mean()
    print(f"{tolerance:.3f}: {other.score(X_test, y_test):.4f} for {price:5.2f}, stops {stops}")
