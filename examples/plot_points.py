"""A question in points, and the chances that follow

Each value of a column gives whole points, and their sum is compared with a number: that is the
class. The same sum gives the chance, which the text prints as a table. Here the chances of a tree
for loans stand beside what happened to loans that it has never seen: dots are shares of repaid
loans, larger where there are more of them.
"""

import matplotlib.pyplot as plt
import numpy as np

from softsplit import SoftTreeClassifierCV, export_text
from softsplit.data import loans
from softsplit.plots import TreeDisplay

X, X_new = loans(), loans(2000, seed=1)
y, y_new = X.pop("repaid"), X_new.pop("repaid")
tree = SoftTreeClassifierCV(random_state=0).fit(X, y)
print(export_text(tree))

points = np.array([tree.explain(row).branches[0].total for _, row in X_new.iterrows()])
chance, repaid = tree.predict_proba(X_new)[:, 1], (y_new == "yes").to_numpy()
print(f"right on {tree.score(X_new, y_new):.1%} of {len(y_new)} new loans")

_, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
TreeDisplay.from_estimator(tree, X, y, ax=left)
sums, first, counts = np.unique(points, return_index=True, return_counts=True)
shares = [100 * repaid[points == total].mean() for total in sums]
right.plot(sums, 100 * chance[first], color="C0", label="chance by the tree")
right.scatter(sums, shares, s=2 * counts, color="C1", label="share of new loans")
right.set(xlabel="points", ylabel="repaid, %", ylim=(0, 102))
right.legend(loc="upper left")
plt.show()
