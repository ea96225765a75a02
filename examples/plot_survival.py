"""A curve in each leaf.

A tree for times until an event, of which some are censored. Each leaf has a hazard, relative to a
baseline that all leaves share; its curve is the share without event over time.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from softsplit import SoftTreeSurvivalCV, export_text
from softsplit.plots import TreeDisplay

rng = np.random.default_rng(0)
patients = pd.DataFrame(
    {
        "age": rng.integers(30, 80, 600),
        "marker": rng.normal(3, 1, 600).round(1),
        "stage": rng.choice(["I", "II", "III"], 600),
    }
)
late = patients["stage"] == "III"
hazard = np.where(
    late, 0.02 * 1.06 ** (patients["age"] - 55), 0.003 * 2.0 ** patients["marker"] / 8
)
died = (rng.exponential(size=600) / hazard) ** (1 / 1.5)
seen = rng.uniform(5, 60, 600)
y = pd.DataFrame({"months": np.minimum(died, seen).round(1), "died": died <= seen})

tree = SoftTreeSurvivalCV(monotone={"age": "+"}, random_state=0).fit(patients, y)
print(export_text(tree))
print(f"concordance: {tree.score(patients, y):.2f}")

TreeDisplay.from_estimator(tree, patients)
plt.show()
