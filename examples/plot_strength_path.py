"""Accuracy and size along a path of strengths

`strength_path` gives the trees for a whole range of strengths, from one elimination for each start:
the least useful features are removed first. The smallest tree that is still good lies just before
the accuracy begins to fall. "cost" is the loss without the penalties.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

from softsplit import SoftTreeClassifier, strength_path
from softsplit.plots import StrengthPathDisplay

X, y = load_wine(return_X_y=True, as_frame=True)
X, X_test, y, y_test = train_test_split(X, y, stratify=y, test_size=0.4, random_state=0)

path = strength_path(X, y, estimator=SoftTreeClassifier(n_starts=4, random_state=0), n_points=10)
frame = path.to_frame()
frame["accuracy"] = [point.classifier.score(X_test, y_test) for point in path]
columns = ["global_strength", "cost", "n_features", "accuracy"]
print(frame[columns].to_string(index=False, float_format="{:.3g}".format))

StrengthPathDisplay.from_path(path, X_test, y_test)
plt.show()
