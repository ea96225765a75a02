"""Requirements on rates of any rows (problem/rates.py) in the expected cost, as a last phase.

For fixed splits the cost is linear in the leaves, and so are all rates: the best leaves that meet
the requirements are a linear program,

    minimise sum_kl G_kl c_kl    subject to  simplex, coverage, minimum class rates, and
                                             sum_gk B_qgk sum_l M_gl c_kl >= b_q

in which a few leaves are mixed. With these leaves the splits move on their support by descents with
augmented Lagrangian terms of the rates, as of the class rates (active_set/objective.py), and the
program is solved again. The lowest tree that meets all requirements is kept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import linprog, minimize

from softsplit.problem.leaves import ClassAssignment
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.base import FEASIBLE, Budget
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import TreeParameters


@dataclass(frozen=True)
class RatedOptions:
    """The last phase under requirements on rates."""

    rounds: int = 2
    """Descents of the splits, each followed by a linear program of the leaves."""

    updates: int = 4
    """Updates of the multipliers in a descent; the program meets the rates exactly afterwards."""

    steps: int = 30
    """Steps between two updates."""

    weight: float = 1.0
    """First weight of the quadratic terms, in total costs."""

    factor: float = 4.0
    """It grows by this with each update."""


OPTIONS = RatedOptions()


def within_rates(
    problem: TrainingProblem, tree: TreeParameters, budget: Budget
) -> TreeParameters | None:
    """Return ``tree`` moved to where all requirements hold; None if no leaves meet them."""
    best = rated_leaves(problem, tree)
    if best is None:
        return None
    here = best
    for _ in range(OPTIONS.rounds):
        if budget.exhausted:
            break
        moved = rated_leaves(problem, _descended(problem, here))
        if moved is None or problem.violation(moved).largest > FEASIBLE:
            break
        gain = problem.objective(best) - problem.objective(moved)
        here, best = moved, moved if gain > 0 else best
        if gain <= budget.tol * problem.cost_unit:
            break
    return best


def rated_leaves(problem: TrainingProblem, tree: TreeParameters) -> TreeParameters | None:
    """Return the tree with the cheapest leaves that meet all requirements; None if there are none.

    Raises
    ------
    ValueError
        If leaves do not hold classes: their cost is then not linear.
    """
    limits, rule = problem.rate_limits, problem.loss.leaf_rule
    if limits is None or not isinstance(rule, ClassAssignment):
        raise ValueError("the leaves of this loss are no linear program.")
    found = problem.evaluate_cost(tree)
    gradient, mass = found.leaf_classes, limits.mass(tree, problem.steepness)
    n_classes, n_leaves = gradient.shape
    rates = np.einsum("qgk,gl->qkl", limits.coefficients, mass).reshape(len(limits), -1)
    of_classes = np.zeros((n_classes, n_classes, n_leaves))
    of_classes[np.arange(n_classes), np.arange(n_classes)] = problem.shares(found.mass)
    coverage = np.kron(np.eye(n_classes), np.ones(n_leaves))
    scale = max(float(np.max(np.abs(gradient))), 1e-300)
    solved = linprog(
        gradient.ravel() / scale,
        A_ub=-np.vstack([coverage, of_classes.reshape(n_classes, -1), rates]),
        b_ub=-np.concatenate([np.ones(n_classes), problem.minimum_rates, limits.least]),
        A_eq=np.tile(np.eye(n_leaves), n_classes),
        b_eq=np.ones(n_leaves),
        bounds=(0, 1),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if solved.status != 0:
        return None
    leaves = np.clip(solved.x.reshape(n_classes, n_leaves), 0.0, 1.0)
    return replace(tree, leaf_classes=leaves / leaves.sum(axis=0))


def _descended(problem: TrainingProblem, tree: TreeParameters) -> TreeParameters:
    """Return the tree after descents of its splits, on their support, under multipliers."""
    support, bounds = tree.weights != 0, problem.bounds
    n_weights = int(np.count_nonzero(support))
    weight = OPTIONS.weight * abs(problem.cost(tree))
    multipliers = np.zeros(len(problem.shortfalls(tree)))

    def at(values: FloatArray) -> TreeParameters:
        weights = np.zeros_like(tree.weights)
        weights[support] = values[:n_weights]
        return replace(tree, weights=weights, thresholds=values[n_weights:])

    def value(values: FloatArray) -> tuple[float, FloatArray]:
        moved = at(values)
        prices = np.maximum(0.0, multipliers + weight * problem.shortfalls(moved))
        slope = problem.evaluate_cost(moved, prices)
        terms = float(np.sum(prices**2 - multipliers**2)) / (2.0 * weight)
        by_weight = slope.weights + problem.penalties.gradient(moved.weights)
        return problem.objective(moved) + terms, np.append(by_weight[support], slope.thresholds)

    low = np.append(bounds.low[support], bounds.threshold_low)
    high = np.append(bounds.high[support], bounds.threshold_high)
    values = np.append(tree.weights[support], tree.thresholds)
    for _ in range(OPTIONS.updates):
        found = minimize(
            value, values, jac=True, method="L-BFGS-B", bounds=np.column_stack([low, high]),
            options={"maxiter": OPTIONS.steps},
        )  # fmt: skip
        values = found.x
        short = problem.shortfalls(at(values))
        multipliers = np.maximum(0.0, multipliers + weight * short)
        weight *= OPTIONS.factor
    return at(values)
