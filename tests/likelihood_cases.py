"""Problems of loss="log" for tests, and their formulas in plain numpy.

Nothing of the solver is used in the formulas: rows are X (n, p), y and weight in the units of a
descent, a tree is ``splits`` (branches, p + 1), intercepts last, and ``log_odds`` of the leaves.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, softmax

from brute_force import left_and_right_ancestors
from helpers import random_leaf_classes, random_rows
from softsplit.engines.compiled import CompiledRows
from softsplit.problem.bounds import Bounds
from softsplit.problem.loss import LogLoss
from softsplit.problem.penalties import PenaltyPair, linear
from softsplit.problem.problem import TrainingProblem
from softsplit.tree.parameters import Topology, TreeParameters

UNIT = 4.0
"""Log-odds of a split per scaled unit at weight 1, as for a scaling of four deviations."""

NO_PENALTY = PenaltyPair.of(linear())


def problem_of(X, y, *, depth=1, weight=None, penalties=NO_PENALTY, ridge=1.0, rates=0.0):
    """A problem of likelihood on rows that are scaled already."""
    X, y = np.asarray(X, float), np.asarray(y)
    rows = CompiledRows.from_arrays(X, y, int(y.max()) + 1, weight)
    return TrainingProblem(
        rows=rows,
        topology=Topology(depth),
        loss=LogLoss.counted(rows.group_totals),
        penalties=penalties,
        minimum_rates=np.full(rows.n_groups, rates),
        steepness=UNIT * X.shape[1],
        bounds=Bounds.free(X.shape[1], 2**depth - 1),
        ridge=ridge,
    )


def random_problem(seed, depth=2, n_classes=3, n_features=3, n_rows=25, **given):
    """A problem of random weighted rows, and a tree whose gates are open."""
    rng = np.random.default_rng([seed, depth, n_classes])
    rows = random_rows(rng, n_rows, n_features, n_classes)
    problem = problem_of(rows.X, rows.y, depth=depth, weight=rows.sample_weight, **given)
    topology = problem.topology
    tree = TreeParameters(
        rng.normal(size=(n_features, topology.n_branches)),
        rng.uniform(-0.2, 0.2, topology.n_branches),
        random_leaf_classes(rng, n_classes, topology.n_leaves),
    )
    return problem, tree


def learnable_rows(seed, n_rows=60, n_features=4, n_classes=2, noise=0.7):
    """Rows in [0, 1] whose classes depend on two features."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n_rows, n_features))
    score = 4 * (X[:, 0] + X[:, 1] - 1) + noise * rng.logistic(size=n_rows)
    edges = np.quantile(score, np.arange(1, n_classes) / n_classes)
    return X, np.digitize(score, edges)


def standardised(problem):
    """Rows in the units of a descent, classes and weights."""
    samples = problem.samples
    return UNIT * (samples.features.T - 0.5), samples.labels, samples.weights


def leaf_probabilities(X, splits):
    """P_il, (n_rows, n_leaves)."""
    gates = expit(X @ splits[:, :-1].T + splits[:, -1])
    depth = int(np.log2(len(splits) + 1))
    made = np.empty((len(X), len(splits) + 1))
    for leaf in range(made.shape[1]):
        left, right = left_and_right_ancestors(leaf, depth)
        made[:, leaf] = np.prod(gates[:, left], axis=1) * np.prod(1 - gates[:, right], axis=1)
    return made


def truths(X, y, splits, log_odds):
    """V_i: the probability of the class of each row."""
    return np.sum(leaf_probabilities(X, splits) * softmax(log_odds, axis=0)[y], axis=1)


def value(problem, splits, log_odds):
    """Log-loss, prior and ridge."""
    X, y, weight = standardised(problem)
    found = -weight @ np.log(truths(X, y, splits, log_odds))
    found -= np.sum(problem.loss.leaf_rule.pseudo_counts @ np.log(softmax(log_odds, axis=0)))
    return found + 0.5 * problem.ridge * np.sum(splits[:, :-1] ** 2)


def lowest_of_one_split(problem, used, starts=12, seed=0):
    """Least value of a tree of one split that uses these columns: descents from many points."""
    rng = np.random.default_rng(seed)
    rows, y, weight = standardised(problem)
    X, counts = np.column_stack([rows[:, np.asarray(used)], np.ones(len(y))]), problem.n_groups
    pseudo = problem.loss.leaf_rule.pseudo_counts[:, None]
    ridges = np.append(np.full(X.shape[1] - 1, problem.ridge), 0.0)
    own = np.arange(counts)[:, None] == y

    def total(x):
        split, leaves = x[: X.shape[1]], softmax(x[X.shape[1] :].reshape(counts, 2), axis=0)
        left = expit(X @ split)
        truth = left * leaves[y, 0] + (1 - left) * leaves[y, 1]
        found = -weight @ np.log(truth) - np.sum(pseudo * np.log(leaves))
        per_row = -weight / truth
        by_split = X.T @ (per_row * left * (1 - left) * (leaves[y, 0] - leaves[y, 1]))
        by_leaf = np.empty((counts, 2))
        for leaf, gate in enumerate((left, 1 - left)):
            share = per_row * gate * leaves[y, leaf]
            by_leaf[:, leaf] = own @ share - leaves[:, leaf] * share.sum()
        by_leaf += leaves * pseudo.sum() - pseudo
        found += 0.5 * np.sum(ridges * split**2)
        return found, np.append(by_split + ridges * split, by_leaf.ravel())

    size = X.shape[1] + 2 * counts
    options = {"maxiter": 2000, "ftol": 1e-15, "gtol": 1e-9}
    points = rng.normal(scale=1.5, size=(starts, size))
    return min(minimize(total, x, jac=True, method="L-BFGS-B", options=options).fun for x in points)
