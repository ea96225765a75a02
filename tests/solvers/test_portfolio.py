"""Starts of different structure, the race between them, and hops around the best tree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from native_cases import make_engine, make_problem
from slow_cases import examples
from softsplit.solvers.basin_hopping.stages import Race
from softsplit.solvers.starts.plans import (
    BOTH,
    draw_plan,
    sides_of,
    structure,
)
from softsplit.solvers.starts.rules import draw_start
from softsplit.tree.parameters import Topology, TreeParameters


def test_mirrored_labellings_are_one_structure():
    assert structure((0, 1, 0, 2)) == structure((2, 0, 1, 0)) == structure((0, 2, 0, 1))
    assert structure((0, 1, 0, 2)) != structure((0, 0, 1, 2))


@pytest.mark.parametrize(("classes", "depth"), [(2, 1), (3, 2), (4, 2), (5, 3), (8, 3), (2, 3)])
def test_plans_give_every_class_a_leaf(classes, depth):
    rng = np.random.default_rng(0)
    apart = rng.uniform(size=(classes, classes)).tolist()
    for _ in range(50):
        plan = draw_plan(Topology(depth), apart, rng)
        assert set(plan.leaf_labels) == set(range(classes))
        assert len(plan.leaf_labels) == 2**depth


def test_rival_starts_have_different_structures():
    problem = make_problem(classes=3, depth=2)
    start = draw_start("groups", problem, np.random.default_rng(0), candidates=5)
    keys = {
        structure(tuple(tree.leaf_values.argmax(axis=0).tolist()))
        for tree in (start.parameters, *start.candidates)
    }
    assert len(keys) == 6  # all there are for three classes on four leaves


def test_a_race_is_won_by_the_lowest_objective():
    problem = make_problem(global_=0.3)
    start = draw_start("groups", problem, np.random.default_rng(0), candidates=4)
    trees = (start.parameters, *start.candidates)
    theta, leaves = Race().winner(make_engine(problem), trees)
    alone = [
        problem.objective(TreeParameters.from_splits(*Race().winner(make_engine(problem), (tree,))))
        for tree in trees
    ]
    assert problem.objective(TreeParameters.from_splits(theta, leaves)) == pytest.approx(min(alone))


@examples(60)
@given(seed=st.integers(0, 10**6), depth=st.integers(1, 4), classes=st.integers(2, 6))
def test_a_plan_can_be_read_off_its_leaves(seed, depth, classes):
    """Drawn plans lead a class exactly to the sides on which it has leaves."""
    topology, rng = Topology(depth), np.random.default_rng(seed)
    classes = min(classes, topology.n_leaves)
    apart = rng.uniform(size=(classes, classes)).tolist()
    plan = draw_plan(topology, apart, rng)
    read = np.empty_like(plan.sides)
    sides_of(np.array(plan.leaf_labels), read)
    np.testing.assert_array_equal(read, plan.sides)
    for t in range(topology.n_branches):
        left, right = (
            {plan.leaf_labels[leaf] for leaf in topology.leaves_below(child)}
            for child in (2 * t + 1, 2 * t + 2)
        )
        assert {k for k in left | right if read[t, k] == BOTH} == left & right
