"""How sure is the tree, and is it right to be?

Training by likelihood makes the probabilities themselves as good as it can, and splits are as
gentle as the rows ask for. Training for the cost of errors (`loss="cost"`, the paper's model) makes
nearly hard splits; most rows end in one leaf and get its class shares. Whether probabilities come
true, on held-out rows, is what the diagrams show. The classes are often the same.
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
print("loss  accuracy  log-loss  mean probability of the answer")
models = {
    "log": SoftTreeClassifier(n_starts=3, random_state=0),
    "cost": SoftTreeClassifier(loss="cost", global_strength=0.5, n_starts=3, random_state=0),
}
for (loss, tree), ax in zip(models.items(), axes, strict=True):
    tree.fit(X, y)
    chances = tree.predict_proba(X_test)
    accuracy, found = tree.score(X_test, y_test), log_loss(y_test, chances)
    print(f"{loss:4}  {accuracy:8.3f}  {found:8.3f}  {chances.max(axis=1).mean():.3f}")
    ReliabilityDisplay.from_estimator(tree, X_test, y_test, n_bins=5, ax=ax)
    ax.set_title(f'loss="{loss}"')
plt.show()
