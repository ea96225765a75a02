"""What whole points cost: trees, their score cards, and FasterRisk where it is installed.

Five stratified folds of each data set; trees with their defaults, cards of 5, 10 and 20 points
chosen on the training rows of the fold. FasterRisk (Liu et al. 2022) gets the columns cut at their
deciles, at most ten of them with points from -5 to 5.

Usage: python benchmarks/score_cards.py OUT.csv
"""

from __future__ import annotations

import csv
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.model_selection import StratifiedKFold

from softsplit import SoftTreeClassifier
from softsplit.data import load_dataset

DATA = ("wdbc", "diabetes", "credit-approval", "german-credit")
POINTS = (5, 10, 20)
FOLDS = 5


def cut(X, train):
    """Columns of zeros and ones: whether each value is at most each decile of the training rows."""
    columns = []
    for j in range(X.shape[1]):
        for edge in np.unique(np.quantile(X[train, j], np.linspace(0.1, 0.9, 9))):
            column = (X[:, j] <= edge).astype(float)
            if 0 < column[train].mean() < 1:
                columns.append(column)
    return np.column_stack(columns)


def faster_risk(X, y, train, test):
    """Accuracy on the test rows of the risk score that fits best, and its number of terms."""
    from fasterrisk.fasterrisk import RiskScoreClassifier, RiskScoreOptimizer

    Z, signs = cut(X, train), np.where(y == np.unique(y)[1], 1.0, -1.0)
    search = RiskScoreOptimizer(X=Z[train], y=signs[train], k=10, lb=-5, ub=5)
    search.optimize()
    multiplier, intercept, coefficients = search.get_models(model_index=0)
    said = RiskScoreClassifier(multiplier, intercept, coefficients, X_train=Z[train]).predict(
        Z[test]
    )
    return float(np.mean(said == signs[test])), int(np.count_nonzero(coefficients))


def rows_of(name):
    """A line for each method on one data set."""
    data = load_dataset(name)
    X, y = np.asarray(data.X, dtype=float), np.asarray(data.y)
    found: dict[str, list[tuple[float, float, float]]] = {}
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y):
        began = time.perf_counter()
        tree = SoftTreeClassifier(random_state=0).fit(X[train], y[train])
        spent = time.perf_counter() - began
        used = len(tree.selected_features_)
        found.setdefault("tree", []).append((tree.score(X[test], y[test]), used, spent))
        for points in POINTS:
            began = time.perf_counter()
            card = tree.score_card(X[train], y[train], points=points)
            right = float(np.mean(card.predict(X[test]) == y[test]))
            line = right, used, spent + time.perf_counter() - began
            found.setdefault(f"card of {points} points", []).append(line)
        try:
            began = time.perf_counter()
            right, terms = faster_risk(X, y, train, test)
            found.setdefault("FasterRisk", []).append((right, terms, time.perf_counter() - began))
        except ImportError:
            print("FasterRisk is not installed", file=sys.stderr)
    for method, lines in found.items():
        accuracy, size, seconds = np.mean(lines, axis=0)
        yield [name, method, f"{100 * accuracy:.1f}", f"{size:.1f}", f"{seconds:.1f}"]


def main(out: Path) -> None:
    warnings.simplefilter("ignore")
    with out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["data", "method", "accuracy", "features or terms", "seconds a fold"])
        for name in DATA:
            for line in rows_of(name):
                writer.writerow(line)
                print(*line, sep="  ", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/results/score_cards.csv"))
