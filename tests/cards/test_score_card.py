"""Score cards: what a person finds who follows the printed card is what the card predicts."""

from __future__ import annotations

import csv
import html
import io
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.metrics import roc_auc_score

from printed_card import PrintedCard
from readings import TREES, classifier_and_frame
from slow_cases import examples
from softsplit import SoftTreeClassifier
from softsplit.cards.blocks import level_text, readable
from softsplit.cards.rows import cells_of
from softsplit.cards.score_card import make_card
from softsplit.data.learning import LabelledRows
from softsplit.report import Assessment, ReportData
from softsplit.selection.assessment import NOT_JUDGED, Judged
from softsplit.selection.baselines import BASELINES
from softsplit.support.messages import visible

LEVELS = ['day "off", paid', "missing", "cook", "any other level", " pilot", "tab\there"]


@pytest.fixture(scope="module")
def fitted():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return SoftTreeClassifier(random_state=0).fit(X, y), X, y


def made_table(seed, n_rows, n_classes, gaps=True):
    """Numbers, dates, truth values, levels with names that are hard to print; missing values."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "income": rng.lognormal(8, 1, n_rows).round(2),
            "age": rng.integers(18, 80, n_rows).astype(float),
            "since": pd.Timestamp("2019-01-01")
            + pd.to_timedelta(rng.integers(0, 2000, n_rows), unit="D"),
            "job": rng.choice(LEVELS, n_rows, p=[0.3, 0.2, 0.2, 0.15, 0.13, 0.02]),
            "sex": rng.choice(["f", "m"], n_rows),
            "member": rng.random(n_rows) < 0.5,
        }
    )
    score = np.log(X["income"]) + 0.05 * X["age"] - (X["since"] - X["since"].min()).dt.days / 500
    score = score + X["job"].isin(LEVELS[1:3]) * 2 - X["member"] + 2 * (X["sex"] == "f")
    score = score + rng.logistic(0, 0.3, n_rows)
    y = np.array(["a: 1", "b (2 %)", "c"])[np.digitize(score, np.quantile(score, [0.4, 0.75]))]
    y = np.where(y == "c", "b (2 %)", y) if n_classes == 2 else y
    if gaps:
        for name in ("age", "since", "job", "sex"):
            X.loc[rng.random(n_rows) < 0.12, name] = None
    return X, y


def new_rows(seed):
    """Rows with missing values everywhere, levels that training did not have, far values."""
    X, _ = made_table(seed + 1, 60, 3)
    X.loc[3:5, "job"] = "astronaut"
    X.loc[6, ["income", "age"]] = [1e7, 140.0]
    X.loc[7:9, "sex"] = "x"
    X.loc[10:12, "income"] = np.nan
    X["member"] = X["member"].astype(object)
    X.loc[13:14, "member"] = None
    return X


@examples(15)
@given(
    seed=st.integers(0, 10_000),
    depth=st.integers(1, 3),
    n_classes=st.sampled_from([2, 3]),
    gaps=st.booleans(),
    points=st.sampled_from([1, 4, 20]),
    decision=st.sampled_from(["walk", "mixture"]),
)
def test_the_printed_card_followed_by_hand_is_predict(
    seed, depth, n_classes, gaps, points, decision
):
    X, y = made_table(seed, 150, n_classes, gaps)
    tree = SoftTreeClassifier(depth=depth, n_starts=1, random_state=0, decision=decision).fit(X, y)
    card = tree.score_card(X, y, points=points)
    printed = PrintedCard(str(card))
    asked = pd.concat([X, new_rows(seed)], ignore_index=True)
    rows = asked.to_dict("records")
    assert [printed.class_of(row) for row in rows] == card.predict(asked).tolist()
    assert card.accuracy == np.mean(card.predict(X) == y)
    assert card.agreement == np.mean(card.predict(X) == tree.predict(X))
    if n_classes == 2 and card.questions:
        by_hand = np.array([printed.risk(row) for row in rows])
        assert_array_equal(by_hand / 100, card.predict_proba(asked)[:, 1])
    np.testing.assert_allclose(card.predict_proba(asked).sum(axis=1), 1)
    _same_in_frame_csv_and_html(card, printed)


def _same_in_frame_csv_and_html(card, printed):
    lines = [
        (number, name, text, points)
        for number, (blocks, *_) in printed.questions.items()
        for name, block in blocks.items()
        for text, points in block
    ]
    assert list(card.to_frame().itertuples(index=False, name=None)) == lines
    written = list(csv.reader(io.StringIO(card.to_csv())))[1:]
    assert written[: len(lines)] == [[str(part) for part in line] for line in lines]
    page = card._repr_html_()
    rows = re.findall(
        r"<tr>\s*<th scope=\"row\">.*?</th>\s*<td>(.*?)</td>\s*<td class=\"number\">(\d+)", page
    )
    unescaped = [(html.unescape(text), int(points)) for text, points in rows]
    assert unescaped == [(text, points) for _, _, text, points in lines]
    for question in card.questions:
        for text, goal in card.rules(question):
            assert f"<li>{text}: {goal}</li>" in html.unescape(page)


@examples(15)
@given(**TREES, points=st.sampled_from([1, 3, 20]))
def test_any_tree_has_a_card_with_few_whole_points(seed, depth, kind, labels, points):
    tree, frame = classifier_and_frame(seed, depth, kind, labels)
    X = frame.to_numpy()
    card = make_card(tree.tree_, X, tree.predict(frame), points)
    for question in card.questions:
        for block in question.blocks:
            assert block.points.min() == 0 and 0 < block.points.max() <= points
            assert np.all(np.diff(block.bins.edges) > 0)
    printed = PrintedCard(str(card))
    said = [printed.class_of(row) for row in frame.to_dict("records")]
    assert said == [visible(label) for label in card.predict(frame).tolist()]
    assert card.agreement == np.mean(card.predict(X) == tree.predict(frame))
    assert_array_equal(card.predict(X), card.predict(frame))


def test_a_question_on_one_column_is_followed_exactly():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"balance": rng.lognormal(7, 1, 2000).round(1), "other": rng.normal(size=2000)}
    )
    y = np.where(X["balance"] > 1891 + 100 * rng.normal(size=2000), "Yes", "No")
    bent = SoftTreeClassifier(depth=1, n_starts=1, random_state=0).fit(X[["balance"]], y)
    assert bent.score_card(X[["balance"]], y).agreement == 1.0
    tree = SoftTreeClassifier(depth=1, n_starts=1, random_state=0, curves=False).fit(X, y)
    assert tree.tree_.walk.coefficients[0].tolist() == [1.0, 0.0]
    card = tree.score_card(X, y)
    assert card.agreement == 1.0
    threshold = float(tree.tree_.walk.thresholds[0])
    (block,) = card.questions[0].blocks
    edge = block.bins.edges[np.searchsorted(block.points, card.questions[0].limit) - 1]
    assert edge == pytest.approx(threshold, abs=0.5)
    assert roc_auc_score(y == "Yes", card.predict_proba(X)[:, 1]) > 0.98


def test_a_missing_value_has_all_its_points_on_one_line():
    """The value that is imputed and the indicator count together, as in the tree."""
    rng = np.random.default_rng(1)
    age = rng.integers(1, 80, 1500).astype(float)
    sex = rng.choice(["female", "male"], 1500)
    gap = rng.random(1500) < 0.2
    score = 2.5 * (sex == "female") - 0.05 * age + np.where(gap, -2.5 + 0.05 * age, 0.0)
    y = np.where(score + rng.logistic(0, 0.5, 1500) > 0.3, "yes", "no")
    X = pd.DataFrame({"age": np.where(gap, np.nan, age), "sex": sex})
    tree = SoftTreeClassifier(depth=1, n_starts=1, random_state=0).fit(X, y)
    card = tree.score_card(X, y)
    lines = card.to_frame().set_index(["feature", "values"])["points"]
    assert ("age", "missing") in lines.index and ("sex", "female") in lines.index
    men = pd.DataFrame({"age": [np.nan], "sex": ["male"]})
    assert card.predict(men) == tree.predict(men) == "no"
    assert card.agreement > 0.97
    by_hand = lines[("age", "missing")] + lines[("sex", "male, any other level, or missing")]
    assert card.follow(cells_of(tree.tree_, men)).totals.tolist() == [by_hand]


def test_a_card_agrees_with_its_tree_on_new_rows():
    X, y = load_breast_cancer(return_X_y=True)
    half = np.arange(len(y)) % 2 == 0
    tree = SoftTreeClassifier(random_state=0).fit(X[half], y[half])
    card = tree.score_card(X[half], y[half])
    assert np.mean(card.predict(X[~half]) == tree.predict(X[~half])) >= 0.96
    assert card.lost <= 1.0 and card.tree_accuracy == tree.score(X[half], y[half])
    assert roc_auc_score(y[~half], card.predict_proba(X[~half])[:, 1]) > 0.97


def test_levels_with_the_same_points_share_a_line(fitted):
    rng = np.random.default_rng(2)
    towns = np.array([f"town {i}" for i in range(8)])
    X = pd.DataFrame({"town": rng.choice(towns, 2000), "age": rng.normal(40, 10, 2000)})
    y = X["town"].isin(towns[:3]) * 2 + X["age"] / 20 + rng.normal(0, 0.3, 2000) > 2.9
    tree = SoftTreeClassifier(depth=1, n_starts=1, random_state=0).fit(X, y)
    card = tree.score_card(X, y)
    lines = card.to_frame().query("feature == 'town'")["values"].tolist()
    assert len(lines) <= 4 and "any other level" in " ".join(lines)
    assert card.predict(pd.DataFrame({"town": ["new"], "age": [40.0]})).shape == (1,)


def test_costs_move_the_limit_and_the_risks_say_so(fitted):
    _, X, y = fitted
    costs = np.array([[0.0, 1.0], [20.0, 0.0]])
    tree = SoftTreeClassifier(depth=1, n_starts=1, random_state=0, cost_matrix=costs).fit(X, y)
    card = tree.score_card(X, y)
    assert card.agreement > 0.97
    risk, second = card.predict_proba(X)[:, 1], card.predict(X) == 1
    assert risk[second].min() > 1 / 21 > risk[~second].max()
    (question,) = card.questions
    assert np.all(np.diff(question.risks) >= 0)
    assert min(question.risks) >= 1 and max(question.risks) <= 99


def test_a_card_is_text_a_table_and_a_file(fitted, tmp_path):
    tree, X, y = fitted
    card = tree.score_card(X, y, points=6)
    assert "the card gives the class of the tree on" in str(
        card
    ) and f"{100 * card.accuracy:.1f} %" in str(card)
    told = card.to_csv(tmp_path / "card.csv")
    assert (tmp_path / "card.csv").read_text(encoding="utf-8") == told
    assert list(card.to_frame().columns) == ["question", "feature", "values", "points"]
    assert card.to_frame()["points"].max() <= 6


def test_without_rows_they_are_drawn_over_the_training_ranges():
    X, y = load_iris(return_X_y=True)
    tree = SoftTreeClassifier(n_starts=1, random_state=0).fit(X, y)
    card = tree.score_card()
    assert card.lost is None and card.agreement is None and "by hand" not in str(card)
    assert np.mean(card.predict(X) == tree.predict(X)) > 0.9
    with pytest.raises(ValueError, match="points must be an integer from 1 to 1000, got 0"):
        tree.score_card(points=0)
    with pytest.raises(ValueError, match="expecting 4 features"):
        card.predict(X[:, :2])


def test_labels_of_another_kind_are_refused(fitted):
    tree, X, y = fitted
    with pytest.raises(ValueError, match="not a class of the tree"):
        tree.score_card(X, y.astype(str))
    with pytest.raises(ValueError, match="give one per row"):
        tree.score_card(X, y[:-1])


def test_edges_are_short_numbers_and_levels_can_be_read_back():
    assert readable(2.41, 2.59, 2.5) == 2.5 and readable(1891.2, 1952.0, 1910.0) == 1900.0
    assert readable(3.0, 7.0, 4.6, whole=True) == 5.0 and readable(-0.3, 0.2, 0.1) == 0.0
    assert readable(0.00123, 0.00131, 0.00127) == 0.0013
    assert level_text("cook") == "cook" and level_text("missing") == '"missing"'
    assert level_text("a, b") == '"a, b"' and "\t" not in level_text("a\tb")


def test_the_card_of_a_report_is_that_of_the_tree(fitted):
    tree, X, y = fitted
    coding = replace(tree.tree_.table_coding, named=True)
    rows = LabelledRows(coding.code(X), y.to_numpy(), "y")
    shape = (len(y), 2)
    none = Judged(np.full(len(y), NOT_JUDGED), np.zeros(shape))
    found = Assessment(y.to_numpy(), (none,), dict.fromkeys(BASELINES, none), 2, 0)
    data = ReportData("data", rows, (tree,), 0, found)
    assert str(data.card) == str(tree.score_card(X, y))
