"""Effects that must not turn

The larger and rougher the cells, the less likely a tumour is benign: so say the textbooks, and a
model that says otherwise somewhere is hard to defend. With `monotone` it cannot, for any input.
Every line is one new case whose texture alone changes; columns are correlated and rows are few, so
that the tree on the left gives some of them a wrong turn.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from softsplit import SoftTreeClassifier

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X, X_test, y, y_test = train_test_split(X, y, stratify=y, train_size=70, random_state=1)
wish = dict.fromkeys(X.columns, "-")

free = SoftTreeClassifier(penalty=None, depth=2, random_state=0).fit(X, y)
tree = SoftTreeClassifier(penalty=None, depth=2, monotone=wish, random_state=0).fit(X, y)
for name, one in (("free", free), ("monotone", tree)):
    print(
        f"{name}: accuracy {one.score(X_test, y_test):.3f}; {one.check_monotone('mean texture', '-')}"
    )

_, axes = plt.subplots(1, 2, figsize=(8, 3.5), sharey=True)
values = np.linspace(X_test["mean texture"].min(), X_test["mean texture"].max(), 60)
for axis, name, one in zip(axes, ("free", "monotone"), (free, tree), strict=True):
    for number in range(0, 500, 25):
        case = X_test.iloc[[number] * len(values)].assign(**{"mean texture": values})
        axis.plot(values, one.predict_proba(case)[:, 1], lw=1)
    axis.set(title=name, xlabel="mean texture")
axes[0].set_ylabel("probability of benign")
plt.show()
