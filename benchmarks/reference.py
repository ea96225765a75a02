"""The problems behind the reference figures: a row of a reference table -> TrainingProblem.

Features are min-max scaled on all rows, rows are permuted by RandomState(23) and cut into five
parts; part ``fold`` is the test fold. The folder of the tables is given by --reference or by the
environment variable SOFTSPLIT_REFERENCE, the data by SOFTSPLIT_DATA.
"""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from softsplit.data import Dataset, load_dataset
from softsplit.engines.compiled import CompiledRows
from softsplit.problem.loss import ExpectedCost
from softsplit.problem.penalties import PenaltyPair, exponential, linear
from softsplit.problem.problem import TrainingProblem
from softsplit.tree.parameters import Topology

FORMS = {
    "L1": (linear, "local_strength"),
    "Linf": (linear, "global_strength"),
    "L0loc": (exponential, "local_strength"),
    "L0glob": (exponential, "global_strength"),
}


@dataclass(frozen=True)
class Fold:
    """Training and test rows of one fold, labels as class indices."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    n_classes: int


def load_fold(name: str, coding: str = "onehot", fold: int = 0) -> Fold:
    """``coding`` "codes" is one integer per categorical column, which gives Splice p = 60."""
    data = load_dataset(name, "drop-first" if coding == "drop-first" else "onehot")
    X = category_codes(data) if coding == "codes" else data.X
    low, high = X.min(axis=0), X.max(axis=0)
    X = (X - low) / np.where(high > low, high - low, 1.0)
    y = np.searchsorted(data.class_names, data.y)
    parts = np.array_split(np.random.RandomState(23).permutation(len(y)), 5)
    test = np.sort(parts[fold])
    train = np.sort(np.concatenate([part for k, part in enumerate(parts) if k != fold]))
    return Fold(X[train], y[train], X[test], y[test], len(data.class_names))


def category_codes(data: Dataset) -> np.ndarray:
    """The number of the category in place of the indicators "column=category"."""
    columns = np.array([feature.rpartition("=")[0] for feature in data.feature_names])
    groups = [data.X[:, columns == name] for name in dict.fromkeys(columns)]
    return np.column_stack([np.argmax(group, axis=1) for group in groups]).astype(float)


def make_problem(
    fold: Fold, form: str, strength: float, minimum_rate: float = 0.1, depth: int | None = None
) -> TrainingProblem:
    surrogate, scope = FORMS[form]
    present = np.unique(fold.y)
    labels = np.searchsorted(present, fold.y)
    n_classes = len(present)
    return TrainingProblem(
        CompiledRows.from_arrays(fold.X, labels, n_classes),
        Topology(depth) if depth else Topology.with_leaves(n_classes),
        ExpectedCost.uniform(n_classes),
        PenaltyPair.of(surrogate(), **{scope: strength}),
        np.full(n_classes, minimum_rate),
    )


def reference_folder(argument: str | None) -> Path:
    folder = argument or os.environ.get("SOFTSPLIT_REFERENCE")
    if not folder:
        raise SystemExit(
            "name the folder of the reference tables with --reference or SOFTSPLIT_REFERENCE."
        )
    return Path(folder)


def read_rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def row_strength(row: dict[str, str]) -> float:
    return float(row["strength"]) if "strength" in row else 2.0 ** float(row["strength_log2"])


def row_problem(row: dict[str, str]) -> TrainingProblem:
    fold = load_fold(row["dataset"], row["coding"], int(row["fold"]))
    return make_problem(fold, row["form"], row_strength(row), float(row["min_class_rate"]))


def row_label(row: dict[str, str]) -> str:
    return f"{row['dataset']} {row['form']} {row_strength(row):g}" + (
        " (drop-first)" if row["coding"] == "drop-first" else ""
    )
