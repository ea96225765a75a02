"""Two prices for one error

Missing a malignant tumour is worse than a false alarm. `cost_matrix` has a row for each true class
and a column for each predicted class, in the order of `classes_`. Both sides show the same tree
with the same probabilities; on the right a missed malignant tumour costs ten times as much, the
class of least expected cost is predicted, and the border moves.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import confusion_matrix

from softsplit import SoftTreeClassifier
from softsplit.plots import DecisionRegionsDisplay

data = load_breast_cancer(as_frame=True)
features = ("worst radius", "mean concave points")
X = data.data[list(features)]
y = np.array(["malignant", "benign"])[data.target]

_, axes = plt.subplots(1, 2, figsize=(10, 4.2), sharey=True)
for missed, ax in zip((0.5, 5.0), axes, strict=True):
    costs = [[0, 0.5], [missed, 0]]  # rows: truly benign, truly malignant
    tree = SoftTreeClassifier(cost_matrix=costs, n_starts=3, random_state=0).fit(X, y)
    DecisionRegionsDisplay.from_estimator(tree, X, y, features=features, ax=ax)
    ax.set_title(f"a missed malignant one costs {missed:g}")
    table = confusion_matrix(y, tree.predict(X), labels=tree.classes_)
    print(f"cost {missed:g}: {table[1, 0]} malignant missed, {table[0, 1]} false alarms")
axes[0].get_legend().remove()
plt.show()
