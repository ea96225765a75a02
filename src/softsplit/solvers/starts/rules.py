"""Starting trees. Each rule takes a problem and a random generator; nothing else is random.

uniform   weights and thresholds uniform in the box, as in the paper. At steepness 512 most such
          hyperplanes lie outside the data, which is why so many of the paper's runs fail.
points    random directions through random training rows: every split cuts the data.
mixtures  gentle random splits and leaves with distributions, for the log-loss (mixtures.py); each
          start is a race of several.
growth    the same; a solver that can grow trees lets a grown one take part. There is only one such
          tree: in every start it would win the same race, and one start would do for all.
grown     the same; only a grown tree is trained, from a fitted tree of fewer levels if there is
          one, and the drawn tree is returned if the budget ends before. With thousands of rows
          grown trees win most races, and a race of one takes a third of the time.
groups    at each branch the classes that arrive are put into two groups and a ridge logistic
          regression separates them (grouping.py); each leaf ends with one class.

A start may come with candidates, other trees drawn by the same rule: a solver that can tell early
which one leads further runs only that one to the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from softsplit.problem.leaves import InfeasibleLeafStep
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.base import Start
from softsplit.solvers.starts.grouping import GreedyTrees, grouped_trees
from softsplit.solvers.starts.mixtures import mixture_trees
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import TreeParameters


def draw_start(
    rule: str, problem: TrainingProblem, rng: np.random.Generator, candidates: int = 0
) -> Start:
    """Draw a start by the named rule; variables outside the problem's block keep their anchor."""
    if rule not in RULES:
        raise ValueError(f"unknown start rule {rule!r}; choose one of {sorted(RULES)}.")
    drawn = RULES[rule](problem, rng, 1 + candidates)
    trees = [problem.pin(problem.within(tree)) for tree in drawn]
    return Start(trees[0], rule, tuple(trees[1:]))


def draw_like(problem: TrainingProblem, rng: np.random.Generator, leaf_values: FloatArray) -> Start:
    """Draw a start of rule "groups" with the same classes on the leaves; it has no candidates."""
    return Start(TreeParameters.from_splits(*GreedyTrees(problem).like(leaf_values, rng)), "groups")


def draw_hops(rng: np.random.Generator) -> Iterator[int]:
    """Seeds for the hops of a search, one after the other."""
    while True:
        yield from rng.integers(2**63, size=64).tolist()


def uniform_trees(
    problem: TrainingProblem, rng: np.random.Generator, count: int = 1
) -> list[TreeParameters]:
    """Weights and thresholds uniform in the box, leaf classes uniform and normalised."""
    return [_uniform_tree(problem, rng) for _ in range(count)]


def _uniform_tree(problem: TrainingProblem, rng: np.random.Generator) -> TreeParameters:
    shape = (problem.n_features, problem.topology.n_branches)
    leaves = rng.uniform(size=(problem.n_groups, problem.topology.n_leaves))
    return TreeParameters(
        rng.uniform(-1, 1, shape), rng.uniform(-1, 1, shape[1]), leaves / leaves.sum(axis=0)
    )


def points_trees(
    problem: TrainingProblem, rng: np.random.Generator, count: int = 1
) -> list[TreeParameters]:
    """Random directions, each through a random training row; the best leaves for them."""
    return [_points_tree(problem, rng) for _ in range(count)]


def _points_tree(problem: TrainingProblem, rng: np.random.Generator) -> TreeParameters:
    samples = problem.rows.sample()
    weights = rng.uniform(-1, 1, (problem.n_features, problem.topology.n_branches))
    # A row for every branch, drawn by weight; its threshold puts the hyperplane through it.
    share = np.cumsum(samples.weights)
    rows = np.searchsorted(share, rng.uniform(size=weights.shape[1]) * share[-1], side="right")
    rows = np.minimum(rows, samples.n_rows - 1)
    through = samples.features[:, rows]
    thresholds = np.sum(weights * through, axis=0) / problem.n_features
    return _with_leaves(problem, weights, np.clip(thresholds, -1, 1))


def _with_leaves(
    problem: TrainingProblem, weights: FloatArray, thresholds: FloatArray
) -> TreeParameters:
    """The splits with their best leaf classes, or with even ones where no choice is feasible."""
    even = np.full((problem.n_groups, problem.topology.n_leaves), 1.0 / problem.n_groups)
    splits = TreeParameters(weights, thresholds, even)
    try:
        return problem.best_leaves(splits)
    except InfeasibleLeafStep:
        return splits


RULES: dict[str, Callable[[TrainingProblem, np.random.Generator, int], list[TreeParameters]]] = {
    "uniform": uniform_trees,
    "points": points_trees,
    "groups": grouped_trees,
    "mixtures": mixture_trees,
    "growth": mixture_trees,
}
