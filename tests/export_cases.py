"""Trees of several kinds, with rows that training did not have, for the tests of exports."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from places import FILES
from softsplit import SoftTreeClassifier, SoftTreeRegressor, SoftTreeSurvival, load_model
from softsplit.reading.outline import outline
from softsplit.tree.leaf_families import Poisson

ODD = {
    "age": 'age"; DROP TABLE t; --',
    "town": "it's [a] `town` \\ ${x}",
    "street": "=1+1",
    "size": "größe 漢字 ✓",
    "smoker": "a b\nc",
    "joined": "*/ ??/ //",
    "left": "left",
}


def table(n_rows: int, seed: int) -> pd.DataFrame:
    """Columns of every kind, with missing values."""
    rng = np.random.default_rng(seed)
    towns = ["Lyon", "Oslo", 'it\'s "Bern"', "a\\b", "rare 1", "rare 2"]
    town = rng.choice(towns, n_rows, p=[0.4, 0.3, 0.18, 0.1, 0.01, 0.01]).astype(object)
    joined = pd.Timestamp("2019-03-01") + pd.to_timedelta(rng.integers(0, 2000 * 24, n_rows), "h")
    frame = pd.DataFrame(
        {
            "age": np.round(rng.gamma(6.0, 8.0, n_rows), 1),
            "town": town,
            "street": [f"street {i}" for i in rng.integers(0, 40, n_rows)],
            "size": pd.Categorical(
                rng.choice(["S", "M", "L", "XL"], n_rows), ["S", "M", "L", "XL"], ordered=True
            ),
            "smoker": np.where(rng.random(n_rows) < 0.5, "TRUE", "FALSE"),
            "joined": joined,
            "left": (joined + pd.Timedelta(days=40)).strftime("%d.%m.%Y"),
        }
    )
    for name in ("age", "town", "size", "smoker", "joined"):
        frame.loc[rng.random(n_rows) < 0.08, name] = None
    return frame


def classes(frame: pd.DataFrame, n_classes: int, seed: int) -> np.ndarray:
    """Classes that depend on every column."""
    rng = np.random.default_rng(seed + 1)
    age = frame["age"].astype(float).fillna(60.0)
    score = (
        np.minimum(age, 50.0) / 12.0
        + 2.0 * (frame["town"] == "Oslo")
        - 1.5 * frame["town"].isna()
        + frame["size"].cat.codes
        + 1.2 * (frame["smoker"] == "TRUE")
        + (frame["joined"].fillna(frame["joined"].median()) - pd.Timestamp("2021-06-01")).dt.days
        / 500
        + frame["street"].str.len() % 2
        + rng.normal(0, 0.6, len(frame))
    )
    return np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))


def new_rows(seed: int = 9) -> pd.DataFrame:
    """Rows as those of training, and some with missing values and levels that were not there."""
    frame = table(60, seed)
    for i, name in enumerate(frame.columns):
        frame.loc[i, name] = None
    frame.loc[8:12, "town"] = ["Atlantis", "OSLO", "Oslo ", "rare 1", "  "]
    frame.loc[8:12, "street"] = ["street 99", "", "Street 1", "street 1 ", "\t"]
    frame.loc[14, ["age", "joined"]] = [1e6, pd.Timestamp("1901-01-01")]
    frame.loc[15, ["age", "joined"]] = [-1e6, pd.Timestamp("2201-01-01 12:34:56.5")]
    return frame


@cache
def case(name: str) -> tuple[SoftTreeClassifier, pd.DataFrame]:
    """A fitted tree and new rows for it."""
    kind, _, loss = name.partition(" by ")
    loss = loss or "log"
    n_classes = 2 if "two" in kind else 4
    settings = dict(loss=loss, n_starts=1, random_state=0, depth=2 if loss == "log" else 3)
    settings |= {"max_iter": 60} if loss == "cost" else {}
    X, rows = table(500, 0), new_rows()
    y = classes(X, n_classes, 0)
    if "labels" in kind:
        y = np.array(["it's", 'a "class"', "a\\b </script>", "漢字"])[y]
    elif "two" in kind:
        y = y.astype(bool)
    if "numbers" in kind:
        X = pd.DataFrame({"age": X["age"].fillna(3.0), "n": X["street"].str.slice(7).astype(int)})
        rows = pd.DataFrame({"age": rows["age"].astype(float), "n": np.arange(60.0)})
    if "ranks" in kind:
        settings |= {"scale": "quantile"}
    if "mixture" in kind:
        settings |= {"decision": "mixture"}
    if "costs" in kind:
        settings |= {
            "cost_matrix": 5.0 * (1 - np.eye(n_classes)) * np.arange(1, n_classes + 1)[:, None]
        }
    settings |= {"points": "points" in kind}
    if "straight" in kind:
        settings |= {"curves": False}
    if "odd" in kind:
        X, rows = X.rename(columns=ODD), rows.rename(columns=ODD)
    with warnings.catch_warnings():  # 60 iterations make a tree that is good enough here
        warnings.simplefilter("ignore", UserWarning)
        tree = SoftTreeClassifier(**settings).fit(X, y)
    if "edited" in kind:
        return changed(tree), rows.rename(columns={"age": "age in years"})
    return tree, rows


@cache
def priced(name: str) -> tuple[SoftTreeRegressor, pd.DataFrame]:
    """A tree for a number whose leaves have terms of all kinds of columns, and new rows for it."""
    X, rows = table(500, 0), new_rows()
    age, joined = X["age"].astype(float).fillna(45.0), X["joined"].fillna(X["joined"].median())
    days = (joined - pd.Timestamp("2019-03-01")).dt.days
    lone = np.where(X["size"].isin(["S", "M"]), 90.0 * age, 2500.0 + 1.7 * days)
    y = lone + 800.0 * (X["town"] == "Oslo") - 300.0 * X["town"].isna()
    y += 500.0 * (X["smoker"] == "TRUE") + np.random.default_rng(0).normal(0, 100, 500)
    y = y.rename("price")
    decision = "mixture" if "mixture" in name else "walk"
    if "exposure" in name or "hazard" in name:  # the code says the rate, whatever the exposure
        rng, rate = np.random.default_rng(1), np.exp((y - y.mean()) / (2.0 * y.std()))
        if "hazard" in name:
            times = np.column_stack([rng.exponential(size=500) / rate, rng.random(500) < 0.8])
            return SoftTreeSurvival(depth=1, strength=1.0, random_state=0).fit(X, times), rows
        units = rng.uniform(1.0, 9.0, 500)
        kind = SoftTreeRegressor(loss="poisson", depth=1, strength=1.0, random_state=0)
        return kind.fit(X, rng.poisson(rate * units), exposure=units), rows
    if "odd" in name:
        X, rows = X.rename(columns=ODD), rows.rename(columns=ODD)
    tree = SoftTreeRegressor(depth=2, strength=1.0, decision=decision, random_state=0).fit(X, y)
    if "rate" in name:  # a link: scores of these leaves are logarithms
        numbers, unit = tree.tree_.numbers, 1e-3
        known = vars(numbers.functions)
        functions = replace(numbers.functions, **{n: unit * part for n, part in known.items()})
        numbers = replace(numbers, functions=functions, family=Poisson())
        tree.tree_ = replace(tree.tree_, numbers=numbers)
    return tree, rows


def changed(tree: SoftTreeClassifier) -> SoftTreeClassifier:
    """The tree with an edit of every kind that its questions allow."""
    asked = [q for q in outline(tree.tree_).questions() if q.split.lefts is None]
    first, last = asked[0], asked[-1]
    name = tree.tree_.feature_names[first.split.features[0]]
    move = 0.7 * first.split.gate_width
    made = tree.edit().round_weights(1).set_threshold(first.number, first.split.threshold + move)
    made = made.set_weight(first.number, name, 1.25).set_leaf(1, tree.classes_[-1])
    made = made.prune(last.number) if last is not first else made
    return made.rename({"age": "age in years"}, {tree.classes_[0]: "first of all"})


def moments(n_rows: int, seed: int) -> pd.DataFrame:
    """Two dates, with all that a clock and a calendar say of them, also before 1970."""
    rng = np.random.default_rng(seed)
    start = pd.Timestamp("1958-01-01") + pd.to_timedelta(rng.integers(0, 40 * 8766, n_rows), "h")
    end = start + pd.to_timedelta(rng.integers(0, 90 * 24 * 60, n_rows), "min")
    frame = pd.DataFrame({"start": start, "end": end.strftime("%d/%m/%Y %H:%M")})
    frame.loc[rng.random(n_rows) < 0.05, "start"] = None
    frame.loc[rng.random(n_rows) < 0.05, "end"] = None
    return frame


@cache
def dated(part: str) -> tuple[SoftTreeClassifier, pd.DataFrame]:
    """A tree on one part of a date, and new rows."""
    X, rows = moments(1500, 0), moments(300, 1)
    known = X["start"].fillna(pd.Timestamp("1970-05-05 05:05"))
    ended = pd.to_datetime(X["end"], format="%d/%m/%Y %H:%M").fillna(known)
    said = {
        "hour": known.dt.hour > 13,
        "weekday": known.dt.day_of_week.isin([1, 5]),
        "month": known.dt.month.isin([2, 3, 11]),
        "day of year": known.dt.day_of_year > 200,
        "since": (ended - known).dt.days > 40,
    }[part]
    kinds = {"start": f"date: {part}"} if part != "since" else {"end": "date: since start"}
    # In points: the look-up of a number is a sum that begins with a choice.
    tree = SoftTreeClassifier(n_starts=1, random_state=0, depth=1, feature_types=kinds)
    columns = ["start", "end"] if part == "since" else ["start"]
    return tree.fit(X[columns], said.to_numpy()), rows[columns]


STORED = sorted(path.stem for path in FILES.glob("model-v1-*.json"))


def stored_case(name: str) -> tuple[SoftTreeClassifier, Any]:
    """A tree of a stored file, and rows to ask it about."""
    tree = load_model(FILES / f"{name}.json")
    recorded = json.loads((FILES / f"{name}.expected").read_text())
    if not hasattr(tree, "feature_names_in_"):
        return tree, np.array(recorded["X"])
    X = pd.DataFrame(recorded["X"], columns=tree.feature_names_in_)
    for column in recorded.get("dates", []):
        X[column] = pd.to_datetime(X[column])
    return tree, X


PARTS = ("hour", "weekday", "month", "day of year", "since")

CASES = (
    "two classes",
    "several classes, labels",
    "odd names, labels",
    "numbers",
    "two classes, ranks",
    "several classes, mixture",
    "several classes, costs",
    "straight, two classes, mixture, costs",
    "two classes by cost",
    "odd names, labels by cost",
    "several classes, labels, edited",
    "several classes, ranks, labels, edited",
    "several classes, labels, edited by cost",
    "two classes, points",
    "odd names, labels, points",
    "numbers, points",
)

NUMBERS = (
    "price", "price, odd names, mixture", "rate", "rate, mixture", "rate by exposure", "hazard",
)  # fmt: skip
