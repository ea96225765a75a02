"""Rules about variables for a solver that does not know them.

Of every set of which at most one variable may be in the tree one is allowed, and bounds of zero
mask the others: what the solver sees is an ordinary problem. The allowed members are compared on
it, the CHOICES most promising ones by the score statistics of their columns without a
tree, and the tree of the lowest objective is kept. A required variable has no price
(feature_rules.py), so that the penalties rarely remove it; where a tree lacks it all the same, it
gets that weight of WEIGHTS that costs least, in the branch of the steepest slope.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice, product

import numpy as np
from numpy.typing import NDArray

from softsplit.problem.feature_rules import FeatureRules
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.base import (
    Budget,
    Report,
    Solution,
    Solver,
    Start,
    silent,
)
from softsplit.solvers.score_statistics import group_slopes, score_statistics
from softsplit.solvers.stopping import EndPoints
from softsplit.support.row_budgets import ROWS
from softsplit.tree.parameters import TreeParameters

Mask = NDArray[np.bool_]


CHOICES = 6
"""Most choices of members that are solved from a start."""

WEIGHTS = (0.01, 0.1)
"""Weights for a required variable that a tree lacks, as parts of the bounds: the first is a
hundredth of the largest, small beside any weight that does something."""


def solve_masked(
    solver: Solver, problem: TrainingProblem, rules: FeatureRules, start: Start, budget: Budget
) -> Solution:
    """Return the best tree of ``solver`` over the allowed choices."""
    solutions: list[Solution] = []
    choices = islice(barred_variables(problem, rules), CHOICES)
    for barred in budget.while_left(choices, at_least=1):
        part = masked(problem, rules, barred)
        solution = solver.solve(part, start.within(part), budget)
        solutions.append(kept_required(problem, rules, solution, budget))
    return min(solutions, key=lambda solution: (not solution.status.usable, solution.objective))


def improve_masked(
    solver: Solver,
    problem: TrainingProblem,
    rules: FeatureRules,
    front: Sequence[Solution],
    seeds: Iterator[int],
    ends: EndPoints,
    budget: Budget,
    report: Report = silent,
) -> Solution:
    """Search with the variables of the best tree: variables that it excludes are masked."""
    used = np.flatnonzero(rules.used(front[0].parameters.weights != 0))
    barred = rules.excluded_by(used)
    barred[used] = False
    for members in rules.at_most_one:  # of a set that is not used, all but one
        if not set(members) & set(used.tolist()):
            barred[list(members[1:])] = True
    part = masked(problem, rules, barred)
    alike = [solution for solution in front if part.bounds.violation(solution.parameters) == 0.0]
    better = solver.improve(part, alike, seeds, ends, budget, report)
    return kept_required(problem, rules, better, budget)


def barred_variables(problem: TrainingProblem, rules: FeatureRules) -> Iterator[Mask]:
    """Yield the variables to mask, (n_variables,), the most promising choice of members first."""
    if not rules.at_most_one:
        yield np.zeros(len(rules.names), dtype=bool)
        return
    # 1. What each variable is worth by itself: the largest score statistic of its columns.
    few = problem.rows.sample(ROWS.importances)
    columns = np.asarray(few.features, dtype=float)
    gains = score_statistics(columns, columns**2, *group_slopes(few.labels, few.weights)).gains
    worth = np.zeros(len(rules.names))
    np.maximum.at(worth, rules.of, gains.max(axis=1))
    worth[list(rules.required)] = np.inf
    # 2. Choices of one member of every set, those of high worth first.
    ranked = [sorted(members, key=lambda v: (-worth[v], v)) for members in rules.at_most_one]
    places = product(*(range(len(members)) for members in ranked))
    seen: set[bytes] = set()
    for at in sorted(places, key=sum) if _few(ranked) else islice(places, CHOICES):
        taken = {members[i] for members, i in zip(ranked, at, strict=True)}
        barred = np.zeros(len(rules.names), dtype=bool)
        for members in ranked:
            barred[[v for v in members if v not in taken]] = True
            both = [v for v in members if v in taken]
            barred[both[1:]] = True  # taken for another set
        # 3. A choice that bars a required variable, or that was there, is left out.
        if barred[list(rules.required)].any() or barred.tobytes() in seen:
            continue
        seen.add(barred.tobytes())
        yield barred


def _few(ranked: Sequence[Sequence[int]]) -> bool:
    """Whether all choices of members can be listed and sorted."""
    return float(np.prod([float(len(members)) for members in ranked])) <= 10_000


def masked(problem: TrainingProblem, rules: FeatureRules, barred: Mask) -> TrainingProblem:
    """Return the problem in which some variables have no weights."""
    if not barred.any():
        return replace(problem, rules=None)
    bounds, out = problem.bounds, rules.features(barred)[:, None]
    low, high = np.where(out, 0.0, bounds.low), np.where(out, 0.0, bounds.high)
    return replace(problem, rules=None, bounds=replace(bounds, low=low, high=high))


def kept_required(
    problem: TrainingProblem, rules: FeatureRules, solution: Solution, budget: Budget
) -> Solution:
    """Return ``solution`` with the required variables that it lacks, measured on ``problem``."""
    tree = solution.parameters
    for variable in rules.missing(rules.used(tree.weights != 0)):
        tree = _with_variable(problem, rules, tree, variable)
    return Solution.measure(
        problem,
        tree,
        solution.status,
        tol=budget.tol,
        n_iter=solution.n_iter,
        seconds=solution.seconds,
        solver=solution.solver,
        message=solution.message,
    )


def _with_variable(
    problem: TrainingProblem, rules: FeatureRules, tree: TreeParameters, variable: int
) -> TreeParameters:
    """Return the best of the trees with a small weight of ``variable``."""
    own, gradient = np.flatnonzero(rules.of == variable), problem.evaluate_cost(tree).weights
    slopes = gradient[own]
    sizes = np.abs(slopes) * problem.bounds.allows_step(-gradient)[own]
    row, branch = np.unravel_index(int(np.argmax(sizes)), sizes.shape)
    largest = min(float(problem.bounds.high[own[row], branch]), 1.0) or 1.0
    trees = []
    for part in WEIGHTS:
        weights = tree.weights.copy()
        weights[own[row], branch] = -np.copysign(part * largest, slopes[row, branch])
        trees.append(replace(tree, weights=weights))
    return min(trees, key=problem.objective)
