"""Topology and parameters of the tree."""

import numpy as np
import pytest

from brute_force import left_and_right_ancestors
from softsplit.tree.parameters import MAX_DEPTH, Block, Topology, TreeParameters

DEPTHS = [1, 2, 3, 4, 5, 6]
every_depth = pytest.mark.parametrize("depth", DEPTHS)


@every_depth
def test_numbers_of_branches_and_leaves(depth):
    topology = Topology(depth)
    assert (topology.n_branches, topology.n_leaves) == (2**depth - 1, 2**depth)
    assert Topology.with_branches(topology.n_branches) == topology


def test_paths_of_depth_two_written_out():
    topology = Topology(2)
    assert topology.path(0) == ((0, True), (1, True))
    assert topology.path(1) == ((0, True), (1, False))
    assert topology.path(2) == ((0, False), (2, True))
    assert topology.path(3) == ((0, False), (2, False))


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


@pytest.mark.parametrize("depth", [0, -1, MAX_DEPTH + 1])
def test_impossible_depths_are_refused(depth):
    with pytest.raises(
        ValueError, match=f"depth must be an integer between 1 and {MAX_DEPTH}, got {depth}"
    ):
        Topology(depth)


@pytest.mark.parametrize("n_branches", [2, 4, 5, 6, 8, 14, 16])
def test_numbers_of_branches_without_a_complete_tree_are_refused(n_branches):
    with pytest.raises(ValueError, match=f"no complete binary tree has {n_branches} branches"):
        Topology.with_branches(n_branches)


@pytest.mark.parametrize(
    ("n_classes", "depth"), [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (8, 3), (9, 4), (26, 5)]
)
def test_the_smallest_tree_with_a_leaf_for_each_class(n_classes, depth):
    assert Topology.with_leaves(n_classes).depth == depth


@every_depth
def test_neutral_parameters(depth):
    tree = TreeParameters.neutral(4, 3, Topology(depth))
    assert (tree.n_features, tree.n_groups, tree.topology) == (4, 3, Topology(depth))
    assert not tree.weights.any() and not tree.thresholds.any()
    np.testing.assert_allclose(tree.leaf_values.sum(axis=0), 1)
    assert np.all(tree.leaf_values == 1 / 3)


@pytest.mark.parametrize(
    "shapes", [((2, 3), (2,), (2, 4)), ((2, 3), (3,), (2, 3)), ((2, 3), (3, 1), (2, 4))]
)
def test_shapes_that_do_not_fit_together_are_refused(shapes):
    with pytest.raises(ValueError, match="do not describe one tree"):
        TreeParameters(*(np.zeros(shape) for shape in shapes))


def test_the_whole_tree_as_a_block():
    assert Block.whole(Topology(2)) == Block((0, 1, 2), (0, 1, 2, 3))
