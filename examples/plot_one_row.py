"""Why this row?

`explain` gives the splits on the way to the answer with what each feature adds to the log-odds,
and the smallest change of one feature that changes the class. The bars are the terms of those
splits, from the mean training row to this one.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

from softsplit import SoftTreeClassifier

data = load_wine(as_frame=True)
y = np.array(["cultivar A", "cultivar B", "cultivar C"])[data.target]
X, X_test, y, y_test = train_test_split(data.data, y, stratify=y, test_size=0.4, random_state=0)

tree = SoftTreeClassifier(random_state=0).fit(X, y).simplify()
explanation = tree.explain(X_test.iloc[0])
print(explanation)

readings = {reading.branch: reading for reading in explanation.branches}
_, axes = plt.subplots(len(explanation.path), 1, figsize=(7, 3.6), sharex=True, squeeze=False)
for branch, ax in zip(explanation.path, axes[:, 0], strict=True):
    terms = readings[branch].contributions
    ax.barh([f"{term.name} = {term.value:g}" for term in terms], [term.log_odds for term in terms])
    ax.axvline(0, color="black", lw=0.8)
    ax.invert_yaxis()
    ax.set_title(readings[branch].condition, fontsize=10)
ax.set_xlabel("adds to the log-odds of the answer yes")
plt.tight_layout()
plt.show()
