"""Proposition 1 of the paper: the strength from which the all-zero tree is stationary.

At a = 0 all rows are routed alike. With g_jt = dL / da_jt there (L the Lagrangian of the
minimum class rates) and s = phi'(0) the slope of the surrogate, row j may stay zero exactly if

    sum_t max(|g_jt| - local_strength s, 0) <= global_strength s

For a local penalty alone this is the paper's bound, local_strength >= max_jt |g_jt| / s. For a
global penalty the paper states the same maximum, but all branches of a feature may leave zero
together and pay the penalty once, so that the sum over the branches decides; for a group of
features the sum over all of them. A slope counts as zero if the bounds do not let its coefficient
leave zero.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from softsplit.problem.optimality import rate_multipliers
from softsplit.problem.penalties import Scope
from softsplit.problem.problem import TrainingProblem
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import Topology, TreeParameters


def all_zero_tree(problem: TrainingProblem) -> TreeParameters:
    """Return the best tree with a = 0: minimum rates for all classes, the rest for the cheapest.

    Leaves are pure and the thresholds send each class's share to its leaves, so that the tree
    is stationary in thresholds and leaf classes, provided that their bounds hold the thresholds:
    below a steepness of about ten a threshold of 1 may be too weak to part the classes so.
    """
    totals = problem.rows.group_totals
    shared = problem.loss.leaf_rule.without_features(totals / totals.sum())
    if shared is not None:
        neutral = TreeParameters.neutral(problem.n_features, problem.n_groups, problem.topology)
        leaves = np.repeat(shared[:, None], problem.topology.n_leaves, axis=1)
        return replace(neutral, leaf_values=leaves)
    minimum = problem.minimum_rates
    if minimum.sum() > 1 + 1e-12:
        raise ValueError(
            f"a tree with all weights zero cannot meet minimum class rates that add up to "
            f"{minimum.sum():.3g} > 1; lower min_class_rate."
        )
    cheapest = int(
        np.argmin(problem.rows.group_totals @ problem.loss.prediction_costs(problem.n_groups))
    )
    probabilities = np.array(minimum, dtype=float)
    probabilities[cheapest] += 1 - minimum.sum()
    # Leaves beyond one for each class go to the cheapest; thresholds send each class its share.
    spare = problem.topology.n_leaves - problem.n_groups
    groups = np.sort(np.append(np.arange(problem.n_groups), np.full(spare, cheapest)))
    counts = np.bincount(groups, minlength=problem.n_groups)
    leaf_values = np.zeros((problem.n_groups, problem.topology.n_leaves))
    leaf_values[groups, np.arange(len(groups))] = 1.0
    return TreeParameters(
        np.zeros((problem.n_features, problem.topology.n_branches)),
        problem.bounds.project_thresholds(
            _thresholds(problem.topology, (probabilities / counts)[groups], problem.steepness)
        ),
        leaf_values,
    )


def _thresholds(topology: Topology, mass: FloatArray, steepness: float) -> FloatArray:
    """Return the thresholds that give each leaf its probability when all weights are zero."""
    thresholds = np.zeros(topology.n_branches)
    for t in range(topology.n_branches):
        left, right = mass[topology.leaves_below(2 * t + 1)], mass[topology.leaves_below(2 * t + 2)]
        with np.errstate(divide="ignore", invalid="ignore"):
            log_odds = np.log(left.sum()) - np.log(right.sum())
        thresholds[t] = -np.nan_to_num(log_odds / steepness, nan=0.0)
    return thresholds


def zero_slopes(problem: TrainingProblem, at: TreeParameters | None = None) -> FloatArray:
    """Return |g_jt| at the all-zero tree, or at another tree ``at`` with a = 0."""
    tree = all_zero_tree(problem) if at is None else at
    if np.any(tree.weights):
        raise ValueError("the bound of Proposition 1 is taken at a tree whose weights are zero.")
    multipliers = rate_multipliers(problem, tree, problem.shortfalls(tree))
    slopes = problem.evaluate_cost(tree, multipliers).weights
    return np.where(problem.bounds.allows_step(-slopes), np.abs(slopes), 0.0)


def max_strength(
    problem: TrainingProblem, scope: Scope = "local", at: TreeParameters | None = None
) -> float:
    """Return the smallest strength in ``scope`` that makes the all-zero tree stationary.

    The strength of the other scope is the problem's own. Above the returned strength no weight
    of the tree ``at`` (the all-zero tree by default) can leave zero to first order; just below
    it, one can. The tree is a KKT point if it is stationary in thresholds and leaf classes too,
    which ``all_zero_tree`` is wherever its thresholds lie inside their bounds.
    """
    slopes = zero_slopes(problem, at)
    zero = np.zeros(1)
    local, global_ = problem.penalties.local, problem.penalties.global_
    # Proposition 1, solved for one strength: what the other penalty takes off every slope first.
    if scope == "global":
        excess = np.maximum(slopes - local.strength * local.surrogate.slope(zero), 0.0)
        pulls = global_.rows(excess).sum(axis=1)
        if global_.prices is not None:  # what has no price enters at any strength
            paid = global_.prices > 0
            pulls = pulls[paid] / global_.prices[paid]
        return _ratio(np.max(pulls, initial=0.0), global_.surrogate.slope(zero)[0])
    lines = global_.rows(slopes)
    prices = np.ones(len(lines)) if global_.prices is None else global_.prices
    allowances = prices * global_.strength * global_.surrogate.slope(zero)[0]
    most = max(_trim(row, allowance) for row, allowance in zip(lines, allowances, strict=True))
    return _ratio(most, local.surrogate.slope(zero)[0])


def _ratio(pull: float, slope: float) -> float:
    """Return pull / slope with ``pull`` the slope of the loss; inf if the surrogate is flat."""
    if slope == 0:
        return np.inf if pull > 0 else 0.0
    return float(pull / slope)


def _trim(row: FloatArray, allowance: float) -> float:
    """Return the smallest c >= 0 with sum_t max(row_t - c, 0) <= allowance."""
    ordered = np.sort(row)[::-1]
    candidates = (np.cumsum(ordered) - allowance) / np.arange(1, len(row) + 1)
    return float(max(np.max(candidates), 0.0))
