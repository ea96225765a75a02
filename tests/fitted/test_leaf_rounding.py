"""Leaf functions as printed: fewer terms and digits, hardly other predictions."""

import numpy as np
import pytest

from softsplit.fitted.leaf_numbers import LeafNumbers
from softsplit.fitted.leaf_rounding import MOVED, printed_functions
from softsplit.tree.leaf_families import Squared
from softsplit.tree.leaf_functions import LeafFunctions
from softsplit.variables import bent_matrix


def functions(constant, slopes):
    return LeafFunctions(np.array([constant]), np.array(slopes)[:, None], -np.inf * np.ones(1),
                         np.inf * np.ones(1))  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
def test_predictions_move_by_a_small_part_of_the_error(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(50, 10, size=(200, 4)) * 10.0 ** rng.integers(-3, 4, 4)
    exact = functions(rng.normal(), rng.normal(size=4) / X.std(axis=0))
    error = np.array([0.3])
    printed = printed_functions(exact, X, np.ones((1, 200)), error, None)
    moved = printed.scores(X)[0] - exact.scores(X)[0]
    assert np.sqrt(np.mean(moved**2)) <= (MOVED + 0.05) * 0.3
    figures = [f"{slope:.12e}".split("e")[0].strip("-").replace(".", "").rstrip("0")
               for slope in printed.slopes[:, 0]]  # fmt: skip
    assert max(map(len, figures)) <= 3
    assert printed.low[0] <= printed.scores(X).min() and printed.high[0] >= printed.scores(X).max()


def test_terms_that_do_not_vary_and_hinges_that_always_bend_go():
    x = np.linspace(0.0, 10.0, 101)[:, None]
    rows = bent_matrix(x, ["x"], 1, np.ones(101))
    knot = rows.coding.variables[0].knots[0]
    weights = np.array([(x[:, 0] > knot), (x[:, 0] <= knot)], dtype=float)
    both = LeafFunctions(np.array([1.0, 1.0]), np.array([[2.0, 2.0], [3.0, 3.0]]),
                         -np.inf * np.ones(2), np.inf * np.ones(2))  # fmt: skip
    printed = printed_functions(both, rows.X, weights, np.ones(2), rows.coding)
    assert printed.slopes[1].tolist() == [0.0, 0.0]
    assert printed.slopes[0] == pytest.approx([5.0, 2.0], abs=0.1)
    for leaf in (0, 1):
        here = weights[leaf] > 0
        exact, near = both.scores(rows.X)[leaf, here], printed.scores(rows.X)[leaf, here]
        assert np.sqrt(np.mean((exact - near) ** 2)) <= 0.1


def test_half_widths_are_conformal_quantiles_of_weighted_rows():
    leaves = LeafNumbers(functions(0.0, [1.0]), Squared(), np.zeros(1), np.array([2.0]))
    sizes = np.arange(1.0, 20.0)
    known = leaves.with_held_out(sizes, np.ones(19))
    assert known.half_widths(0.9) == pytest.approx([2.0 * 18.0])
    assert known.half_widths(0.5) == pytest.approx([2.0 * 10.0])
    twice = leaves.with_held_out(np.r_[sizes, 99.0], np.r_[np.full(19, 1.0), 0.0])
    assert twice.half_widths(0.9) == known.half_widths(0.9)
