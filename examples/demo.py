"""Fit a sparse tree to a data set bundled with scikit-learn, and print it."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

from softsplit import SoftTreeClassifier, export_text


def seconds_to_fit(tree: SoftTreeClassifier, X: pd.DataFrame, y: np.ndarray) -> float:
    began = time.perf_counter()
    tree.fit(X, y)
    return time.perf_counter() - began


def main() -> None:
    data = load_wine(as_frame=True)
    X, y = data.data, np.array(["cultivar A", "cultivar B", "cultivar C"])[data.target]
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.25, stratify=y, random_state=0
    )
    # From a small grid of strengths, by cross-validated accuracy on the training rows.
    tree = SoftTreeClassifier(penalty="l0", local_strength=0.1, global_strength=0.5, random_state=0)
    print("loading compiled code; the first run compiles it, which can take a minute", flush=True)
    compiling = seconds_to_fit(clone(tree).set_params(n_starts=1), X_train, y_train)
    seconds = seconds_to_fit(tree, X_train, y_train)

    used = X.columns[tree.selected_features_]
    facts = {
        "data": f"wine: {X.shape[0]} rows, {X.shape[1]} features, {len(tree.classes_)} classes",
        "train accuracy": f"{100 * tree.score(X_train, y_train):5.1f} %   ({len(y_train)} rows)",
        "held-out accuracy": f"{100 * tree.score(X_test, y_test):5.1f} %   ({len(y_test)} rows)",
        "local sparsity": f"{tree.local_sparsity_:5.1f} %   of the coefficients are zero",
        "global sparsity": f"{tree.global_sparsity_:5.1f} %   of the features are not used",
        "features used": f"{len(used)} of {X.shape[1]}: {', '.join(used)}",
        "seconds": f"{seconds:.2f} for {tree.n_starts} starts, after {compiling:.1f} of loading",
    }
    print("\n" + export_text(tree) + "\n")
    for name, value in facts.items():
        print(f"{name:<19}{value}")


if __name__ == "__main__":
    main()
