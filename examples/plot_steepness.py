"""How sure is the tree, and is it right to be?

`steepness` says how sharply a split decides. At the default of 512 most rows end in one leaf and
get its class shares. Lower values mix leaves and give probabilities with more shades; whether
they come true is what the diagram shows. The classes are often the same.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from softsplit import SoftTreeClassifier
from softsplit.plots import ReliabilityDisplay

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X, X_test, y, y_test = train_test_split(X, y, stratify=y, test_size=0.5, random_state=0)

_, axes = plt.subplots(1, 2, figsize=(12, 4.4))
print("steepness  accuracy  log-loss  mean probability of the answer")
for steepness, ax in zip((512, 48), axes, strict=True):
    tree = SoftTreeClassifier(
        loss="cost", global_strength=0.5, steepness=steepness, n_starts=3, random_state=0
    ).fit(X, y)
    chances = tree.predict_proba(X_test)
    accuracy, loss = tree.score(X_test, y_test), log_loss(y_test, chances)
    print(f"{steepness:9d}  {accuracy:8.3f}  {loss:8.3f}  {chances.max(axis=1).mean():.3f}")
    ReliabilityDisplay.from_estimator(tree, X_test, y_test, ax=ax)
    ax.set_title(f"steepness {steepness}")
plt.show()
