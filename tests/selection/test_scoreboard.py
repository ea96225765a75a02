"""The choice among candidates: best, one standard error, leaders, and the table of results."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from likelihood_cases import problem_of
from native_cases import make_problem
from slow_cases import examples
from softsplit.selection.scoreboard import Candidate, FoldScore, Scoreboard
from softsplit.selection.strengths import (
    PAPER_STRENGTHS,
    SHARES,
    bound_grid,
    given_grid,
    grid_pairs,
    strength_unit,
    strengths_at,
)
from softsplit.tree.parameters import TreeParameters

SMALL = Candidate("minmax", 1, 512.0, "l0", "global")
TREE = TreeParameters(np.zeros((1, 1)), np.zeros(1), np.eye(2))
DEEP = SMALL._replace(depth=2)


def board(*rows):
    """Rows of (candidate, fraction, scores, features)."""
    made = Scoreboard(len(rows[0][2]))
    for candidate, fraction, scores, features in rows:
        for fold, score in enumerate(scores):
            if score is not None:
                made.add(candidate, fraction, fold, FoldScore(TREE, score, features, features, 0.1))
    return made


def test_best_is_the_highest_mean_and_the_sparsest_of_equals():
    made = board(
        (SMALL, 0.1, [0.8, 0.9, 0.7], 3),
        (SMALL, 0.2, [0.9, 0.8, 0.7], 2),
        (DEEP, 0.1, [0.7] * 3, 1),
    )
    assert made.best() == (SMALL, 0.2)


def test_one_se_takes_the_sparsest_row_within_one_error():
    made = board(
        (SMALL, 0.1, [0.90, 0.80, 0.85, 0.95], 9),
        (SMALL, 0.2, [0.91, 0.79, 0.84, 0.94], 5),  # worse by 0.005 -+ 0.005
        (SMALL, 0.3, [0.80, 0.70, 0.75, 0.85], 2),  # worse by 0.1 on every fold
    )
    assert made.best() == (SMALL, 0.1)
    assert made.chosen("one_se") == (SMALL, 0.2)
    assert made.chosen("best") == (SMALL, 0.1)


def test_a_row_that_fails_on_one_fold_is_not_close():
    """Its differences vary so much that their own error would excuse it."""
    made = board(
        (SMALL, 0.1, [0.98, 0.97, 0.99, 0.98, 0.98], 6),
        (SMALL, 0.2, [0.98, 0.97, 0.99, 0.98, 0.60], 4),
    )
    assert made.chosen("one_se") == (SMALL, 0.1)


def test_rows_that_lack_a_fold_do_not_count_unless_all_do():
    made = board((SMALL, 0.1, [0.6, 0.6], 1), (DEEP, 0.1, [0.9, None], 1))
    assert made.best() == (SMALL, 0.1)
    assert made.leaders(2) == [SMALL]
    partial = board((SMALL, 0.1, [0.6, None], 1), (DEEP, 0.1, [0.9, None], 1))
    assert partial.best() == (DEEP, 0.1)
    assert partial.chosen("one_se") == (DEEP, 0.1)


def test_leaders_are_ordered_by_their_best_rows():
    made = board(
        (SMALL, 0.1, [0.80, 0.90], 1),
        (SMALL, 0.2, [0.50, 0.40], 1),
        (DEEP, 0.1, [0.82, 0.89], 1),
        (SMALL._replace(scale="quantile"), 0.1, [0.2, 0.3], 1),
    )
    assert made.leaders(3) == [DEEP, SMALL]
    assert made.leaders(1) == [DEEP]


def test_the_table_is_a_frame_with_ranks_and_all_folds():
    made = board(
        (SMALL, 0.1, [0.6, 0.8], 3), (DEEP, 0.2, [0.9, 0.7], 2), (DEEP, 0.3, [0.8, None], 1)
    )
    frame = pd.DataFrame(made.table())
    assert frame["mean_test_score"].tolist() == pytest.approx([0.7, 0.8, 0.8])
    assert frame["rank_test_score"].tolist() == [3, 1, 1]
    assert frame["n_splits_done"].tolist() == [2, 2, 1]
    assert np.isnan(frame["split1_test_score"][2])
    assert frame["param_depth"].tolist() == [1, 2, 2]


@given(st.lists(st.lists(st.integers(0, 20), min_size=4, max_size=4), min_size=1, max_size=6))
@examples(100)
def test_one_se_is_never_denser_than_the_best_nor_far_below_it(scores):
    made = board(*[(SMALL, i, np.array(row) / 20, i + 1) for i, row in enumerate(scores)])
    best, chosen = made.best(), made.chosen("one_se")
    assert made.mean(chosen, "n_features") <= made.mean(best, "n_features")
    error = np.std(made.values(best, "score"), ddof=1) / 2
    assert made.mean(best) - made.mean(chosen) <= error + 1e-9


# Strengths: their unit, how two of them share one, and grids.


def by_likelihood():
    return problem_of(np.linspace(0, 1, 40)[:, None], np.repeat([0, 1], [10, 30]))


def test_the_unit_is_the_loss_of_the_best_tree_without_features():
    problem = by_likelihood()
    entropy = -(10 * np.log(10 / 40) + 30 * np.log(30 / 40))
    assert strength_unit(problem) == pytest.approx(entropy, rel=1e-9)
    assert strengths_at(problem, SHARES["size"], 0.1) == pytest.approx(
        (0.02 * entropy, 0.08 * entropy)
    )


def test_named_strengths_are_sorted_and_checked():
    assert_allclose(given_grid([3, 0, 1.5]), [0, 1.5, 3])
    assert_allclose(given_grid("paper"), PAPER_STRENGTHS)
    assert given_grid(None) is None
    for wrong, words in (("x", "numbers or 'paper'"), ([], "is empty"), (3, "a sequence")):
        with pytest.raises(ValueError, match=words):
            given_grid(wrong)


def test_rows_of_a_grid_by_scope():
    problem = make_problem(local=0.5, global_=2.0)
    grid = np.array([1.0, 4.0])
    assert grid_pairs(grid, "local", problem) == [[(1.0, 2.0), (4.0, 2.0)]]
    assert grid_pairs(grid, "global", problem) == [[(0.5, 1.0), (0.5, 4.0)]]
    assert grid_pairs(grid, "global", problem, 0.25) == [[(0.25, 1.0), (1.0, 4.0)]]
    assert grid_pairs(grid, "both", problem) == [[(1, 1), (1, 4)], [(4, 1), (4, 4)]]


def test_without_a_bound_the_grid_is_the_papers():
    assert_allclose(bound_grid(make_problem(classes=3, rate=0.5), "global", 5), PAPER_STRENGTHS)
    bounded = bound_grid(make_problem(classes=3, rate=0.1), "global", 5)
    assert len(bounded) == 5 and bounded[-1] / bounded[0] == pytest.approx(1000.0)
    fractions = bound_grid(by_likelihood(), "global", 4) / strength_unit(by_likelihood())
    assert np.all(np.diff(fractions) > 0) and fractions[-1] < 1
