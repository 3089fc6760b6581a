"""Patients with numbers, gaps and words, and a price list for them."""

import numpy as np
import pandas as pd

PRICES = """
[prices]
age = 1
"blood pressure" = 2
lab = 20
smoker = 0
[shared."blood draw"]
price = 3
columns = ["lab"]
"""


def patients(n=300, seed=0):
    rng = np.random.default_rng(seed)
    age, pressure, lab = rng.normal(size=(3, n))
    smoker = rng.choice(np.array(["yes", "no", "NA"]), n)
    score = age + (smoker == "yes") + 2 * lab * (np.abs(age) < 0.4) + 0.2 * rng.normal(size=n)
    frame = pd.DataFrame({"age": age, "blood pressure": pressure, "smoker": smoker, "lab": lab})
    frame.loc[::11, "blood pressure"] = np.nan
    return frame.assign(sick=np.where(score > 0.3, "yes", "no"))
