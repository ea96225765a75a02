"""Text, explanation, model file, ONNX and the page tell one story: that of ``predict``."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from printed_points import printed_text
from printed_tree import PrintedTree
from slow_cases import examples
from softsplit import SoftTreeClassifier, export_onnx, export_text, load_model, save_model
from softsplit.reading.outline import outline

pytest.importorskip("onnxruntime")

LEVELS = ["nurse", "clerk", "cook", "pilot"]


def made_table(seed: int, n_rows: int, n_classes: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers, missing values, levels (some rare, some ordered), truth values, dates; noise."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "income": rng.lognormal(8, 1, n_rows).round(2),
            "age": rng.integers(18, 80, n_rows).astype(float),
            "level": rng.normal(0, 1, n_rows),
            "job": rng.choice(LEVELS, n_rows, p=[0.4, 0.3, 0.27, 0.03]),
            "member": rng.random(n_rows) < 0.5,
            "size": rng.choice(["S", "M", "L", "XL"], n_rows),
            "joined": pd.Timestamp("2023-02-01 00:30")
            + pd.to_timedelta(rng.integers(0, 700 * 24, n_rows), unit="h"),
        }
    )
    X["left"] = X["joined"] + pd.to_timedelta(rng.integers(10, 900, n_rows), unit="min")
    joined = X["joined"].dt
    score = np.log(X["income"]) + 0.04 * X["age"] + X["level"] + (X["job"] == "cook") - X["member"]
    score = score + (joined.month > 8) + 1.0 * joined.day_of_week.isin([5, 6]) + joined.hour / 12
    score = score + 0.5 * X["size"].map({"S": 0, "M": 1, "L": 2, "XL": 3})
    score = score + (X["left"] - X["joined"]) / pd.Timedelta(8, "h")
    X["home"], X["loan"] = rng.choice(["own", "rent"], (2, n_rows), p=[0.4, 0.6])
    score = score + 1.5 * (X["home"] == "own") + 1.5 * (X["loan"] == "rent")
    score = score + rng.logistic(0, 0.3, n_rows)
    y = np.array(["low", "mid", "high"])[np.digitize(score, np.quantile(score, [0.4, 0.75]))]
    y = np.where(y == "mid", "high", y) if n_classes == 2 else y
    X.loc[rng.random(n_rows) < 0.15, "age"] = np.nan
    X.loc[rng.random(n_rows) < 0.1, "job"] = None
    X.loc[rng.random(n_rows) < 0.1, "joined"] = pd.NaT
    X.loc[rng.random(n_rows) < 0.1, "size"] = None
    return X, y


def new_rows(seed: int) -> pd.DataFrame:
    """Rows that training did not have: new levels, values at and beyond the ends."""
    X, _ = made_table(seed + 1000, 40, 3)
    X.loc[3, ["job", "size"]] = ["astronaut", "huge"]
    X.loc[4, ["income", "age"]] = [1e7, 140.0]
    X.loc[5, "joined"] = pd.Timestamp("2031-12-31 23:59:59.999")
    X.loc[6:8, "home"], X.loc[9:11, "home"] = None, "castle"
    X.loc[12:14, "loan"], X.loc[15:17, "loan"] = None, "castle"
    return X


@examples(12)
@given(
    seed=st.integers(0, 10_000),
    depth=st.integers(1, 3),
    n_classes=st.sampled_from([2, 3]),
    costly=st.booleans(),
    balanced=st.booleans(),
    points=st.booleans(),
)
def test_everything_that_is_shown_says_what_predict_says(
    tmp_path_factory, seed, depth, n_classes, costly, balanced, points
):
    X, y = made_table(seed, 150, n_classes)
    costs = None
    if costly:
        costs = np.arange(1, n_classes + 1)[:, None] * (1.0 - np.eye(n_classes))
    tree = SoftTreeClassifier(
        depth=depth, n_starts=1, random_state=0, cost_matrix=costs,
        class_weight="balanced" if balanced else None, points=points,
        feature_types={
            "joined": "date: days, hour, weekday, month", "left": "date since joined",
            "loan": "ordered: rent < own",
        },
    ).fit(X, y)  # fmt: skip
    asked = pd.concat([X.iloc[:40], new_rows(seed)], ignore_index=True)
    predicted, proba = tree.predict(asked), tree.predict_proba(asked)
    printed = printed_text(export_text(tree, detail=True), list(X.columns))
    rows = asked.to_dict("records")
    assert [printed.class_of(row) for row in rows] == predicted.tolist()
    found = [printed.probabilities(row) for row in rows]
    by_hand = np.array([[p.get(label, 0.0) for label in tree.classes_] for p in found])
    if tree.selected_features_.size:
        # What a missing value counts as is printed to six digits, or to the minute.
        assert_allclose(by_hand, proba, atol=1e-5)
    path = tmp_path_factory.mktemp("story") / "tree.json"
    save_model(tree, path)
    loaded = load_model(path)
    assert_array_equal(loaded.predict(asked), predicted)
    assert_array_equal(loaded.predict_proba(asked), proba)
    assert export_text(loaded) == export_text(tree)
    assert_allclose(_graph_proba(tree, asked), proba, atol=1e-9)
    for i in (0, 7, 43, 44, 45):
        told = tree.explain(asked.iloc[[i]])
        assert told.label == predicted[i]
        assert re.split(r" +\(", told.leaf_label)[0] == predicted[i]
        assert_allclose(list(told.probabilities.values()), proba[i], atol=1e-12)


def _graph_proba(tree, asked):
    """Probabilities of the ONNX graph; dates go in as days since 1970-01-01."""
    import onnxruntime

    session = onnxruntime.InferenceSession(
        export_onnx(tree).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    columns = {}
    for one in session.get_inputs():
        column = asked[one.name]
        if one.type == "tensor(string)":
            values = column.map(lambda v: "" if pd.isna(v) else str(v)).to_numpy(dtype=object)
        elif column.dtype.kind == "M":
            values = ((column - pd.Timestamp(0)) / pd.Timedelta(1, "D")).to_numpy(dtype=float)
        else:
            values = column.to_numpy(dtype=float)
        columns[one.name] = values[:, None]
    return session.run(["probabilities"], columns)[0]


@pytest.mark.parametrize(
    ("n_classes", "costs", "told"),
    [
        (3, None, "lower each P(class) above "),
        (3, [2.0, 2.0, 2.0], "lower each P(class) above "),
        (2, [6.0, 1.0], "where high is reached, raise P(high) to at least 14.2857142857 %; "),
        (2, [1.0, 3.3], "where low is reached, raise P(low) to at least 23.2558139535 %; "),
        (3, [1.0, 2.25, 7 / 3], "multiply each P(class) by the cost of an error on that class ("),
    ],
)
def test_the_last_step_by_hand_gives_the_probabilities(n_classes, costs, told):
    X, y = made_table(7, 300, n_classes)
    X = X[["income", "level", "member"]]
    given = None if costs is None else np.array(costs)[:, None] * (1 - np.eye(n_classes))
    tree = SoftTreeClassifier(
        depth=2, n_starts=1, random_state=0, cost_matrix=given, points=False
    ).fit(X, y)
    model, rows = tree.tree_, X.to_dict("records")
    mixture = model.leaf_proba(model.coding.code(X).X) @ model.leaf_shares.T
    width = np.array([q.split.gate_width for q in outline(model).questions()])[0]
    lowered = 0
    for moved in (-width, width):  # rows between centre and threshold: the mixture prefers another
        thresholds = model.walk.thresholds + np.array([moved, 0.0, 0.0])
        tree.tree_ = replace(model, walk=replace(model.walk, thresholds=thresholds))
        text, proba = export_text(tree), tree.predict_proba(X)
        assert f"    last: {told}" in text
        found = [PrintedTree(text).probabilities(row) for row in rows]
        assert_allclose([[p[str(k)] for k in tree.classes_] for p in found], proba, atol=1e-8)
        lowered += np.sum(np.abs(mixture - proba).max(axis=1) > 1e-3)
    assert lowered >= 10


def test_ties_go_to_the_side_that_the_printed_sign_says():
    """0.1 + 0.2 is not 0.3 in floating point; by hand it is."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 30, size=(400, 2)) / 10
    y = (X.sum(axis=1) > 2.9).astype(int)
    tree = SoftTreeClassifier(depth=1, n_starts=1, random_state=0, points=False).fit(X, y)
    printed = PrintedTree(export_text(tree))
    grid = np.array([(a / 10, b / 10) for a in range(30) for b in range(30)])
    said = [printed.class_of({"x0": a, "x1": b}) for a, b in grid]
    assert said == [str(k) for k in tree.predict(grid)]


def test_the_lines_below_a_tree_say_what_unknown_and_new_levels_count_as():
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"home": rng.choice(["own", "rent"], 400, p=[0.3, 0.7])})
    X["job"] = rng.choice(["cook", "nurse", "pilot"], 400)
    score = 2.0 * (X["home"] == "own") + 2.0 * (X["job"] == "cook") - (X["job"] == "pilot")
    y = np.where(score + rng.logistic(0, 0.4, 400) > 1.2, "yes", "no")
    X.loc[rng.random(400) < 0.1, "job"] = None
    tree = SoftTreeClassifier(depth=1, n_starts=1, random_state=0, points=False).fit(X, y)
    text = export_text(tree)
    assert "home: unknown or a level other than own and rent counts as rent" in text
    assert "job: unknown or new counts as none of the levels" in text
    cells = [(home, job) for home in ("own", None, "castle") for job in ("cook", None, "clown")]
    asked = pd.DataFrame(cells, columns=["home", "job"], dtype=object)
    printed = PrintedTree(text)
    by_hand = [printed.class_of(row) for row in asked.to_dict("records")]
    assert by_hand == tree.predict(asked).tolist() and len(set(by_hand)) == 2
    full = X.assign(job=X["job"].fillna("pilot"))  # training rows without a gap
    text = export_text(
        SoftTreeClassifier(depth=1, n_starts=1, random_state=0, points=False).fit(full, y)
    )
    assert re.search("job: unknown counts as .*; a new level counts as none of the levels", text)
