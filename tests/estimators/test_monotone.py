"""Monotone effects: they hold for all inputs, are proved, and cost little."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from monotone_cases import table, violations
from softsplit import SoftTreeClassifier, dumps_model, loads_model
from softsplit.advice.monotone_check import check_monotone
from softsplit.fitted.model import TreeModel
from softsplit.fitted.summary import FeatureSummary
from softsplit.reading.text import tree_text
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.scaling import LinearScaling

WISHES = [
    (2, {"a": "+", "e": "-", "o": "+"}),
    (3, {"a": "+", "e": "-"}),
    (4, {"a": {"k1": "+"}, "e": {"k1": "-"}}),
    (4, {"a": {"k3": "+", "k0": "-"}}),
]


@pytest.mark.parametrize("loss", ["log", "cost"])
@pytest.mark.parametrize(
    ("n_classes", "wish"),
    [*WISHES[:2], *(pytest.param(*one, marks=pytest.mark.slow) for one in WISHES[2:])],
)
def test_holds_for_rows_that_training_has_not_seen(loss, n_classes, wish):
    frame, y = table(n_classes, n_classes)
    curves = 3 if loss == "log" else "auto"
    given = {"n_starts": 2, "random_state": 0, "max_iter": 300, "curves": curves}
    if loss == "cost":
        given.update(effort=0.1, global_strength=0.002 * len(y))
    tree = SoftTreeClassifier(loss=loss, monotone=wish, **given).fit(frame, y)
    used = set(tree.selected_features_)
    assert any(list(frame).index(column) in used for column in wish)
    for column in wish:
        assert violations(tree, frame, column, 4000) == 0
        found = tree.check_monotone(column)
        assert found.holds and found.proved
    again = loads_model(dumps_model(tree))
    assert again.tree_.monotone == tree.tree_.monotone
    assert "(proved for all inputs)" in tree_text(again.tree_)


@pytest.mark.parametrize(("n_classes", "wish"), WISHES)
def test_holds_in_whole_points(n_classes, wish):
    frame, y = table(n_classes, n_classes)
    given = {"points": True, "depth": 2, "n_starts": 1, "random_state": 0}
    tree = SoftTreeClassifier(monotone=wish, **given).fit(frame, y)
    assert tree.coding_.pointed
    for column in wish:
        assert violations(tree, frame, column, 4000) == 0
        assert tree.check_monotone(column).proved
    assert loads_model(dumps_model(tree)).tree_.monotone == tree.tree_.monotone


def _random_model(rng: np.random.Generator, depth: int, n_classes: int) -> TreeModel:
    n_branches, n_features = 2**depth - 1, 3
    weights = rng.normal(size=(n_features, n_branches)) * 3
    weights[rng.random(weights.shape) < 0.3] = 0.0
    leaves = rng.dirichlet(np.ones(n_classes), n_branches + 1).T
    if rng.random() < 0.5:  # half of the trees have leaves in order and mostly one sign
        leaves = leaves[:, np.argsort(leaves[-1])]
        weights[0] = -np.abs(weights[0])
    ends = np.zeros(n_features), np.ones(n_features)
    return TreeModel(
        TreeParameters(weights, rng.normal(size=n_branches) * 0.5, leaves), 6.0,
        LinearScaling(*ends), np.array([f"k{k}" for k in range(n_classes)], dtype=object),
        ("u", "v", "w"), FeatureSummary(*ends, np.full(3, 0.5), np.full(3, "number")),
    )  # fmt: skip


def test_proofs_and_contradictions_agree_with_dense_sampling():
    rng, verdicts = np.random.default_rng(0), []
    axis = np.linspace(-0.5, 1.5, 13)
    grid = np.array(list(itertools.product(np.linspace(-1, 2, 25), axis, axis)))
    for number in range(60):
        model = _random_model(rng, 1 + number % 3, 2 + number % 2)
        said = model.predict_proba(grid)[:, -1].reshape(25, -1)
        falls = np.diff(said, axis=0).min() < -1e-7
        sign = "+" if len(model.classes) == 2 else {"k2": "+"}
        found = check_monotone(model, "u", sign)
        if found.holds:
            assert found.proved and not falls
        if falls:
            assert found.holds is False
            pair = model.predict_proba(found.rows)[:, -1]
            assert found.rows[0, 0] < found.rows[1, 0] and pair[1] < pair[0]
        verdicts.append(found.holds)
    assert verdicts.count(True) >= 10 and verdicts.count(False) >= 10
    assert verdicts.count(None) <= 6


@pytest.mark.parametrize(
    ("wish", "words"),  # others are in requirement_cases.py
    [
        ({"a": {"k0": "+", "k1": "+"}}, "go the same way"),
        ({"a": {"k0": "+"}, "e": {"k1": "+"}}, "name the same classes"),
    ],
)
def test_wishes_that_make_no_sense_are_told_in_one_sentence(wish, words):
    with pytest.raises(ValueError, match=words):
        SoftTreeClassifier(monotone=wish).fit(*table(0, 3, 60))
