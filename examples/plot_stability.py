"""Which features can be relied on?

Correlated features may replace each other when a few rows change. Twenty trees, each on a bootstrap
sample, show which features are chosen again and again, and which only once.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import BaggingClassifier

from softsplit import SoftTreeClassifier

data = load_breast_cancer()
tree = SoftTreeClassifier(n_starts=1)
bag = BaggingClassifier(tree, n_estimators=20, random_state=0).fit(data.data, data.target)

chosen = np.zeros(data.data.shape[1])
for member in bag.estimators_:
    chosen[member.selected_features_] += 1
order = np.argsort(-chosen)[:12]

_, ax = plt.subplots(figsize=(6.4, 4))
ax.barh([str(data.feature_names[j]) for j in order], chosen[order])
ax.invert_yaxis()
ax.set_xlabel("trees, of 20, that use the feature")
plt.tight_layout()
plt.show()
