"""Random trees for the log-loss: gentle splits through the rows, leaves with class distributions.

Weights are random, many of them small, scaled so that the log-odds of a split have a standard
deviation of ``spread`` over the rows; each split passes near a random row. Leaves have the class
shares of the rows that reach them, randomly changed; every other tree has leaves that lean towards
one class instead. Where there are more than two classes, half of the trees separate the classes by
a plan (plans.py) and logistic regressions, with leaves that lean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.base import drawn_from
from softsplit.engines.samples import Samples, centred
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.starts.grouping import RIDGES
from softsplit.solvers.starts.logistic import LOGISTIC, ridge_logistic
from softsplit.solvers.starts.plans import BOTH, LEFT, RIGHT, GroupPlan, draw_plans
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.routing import gate_probabilities, node_reach


@dataclass(frozen=True)
class MixtureOptions:
    """How gentle random trees are drawn.

    Attributes
    ----------
    rows : int
        Rows that a start looks at.
    spread : float
        Standard deviation of the log-odds of a random split over these rows.
    nearness : float
        How near to a random row a split passes: 1 is through it.
    roughness : float
        Scale of the random change of the leaves' log-odds.
    lean : float
        Share of its class in a leaf that leans towards one.
    most_columns : int
        Most columns of a regression; of more they are drawn for each branch.
    largest_weight : float
        Largest coefficient of a regression, in log-odds per unit.
    trees : int
        Trees for each one that is asked for: they race against one another.
    """

    rows: int = 2000
    spread: float = 1.5
    nearness: float = 0.7
    roughness: float = 0.5
    lean: float = 0.9
    most_columns: int = 150
    largest_weight: float = 1.0
    trees: int = 2


DEFAULTS = MixtureOptions()


def mixture_trees(
    problem: TrainingProblem,
    rng: np.random.Generator,
    count: int = 1,
    options: MixtureOptions = DEFAULTS,
) -> list[TreeParameters]:
    """Return ``options.trees`` times ``count`` trees."""
    samples = drawn_from(problem.rows, options.rows)
    rows = centred(samples, problem.steepness / problem.n_features)
    n_grouped = 0
    if 2 < problem.n_groups <= problem.topology.n_leaves:
        n_grouped = options.trees * count // 2
    trees = [
        _random_tree(problem, rows, samples.starts, rng, number % 2 == 1, options)
        for number in range(options.trees * count - n_grouped)
    ]
    plans = draw_plans(problem, rng, n_grouped, repeat=True) if n_grouped else []
    return trees + [_grouped_tree(problem, rows, samples, plan, rng, options) for plan in plans]


def _grouped_tree(
    problem: TrainingProblem,
    rows: FloatArray,
    samples: Samples,
    plan: GroupPlan,
    rng: np.random.Generator,
    options: MixtureOptions,
) -> TreeParameters:
    """Regressions between the classes of both sides, with random row weights and ridges.

    A class that goes both ways is left out, and goes on where the regression sends its rows.
    Without rows on both sides: a random direction through a row.
    """
    n_branches, n_columns, n_rows = len(plan.sides), *rows.shape
    unit = problem.steepness / problem.n_features
    weights, intercepts = np.zeros((n_branches, n_columns)), np.empty(n_branches)
    random_weights = samples.weights * rng.standard_exponential((n_branches, n_rows))
    ridges = unit**2 * RIDGES[rng.integers(len(RIDGES), size=n_branches)]
    columns, narrow, node = np.arange(n_columns), rows, np.zeros(n_rows, dtype=np.intp)
    for t, sides in enumerate(plan.sides):
        # 1. The rows that arrive and are to part, on some columns of a wide table.
        here, side = node == t, sides[samples.labels]
        if n_columns > options.most_columns:
            columns = np.sort(rng.choice(n_columns, options.most_columns, replace=False))
            narrow = np.ascontiguousarray(rows[columns])
        left = (side == LEFT).astype(float)
        weight = random_weights[t] * (here & (side != BOTH))
        on_left, on_right = weight @ left, weight @ (1.0 - left)
        # 2. A regression in which both sides have half of the weight, or a random direction.
        if on_left > 0 and on_right > 0:
            weight *= 0.5 / on_right + (0.5 / on_left - 0.5 / on_right) * left
            split = ridge_logistic(narrow, left, weight, ridges[t], LOGISTIC.newton_steps)
            largest = np.max(np.abs(split[:-1]), initial=1e-300)
            split = split * min(1.0, options.largest_weight / largest)
        else:
            through = rng.choice(np.flatnonzero(here)) if np.any(here) else 0
            split = rng.uniform(-options.largest_weight, options.largest_weight, len(columns) + 1)
            split[-1] = split[:-1] @ narrow[:, through]
        weights[t, columns], intercepts[t] = split[:-1], -split[-1]
        # 3. Rows go on below: by their class, or where the split sends them.
        if 2 * t + 1 < n_branches:
            ahead = np.where(weights[t] @ rows + intercepts[t] > 0, LEFT, RIGHT)
            node = np.where(here, 2 * t + 1 + np.where(side == BOTH, ahead, side), node)
    shares = _shares(problem)[:, None]
    own = np.eye(problem.n_groups)[:, plan.leaf_labels]
    leaves = options.lean * own + (1 - options.lean) * shares
    return _tree(problem, weights, intercepts, leaves)


def _random_tree(
    problem: TrainingProblem,
    rows: FloatArray,
    starts: NDArray[np.int64],
    rng: np.random.Generator,
    leaning: bool,
    options: MixtureOptions,
) -> TreeParameters:
    """Random splits near random rows; leaves of class shares, or ``leaning`` towards a class."""
    n_branches, n_rows = problem.topology.n_branches, rows.shape[1]
    weights = rng.normal(size=(n_branches, len(rows))) * rng.exponential(
        size=(n_branches, len(rows))
    )
    # 1. Splits of a given spread of log-odds, each near a random row.
    scores = weights @ rows
    factor = options.spread / np.maximum(scores.std(axis=1, keepdims=True), 1e-12)
    weights, scores = weights * factor, scores * factor
    through = rng.integers(n_rows, size=n_branches)
    intercepts = -options.nearness * scores[np.arange(n_branches), through]
    # 2. Leaves with the class shares of the rows that reach them, changed at random.
    left, right = gate_probabilities(scores + intercepts[:, None], 1.0)
    reach = node_reach(left, right)[n_branches:]
    mass = np.add.reduceat(reach, starts[:-1], axis=1).T
    shares = _shares(problem)[:, None]
    leaves = (mass + shares) / np.sum(mass + shares, axis=0)
    if leaning:
        lift = np.log(leaves / shares) + options.roughness * rng.gumbel(size=leaves.shape)
        chosen = np.eye(len(shares))[:, np.argmax(lift, axis=0)]
        leaves = options.lean * chosen + (1 - options.lean) * shares
    else:
        rough = leaves * np.exp(options.roughness * rng.normal(size=leaves.shape))
        leaves = rough / rough.sum(axis=0)
    return _tree(problem, weights, intercepts, leaves)


def _shares(problem: TrainingProblem) -> FloatArray:
    totals = problem.rows.group_totals
    return totals / totals.sum()


def _tree(
    problem: TrainingProblem, weights: FloatArray, intercepts: FloatArray, leaves: FloatArray
) -> TreeParameters:
    """Return the tree of splits of centred rows, (n_branches, n_features) and (n_branches,)."""
    unit = problem.steepness / problem.n_features
    thresholds = (0.5 * unit * weights.sum(axis=1) - intercepts) / problem.steepness
    return TreeParameters(np.ascontiguousarray(weights.T), thresholds, leaves)
