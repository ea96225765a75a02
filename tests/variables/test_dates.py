"""Parts of dates and texts with an order: learned, coded, explained, stored and read by hand."""

from __future__ import annotations

import json
from importlib.resources import files

import jsonschema
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from printed_points import printed_text
from printed_tree import PrintedTree
from softsplit import SoftTreeClassifier, dumps_model, export_text, loads_model
from softsplit.variables import learn
from softsplit.variables.dates import HOUR, MONTH, MONTHS, WEEKDAY, WEEKDAYS, YEAR_DAY, part_numbers
from softsplit.variables.levels import natural_order

SCHEMA = json.loads(files("softsplit.persistence").joinpath("model-1.schema.json").read_text())
PARTS = {"pickup": "date: days, hour, weekday, month, day of year", "end": "date since pickup"}


def trips(n_rows: int = 400, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Late in the summer, on weekends, in the evening and after long trips."""
    rng = np.random.default_rng(seed)
    minutes = np.append([0, 730 * 1440 - 1], rng.integers(0, 730 * 1440, n_rows - 2))
    pickup = pd.Series(pd.Timestamp("2023-01-01") + pd.to_timedelta(minutes, unit="min"))
    length = rng.integers(5, 60, n_rows)
    X = pd.DataFrame(
        {
            "pickup": pickup,
            "end": pickup + pd.to_timedelta(length, unit="min"),
            "size": rng.choice(["small", "medium", "large"], n_rows),
            "fare": rng.normal(20, 5, n_rows).round(2),
        }
    )
    score = 2.0 * pickup.dt.month.isin([6, 7, 8]) + 1.0 * (pickup.dt.day_of_week > 4)
    score = score + pickup.dt.hour / 10 + length / 30 + 0.6 * (X["size"] == "large")
    return X, np.where(score + rng.logistic(0, 0.3, n_rows) > 3.2, "late", "in time")


@pytest.fixture(scope="module", params=[False, True], ids=["weights", "points"])
def tree(request):
    X, y = trips()
    return SoftTreeClassifier(
        depth=2, n_starts=1, random_state=0, feature_types=PARTS, points=request.param
    ).fit(X, y)


def names_of(X, **feature_types):
    labels = np.arange(len(X)) % 2
    rows = learn(X, labels, np.array(["a", "b"]), np.ones(len(X)), feature_types or None)
    return [variable.name for variable in rows.coding.variables]


@given(st.lists(st.datetimes(pd.Timestamp("1890-01-01"), pd.Timestamp("2260-12-31")), min_size=1))
def test_parts_are_those_of_the_calendar(moments):
    dates = pd.Series(moments).astype("datetime64[us]").dt.floor("ms")
    days = ((dates - pd.Timestamp(0)) / pd.Timedelta(1, "D")).to_numpy()
    assert_array_equal(part_numbers(HOUR, days), dates.dt.hour)
    assert_array_equal(part_numbers(WEEKDAY, days), dates.dt.day_of_week)
    assert_array_equal(part_numbers(MONTH, days), dates.dt.month - 1)
    assert_array_equal(part_numbers(YEAR_DAY, days), dates.dt.day_of_year)


def test_a_date_has_the_parts_that_its_rows_and_range_give():
    X, _ = trips(1300)
    whole = ["pickup", "hour of pickup", "weekday of pickup", "month of pickup"]
    assert names_of(X[["pickup"]]) == whole
    assert names_of(X[["pickup"]].iloc[:400]) == whole[:2]
    assert names_of(X[["pickup"]].iloc[:100]) == whole[:1]
    days = X[["pickup"]].apply(lambda column: column.dt.floor("D"))
    assert names_of(days) == [whole[0], *whole[2:]]
    spring = pd.DataFrame({"pickup": pd.date_range("2024-03-01", periods=1300, freq="h")})
    assert names_of(spring) == whole[:3]
    assert names_of(X[["pickup"]], pickup="date: month, hour") == [whole[3], whole[1]]
    texts = X[["pickup"]].apply(lambda column: column.dt.strftime("%d.%m.%Y %H:%M"))
    assert names_of(texts) == whole


def test_a_date_is_one_feature(tree):
    assert tree.n_features_in_ == 4
    assert set(tree.selected_features_) <= {0, 1, 2, 3} and 0 in tree.selected_features_
    used = {tree.coding_.variables[i].column for i in tree.tree_.selected_variables}
    assert len(used) == len(tree.selected_features_)
    assert_allclose(tree.feature_importances_.sum(), 1.0)


def test_the_text_is_walked_by_hand_also_with_unknown_dates(tree):
    X, _ = trips(60, seed=5)
    X.loc[3, "pickup"], X.loc[4, "end"], X.loc[5, "size"] = pd.NaT, pd.NaT, "huge"
    known = X.drop(index=[3, 4, 5])
    printed = printed_text(export_text(tree), list(X.columns))
    said = [printed.class_of(row) for row in known.to_dict("records")]
    assert said == tree.predict(known).tolist()
    assert "was not seen in training" in str(tree.explain(X.iloc[[5]]))
    assert "as in no training row" in str(tree.explain(X.iloc[[3]]))
    assert len(tree.predict(X)) == 60


def test_the_model_file_knows_parts(tree):
    document = json.loads(dumps_model(tree))
    jsonschema.validate(document, SCHEMA)
    loaded = loads_model(json.dumps(document))
    X, _ = trips(80, seed=3)
    X.loc[2, "pickup"] = pd.NaT
    assert_array_equal(loaded.predict_proba(X), tree.predict_proba(X))
    assert loaded.coding_ == tree.coding_
    part = next(v for v in document["table"]["variables"] if v.get("part") == "month")
    part["levels"][0] = "Brumaire"
    with pytest.raises(ValueError, match="are no months"):
        loads_model(json.dumps(document))


@pytest.mark.parametrize(
    "order",
    [
        ["low", "mid", "high"],
        ["Very Low", "low", "Medium", "high", "very-high"],
        ["XS", "S", "M", "L", "XL", "2XL"],
        ["S", "M", "L"],
        ["poor", "fair", "good", "very good", "excellent"],
        ["strongly disagree", "disagree", "neutral", "agree", "strongly agree"],
        ["never", "rarely", "sometimes", "often", "always"],
        ["1-2", "3-5", "6-10", "11+"],
        ["<10", "10-20", "20-30", ">30"],
        ["under 18", "18 to 29", "30 to 64", "65 or more"],
        ["1st", "2nd", "3rd"],
        ["2", "3", "4", "5more"],
        ["< $1,000", "$1,000 - $5,000", "over $5,000"],
    ],
)
def test_natural_orders_are_recognised(order):
    shuffled = [order[i] for i in np.random.default_rng(0).permutation(len(order))]
    assert natural_order(shuffled) == tuple(order)


@pytest.mark.parametrize(
    "levels",
    [
        ["red", "green", "blue"],
        ["M", "F", "X"],
        ["low", "high"],
        ["low", "high", "unknown"],
        ["1a", "2b", "3c"],
        ["1-5", "3-8", "9-10"],
        ["01", "02", "03"],
        ["Bern", "Lyon", "Oslo"],
        list(MONTHS),
        list(WEEKDAYS),
        ["medium", "mid", "low"],
    ],
)
def test_other_texts_have_no_order(levels):
    assert natural_order(levels) is None


def test_texts_with_an_order_are_one_column_and_the_text_says_their_numbers():
    X, y = trips()
    X["mood"] = np.random.default_rng(1).choice(["grim", "fine", "merry"], len(X))
    types = {"mood": "ordered: grim < fine < merry", "pickup": "drop", "end": "drop"}
    tree = SoftTreeClassifier(
        depth=1, n_starts=1, feature_types=types, local_strength=0, global_strength=0, points=False
    ).fit(X, y)
    assert [v.levels for v in tree.coding_.variables if v.kind == "ordered"] == [
        ("small", "medium", "large"), ("grim", "fine", "merry"),
    ]  # fmt: skip
    text = export_text(tree)
    assert "size counts as 0 small, 1 medium, 2 large" in text
    printed = PrintedTree(text)
    assert [printed.class_of(row) for row in X.to_dict("records")] == tree.predict(X).tolist()
    levels = SoftTreeClassifier(feature_types={"size": "category"}, n_starts=1).fit(X[["size"]], y)
    assert levels.coding_.variables[0].kind == "category"
    with pytest.raises(ValueError, match="which its order 'grim < fine' does not name"):
        SoftTreeClassifier(feature_types={"mood": "ordered: grim < fine"}).fit(X, y)
    with pytest.raises(ValueError, match="has no order that is known; write it down"):
        SoftTreeClassifier(feature_types={"mood": "ordered"}).fit(X, y)
    with pytest.raises(ValueError, match="with parts as in 'date: hour, month'"):
        SoftTreeClassifier(feature_types={"pickup": "date: minute"}).fit(X, y)
