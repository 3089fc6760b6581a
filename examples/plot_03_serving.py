"""
A served system buys what it needs
==================================

A patient comes in; every test costs money. The session orders the few blood tests that the cheap stage reads, answers
most patients with them, and orders the rest only for those the gate sends on. The ledger keeps the books: nobody pays
twice for a test that is still valid.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np

from sparing import AdaptGbrtClassifier
from sparing.datasets import load_hypothyroid
from sparing.runtime import Ledger, Limits, MappingSource, Session

data = load_hypothyroid()
train, today = np.arange(len(data.target)) % 5 != 0, slice(0, None, 5)
clf = AdaptGbrtClassifier(
    feature_costs=data.costs, full_rate=0.1, n_estimators=60, random_state=0
).fit(data.data[train], data.target[train])
print(clf.system_)

# %%
# Two sources: what the patient says, and the laboratory. Each is asked once per round trip, both at the same time.
people = data.data[today][:300]
items = data.costs.items
lab = [item for item in items if data.costs.item_prices[items.index(item)] > 1]
told = [item for item in items if item not in lab]
sources = [
    MappingSource(people, told, columns=data.costs.columns, name="questions"),
    MappingSource(people, lab, columns=data.costs.columns, name="laboratory"),
]

# %%
# Every patient once, and the first hundred again: their tests are still valid.
everybody = [*range(len(people)), *range(100)]
with TemporaryDirectory() as folder, Ledger(Path(folder, "books.db")) as ledger:
    session = Session(clf, sources, ledger=ledger, limits=Limits(per_entity=data.costs.total))
    answers = [session.predict(patient) for patient in everybody]
    by_item = ledger.by_item()
    paid = ledger.total()

cost = np.array([answer.cost for answer in answers])
first = answers[: len(people)]
assert np.array_equal([a.prediction for a in first], clf.predict(people))
assert np.isclose(cost[: len(people)].sum(), clf.acquisition_cost(people).sum())
assert np.isclose(cost.sum(), paid)

# %%
# What was spent, patient by patient, beside buying everything for everybody; and how often each item was bought.
figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.5), layout="constrained")
left.plot(data.costs.total * np.arange(1, len(cost) + 1), color="#6E6E6E", label="every test")
left.plot(cost.cumsum(), color="#0072B2", label="session with ledger")
sent = np.flatnonzero([answer.stage > 0 and answer.cost > 0 for answer in answers])
left.plot(sent, cost.cumsum()[sent], "o", color="#D55E00", markersize=4, label="sent on")
left.axvline(len(people), color="#6E6E6E", linewidth=0.8, linestyle=":")
left.set(xlabel="answers", ylabel="dollars spent", title="The first hundred come twice")
left.legend(frameon=False)
bars = sorted(by_item, key=lambda row: row["spent"])[-10:]
right.barh([str(row["item"]) for row in bars], [row["purchases"] for row in bars], color="#0072B2")
right.axvline(len(people), color="#6E6E6E", linewidth=0.8, linestyle=":")
right.set(xlabel=f"bought, of {len(people)} patients", title="The ten dearest items")

# %%
# In all.
right = np.mean([answer.prediction for answer in first] == data.target[today][: len(people)])
everything = data.costs.total * len(cost)
print(f"{len(cost)} answers, {paid:.2f} dollars; every test for everybody {everything:.2f}")
print(f"{len(sent)} sent on; accuracy {right:.3f}")
