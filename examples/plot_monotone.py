"""Effects that must not turn

The larger and rougher the cells, the less likely a tumour is benign; a model that contradicts this
somewhere is hard to defend. With `monotone` it cannot, for any input. Columns are correlated and
rows are few, so that the unconstrained tree turns some effects around. Every line is one new
case in which a single column changes.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from softsplit import SoftTreeClassifier

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X, y = X[[name for name in X if name.startswith("mean")]], y.map({0: "malignant", 1: "benign"})
X, X_test, y, y_test = train_test_split(X, y, stratify=y, train_size=70, random_state=1)
wish = dict.fromkeys(X.columns, "+")  # of the second class, malignant

plain = {"penalty": None, "depth": 2, "points": False, "random_state": 0}
free = SoftTreeClassifier(**plain).fit(X, y)
tree = SoftTreeClassifier(**plain, monotone=wish).fit(X, y)
turned = [name for name in X if free.check_monotone(name, "+").holds is False]
print(f"the free tree turns {len(turned)} of {X.shape[1]} effects around")
for kind, one in (("free", free), ("monotone", tree)):
    print(f"{kind}: accuracy {one.score(X_test, y_test):.3f}, {one.check_monotone(turned[0], '+')}")

_, axes = plt.subplots(1, 2, figsize=(8, 3.5), sharey=True)
values = np.linspace(X[turned[0]].min(), X[turned[0]].max(), 60)
for axis, kind, one in zip(axes, ("free", "monotone"), (free, tree), strict=True):
    for number in range(0, len(X_test), 25):
        case = X_test.iloc[[number] * len(values)].assign(**{turned[0]: values})
        axis.plot(values, one.predict_proba(case)[:, 1], lw=1)
    axis.set(title=kind, xlabel=turned[0])
axes[0].set_ylabel("probability of malignant")
plt.show()
