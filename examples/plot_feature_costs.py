"""Tests that cost money

A tumour is judged by its cells. Here each of ten properties costs 1 dollar as a mean over an image,
and 20 as its worst value, for which hundreds of cells are measured by hand. `feature_costs` states
these costs in units of an ordinary column: the more expensive the worst values are, the fewer cases
need them. `expected_cost` is the cost of a case if columns are measured only when a question on its
way needs them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold

from softsplit import SoftTreeClassifier, export_text

data = load_breast_cancer(as_frame=True)
X = data.data[[name for name in data.data if not name.endswith("error")]]
y = np.array(["malignant", "benign"])[data.target]
dollars = {name: 20.0 if name.startswith("worst") else 1.0 for name in X}
folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))

spent, right = [], []
scales = [0.0, 0.05, 0.1, 0.2, 0.5]
for scale in scales:
    costs = {name: max(scale * cost, 0.05) for name, cost in dollars.items()}
    paid, hit = [], []
    for train, test in folds:
        tree = SoftTreeClassifier(
            depth=2, feature_costs=costs, curves=False, n_starts=2, random_state=0
        ).fit(X.iloc[train], y[train])
        hit.append(tree.score(X.iloc[test], y[test]))
        paid.append(tree.expected_cost(X.iloc[test], feature_costs=dollars))
    spent.append(np.mean(paid))
    right.append(100 * np.mean(hit))
    print(f"scale {scale:g}: {spent[-1]:.1f} dollars a case, {right[-1]:.1f} % right")

print(export_text(tree))
_, ax = plt.subplots(figsize=(6.4, 4))
ax.plot(spent, right, "o-")
for scale, cost, share in zip(scales, spent, right, strict=True):
    ax.annotate(f"scale {scale:g}", (cost, share), xytext=(7, -12), textcoords="offset points")
ax.margins(0.15)
ax.set(xlabel="what a held-out case costs, dollars", ylabel="right on held-out rows, %")
plt.show()
