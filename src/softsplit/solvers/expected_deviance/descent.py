"""Descents by L-BFGS with the curvature of the blocks as first inverse Hessian.

The blocks are a gate or a leaf each. With the slope c = power n / E of the objective by E,

    leaf l    H = c Z' diag(v P_l d'') Z + ridge                  its Hessian, all else kept
    gate t    H = c^2 Z' diag(g_t^2 / v) Z + ridge                outer products of the derivatives

where g_t is dE by the score of a row, so that a descent takes 10 to 25 steps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.solvers.base import Budget
from softsplit.solvers.expected_deviance.problem import (
    NumberProblem,
    Objective,
    Routed,
    SoftTree,
    routed,
)
from softsplit.support.arrays import FloatArray

MEMORY = 8
"""Pairs of steps that an L-BFGS descent remembers."""

CURVED_ROWS = 20_000
"""Most rows of which a preconditioner is made."""


class Descended(NamedTuple):
    """Where a descent has led."""

    tree: SoftTree
    value: float


def leaf_hessian(
    problem: NumberProblem, tree: SoftTree, route: Routed, leaf: int, lines: FloatArray
) -> FloatArray:
    """Return the Hessian of a leaf's free coefficients, with the ridge; ``lines`` are those of the
    tree's columns."""
    node = tree.n_branches + leaf
    weight = problem.targets.totals * route.reach[node] * route.terms.curvature[leaf]
    return problem.slope(route.expected) * gram(lines, weight, tree.free[node]) + np.diag(
        _ridge(tree.free[node], problem.ridges.leaves)
    )


def gram(lines: FloatArray, weight: FloatArray, free: NDArray[np.bool_]) -> FloatArray:
    """Return Z' diag(weight) Z of the free columns, the last of which is a constant."""
    held = lines[free[:-1]]
    size = len(held)
    product = np.empty((size + 1, size + 1))
    weighted = held * weight
    product[:size, :size] = weighted @ held.T
    product[size, :size] = product[:size, size] = weighted.sum(axis=1)
    product[size, size] = weight.sum()
    return product if free[-1] else product[:size, :size]


def _ridge(free: NDArray[np.bool_], ridge: float) -> FloatArray:
    rest = np.full(int(free.sum()), ridge)
    if free[-1]:
        rest[-1] = 1e-6
    return rest


def inverse_curvature(problem: NumberProblem, tree: SoftTree, lines: FloatArray) -> FloatArray:
    """Return the inverse of the block-diagonal curvature of the free coefficients."""
    targets, stride = problem.targets, 1 + lines.shape[1] // CURVED_ROWS
    if stride > 1:  # every so manieth row, with that many times its weight
        some = np.arange(0, lines.shape[1], stride)
        problem, lines = problem.part(some), lines[:, some]
        stride = targets.totals.sum() / problem.total
    route, n = routed(problem, tree, lines), tree.n_branches
    counts = tree.free.sum(axis=1)
    inverse = np.zeros((int(counts.sum()),) * 2)
    slope, begin = problem.slope(route.expected), 0
    for node, count in enumerate(counts.tolist()):
        if not count:
            continue
        if node < n:
            p = route.gates[node]
            derivative = route.reach[node] * p * (1.0 - p)
            derivative *= route.values[2 * node + 1] - route.values[2 * node + 2]
            weight = problem.targets.totals * derivative**2
            block = slope**2 * gram(lines, weight, tree.free[node])
            block += np.diag(np.maximum(_ridge(tree.free[node], problem.ridges.gates), 0.1))
        else:
            block = leaf_hessian(problem, tree, route, node - n, lines)
        end = begin + count
        inverse[begin:end, begin:end] = np.linalg.inv(block)
        begin = end
    return inverse / stride


def descend(
    problem: NumberProblem,
    tree: SoftTree,
    max_steps: int,
    decrease: float = 0.01,
    budget: Budget | None = None,
) -> Descended:
    """Descend from ``tree`` for some steps, or until one lowers the objective by too little.

    The objective is in units of log-likelihood. At the end of the budget the tree so far is kept.
    """
    function = Objective(problem, tree)
    inverse = inverse_curvature(problem, tree, function.lines)
    x = tree.matrix[tree.free]
    value, gradient = function(x)
    pairs: list[tuple[FloatArray, FloatArray, float]] = []

    for _ in (budget or Budget()).while_left(range(max_steps)):
        direction = -_times_inverse(gradient, pairs, inverse)
        fall = float(gradient @ direction)
        if not fall < 0.0:
            break
        # 1. Backtracking along the direction, by interpolation.
        length = 1.0
        for _ in range(12):
            there = x + length * direction
            new_value, new_gradient = function(there)
            if new_value <= value + 1e-4 * length * fall:
                break
            bend = new_value - value - length * fall
            length *= min(0.5, max(0.1, -0.5 * length * fall / bend)) if bend > 0.0 else 0.1
        else:
            break
        # 2. The pair of differences, unless it has no curvature.
        step, change = there - x, new_gradient - gradient
        curvature = float(step @ change)
        if curvature > 1e-10 * float(step @ step):
            pairs = [*pairs[-MEMORY + 1 :], (step, change, 1.0 / curvature)]
        gain, x, value, gradient = value - new_value, there, new_value, new_gradient
        if gain < decrease:
            break
    return Descended(SoftTree(tree.columns, function.matrix(x), tree.free), value)


def _times_inverse(
    gradient: FloatArray, pairs: list[tuple[FloatArray, FloatArray, float]], inverse: FloatArray
) -> FloatArray:
    """Return the inverse Hessian of L-BFGS times the gradient, by the two-loop recursion."""
    rest, shares = gradient.copy(), []
    for step, change, factor in reversed(pairs):
        share = factor * float(step @ rest)
        rest -= share * change
        shares.append(share)
    rest = inverse @ rest
    for (step, change, factor), share in zip(pairs, reversed(shares), strict=True):
        rest += (share - factor * float(change @ rest)) * step
    return rest
