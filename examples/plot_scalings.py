"""Ranks for skewed features

Two features spread over five powers of ten. Scaled by mean and deviation, nearly all rows lie in
one corner, and a split between them needs a huge weight, which the ridge penalises; scaled by ranks
(`scale="quantile"`) they are spread evenly. The picture has logarithmic axes; splits are trained on
the raw numbers.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from softsplit import SoftTreeClassifier, export_text

rng = np.random.default_rng(0)
X = 10 ** rng.uniform(-2, 3, (600, 2))
y = np.where((X[:, 0] > 1) ^ (X[:, 1] > 3), "inside", "outside")
X, X_test, y, y_test = train_test_split(X, y, stratify=y, test_size=0.5, random_state=0)

grid = np.logspace(-2, 3, 160)
first, second = np.meshgrid(grid, grid)
_, axes = plt.subplots(1, 2, figsize=(9, 4.2), sharey=True)
for scale, ax in zip(("standard", "quantile"), axes, strict=True):
    tree = SoftTreeClassifier(depth=2, scale=scale, random_state=0).fit(X, y)
    inside = tree.predict_proba(np.c_[first.ravel(), second.ravel()])[:, 0].reshape(first.shape)
    ax.pcolormesh(first, second, inside, cmap="RdBu_r", vmin=-0.5, vmax=1.5, shading="auto")
    for label, marker in (("inside", "."), ("outside", "x")):
        ax.plot(*X[y == label].T, marker, ms=4, color="black", alpha=0.6, label=label)
    ax.set(xscale="log", yscale="log", xlabel="first feature")
    ax.set_title(f"{scale}: {100 * tree.score(X_test, y_test):.1f} % of the test rows")
axes[0].set_ylabel("second feature")
axes[0].legend(loc="upper left")
print(export_text(tree, feature_names=["first", "second"]))
plt.show()
