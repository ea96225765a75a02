"""Every picture of docs/reading.md: `python examples/plot_reading.py [folder]`.

Uses data sets bundled with scikit-learn; takes about half a minute, longer on the first run, which
compiles.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.model_selection import train_test_split

from softsplit import SoftTreeClassifier, export_markdown, export_text, strength_path

matplotlib.use("Agg")
from softsplit.plots import (
    CoefficientsDisplay,
    DecisionRegionsDisplay,
    ReliabilityDisplay,
    StartsDisplay,
    StrengthGridDisplay,
    StrengthPathDisplay,
    TreeDisplay,
)

FOLDER = Path(__file__).parents[1] / "docs" / "images"


def wine() -> tuple[Any, ...]:
    data = load_wine(as_frame=True)
    labels = np.array(["cultivar A", "cultivar B", "cultivar C"])[data.target]
    return tuple(
        train_test_split(data.data, labels, test_size=0.4, stratify=labels, random_state=0)
    )


def breast() -> tuple[Any, ...]:
    data = load_breast_cancer(as_frame=True)
    return data.data, np.array(["malignant", "benign"])[data.target]


def draw_wine() -> dict[str, Any]:
    """The pictures of the tree that the document reads; its words are printed."""
    X, X_test, y, y_test = wine()
    tree = SoftTreeClassifier(random_state=0).fit(X, y).simplify()
    ranks = SoftTreeClassifier(scale="quantile", random_state=0).fit(X, y).simplify()
    print(export_text(tree), "\n")
    print(export_markdown(tree))
    print(tree.explain(X_test.iloc[0]), "\n")
    print("hard tree agrees on", tree.to_hard_tree().agreement(X_test), "\n")
    print(export_text(ranks))
    model = SoftTreeClassifier(n_starts=4, random_state=0)
    path = strength_path(X, y, estimator=model)
    grid = strength_path(X, y, estimator=model, scope="both", n_points=7)
    return {
        "tree": TreeDisplay.from_estimator(tree, X, y),
        "tree-ranks": TreeDisplay.from_estimator(ranks, X, y),
        "coefficients": CoefficientsDisplay.from_estimator(tree),
        "path": StrengthPathDisplay.from_path(path, X_test, y_test),
        "grid": StrengthGridDisplay.from_path(grid, X_test, y_test),
        "regions": DecisionRegionsDisplay.from_estimator(tree, X, y),
    }


def draw_breast() -> dict[str, Any]:
    X, y = breast()
    trees = {
        f"seed {seed}": SoftTreeClassifier(n_starts=20, random_state=seed).fit(X, y)
        for seed in (0, 1)
    }
    one = SoftTreeClassifier(random_state=0)
    return {
        "starts": StartsDisplay.from_estimator(trees),
        "reliability": ReliabilityDisplay.from_folds(one, X, y),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, display in (draw_wine() | draw_breast()).items():
        display.figure_.savefig(folder / f"reading-{name}.png", dpi=90)


if __name__ == "__main__":
    main()
