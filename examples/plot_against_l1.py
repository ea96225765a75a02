"""Accuracy against number of features, beside L1 logistic regression

Both methods walk from strong to weak penalties on the same training rows; every point is one
fitted model, judged on held-out rows. A tree of one branch is a logistic regression too, so that
the difference lies in how features are chosen: by elimination, without shrinking what is kept, or
by shrinking everything.

One split into training and test rows proves nothing in general; [the
results](../results/index.md) have more.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from softsplit import SoftTreeClassifier, strength_path

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X, X_test, y, y_test = train_test_split(X, y, stratify=y, test_size=0.4, random_state=0)

model = SoftTreeClassifier(n_starts=3, random_state=0)
path = strength_path(X, y, estimator=model, n_points=10)
trees = [point.classifier for point in path]
rows = [("soft tree", len(t.selected_features_), t.score(X_test, y_test)) for t in trees]

for strength in np.logspace(-1.5, 1, 10):
    l1 = LogisticRegression(C=strength, l1_ratio=1.0, solver="liblinear")
    l1 = make_pipeline(StandardScaler(), l1).fit(X, y)
    used = int(np.count_nonzero(l1[-1].coef_))
    rows.append(("L1 logistic regression", used, l1.score(X_test, y_test)))

_, ax = plt.subplots(figsize=(6.4, 4))
for method, marker in (("soft tree", "o"), ("L1 logistic regression", "s")):
    points = sorted((used, accuracy) for name, used, accuracy in rows if name == method)
    ax.plot(*zip(*points, strict=True), marker=marker, label=method)
ax.set(xlabel="features used", ylabel="held-out accuracy")
ax.legend()
plt.show()
