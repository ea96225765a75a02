"""Questions with several features, beside a tree with one feature each

Two measurements whose sum matters: a plain decision tree (CART) can only ask about one of them at
a time and needs a staircase of questions, while one question with both features is the border
itself. Each point is one fitted tree, judged on held-out rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

from softsplit import SoftTreeClassifier

rng = np.random.default_rng(0)
X = rng.normal(size=(1500, 6))
risk = 1.5 * X[:, 0] + X[:, 1] - X[:, 2]
y = np.where(risk + rng.logistic(scale=0.3, size=len(X)) > 0, "high", "low")
X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=0)

tree = SoftTreeClassifier(random_state=0).fit(X, y).simplify()
leaves = [2, 3, 4, 6, 8, 12, 16, 24, 32, 64]
carts = [DecisionTreeClassifier(max_leaf_nodes=n, random_state=0).fit(X, y) for n in leaves]
scores = [cart.score(X_test, y_test) for cart in carts]
own, questions = tree.score(X_test, y_test), len(tree.thresholds_)
print(f"soft tree: {own:.1%} with {questions} question; best CART: {max(scores):.1%}")

_, ax = plt.subplots(figsize=(6.4, 4))
ax.plot([n - 1 for n in leaves], scores, "s-", label="CART")
ax.plot(questions, own, "o", markersize=10, label="soft tree")
ax.set(xscale="log", xlim=(0.8, 80), xlabel="questions in the tree", ylabel="held-out accuracy")
ax.set_xticks([1, 3, 10, 30], ["1", "3", "10", "30"])
ax.legend()
plt.show()
