"""Three species in one picture

A tree of two questions tells three species of iris apart. On the left the tree itself: bands are
the flowers, in the colours of their species, and every leaf says how sure it is. On the right the
same tree seen from above, over the two features it uses most: colours fade where it is unsure.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

from softsplit import SoftTreeClassifier
from softsplit.plots import DecisionRegionsDisplay, TreeDisplay

data = load_iris(as_frame=True)
X, y = data.data, np.array([str(name) for name in data.target_names])[data.target]
tree = SoftTreeClassifier(global_strength=1.0, random_state=0).fit(X, y).simplify()

_, axes = plt.subplots(1, 2, figsize=(11, 4.6), width_ratios=[1.25, 1])
TreeDisplay.from_estimator(tree, X, y, ax=axes[0])
most = np.argsort(-tree.feature_importances_)[:2]
features = tuple(str(X.columns[j]) for j in most)
DecisionRegionsDisplay.from_estimator(tree, X, y, features=features, ax=axes[1])
print(f"right on {np.mean(tree.predict(X) == y):.1%} of the flowers")
plt.show()
