"""Soft trees in whole points."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from softsplit.points.cells import cells_of
from softsplit.points.likelihood import Gate
from softsplit.points.question import DEFAULTS, FINE, Effect, Question, sums_of
from softsplit.points.terms import Term
from softsplit.points.tree import SoftQuestion, from_zero, node_answers, pointed, without_terms
from softsplit.variables.variable import NUMBER, Cells, Variable

ROWS = 600


def soft_tree(seed=0):
    """Rows of three numbers, a soft tree of one question on two of them, and the classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal([50.0, 5.0, 0.0], [20.0, 2.0, 1.0], size=(ROWS, 3))
    columns = [
        cells_of(Variable(f"x{j}", NUMBER, float(np.median(x))), Cells.of(x))
        for j, x in enumerate(X.T)
    ]
    coefficients = {0: 0.1, 1: -0.8}
    scores = 0.1 * (X[:, 0] - 50.0) - 0.8 * (X[:, 1] - 5.0)
    labels = (rng.random(ROWS) > expit(scores)).astype(np.intp)
    effects = {}
    for j, coefficient in coefficients.items():
        column = columns[j]
        counts = np.bincount(column.codes, minlength=column.n_cells + 1)
        cells = coefficient * column.sums(X[:, j]) / np.maximum(counts, 1)
        effects[j] = Effect(cells, (), np.array([coefficient]))
    leaves = np.array([[0.98, 0.02], [0.02, 0.98]])
    return X, columns, SoftQuestion(scores, effects), leaves, labels


def log_loss(tree, labels):
    gates = np.array([expit(question.scores) for question in tree.questions])
    says = node_answers(gates, tree.leaves)[0]
    return -np.mean(np.log(says[np.arange(len(labels)), labels]))


def test_points_are_as_likely_as_the_soft_tree():
    _, columns, soft, leaves, labels = soft_tree()
    tree = pointed(columns, [soft], leaves, labels, np.ones(ROWS))
    says = node_answers(expit(soft.scores)[None], leaves)[0]
    exact = -np.mean(np.log(says[np.arange(ROWS), labels]))
    assert log_loss(tree, labels) < exact + 0.02
    lookups = tree.questions[0].lookups
    assert set(lookups) == {0, 1}
    assert lookups[0].direction == 1
    assert lookups[1].direction == -1


def test_fine_points_are_nearer_to_the_soft_tree():
    """Of few rows half of the classes are noise, to which the others are fitted as well."""
    _, columns, soft, leaves, labels = soft_tree(3)
    few = np.zeros(ROWS)
    few[::12] = 1.0
    says = node_answers(expit(soft.scores)[None], leaves)[0]
    errors = []
    for options in (FINE, DEFAULTS):
        tree = pointed(columns, [soft], leaves, labels, few, options)
        told = node_answers(np.array([expit(q.scores) for q in tree.questions]), tree.leaves)[0]
        errors.append(np.mean(np.abs(told - says)))
    assert errors[0] < 0.7 * errors[1]


def test_what_is_left_takes_the_part_of_a_term_that_goes():
    _, columns, soft, leaves, labels = soft_tree(2)
    given = columns, [soft], leaves, labels, np.ones(ROWS)
    tree = pointed(*given)
    shorter = without_terms(tree, [(1, 0)])
    closed = replace(DEFAULTS, closed=True)
    again = pointed(*given, closed, rounds=1, start=shorter)
    assert set(shorter.questions[0].lookups) == set(again.questions[0].lookups) == {0}
    assert log_loss(again, labels) < log_loss(shorter, labels)
    at = shorter.questions[0].scores.mean(), tree.questions[0].scores.mean()
    assert at[0] == pytest.approx(at[1])


def test_points_begin_at_zero_and_speak_for_yes():
    X, columns, soft, leaves, labels = soft_tree(1)
    question = pointed(columns, [soft], leaves, labels, np.ones(ROWS)).questions[0]
    assert question.gate.slope > 0
    for variable, lookup in question.lookups.items():
        assert lookup.slopes or min(lookup.points) == 0
        values = lookup.values(X[:, variable], np.zeros(ROWS, dtype=bool))
        np.testing.assert_allclose(values, question.terms[variable].points, atol=1e-9)
    again = from_zero(question)
    np.testing.assert_allclose(again.scores, question.scores, atol=1e-12)


def test_points_of_tables_have_no_common_factor():
    _, columns, *_ = soft_tree(1)
    terms = {
        j: Term(columns[j], np.where(np.arange(columns[j].n_cells + 1) > 3, high, 6.0), 0.0)
        for j, high in enumerate((12.0, 15.0))
    }
    question = Question(terms, Gate(-2.0, 0.25, 0.0), sums_of(terms))
    smaller = from_zero(question)
    assert [lookup.points for lookup in smaller.lookups.values()] == [(0, 2), (0, 3)]
    np.testing.assert_allclose(smaller.scores, question.scores)


def test_an_effect_against_its_direction_gets_no_points():
    _, columns, soft, leaves, labels = soft_tree(5)
    free, bound = (
        pointed(columns, [soft], leaves, labels, np.ones(ROWS), directions=[asked]).questions[0]
        for asked in ({0: 1, 1: -1}, {0: -1, 1: -1})
    )
    assert free.lookups[0].direction == 1
    assert 0 not in bound.lookups
    assert bound.lookups[1].direction == -1


def test_levels_that_are_coded_by_class_shares_have_points_by_groups():
    """Out-of-fold shares do not tell levels apart: those of alike shares have the same points."""
    rng = np.random.default_rng(0)
    shares = np.sort(rng.uniform(size=40))
    names = tuple(f"s{k}" for k in range(40))
    table = (*((float(s),) for s in shares), (0.5,))
    variable = Variable("store", "category", levels=names, classes=("yes",), shares=table)
    numbers = rng.integers(0, 40, 400).astype(float)
    none = np.zeros(400, dtype=bool)
    column = cells_of(variable, Cells(numbers, none, none))
    assert column.n_cells <= 8
    groups = column.groups[:40]
    assert np.all(np.diff(groups) >= 0) or np.all(np.diff(groups) <= 0)
    term = Term(column, np.arange(column.n_cells + 1.0), 0.0)
    np.testing.assert_array_equal(term.lookup.values(numbers), term.points)
