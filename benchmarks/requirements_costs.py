"""Part ``costs`` of requirements.py: what feature costs save on the thyroid data.

Costs are those of Turney (1995), which the UCI repository publishes beside the data: TSH 22.78, T3
11.41, TT4 14.51, T4U 11.41, and 1 for each question. FTI is computed of TT4 and T4U and has no cost
there; here it costs what these two cost. Every tree is judged at these costs, on held-out rows.
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold

from softsplit import SoftTreeClassifier
from softsplit.data.named import file_of
from softsplit.estimators.row_reading import checked_rows
from softsplit.reading.case_costs import CaseCosts, arriving_shares

COSTS = {"TSH": 22.78, "T3": 11.41, "TT4": 14.51, "T4U": 11.41, "FTI": 14.51 + 11.41}
SCALES = (1.0, 3.0)
FOLDS = 5
"""The scales multiply all costs: what a feature must be worth per unit of cost."""

WANTED_COST, WANTED_ACCURACY = 0.5, 0.5
"""Half the cost, at no more than half a point of accuracy."""


def thyroid() -> tuple[pd.DataFrame, np.ndarray]:
    path = file_of("thyroid")
    assert path is not None, "thyroid is not there: set SOFTSPLIT_DATA"
    table = pd.read_csv(path)
    return table.drop(columns="class"), table["class"].to_numpy()


def judged(tree: SoftTreeClassifier, X: pd.DataFrame, y: np.ndarray) -> tuple[float, ...]:
    """Accuracy in per cent, mean cost of a case at COSTS, columns, and cases that need TSH."""
    found = CaseCosts.of(tree.tree_)
    shares = arriving_shares(tree.tree_, checked_rows(tree, X)).mean(axis=0)
    needed = dict(zip(found.names, found.needed @ shares, strict=True))
    cost = tree.expected_cost(X, feature_costs=COSTS)
    return 100 * tree.score(X, y), cost, float(len(found.names)), 100 * needed.get("TSH", 0.0)


def lines() -> list[str]:
    """The section of docs/results/requirements.md."""
    X, y = thyroid()
    folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y))
    settings: dict[str, dict[str, object]] = {"without": {}}
    for scale in SCALES:
        costs = {name: scale * COSTS.get(name, 1.0) for name in X.columns}
        settings[f"{scale:g}"] = {"feature_costs": costs}
    rows, found = [], {}
    for label, given in settings.items():
        began = time.perf_counter()
        each = [
            judged(
                SoftTreeClassifier(random_state=0, **given).fit(X.iloc[train], y[train]),
                X.iloc[test],
                y[test],
            )
            for train, test in folds
        ]
        found[label] = accuracy, cost, columns, needed = np.mean(each, axis=0)
        spread = np.std([one[0] for one in each], ddof=1) / len(each) ** 0.5
        seconds = (time.perf_counter() - began) / FOLDS
        rows.append(
            f"| {label} | {accuracy:.2f} ± {spread:.2f} | {cost:.1f} | {columns:.1f} "
            f"| {needed:.0f} % | {seconds:.1f} |"
        )
        print(rows[-1], flush=True)
    free = found["without"]
    good = [
        label
        for label, (accuracy, cost, *_) in found.items()
        if cost <= WANTED_COST * free[1] and accuracy >= free[0] - WANTED_ACCURACY
    ]
    verdict = f"met at the scales {', '.join(good)}" if good else "not met at any scale"
    return [
        "## Feature costs",
        "",
        f"Thyroid, 3,772 rows, {FOLDS} folds, published test costs times a scale, "
        "`SoftTreeClassifier` otherwise at its defaults; costs are those of held-out cases that "
        "take the walk.",
        "",
        "| scale of the costs | accuracy, % | cost of a case | columns | cases that need TSH "
        "| seconds a fit |",
        "|---|---:|---:|---:|---:|---:|",
        *rows,
        "",
        f"Half the cost at no more than {WANTED_ACCURACY:g} points of accuracy: **{verdict}**.",
    ]
