"""Score cards followed by hand, beside their trees and FasterRisk: ``reading.py cards``.

For each fold a tree with its defaults and its card, chosen on the training rows of the fold. A
program that sees nothing but the printed text of the card (tests/printed_card.py) follows it for
the held-out rows. On two classes FasterRisk (Liu et al. 2022) gets the columns cut at their deciles
and as many columns as the card looks at, in at most ``TERMS`` terms with points from -5 to 5.
"""

from __future__ import annotations

import time
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import resumed, rows_of
from methods import Task
from sklearn.metrics import roc_auc_score

from softsplit import SoftTreeClassifier
from softsplit.experiments.tables import markdown

TERMS = 10
HEADS = {
    "agreement": "class of the tree, %",
    "accuracy": "card right, %",
    "tree_accuracy": "tree right, %",
}


def by_hand(text: str, X: np.ndarray, names: list[str]) -> list[str]:
    """Classes that the printed card gives."""
    card = import_module("printed_card").PrintedCard(text)
    return [card.class_of(dict(zip(names, row, strict=True))) for row in X.tolist()]


def on_fold(task: Task) -> dict[str, Any]:
    """Figures of a tree and its card on held-out rows."""
    tree = SoftTreeClassifier(random_state=0).fit(task.X, task.y)
    began = time.process_time()
    card = tree.score_card(task.X, task.y)
    seconds = time.process_time() - began
    predicted, followed = tree.predict(task.X_test), card.predict(task.X_test)
    said = by_hand(str(card), task.X_test, [f"x{j}" for j in range(task.X.shape[1])])
    used = {block.bins.home for q in card.questions for block in q.blocks}
    row = {
        "printed": float(np.mean(np.array(said) == followed.astype(str))),
        "agreement": float(np.mean(followed == predicted)),
        "accuracy": float(np.mean(followed == task.y_test)),
        "tree_accuracy": float(np.mean(predicted == task.y_test)),
        "questions": len(card.questions),
        "features": len(used),
        "lines": len(card.to_frame()),
        "most_points": int(card.to_frame()["points"].max()) if card.questions else 0,
        "seconds": seconds,
    }
    if task.n_classes == 2:
        chances = card.predict_proba(task.X_test)[:, 1], tree.predict_proba(task.X_test)[:, 1]
        row["auc"], row["tree_auc"] = (float(roc_auc_score(task.y_test, p)) for p in chances)
    return row


def cut(X: np.ndarray, train: np.ndarray) -> tuple[np.ndarray, list[int]]:
    """Columns of zeros and ones, whether values are at most each decile; the column of each."""
    columns, homes = [], []
    for j in range(X.shape[1]):
        for edge in np.unique(np.quantile(train[:, j], np.linspace(0.1, 0.9, 9))):
            if 0 < np.mean(train[:, j] <= edge) < 1:
                columns.append((X[:, j] <= edge).astype(float))
                homes.append(j)
    return np.column_stack(columns), homes


def faster_risk(task: Task, out: Path) -> dict[str, Any]:
    """Figures of the best risk score with at most as many columns as the card, which is on file."""
    key = (task.key | {"method": "card"}).items()
    features = next(max(int(row["features"]), 1) for row in rows_of(out) if key <= row.items())
    package = import_module("fasterrisk.fasterrisk")
    began = time.process_time()
    (Z, homes), signs = cut(task.X, task.X), np.where(task.y == 1, 1.0, -1.0)
    groups = np.unique(homes, return_inverse=True)[1]
    for terms in range(TERMS, 0, -1):
        search = package.RiskScoreOptimizer(
            Z, signs, terms, group_sparsity=features, featureIndex_to_groupIndex=groups
        )
        try:
            search.optimize()
            break
        except ValueError:  # so many terms cannot be had of so many columns
            continue
    found = search.get_models(model_index=0)
    card = package.RiskScoreClassifier(*found, X_train=Z)
    asked = cut(task.X_test, task.X)[0]
    return {
        "accuracy": float(np.mean((card.predict(asked) > 0) == (task.y_test == 1))),
        "auc": float(roc_auc_score(task.y_test, card.predict_prob(asked))),
        "features": len({homes[j] for j in np.flatnonzero(found[2])}),
        "terms": int(np.count_nonzero(found[2])),
        "seconds": time.process_time() - began,
    }


def run_cards(tasks: Any, out: Path) -> None:
    """Measure what is not in the file yet; a line is added after each fold and method."""
    for task in tasks:
        methods: dict[str, Any] = {"card": partial(on_fold, task)}
        if task.n_classes == 2 and find_spec("fasterrisk"):
            methods["fasterrisk"] = partial(faster_risk, task, out)
        keys = ((task.key | {"method": name}, measure) for name, measure in methods.items())
        for row in resumed(out, keys):
            print(*(f"{k} {v}" for k, v in row.items()), flush=True)


def cards_table(out: Path) -> str:
    """The rows as two tables."""
    rows = pd.DataFrame(rows_of(out))
    if rows.empty:
        raise SystemExit(f"{out} holds no rows; make them with 'cards run' first.")
    cards = rows[rows["method"] == "card"]
    names = [*HEADS, "questions", "features", "lines", "most_points"]
    mean = cards.groupby("dataset")[names].mean()
    for name in names[:3]:
        mean[name] = (100 * mean[name]).round(1)
    lost = (
        100 * (cards["tree_accuracy"] - cards["accuracy"]).groupby(cards["dataset"]).mean().mean()
    )
    lines = [
        f"{len(cards)} folds, {len(mean)} data sets. A program that follows the printed card gets "
        f"`card.predict` on {100 * cards['printed'].min():.1f} % of held-out rows of every fold; "
        f"the class of the tree on {mean['agreement'].mean():.1f} % in the mean; accuracy "
        f"{lost:+.2f} points behind the tree.",
        "",
        markdown(mean.round(1).rename(columns=HEADS).reset_index()),
    ]
    if "fasterrisk" in rows["method"].to_numpy():
        pairs = rows.pivot_table(
            index="dataset", columns="method", values=["accuracy", "auc", "features"]
        )
        pairs = pairs.dropna() * [1 if figure == "features" else 100 for figure, _ in pairs]
        names = {"accuracy": "right, %", "auc": "ROC area, %", "features": "columns"}
        pairs.columns = [f"{method}: {names[figure]}" for figure, method in pairs.columns]
        total = pairs.mean().rename("mean").to_frame().T
        shown = pd.concat([pairs, total]).round(1).rename_axis("dataset").reset_index()
        lines += ["", "Beside FasterRisk, at most as many columns:", "", markdown(shown)]
    return "\n".join(lines)
