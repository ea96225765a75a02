"""The text of trees in whole points: a program that sees nothing else answers as ``predict``."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris

from export_cases import classes, new_rows, table
from printed_points import PrintedPoints
from softsplit import SoftTreeClassifier, export_text
from softsplit.reading.point_columns import PointColumn
from softsplit.reading.questions import PointedQuestion
from softsplit.variables.lookup import Lookup
from softsplit.variables.variable import Variable


def of_sklearn(load):
    data = load(as_frame=True)
    return data.data, data.target_names[data.target], None


def mixed(n_classes):
    """Numbers, levels, truth values and dates, with missing values; rows with new levels too."""
    X = table(400, 1)
    rows = pd.concat([X, new_rows()[X.columns]], ignore_index=True)
    known = rows["left"].notna() & rows["street"].fillna("").str.strip().astype(
        bool
    )  # as in training
    return X, classes(X, n_classes, 1), rows[known]


def by_sex(n_rows=600):
    """A threshold of age for each sex, and one column that says nothing."""
    rng = np.random.default_rng(2)
    age, sex = rng.integers(18, 80, n_rows), rng.choice(["male", "female"], n_rows)
    old = age >= np.where(sex == "male", 30, 50)
    y = np.where(rng.random(n_rows) < np.where(old, 0.95, 0.05), "ill", "well")
    return pd.DataFrame({"age": age, "sex": sex, "z": rng.normal(size=n_rows)}), y, None


def of_one_column(n_rows=400):
    rng = np.random.default_rng(3)
    dose = np.round(rng.gamma(2.0, 2.0, n_rows), 1)
    y = np.where(rng.random(n_rows) < 1 / (1 + np.exp(-2 * (dose - 4))), "cured", "ill")
    dose[rng.random(n_rows) < 0.1] = np.nan
    return pd.DataFrame({"dose": dose}), y, None


TABLES = {
    "iris": lambda: of_sklearn(load_iris),
    "breast cancer": lambda: of_sklearn(load_breast_cancer),
    "two classes": lambda: mixed(2),
    "three classes": lambda: mixed(3),
    "by sex": by_sex,
    "one column": of_one_column,
}


@pytest.fixture(scope="module", params=TABLES)
def fitted(request):
    X, y, rows = TABLES[request.param]()
    tree = SoftTreeClassifier(points=True, n_starts=1, random_state=0).fit(X, y)
    return tree, X if rows is None else rows


def test_the_text_alone_gives_the_class_of_every_row(fitted):
    tree, X = fitted
    printed = PrintedPoints(export_text(tree), list(X.columns))
    said = [printed.class_of(row) for row in X.to_dict("records")]
    assert said == [str(label) for label in tree.predict(X)]


def test_printed_chances_are_those_of_predict_proba(fitted):
    tree, X = fitted
    printed = PrintedPoints(export_text(tree), list(X.columns))
    told = 0
    for row, chances in zip(X.to_dict("records"), tree.predict_proba(X), strict=True):
        for name, text in (printed.chance_of(row) if len(printed.questions) < 2 else {}).items():
            at = [str(label) for label in tree.classes_].index(name)
            if text[:1] in ("<", ">"):
                limit = float(text[1:])
                assert 100 * chances[at] < limit if text[0] == "<" else 100 * chances[at] > limit
            elif text:  # of sums that are not whole only some are printed
                digit = 10.0 ** -len(text.partition(".")[2])
                assert abs(100 * chances[at] - float(text)) <= 0.51 * digit
                told += 1
    assert told or len(printed.questions) > 1


def test_the_full_text_alone_gives_probabilities(fitted):
    tree, X = fitted
    printed = PrintedPoints(export_text(tree, detail=True), list(X.columns))
    said = [printed.probabilities(row) for row in X.to_dict("records")]
    names = [str(label) for label in tree.classes_]
    by_hand = np.array([[one[name] for name in names] for one in said])
    np.testing.assert_allclose(by_hand, tree.predict_proba(X), atol=1e-6)


def question(limit, **lookups):
    """A question on an age and two columns of levels."""
    variables = {
        "age": Variable("age", "number", 40.0, "a" in lookups),
        "sex": Variable("sex", "category", 0.0, levels=("male", "female"), rare=""),
        "flag": Variable("flag", "number", 0.0),
        "port": Variable("port", "category", 0.0, levels=("A", "B", "C"), other=True),
    }
    columns = [
        PointColumn(variables[name], lookup, j, name, binary=name == "flag")
        for j, (name, lookup) in enumerate(lookups.items())
    ]
    return PointedQuestion(tuple(columns), limit)


AGE = Lookup((0, 2, 4), (30.0, 50.0))
SEX = Lookup((2, 0))
PORT = Lookup((0, 3, 3, 0))  # the last of other levels


@pytest.mark.parametrize(
    ("limit", "lookups", "said"),
    [
        (1, {"age": AGE}, "age is 30 or more"),
        (1, {"age": Lookup((0, 2, 0), (30.0, 50.0))}, "age is 30 to below 50"),
        (1, {"age": Lookup((0, 2), (30.0,), unknown=2)}, "age is 30 or more or unknown"),
        (1, {"sex": SEX, "port": PORT}, "sex is male, or port is B or C"),
        (4, {"sex": SEX, "port": PORT}, "sex is male, and port is B or C"),
        (2, {"sex": SEX, "age": Lookup((0, 3), (30.0,))}, "age is 30 or more"),
        (2, {"port": Lookup((3, 0, 0, 3))}, "port is B or C"),
        (3, {"age": AGE, "sex": SEX}, "age by sex: 30 or more if male; 50 or more if female"),
        (1, {"flag": Lookup((2, 0), (1.0,)), "age": AGE}, "flag is 0 or age is 30 or more"),
        (1, {"age": Lookup(slopes=(1,), unit=20.0)}, "age is above 20"),
        (1, {"age": Lookup(slopes=(3,), unit=20.0)}, ""),
        (1, {"age": Lookup(slopes=(0, 1, 4), knots=(0.5, 4.5), unit=8.0)}, "age is above 5.5"),
        (-3, {"age": Lookup(slopes=(-1, 0, -3), knots=(3.0, 9.0))}, "age is below 3"),
        (3, {"age": Lookup(slopes=(1, 0, 3), knots=(3.0, 9.0))}, "age is above 9"),
    ],
)  # fmt: skip
def test_a_question_is_said_without_points_where_it_can_be(limit, lookups, said):
    assert question(limit, **lookups).statement == said


def test_the_opposite_is_said_where_that_is_shorter():
    """Of a question that holds for the young, the old and the unknown, or in all ports but one."""
    age = Lookup((3, 0, 3), (25.0, 55.0), unknown=3)
    asked = question(2, age=age, port=Lookup((3, 0, 3, 3)))
    assert asked.denied and asked.statement == "age is 25 to below 55, and port is B"
    assert asked.sides(("yes", "no")) == ("no", "yes")


def test_levels_that_could_be_misread_stand_in_quotation_marks():
    levels = ("a, b", "x: 1", "plain words", "other", "")
    variable = Variable("port", "category", 0.0, levels=levels, rare="")
    column = PointColumn(variable, Lookup((0, 1, 2, 3, 4)), 0, "port")
    assert column.entry == '"a, b": 0 | "x: 1": 1 | plain words: 2 | "other": 3 | "": 4'


def test_an_explanation_lists_the_points_that_the_text_gives(fitted):
    tree, X = fitted
    text = export_text(tree, detail=True)
    printed = PrintedPoints(text, list(X.columns))
    for n in range(0, len(X), 37):
        row = X.iloc[[n]]
        said, by_hand = str(tree.explain(row)), printed.total(1, row.to_dict("records")[0])
        assert f"class {tree.predict(row)[0]} (" in said
        assert "speaks for" not in said and "probability" not in said
        if summed := re.search(r"question 1: add [^?]*?\n  (\S+) points, ", said):
            assert float(summed[1]) == pytest.approx(float(by_hand), rel=1e-5)
