"""Claims a year.

A tree for counts with exposure: `predict` is the claims a year of a policy, and with its years the
claims to expect. A leaf multiplies factors; bars show which ones matter.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from softsplit import SoftTreeRegressorCV, export_text
from softsplit.plots import TreeDisplay

rng = np.random.default_rng(0)
policies = pd.DataFrame(
    {
        "age": rng.integers(18, 80, 1500),
        "km_a_year": rng.integers(2, 40, 1500) * 1000,
        "place": rng.choice(["town", "country"], 1500),
        "years": rng.uniform(0.2, 3.0, 1500).round(2),
    }
)
rate = 0.1 * np.exp(policies["km_a_year"] / 20_000)
rate *= np.where(policies["age"] < 26, 2.5, 1.0) * np.where(policies["place"] == "town", 1.5, 1.0)
claims = pd.Series(rng.poisson(rate * policies["years"]), name="claims")

tree = SoftTreeRegressorCV(loss="poisson", curves=0, random_state=0)
tree.fit(policies, claims, exposure="years")
print(export_text(tree))
print(f"deviance explained: {tree.score(policies, claims, exposure='years'):.2f}")

TreeDisplay.from_estimator(tree)
plt.show()
