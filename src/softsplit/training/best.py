"""The best of several solutions, and those that differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.base import (
    FEASIBLE,
    Budget,
    Solution,
)
from softsplit.solvers.starts.plans import structure
from softsplit.support.row_budgets import ROWS
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.routing import gate_probabilities, node_reach, split_scores
from softsplit.tree.ways import needed_in_leaves

EQUALLY_GOOD = 0.1
"""Trees whose objectives differ by less than this part of the price of a feature are equally
good: with costs of features the one is taken whose cases cost least."""

SAME_STRUCTURE = 2
"""Most trees of one structure, where others have another."""


class NoFeasibleTreeError(ValueError):
    """No start ended in a tree that satisfies the constraints."""


class Unmet(NamedTuple):
    """A requirement that a tree does not meet, and what may be done about it."""

    name: str
    advice: str


def unmet_requirements(problem: TrainingProblem, tree: TreeParameters) -> list[Unmet]:
    """What was asked for and does not hold for ``tree``."""
    unmet, short = [], problem.shortfalls(tree)
    if np.any(short[: problem.n_groups] > FEASIBLE):
        unmet.append(Unmet("min_class_rate", "lower min_class_rate"))
    limits = problem.rate_limits
    if limits is not None:
        missed = np.flatnonzero(short[problem.n_groups :] > FEASIBLE)
        for name in dict.fromkeys(limits.requirement_of(int(line)).name for line in missed):
            unmet.append(Unmet(f"the {name}", "widen its bound"))
    order = problem.order
    if order is not None and order.violation(tree, problem.steepness) > FEASIBLE:
        unmet.append(Unmet("monotone", "ask for fewer monotone effects"))
    if not problem.allows(tree):
        unmet.append(Unmet("the rules about its columns or size", "ask for fewer rules"))
    return unmet


def best_solution(
    solutions: Sequence[Solution],
    budget: Budget | None = None,
    tie: float = 0.0,
    problem: TrainingProblem | None = None,
) -> Solution:
    """Return the usable solution of lowest objective, the first of equals.

    Objectives within ``tie`` of the lowest count as equal; among these the tree with the smallest
    sum of absolute weights is returned. With the ``problem`` an error names the requirements that
    were not met.

    Raises
    ------
    NoFeasibleTreeError
        If no solution is usable.
    """
    usable = [solution for solution in solutions if solution.status.usable]
    if usable:
        best = min(usable, key=lambda solution: solution.objective)
        equals = [s for s in usable if tie > 0 and s.objective <= best.objective + tie]
        return min(equals, key=_size) if len(equals) > 1 else best
    nearest = min(solutions, key=lambda solution: solution.violation)
    end = f"{nearest.status.name}, {nearest.message}" if nearest.message else nearest.status.name
    missed = [] if problem is None else unmet_requirements(problem, nearest.parameters)
    names = " and ".join(one.name for one in missed) or "the constraints"
    advice = "".join(f"{one.advice}, or " for one in missed) + "raise depth or n_starts"
    if budget is not None and budget.stopped:
        raise KeyboardInterrupt
    if budget is not None and budget.exhausted:
        advice = "raise time_limit"
    raise NoFeasibleTreeError(
        f"none of {len(solutions)} starts ended in a tree that meets {names} (smallest "
        f"violation {nearest.violation:.2g}, ended as {end}); {advice}."
    )


def cheapest_to_measure(
    problem: TrainingProblem, solutions: Sequence[Solution], best: Solution
) -> Solution:
    """Return the tree whose cases cost least to measure among those as good as ``best``.

    As good: the objective is higher by no more than a part of the price of a feature of cost 1
    (``EQUALLY_GOOD``). So a tree that asks cheap things first, and dear ones of few
    cases, is preferred. Without costs of features it is ``best``.
    """
    rules, strength = problem.rules, problem.penalties.global_.strength
    if rules is None or rules.costs is None or not strength > 0:
        return best
    most = best.objective + EQUALLY_GOOD * strength
    near = [s for s in solutions if s.status.usable and s.objective <= most]
    few = problem.rows.sample(ROWS.importances)
    shares = few.weights / few.weights.sum()

    def cost(solution: Solution) -> float:
        tree, costs = solution.parameters, rules.costs
        assert costs is not None
        gates = gate_probabilities(split_scores(tree, few.features), problem.steepness)
        leaves = node_reach(*gates)[tree.topology.n_branches :] @ shares
        return float(leaves @ (costs @ needed_in_leaves(rules.of, len(costs), tree.weights != 0)))

    return min([best, *near], key=lambda one: (round(cost(one), 9), one.objective))


def _size(solution: Solution) -> float:
    return float(np.sum(np.abs(solution.parameters.weights)))


def varied(solutions: Sequence[Solution], keep: int) -> list[Solution]:
    """Return the first ``keep`` solutions, with at most ``same_structure`` of one structure."""
    counts: dict[object, int] = {}
    chosen: list[Solution] = []
    spare: list[Solution] = []
    for solution in solutions:
        labels = np.argmax(solution.parameters.leaf_values, axis=0).tolist()
        key = structure(tuple(labels))
        counts[key] = counts.get(key, 0) + 1
        (chosen if counts[key] <= SAME_STRUCTURE else spare).append(solution)
    return (chosen + spare)[:keep]


def distinct(solutions: Sequence[Solution], keep: int) -> list[Solution]:
    """Return up to ``keep`` solutions of different objective, the best usable ones first."""
    chosen: list[Solution] = []
    for solution in sorted(solutions, key=lambda s: (not s.status.usable, s.objective)):
        gap = abs(solution.objective - chosen[-1].objective) if chosen else np.inf
        if gap > 1e-6 * abs(solution.objective):
            chosen.append(solution)
    return chosen[:keep]
