"""Intervals that hold.

A prediction of a number is seldom right, and `predict(X, interval=0.9)` says by how much it may be
wrong: the half-width of each leaf, from rows that the folds held out. `calibrate` takes rows of
your own instead, and then at least 90 % of new rows are within, whatever the tree is like. With
`monotone` the prediction never falls when the body mass index rises.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from softsplit import SoftTreeRegressorCV, export_text

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X, X_new, y, y_new = train_test_split(X, y.rename("progression"), test_size=0.5, random_state=0)
tree = SoftTreeRegressorCV(monotone={"bmi": "+"}, random_state=0).fit(X, y)
print(export_text(tree))

predicted, bounds = tree.predict(X_new, interval=0.9)
held = (bounds[:, 0] <= y_new) & (y_new <= bounds[:, 1])
print(f"90 % intervals hold {100 * held.mean():.0f} % of {len(held)} new rows")
own = tree.calibrate(X_new[:100], y_new[:100])
_, bounds = own.predict(X_new[100:], interval=0.9)
held = (bounds[:, 0] <= y_new[100:]) & (y_new[100:] <= bounds[:, 1])
print(f"calibrated on 100 of them, {100 * held.mean():.0f} % of the others")

order, places = np.argsort(predicted[100:]), np.arange(len(predicted) - 100)
plt.fill_between(places, *bounds[order].T, alpha=0.25, label="90 % interval")
plt.plot(places, predicted[100:][order], label="prediction")
plt.plot(places, y_new.to_numpy()[100:][order], ".", label="observed")
plt.xlabel("new rows, by their prediction")
plt.ylabel("progression")
plt.legend()
plt.show()
