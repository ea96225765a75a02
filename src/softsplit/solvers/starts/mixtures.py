"""Random trees for training by likelihood: gentle splits through the rows, leaves as they fall.

Weights are random, many of them small, scaled so that the log-odds of a split have a spread of
SPREAD over the rows; each split passes near a random row. Leaves have the class shares of the rows
that reach them, roughened; every other tree has leaves that lean towards one class instead. Where
there are more than two classes, half of the trees part the classes by regressions as for the
expected cost (grouping.py).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.starts.grouping import grouped_trees
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.routing import gate_probabilities, node_reach

ROWS = 2000
"""Rows that a start looks at."""

SPREAD = 1.5
NEARNESS = 0.7
"""How near to its row a split passes: 1 is through it."""

ROUGHNESS = 0.5
LEAN = 0.9
"""Part of a leaf that goes to its class where leaves lean."""

TREES = 2
"""Trees for each one that is asked for: they are raced against one another."""


def mixture_trees(
    problem: TrainingProblem, rng: np.random.Generator, count: int = 1
) -> list[TreeParameters]:
    """TREES times ``count`` trees."""
    samples = problem.rows.sample(ROWS)
    unit = problem.steepness / problem.n_features
    rows = unit * (samples.features - 0.5)
    n_grouped = 0
    if 2 < problem.n_classes <= problem.topology.n_leaves:
        n_grouped = TREES * count // 2
    made = [
        _random_tree(problem, rows, samples.starts, rng, number % 2 == 1)
        for number in range(TREES * count - n_grouped)
    ]
    grouped = grouped_trees(problem, rng, n_grouped, repeat=True) if n_grouped else []
    return made + [_softened(problem, tree) for tree in grouped]


def _softened(problem: TrainingProblem, tree: TreeParameters) -> TreeParameters:
    """The same splits; leaves lean towards their class."""
    totals = problem.rows.class_totals
    shares = (totals / totals.sum())[:, None]
    leaves = LEAN * tree.leaf_classes + (1 - LEAN) * shares
    return TreeParameters(tree.weights, tree.thresholds, leaves)


def _random_tree(
    problem: TrainingProblem,
    rows: FloatArray,
    starts: NDArray[np.int64],
    rng: np.random.Generator,
    leaning: bool,
) -> TreeParameters:
    n_branches, n_rows = problem.topology.n_branches, rows.shape[1]
    weights = rng.normal(size=(n_branches, len(rows))) * rng.exponential(
        size=(n_branches, len(rows))
    )
    scores = weights @ rows
    factor = SPREAD / np.maximum(scores.std(axis=1, keepdims=True), 1e-12)
    weights, scores = weights * factor, scores * factor
    through = rng.integers(n_rows, size=n_branches)
    intercepts = -NEARNESS * scores[np.arange(n_branches), through]
    left, right = gate_probabilities(scores + intercepts[:, None], 1.0)
    reach = node_reach(left, right)[n_branches:]
    mass = np.add.reduceat(reach, starts[:-1], axis=1).T
    totals = problem.rows.class_totals
    shares = (totals / totals.sum())[:, None]
    leaves = (mass + shares) / np.sum(mass + shares, axis=0)
    if leaning:
        lift = np.log(leaves / shares) + ROUGHNESS * rng.gumbel(size=leaves.shape)
        chosen = np.eye(len(shares))[:, np.argmax(lift, axis=0)]
        leaves = LEAN * chosen + (1 - LEAN) * shares
    else:
        rough = leaves * np.exp(ROUGHNESS * rng.normal(size=leaves.shape))
        leaves = rough / rough.sum(axis=0)
    unit = problem.steepness / problem.n_features
    thresholds = (0.5 * unit * weights.sum(axis=1) - intercepts) / problem.steepness
    return TreeParameters(np.ascontiguousarray(weights.T), thresholds, leaves)
