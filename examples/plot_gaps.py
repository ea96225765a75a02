"""Missing values carry information

Sicker patients miss more appointments, so that a missing blood value is informative. `fit` takes a
table with missing values: each split learns what "unknown" means, beside the median that replaces
the number, and the tree says so. Imputing the median beforehand loses that information.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from softsplit import SoftTreeClassifier, export_text

rng = np.random.default_rng(3)
n = 1200
age = rng.normal(60, 12, n).round()
marker = rng.normal(5, 2, n).round(1)
risk = 0.06 * (age - 60) + 0.5 * (marker - 5)
missed = rng.random(n) < 1 / (1 + np.exp(-(1.3 * risk - 0.8)))
y = np.where(risk + rng.logistic(scale=0.5, size=n) > 0.4, "ill", "well")
table = pd.DataFrame({"age": age, "marker": np.where(missed, np.nan, marker)})
filled = table.fillna(table.median())

train, test = np.arange(n) < n // 2, np.arange(n) >= n // 2
trees = {
    "missing values kept": (SoftTreeClassifier(random_state=0).fit(table[train], y[train]), table),
    "median imputed": (SoftTreeClassifier(random_state=0).fit(filled[train], y[train]), filled),
}
print(export_text(trees["missing values kept"][0]))

_, ax = plt.subplots(figsize=(6.4, 4))
for place, (label, (tree, X)) in enumerate(trees.items()):
    ill = tree.predict_proba(X[test])[:, list(tree.classes_).index("ill")]
    truth = y[test] == "ill"
    means = [ill[missed[test]].mean(), ill[~missed[test]].mean()]
    ax.bar(np.arange(2) * 3 + place, means, label=label)
    print(f"{label}: {tree.score(X[test], y[test]):.1%} right on held-out rows")
real = [truth[missed[test]].mean(), truth[~missed[test]].mean()]
ax.plot([-0.5, 1.5], [real[0]] * 2, "k--", label="truly ill")
ax.plot([2.5, 4.5], [real[1]] * 2, "k--")
ax.set_xticks([0.5, 3.5], ["marker unknown", "marker known"])
ax.set_ylabel("mean probability of being ill")
ax.legend()
plt.show()
