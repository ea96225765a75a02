"""Topology and parameters of the tree."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from brute_force import left_and_right_ancestors
from softsplit.tree.parameters import MAX_DEPTH, Topology, TreeParameters
from softsplit.tree.ways import hard_leaves, needed_in_leaves

DEPTHS = [1, 2, 3, 4, 5, 6]
every_depth = pytest.mark.parametrize("depth", DEPTHS)


@every_depth
def test_numbers_of_branches_and_leaves(depth):
    topology = Topology(depth)
    assert (topology.n_branches, topology.n_leaves) == (2**depth - 1, 2**depth)
    assert Topology.with_branches(topology.n_branches) == topology


@every_depth
def test_paths_hold_the_left_and_right_ancestors(depth):
    topology = Topology(depth)
    for leaf in range(topology.n_leaves):
        path = topology.path(leaf)
        left, right = left_and_right_ancestors(leaf, depth)
        assert [step.branch for step in path if step.goes_left] == left
        assert [step.branch for step in path if not step.goes_left] == right
        assert [step.branch for step in path] == sorted(left + right)


@every_depth
def test_ancestors_begin_every_path_through_the_branch(depth):
    topology = Topology(depth)
    assert topology.ancestors(0) == ()
    for leaf in range(topology.n_leaves):
        path = topology.path(leaf)
        for level, step in enumerate(path):
            assert topology.ancestors(step.branch) == path[:level]


@every_depth
def test_leaves_below_are_those_whose_path_passes_the_node(depth):
    topology = Topology(depth)
    assert topology.leaves_below(0) == range(topology.n_leaves)
    for branch in range(topology.n_branches):
        through = [
            leaf
            for leaf in range(topology.n_leaves)
            if branch in [step.branch for step in topology.path(leaf)]
        ]
        assert list(topology.leaves_below(branch)) == through
        left, right = topology.leaves_below(2 * branch + 1), topology.leaves_below(2 * branch + 2)
        assert [*left, *right] == through
    for leaf in range(topology.n_leaves):
        assert list(topology.leaves_below(topology.n_branches + leaf)) == [leaf]


def test_impossible_shapes_are_refused():
    for depth in (0, -1, MAX_DEPTH + 1):
        sentence = f"depth must be an integer between 1 and {MAX_DEPTH}, got {depth}"
        with pytest.raises(ValueError, match=sentence):
            Topology(depth)
    for n_branches in (2, 4, 5, 6, 8, 14, 16):
        with pytest.raises(ValueError, match=f"no complete binary tree has {n_branches} branches"):
            Topology.with_branches(n_branches)
    for shapes in (((2, 3), (2,), (2, 4)), ((2, 3), (3,), (2, 3)), ((2, 3), (3, 1), (2, 4))):
        with pytest.raises(ValueError, match="do not describe one tree"):
            TreeParameters(*(np.zeros(shape) for shape in shapes))


def test_the_smallest_tree_with_so_many_leaves():
    depths = {1: 1, 2: 1, 3: 2, 4: 2, 5: 3, 8: 3, 9: 4, 26: 5}
    assert {n: Topology.with_leaves(n).depth for n in depths} == depths


@every_depth
def test_neutral_parameters(depth):
    tree = TreeParameters.neutral(4, 3, Topology(depth))
    assert (tree.n_features, tree.n_groups, tree.topology) == (4, 3, Topology(depth))
    assert not tree.weights.any() and not tree.thresholds.any()
    np.testing.assert_allclose(tree.leaf_values.sum(axis=0), 1)
    assert np.all(tree.leaf_values == 1 / 3)


# Ways to the leaves.


def test_a_leaf_needs_the_variables_of_the_branches_above_it():
    homes = np.array([0, 0, 1, 2])  # features 0 and 1 are one variable
    kept = np.zeros((4, 3), dtype=bool)
    kept[1, 0] = kept[2, 1] = kept[[0, 3], 2] = True
    expected = [[True, True, True, True], [True, True, False, False], [False, False, True, True]]
    assert_array_equal(needed_in_leaves(homes, 3, kept), expected)


def test_a_row_goes_left_where_its_score_is_above_zero():
    rng = np.random.default_rng(0)
    for depth in (1, 2, 3):
        topology = Topology(depth)
        scores = rng.normal(size=(topology.n_branches, 40))
        scores[:, 0] = 0.0  # not above zero: right everywhere
        found = hard_leaves(scores)
        for row, leaf in enumerate(found):
            node = 0
            while node < topology.n_branches:
                node = 2 * node + (1 if scores[node, row] > 0 else 2)
            assert leaf == node - topology.n_branches
        assert found[0] == topology.n_leaves - 1
