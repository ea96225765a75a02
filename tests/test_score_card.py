"""Score cards: whole points that say about what the tree says."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_iris

from readings import TREES, classifier_and_frame
from softsplit import SoftTreeClassifier
from softsplit.reading.score_card import make_card


@pytest.fixture(scope="module")
def fitted():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return SoftTreeClassifier(n_starts=2, random_state=0).fit(X, y), X, y


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
    assert list(frame.columns) == ["question", "variable", "values", "points"]
    told = card.to_csv(tmp_path / "card.csv")
    assert (tmp_path / "card.csv").read_text(encoding="utf-8") == told
    lines = list(csv.reader(io.StringIO(told)))
    assert len(lines) == 1 + len(frame) + len(card.questions)
    assert "Question 1: yes from" in card._repr_html_()


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
    tree = SoftTreeClassifier(n_starts=1, random_state=0).fit(X, y)
    card = tree.score_card()
    assert card.lost is None and "right on" not in str(card)
    assert np.mean(card.predict(X) == tree.predict(X)) > 0.9
    with pytest.raises(ValueError, match="points must be an integer from 1 to 1000, got 0"):
        tree.score_card(points=0)
    with pytest.raises(ValueError, match="X must hold rows of 4 features"):
        card.predict(X[:, :2])
