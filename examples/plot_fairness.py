"""Two groups, one rate

A clinic refers the patients whose diabetes is likely to progress. Older ones would be referred more
often than younger ones; `fairness=Parity("age", bound, cut=50)` bounds the difference of the two
rates, in expectation and, to the weight of a row, in the decisions of the tree. It holds on the
training rows; on new rows rates differ by chance, and so does accuracy where they are this few.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from softsplit import Parity, SoftTreeClassifier

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
y = (y > 140).map({True: "refer", False: "wait"})
X, X_test, y, y_test = train_test_split(X, y, stratify=y, test_size=0.4, random_state=0)

bounds, differences, right = [None, 0.2, 0.1, 0.05, 0.02], [], []
for bound in bounds:
    wish = None if bound is None else Parity("age", bound, of="refer", cut=50)
    tree = SoftTreeClassifier(fairness=wish, depth=1, n_starts=1, random_state=0).fit(X, y)
    pairs = []
    for rows in (X, X_test):
        referred, older = tree.predict(rows) == "refer", rows["age"] > 50
        pairs.append(referred[older].mean() - referred[~older].mean())
    differences.append(pairs)
    right.append(tree.score(X_test, y_test))
print(tree.tree_.rates[0].line())

_, (left, middle) = plt.subplots(1, 2, figsize=(8, 3.5))
places, names = np.arange(len(bounds)), ["none", *map(str, bounds[1:])]
for shift, kind, values in zip(
    (-0.2, 0.2), ("training", "new rows"), np.transpose(differences), strict=True
):
    left.bar(places + shift, values, width=0.4, label=kind)
left.set(ylabel="older referred more often by", xlabel="bound")
left.set_xticks(places, names)
left.legend()
middle.plot(places, right, "o-")
middle.set(ylabel="accuracy on new rows", xlabel="bound")
middle.set_xticks(places, names)
plt.tight_layout()
plt.show()
