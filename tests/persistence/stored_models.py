"""Trees whose model files are stored in tests/files: ``python tests/persistence/stored_models.py``
writes those that are not there yet, with rows and what the tree said of them.

A file that is there is never written anew: it stands for the files that users have.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_iris, load_wine

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from places import FILES
from softsplit import (
    Parity,
    RateConstraint,
    SoftTreeClassifier,
    SoftTreeClassifierCV,
    SoftTreeRegressorCV,
    dumps_model,
)
from softsplit.estimators.row_reading import checked_rows

N_ROWS = 12
QUICK = {"n_starts": 1, "random_state": 0}
Case = tuple[Any, Any]
"""A fitted tree, and rows to ask it about."""


def trips(n_rows: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Dates, an order, levels (few, many, rare), truth values, numbers; some are missing."""
    rng = np.random.default_rng(0)
    minutes = rng.integers(0, 500 * 1440, n_rows)
    start = pd.Series(pd.Timestamp("2023-01-01") + pd.to_timedelta(minutes, unit="min"))
    length = rng.integers(5, 60, n_rows)
    X = pd.DataFrame(
        {
            "start": start,
            "end": start + pd.to_timedelta(length, unit="min"),
            "size": rng.choice(["small", "medium", "large"], n_rows),
            "town": rng.choice(["Bern", "Lyon", "Oslo", "Köln"], n_rows, p=[0.5, 0.3, 0.19, 0.01]),
            "store": [f"s{k:02d}" for k in rng.integers(0, 40, n_rows)],
            "member": rng.random(n_rows) < 0.4,
            "fare": rng.normal(20, 5, n_rows).round(2),
        }
    )
    busy = X["store"].isin([f"s{k:02d}" for k in range(0, 40, 2)])
    score = start.dt.hour / 12 + length / 30 + (X["town"] == "Oslo") + busy + X["member"]
    score = score + 0.1 * (X["fare"] - 20).abs() + 0.5 * (X["size"] == "large")
    for place, column in enumerate(X.columns[:-2]):
        X.loc[place + 3 :: 17, column] = None
    X.loc[5::19, "fare"] = np.nan
    y = np.where(score + rng.logistic(0, 0.3, n_rows) > score.median(), "late", "in time")
    return X, y


def log_array() -> Case:
    X, y = load_iris(return_X_y=True)
    return SoftTreeClassifier(depth=2, **QUICK).fit(X, y), X


def log_frame() -> Case:
    X, y = load_wine(return_X_y=True, as_frame=True)
    X = X[["alcohol", "flavanoids", "hue", "proline"]]
    tree = SoftTreeClassifier(
        depth=2, scale="quantile", class_weight={1.0: 1, 2.0: 2, 3.0: 1.5}, **QUICK
    )
    return tree.fit(X, y.map({0: 1.0, 1: 2.0, 2: 3.0})), X


def log_table(points: bool = False) -> Case:
    X, y = trips(320)
    types = {"start": "date: days, hour, weekday, month, day of year", "end": "date: since start"}
    tree = SoftTreeClassifier(depth=2, curves=2, feature_types=types, points=points, **QUICK)
    return tree.fit(X, pd.Series(y, name="arrival")), X


def log_points() -> Case:
    """Look-ups of all kinds of variables."""
    return log_table(points=True)


def log_costs() -> Case:
    """The walk's classes are those of least cost; columns have costs of their own."""
    X, y = load_wine(return_X_y=True, as_frame=True)
    X = X[["alcohol", "flavanoids", "hue", "proline"]]
    tree = SoftTreeClassifier(
        depth=2,
        cost_matrix=[[0, 1, 5], [1, 0, 1], [2, 1, 0]],
        feature_costs={"hue": 0.5},
        max_terms=4,
        **QUICK,
    )
    return tree.fit(X, y), X


def log_search() -> Case:
    """Rows for prediction sets, and a decision by the mixture."""
    X, y = load_iris(return_X_y=True, as_frame=True)
    search = SoftTreeClassifierCV(n_strengths=2, cv=2, depths=[1], random_state=0)
    return search.fit(X[y < 2], y[y < 2] == 1), X


def log_rates() -> Case:
    X, y = trips(160)
    X = X.assign(group=np.random.default_rng(1).choice(["a", "b"], len(X)))[
        ["member", "fare", "group"]
    ]
    tree = SoftTreeClassifier(
        depth=1,
        fairness=Parity("group", 0.2),
        constraints=[RateConstraint(None, of="late", at_most=0.7)],
        monotone={"member": {"in time": "-"}},
        **QUICK,
    )
    return tree.fit(X, y), X


def log_edited() -> Case:
    X, y = load_wine(return_X_y=True, as_frame=True)
    X = X[["alcohol", "flavanoids", "hue", "proline"]]
    tree = SoftTreeClassifier(depth=2, curves=False, **QUICK).fit(X, y)
    edited = tree.edit(date="2026-11-18").round_weights(1).set_threshold(1, 4.5, reason="as before")
    return edited.set_leaf(1, 1), X


def cost_table() -> Case:
    """Dates as texts, and a column that is left out."""
    X, y = trips(160)
    for name in ("start", "end"):
        X[name] = X[name].dt.strftime("%d.%m.%Y %H:%M")
    X = X.assign(country="CH")
    tree = SoftTreeClassifier(
        loss="cost",
        depth=2,
        cost_matrix=[[0, 1], [2, 0]],
        global_strength=0.5,
        feature_types={"end": "date: since start"},
        **QUICK,
    )
    return tree.fit(X, pd.Series(y, name="arrival")), X


def cost_rates() -> Case:
    X, y = load_iris(return_X_y=True)
    tree = SoftTreeClassifier(
        loss="cost",
        depth=2,
        scale="minmax",
        min_class_rate={0: 0.8, 1: 0.7, 2: 0.7},
        constraints=[RateConstraint(None, of=2, at_most=0.4)],
        n_starts=1,
        random_state=np.random.RandomState(0),  # no plain value: not in the file
    )
    return tree.fit(np.insert(X, 1, 7.0, axis=1), y.astype(np.int32)), np.insert(X, 1, 7.0, axis=1)


def number_table() -> Case:
    """A number as the target: dates, levels and gaps, effects that are monotone, intervals."""
    X = trips(200)[0]
    fare = X["fare"].fillna(20.0) + 3.0 * (X["town"] == "Oslo") + (X["end"] - X["start"]).notna()
    tree = SoftTreeRegressorCV(monotone={"fare": "+"}, cv=2, depth=1, random_state=0)
    return tree.fit(X, fare.rename("price")), X


CASES: dict[str, Callable[[], Case]] = {
    case.__name__.replace("_", "-"): case
    for case in (
        log_array, log_frame, log_table, log_costs, log_search, log_rates, log_edited,
        cost_table, cost_rates, log_points, number_table,
    )
}  # fmt: skip


def as_rows(X: Any) -> dict[str, Any]:
    """Rows as JSON has them; dates are texts, and their columns are named."""
    frame = pd.DataFrame(X).iloc[:N_ROWS].copy()
    dates = [c for c in frame.columns if frame[c].dtype.kind == "M"]
    frame[dates] = frame[dates].map(lambda v: None if pd.isna(v) else v.isoformat())
    rows = frame.astype(object).where(frame.notna(), None).to_numpy().tolist()
    return {"columns": list(frame.columns), "dates": dates, "X": rows}


if __name__ == "__main__":
    for name, case in CASES.items():
        path = FILES / f"model-v1-{name}.json"
        if path.exists():
            continue
        tree, X = case()
        path.write_text(dumps_model(tree), encoding="utf-8")
        rows = X[:N_ROWS]
        said = {"labels": tree.predict(rows).tolist()}
        said["probabilities"] = tree.tree_.surface(checked_rows(tree, rows)).tolist()
        path.with_suffix(".expected").write_text(
            json.dumps(as_rows(rows) | said, indent=None) + "\n"
        )
        print(name, len(path.read_text()), list(json.loads(path.read_text())))
