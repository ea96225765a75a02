"""The moves of the search, one by one, and the refitted split behind one of them."""

from __future__ import annotations

import numpy as np
import pytest

from brute_force import expected_cost
from native_cases import make_engine, make_problem, solved_point
from softsplit.engines.compiled import CompiledRows
from softsplit.problem.loss import ExpectedCost
from softsplit.problem.penalties import PenaltyPair, exponential
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.active_set.state import EVALUATE_ONLY
from softsplit.solvers.basin_hopping.perturbations import (
    Fresh,
    OtherStrength,
    Redraw,
    Regrow,
    Relabel,
    Reweigh,
    Warmed,
    fresh_tree,
    refit,
)
from softsplit.tree.parameters import Topology, TreeParameters

MOVES = [
    Fresh(),
    Redraw((0.05, 0.25)),
    Redraw(steepness=(128.0, 1024.0)),
    Redraw(other=True),
    Warmed(),
    Regrow(),
    Relabel(),
    Reweigh(),
    Reweigh(3.0, 2.0),
    OtherStrength((4.0, 0.2)),
]


def move_id(move):
    given = [str(value) for value in vars(move).values() if isinstance(value, float | tuple | bool)]
    return "-".join([type(move).__name__, *given])


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("move", MOVES, ids=move_id)
def test_a_move_leaves_the_point_alone_and_stays_in_the_box(move, depth):
    classes = 2 if depth == 1 else 3
    problem = make_problem(depth=depth, classes=classes, global_=0.2)
    point, draw = solved_point(problem), 7
    before = [part.copy() for part in point]
    engine = make_engine(problem)
    moved = move.apply(engine, point, draw, 0)
    for part, old in zip(point, before, strict=True):
        np.testing.assert_array_equal(part, old)
    if moved is None:
        assert depth == 1
        return
    assert moved[0] is not point[0]
    assert np.max(np.abs(moved[0])) <= 1
    np.testing.assert_allclose(moved[1].sum(axis=0), 1)
    assert np.all(moved[1] >= 0)


@pytest.mark.parametrize("move", MOVES, ids=move_id)
def test_a_move_is_a_function_of_point_draw_and_turn(move):
    """Whatever the engine did before: its curvature pairs do not leak into the move."""
    problem = make_problem(global_=0.2)
    point, draws = solved_point(problem), [7, 8]
    used = make_engine(problem)
    OtherStrength((4.0, 2.0, 8.0)).apply(used, point, draws[1], 2)
    one = move.apply(make_engine(problem), point, draws[0], 1)
    two = move.apply(used, point, draws[0], 1)
    for first, second in zip(one, two, strict=True):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(("turn", "expected"), [(0, range(7)), (1, (1, 3, 4)), (2, (2, 5, 6))])
def test_regrow_takes_the_subtrees_in_turn(turn, expected):
    problem = make_problem(depth=3)
    draw = 7
    theta = np.full((7, 5), 0.25)
    for later in (turn, turn + 7):
        moved, _ = Regrow().apply(make_engine(problem), (theta, np.zeros((3, 8))), draw, later)
        changed = np.flatnonzero(np.any(moved != theta, axis=1))
        assert changed.tolist() == list(expected)
        np.testing.assert_array_equal(
            moved[changed], fresh_tree(make_engine(problem), draw)[0][changed]
        )


def test_relabel_changes_one_leaf_to_what_costs_least_and_only_the_branch_above_it():
    problem = make_problem(depth=3, rows=150)
    point, draw = solved_point(problem), 7
    theta, leaves = point
    assert set(np.unique(leaves)) == {0.0, 1.0}
    rises = []
    for leaf in range(8):
        for k in range(3):
            other = leaves.copy()
            other[:, leaf] = np.eye(3)[k]
            if leaves[k, leaf] == 0 and np.all(other.sum(axis=1) >= 1):
                rises.append((problem.cost(TreeParameters.from_splits(theta, other)), k, leaf))
    engine = make_engine(problem)
    for turn, (_, k, leaf) in enumerate(sorted(rises)[:4]):
        moved, labels = Relabel().apply(engine, point, draw, turn)
        expected = leaves.copy()
        expected[:, leaf] = np.eye(3)[k]
        np.testing.assert_array_equal(labels, expected)
        changed = np.flatnonzero(np.any(moved != theta, axis=1))
        assert set(changed) <= {(7 + leaf - 1) // 2}
        again = Relabel().apply(engine, point, draw, turn + 4)
        np.testing.assert_array_equal(again[0], moved)


def line_problem(X, y, weight=None, depth=1, steepness=512.0):
    return TrainingProblem(
        CompiledRows.from_arrays(np.atleast_2d(X).T, np.asarray(y), 2, weight),
        Topology(depth),
        ExpectedCost.uniform(2),
        PenaltyPair.of(exponential()),
        np.zeros(2),
        steepness,
    )


def cost_by_hand(problem, theta, leaves):
    samples = problem.samples
    return expected_cost(
        samples.features.T.tolist(),
        samples.labels.tolist(),
        samples.weights.tolist(),
        theta[:, :-1].T.tolist(),
        theta[:, -1].tolist(),
        leaves.tolist(),
        problem.loss.costs.tolist(),
        problem.topology.depth,
        problem.steepness,
    )


def test_a_refitted_stump_is_the_best_of_all_cuts_of_a_line():
    """Class 1 above 0.6, but for a light row: cuts tried one by one, in both directions."""
    X = np.array([0.05, 0.2, 0.3, 0.45, 0.55, 0.7, 0.8, 0.95])
    y = np.array([0, 0, 1, 0, 0, 1, 1, 1])
    weight = np.array([1, 1, 0.2, 1, 1, 1, 1, 1.0])
    problem, leaves = line_problem(X, y, weight), np.eye(2)
    cuts = [
        cost_by_hand(problem, np.array([[sign, sign * cut]]), leaves)
        for sign in (-1.0, 1.0)
        for cut in np.arange(0.01, 1.0, 0.02)
    ]
    engine = make_engine(problem)
    theta = np.array([[0.5, 0.1]])  # sends nearly all rows to the left
    engine.descend(theta, leaves, EVALUATE_ONLY)
    found = refit(engine, theta, leaves, 0)
    assert found[0] < 0  # class 0 sits on the left leaf: small values go left
    assert 0.55 < found[1] / found[0] < 0.7
    # The gates of a regression are soft: sharpened they cost what the best cut costs.
    sharp = (found / np.max(np.abs(found)))[None, :]
    assert cost_by_hand(problem, sharp, leaves) <= min(cuts) + 1e-3
    assert min(cuts) == pytest.approx(0.1, abs=1e-3)
