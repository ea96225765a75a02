"""A score card to add up by hand

Clinics and lenders use points: look up each value, add, compare with a number. `tree.score_card(X,
y, points=...)` searches for whole points that give the class of the tree; the fewer points, the
quicker they are added up. Here for breast tumours: the card of at most six points a line is
printed, and the picture shows the accuracy of cards followed by hand on held-out rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from softsplit import SoftTreeClassifier

data = load_breast_cancer(as_frame=True)
y = np.array(["malignant", "benign"])[data.target]
X, X_test, y, y_test = train_test_split(data.data, y, stratify=y, test_size=0.4, random_state=0)
tree = SoftTreeClassifier(global_strength=4.0, random_state=0).fit(X, y)

print(tree.score_card(X, y, points=6))
points = [1, 2, 3, 4, 6, 8, 10, 15, 20]
scores = [np.mean(tree.score_card(X, y, points=n).predict(X_test) == y_test) for n in points]

_, ax = plt.subplots(figsize=(6.4, 4))
ax.axhline(tree.score(X_test, y_test), color="grey", linestyle=":", label="the tree itself")
ax.plot(points, scores, "o-", label="its score card")
ax.set(xlabel="most points of a feature", ylabel="held-out accuracy")
ax.legend()
plt.show()
