"""Score cards: whole points that say about what the tree says."""

from __future__ import annotations

import copy
import csv
import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_iris

from readings import TREES, classifier_and_frame
from softsplit import SoftTreeClassifier
from softsplit.data.learning import LabelledRows
from softsplit.reading.score_card import make_card
from softsplit.report import Assessment, JudgedPath, make_report_data
from softsplit.selection.assessment import NOT_JUDGED, Judged
from softsplit.selection.baselines import BASELINES


@pytest.fixture(scope="module")
def fitted():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return SoftTreeClassifier(random_state=0, curves=False).fit(X, y), X, y


@settings(max_examples=20)
@given(**TREES, points=st.sampled_from([1, 3, 10, 1000]))
def test_points_are_whole_few_and_what_the_card_counts(seed, depth, kind, labels, points):
    tree, frame = classifier_and_frame(seed, depth, kind, labels)
    X = frame.to_numpy()
    card = make_card(tree.tree_, X, tree.tree_.classes[tree.tree_.predict_index(X)], points)
    for question in card.questions:
        sums = np.zeros(len(X))
        for variable in question.variables:
            assert variable.points.min() >= 0 and variable.points.max() <= points
            assert np.all(np.diff(variable.edges) > 0)
            assert len(variable.points) == len(variable.edges) + 1 == len(variable.bands())
            steps = np.diff(variable.points)
            assert np.all(steps >= 0) or np.all(steps <= 0)
            sums += variable.of(X[:, variable.feature])
        np.testing.assert_array_equal(sums, question.totals(X))
        yes = question.odds(X) > 0
        np.testing.assert_array_equal(yes, sums >= question.limit)
    np.testing.assert_allclose(card.predict_proba(X).sum(axis=1), 1)


def test_many_points_are_the_tree(fitted):
    tree, X, y = fitted
    exact = tree.predict_proba(X)
    gaps = [
        np.abs(tree.score_card(X, y, points=n).predict_proba(X) - exact).mean()
        for n in (5, 50, 500)
    ]
    assert gaps[0] > gaps[1] > gaps[2] and gaps[2] < 0.005


def test_ten_points_cost_less_than_a_point_of_accuracy(fitted):
    tree, X, y = fitted
    card = tree.score_card(X, y)
    assert card.lost <= 1.0 and card.tree_accuracy == pytest.approx(tree.score(X, y))
    assert card.accuracy == np.mean(card.predict(X) == y)


def test_a_card_is_text_a_table_and_a_file(fitted, tmp_path):
    tree, X, y = fitted
    card = tree.score_card(X, y, points=6)
    text = str(card)
    assert f"yes from {card.questions[0].limit} on" in text and "right on" in text
    frame = card.to_frame()
    assert list(frame.columns) == ["question", "feature", "values", "points"]
    told = card.to_csv(tmp_path / "card.csv")
    assert (tmp_path / "card.csv").read_text(encoding="utf-8") == told
    lines = list(csv.reader(io.StringIO(told)))
    assert len(lines) == 1 + len(frame) + len(card.questions)
    assert "Question 1: yes from" in card._repr_html_()


def test_where_costs_decide_the_card_says_which_class_is_called_from_where(fitted):
    _, X, y = fitted
    costs = np.array([[0.0, 1.0], [20.0, 0.0]])
    tree = SoftTreeClassifier(
        depth=1, n_starts=1, random_state=0, curves=False, cost_matrix=costs
    ).fit(X, y)
    card = tree.score_card(X, y)
    (first, low), (turn, high) = card.turns
    sums = card.questions[0].totals(X.to_numpy())
    assert first == 0 and turn != card.questions[0].limit
    np.testing.assert_array_equal(card.predict(X).astype(str), np.where(sums < turn, low, high))
    assert f"class {high} from {turn} points on" in str(card) and "yes from" not in str(card)
    assert f"1,class {high} from,,{turn}\n" in card.to_csv()
    assert {called for total, _, called in card.outcomes() if total < turn} == {low}
    assert {turn} < {total for total, _, _ in card.outcomes()}


def test_labels_of_another_kind_are_refused(fitted):
    tree, X, y = fitted
    with pytest.raises(ValueError, match="no class of the tree"):
        tree.score_card(X, y.astype(str))


def test_a_card_by_hand_is_the_card(fitted):
    """Add the points up from the table, as a person would."""
    tree, X, y = fitted
    card = tree.score_card(X, y)
    row = X.to_numpy()[5]
    for question in card.questions:
        total = 0
        for variable in question.variables:
            value = row[variable.feature]
            below = sum(value >= edge for edge in variable.edges)
            total += variable.bands()[below][1]
        assert total == question.totals(row[None])[0]


def test_without_rows_the_training_ranges_are_divided():
    X, y = load_iris(return_X_y=True)
    tree = SoftTreeClassifier(n_starts=1, random_state=0, curves=False).fit(X, y)
    card = tree.score_card()
    assert card.lost is None and "right on" not in str(card)
    assert np.mean(card.predict(X) == tree.predict(X)) > 0.9
    with pytest.raises(ValueError, match="points must be an integer from 1 to 1000, got 0"):
        tree.score_card(points=0)
    with pytest.raises(ValueError, match="X must hold rows of 4 features"):
        card.predict(X[:, :2])


def test_sums_are_those_that_rows_can_have():
    """Levels of a category exclude each other, and points leave gaps between sums."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "town": rng.choice(["A", "B", "C"], 300),
            "age": rng.integers(20, 60, 300).astype(float),
            "member": rng.random(300) < 0.5,
        }
    )
    frame.loc[::7, "age"] = np.nan
    y = (frame["town"] == "A") * 2 + frame["member"] * 2 + frame["age"].fillna(70) / 30 > 3.2
    tree = SoftTreeClassifier(depth=1, n_starts=1, random_state=0).fit(frame, y)
    card = tree.score_card(frame, y)
    (question,) = card.questions
    coded = tree.coding_.code(frame).X
    assert set(question.totals(coded)) <= set(question.sums)
    assert {total for total, _ in question.chances()} <= set(question.sums)
    assert question.most == question.sums[-1] and question.sums[0] >= 0
    levels = [v for v in question.variables if v.name.startswith("town")]
    if len(levels) > 1:
        assert question.most < sum(v.points.max() for v in question.variables)
    np.testing.assert_array_equal(card.predict(frame), card.predict(coded))


def test_sides_are_those_of_the_report(fitted):
    """The card that a report shows is that of the tree itself, side by side."""
    tree, X, y = fitted
    coding = replace(tree.tree_.table_coding, named=True)
    rows = LabelledRows(coding.code(X), y.to_numpy(), "y")
    shape = (len(y), 2)
    none = Judged(np.full(len(y), NOT_JUDGED), np.zeros(shape))
    found = Assessment(y.to_numpy(), (none,), dict.fromkeys(BASELINES, none), 2, 0)
    data = make_report_data("data", rows, JudgedPath((tree,), 0, found, (), False))
    assert str(data.card) == str(tree.score_card(X, y))
    flipped = copy.copy(tree)
    had = tree.tree_.parameters
    flipped.tree_ = replace(
        tree.tree_,
        parameters=replace(
            had,
            weights=np.ascontiguousarray(-had.weights[:, [0, *_mirrored(had.weights.shape[1])]]),
            thresholds=-had.thresholds[[0, *_mirrored(len(had.thresholds))]],
            leaf_classes=had.leaf_classes[:, ::-1],
        ),
    )
    np.testing.assert_allclose(flipped.predict_proba(X), tree.predict_proba(X))
    assert str(flipped.score_card(X, y)) == str(tree.score_card(X, y))


def _mirrored(n_branches):
    """Branches below the root in the order that they have in the mirror image of a tree."""
    places, width = [], 2
    while width <= n_branches:
        places += [*range(2 * width - 2, width - 2, -1)]
        width *= 2
    return places
