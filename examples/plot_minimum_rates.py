"""A minimum rate for a rare class

One row in twelve belongs to class "rare". A tree that is trained for the number of errors
(`loss="cost"`, the paper's model) gives up much of that class; `min_class_rate` says which share of
it must be found (in expectation, on the training rows), at the price of errors elsewhere.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.metrics import recall_score
from sklearn.model_selection import train_test_split

from softsplit import SoftTreeClassifier

X, y = make_classification(
    1200, 8, n_informative=4, weights=[0.92], class_sep=1.4, flip_y=0.02, random_state=1
)
y = np.array(["common", "rare"])[y]
X, X_test, y, y_test = train_test_split(X, y, stratify=y, test_size=0.5, random_state=0)

asked = [0.1, 0.5, 0.7, 0.8, 0.9]
train, test, accuracy = [], [], []
for rate in asked:
    tree = SoftTreeClassifier(
        loss="cost", global_strength=2, min_class_rate={"rare": rate}, n_starts=3, random_state=0
    ).fit(X, y)
    train.append(recall_score(y, tree.predict(X), pos_label="rare"))
    test.append(recall_score(y_test, tree.predict(X_test), pos_label="rare"))
    accuracy.append(tree.score(X_test, y_test))

print("asked  train   test   accuracy on test rows")
for row in zip(asked, train, test, accuracy, strict=True):
    print("{:5.2f}  {:5.2f}  {:5.2f}   {:.3f}".format(*row))

_, ax = plt.subplots(figsize=(6.4, 4))
ax.plot(asked, asked, ":", color="grey", label="asked for")
ax.plot(asked, train, "o-", label="found, training rows")
ax.plot(asked, test, "s-", label="found, test rows")
ax.plot(asked, accuracy, "^-", label="accuracy, test rows")
ax.set(xlabel="min_class_rate of the rare class", ylabel="share")
ax.legend()
plt.show()
