"""A formula in each leaf.

A tree for a number, what heating a house costs a year. A few questions send a house to a leaf, and
the leaf has a formula; bars show which of its terms matter. `explain` computes it for one house.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from softsplit import SoftTreeRegressorCV, export_text
from softsplit.plots import TreeDisplay

rng = np.random.default_rng(0)
houses = pd.DataFrame(
    {
        "area": rng.integers(60, 240, 800),
        "built": rng.integers(1900, 2024, 800),
        "heating": rng.choice(["gas", "oil", "heat pump"], 800, p=[0.5, 0.2, 0.3]),
        "people": rng.integers(1, 7, 800),
    }
)
fuel = houses["area"] * np.where(houses["built"] < 1980, 16, 10) + 110 * houses["people"]
pump = 350 + 4.5 * houses["area"]
cost = np.where(houses["heating"] == "heat pump", pump, fuel) + rng.normal(0, 120, 800)

tree = SoftTreeRegressorCV(curves=0, random_state=0)
tree.fit(houses, pd.Series(cost.round(), name="cost"))
print(export_text(tree))
print(tree.explain(houses.iloc[0]))

TreeDisplay.from_estimator(tree, houses)
plt.show()
