"""Rates of cells: values, derivatives and lines of ``RateLimits``."""

import numpy as np
from numpy.testing import assert_allclose

from softsplit.engines.compiled import CompiledRows
from softsplit.engines.samples import Samples
from softsplit.problem.rates import RateGroup, RateLimits, RateRequirement
from softsplit.tree.parameters import Topology, TreeParameters
from softsplit.tree.routing import mixed_values

RNG = np.random.default_rng(0)
ROWS = RNG.random((40, 3))
CELLS = RNG.integers(0, 4, 40)
WEIGHT = RNG.random(40) + 0.5
REQUIREMENTS = (
    RateRequirement(
        "parity", 1, (RateGroup("a", (0, 1)), RateGroup("b", (2,)), RateGroup("c", (3,))), high=0.1
    ),
    RateRequirement("rate", 2, (RateGroup("", (0, 3)),), 0.2, 0.6, margin=0.05),
)


def limits():
    samples = Samples.from_arrays(ROWS, CELLS, 4, WEIGHT)
    return RateLimits(CompiledRows(samples), np.array([0, 1, 2, 0]), REQUIREMENTS, 3)


def any_tree():
    topology = Topology(2)
    leaves = RNG.random((3, topology.n_leaves))
    shape = (3, topology.n_branches)
    return TreeParameters(
        RNG.normal(size=shape), RNG.normal(size=shape[1]), leaves / leaves.sum(axis=0)
    )


def test_lines_are_the_rates_of_single_rows():
    tree, found = any_tree(), limits()
    proba = mixed_values(tree, ROWS.T, 8.0)

    def rate(k, cells):
        rows = np.isin(CELLS, cells)
        return np.average(proba[k, rows], weights=WEIGHT[rows])

    said = found.mass(tree, 8.0) @ tree.leaf_values.T
    a, b, c = rate(1, [0, 1]), rate(1, [2]), rate(1, [3])
    single = rate(2, [0, 3])
    differences = [a - b, a - c, b - a, b - c, c - a, c - b]
    wanted = [*(-0.1 - np.array(differences)), 0.25 - single, single - 0.55]
    assert_allclose(found.shortfalls(said), wanted, atol=1e-12)
    assert_allclose(found.group_rates(0, said), [a, b, c], atol=1e-12)


def test_derivatives_are_those_of_differences():
    tree, found = any_tree(), limits()
    prices = RNG.random(len(found))

    def value(weights, thresholds, leaves):
        moved = TreeParameters(weights, thresholds, leaves)
        said = found.mass(moved, 8.0) @ leaves.T
        return prices @ (found.least - found.shortfalls(said))

    sums, by_leaves = found.priced(tree, 8.0, prices)
    parts = [tree.weights, tree.thresholds, tree.leaf_values]
    slopes = [sums.splits[:, :-1].T, sums.splits[:, -1], by_leaves]
    assert_allclose(sums.value, value(*parts), rtol=1e-12)
    for at, slope in enumerate(slopes):
        for place in np.ndindex(slope.shape):
            ends = []
            for step in (1e-5, -1e-5):
                moved = [part.copy() for part in parts]
                moved[at][place] += step
                ends.append(value(*moved))
            assert_allclose(slope[place], (ends[0] - ends[1]) / 2e-5, atol=1e-7)
