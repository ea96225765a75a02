"""Ways to the leaves."""

import numpy as np
from numpy.testing import assert_array_equal

from softsplit.tree.parameters import Topology
from softsplit.tree.ways import hard_leaves, needed_in_leaves


def test_a_leaf_needs_the_variables_of_the_branches_above_it():
    homes = np.array([0, 0, 1, 2])  # features 0 and 1 are one variable
    kept = np.zeros((4, 3), dtype=bool)
    kept[1, 0] = kept[2, 1] = kept[[0, 3], 2] = True
    expected = [
        [True, True, True, True],
        [True, True, False, False],
        [False, False, True, True],
    ]
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
