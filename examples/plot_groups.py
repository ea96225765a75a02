"""Measurements that come together

One instrument gives three numbers for each of ten properties of a tumour: their mean, their spread
and their worst. Whoever measures a property has all three, so that it should be counted once.
`groups=` lists the columns that belong together: a tree then pays for a property and not for a
column, and mostly gets by with fewer properties at the same accuracy. Text of several levels is
such a group by itself.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold

from softsplit import SoftTreeClassifier

data = load_breast_cancer(as_frame=True)
X = data.data
y = np.array(["malignant", "benign"])[data.target]


def property_of(column: str) -> str:
    """The property that a column is about: "worst radius" is about the radius."""
    return " ".join(word for word in column.split() if word not in ("mean", "error", "worst"))


properties = sorted({property_of(column) for column in X})
together = [[c for c in X if property_of(c) == name] for name in properties]
strengths = [0.5, 1.0, 2.0, 4.0]
folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))

_, ax = plt.subplots(figsize=(6.4, 4))
for label, groups in {"paying for columns": None, "paying for properties": together}.items():
    measured, right = [], []
    for strength in strengths:
        for train, test in folds:
            tree = SoftTreeClassifier(
                groups=groups, global_strength=strength, n_starts=3, random_state=0
            ).fit(X.iloc[train], y[train])
            used = X.columns[tree.selected_features_]
            measured.append(len({property_of(column) for column in used}))
            right.append(tree.score(X.iloc[test], y[test]))
    measured, right = (np.reshape(v, (-1, len(folds))).mean(axis=1) for v in (measured, right))
    ax.plot(measured, 100 * right, "o-", label=label)
    for line in zip(strengths, measured, right, strict=True):
        print(label + ", strength {:g}: {:.1f} properties, {:.1%} right".format(*line))
ax.set(xlabel="properties that have to be measured", ylabel="right on held-out rows, %")
ax.legend()
plt.show()
