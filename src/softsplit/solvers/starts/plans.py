"""Plans: which classes go left, right or both ways at every branch of a tree.

A *plan* thereby assigns a class to each leaf. Plans that differ only by swapping the two sides
of a branch are one structure: (a, b | a, c) and (c, a | b, a) are the same tree drawn differently.
The structure from which a descent starts decides in which basin it ends, so candidate starts get
different structures.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.problem.problem import TrainingProblem
from softsplit.support.compiling import compiled
from softsplit.tree.parameters import Topology

LEFT, RIGHT, BOTH = range(3)
"""Sides of a class at a branch, as integers that compiled code compares."""


class PlanOptions(NamedTuple):
    """How plans are drawn."""

    draws: int = 2  # repeated structures drawn for each plan before fewer plans are returned
    random_part: float = 1 / 3  # plans whose classes are grouped at random, not by their means
    shared_part: float = 1 / 2  # branches that send one class both ways where there is room


PLANS = PlanOptions()

Distances = list[list[float]]


class GroupPlan(NamedTuple):
    """Side of every class at every branch, (n_branches, n_groups), and class of every leaf."""

    sides: NDArray[np.int64]
    leaf_labels: tuple[int, ...]


def structure(labels: tuple[int, ...]) -> object:
    """Return a key that is equal for leaf labellings which differ by mirrored branches only."""
    if len(labels) == 1:
        return labels[0]
    half = len(labels) // 2
    sides = [structure(labels[:half]), structure(labels[half:])]
    return tuple(sorted(sides, key=repr))


def draw_plans(
    problem: TrainingProblem, rng: np.random.Generator, count: int, repeat: bool = False
) -> list[GroupPlan]:
    """Draw up to ``count`` plans of different structures; ``repeat`` fills up with equal ones."""
    apart = group_distances(problem)
    plans: list[GroupPlan] = []
    spare: list[GroupPlan] = []
    seen: set[object] = set()
    while len(plans) < count and len(spare) <= PLANS.draws * count:
        plan = draw_plan(problem.topology, apart, rng)
        key = structure(plan.leaf_labels)
        (spare if key in seen else plans).append(plan)
        seen.add(key)
    return plans + spare[: count - len(plans)] if repeat else plans


def draw_plan(topology: Topology, apart: Distances, rng: np.random.Generator) -> GroupPlan:
    """Draw a plan branch by branch, such that every class ends on a leaf."""
    n_groups, n_branches = len(apart), topology.n_branches
    sides = [[BOTH] * n_groups for _ in range(n_branches)]
    groups = [list(range(n_groups))]
    for t in range(n_branches):
        capacity = topology.n_leaves >> (t + 1).bit_length()
        left, right = _part(groups[t], capacity, apart, rng)
        for k in groups[t]:
            if k not in right:
                sides[t][k] = LEFT
            elif k not in left:
                sides[t][k] = RIGHT
        groups += [left, right]
    return GroupPlan(np.array(sides), tuple(group[0] for group in groups[n_branches:]))


def _part(
    classes: list[int], capacity: int, apart: Distances, rng: np.random.Generator
) -> tuple[list[int], list[int]]:
    """Return two groups of at most ``capacity`` classes: by the nearer of two class means, or at
    random.

    A single class goes both ways; so may one more where there is room.
    """
    if len(classes) == 1:
        return classes, classes
    order = [classes[k] for k in rng.permutation(len(classes)).tolist()]
    if len(classes) == 2:
        left, right = order[:1], order[1:]
    else:
        first, last = order[0], order[-1]
        near = {k: apart[k][first] - apart[k][last] for k in order}
        if rng.random() < PLANS.random_part:
            near = dict(zip(order, rng.random(len(order)) - 0.5, strict=True))
        near[first], near[last] = -np.inf, np.inf
        smallest, largest = max(1, len(order) - capacity), min(capacity, len(order) - 1)
        size = min(max(sum(near[k] < 0 for k in order), smallest), largest)
        order.sort(key=lambda k: near[k])
        left, right = order[:size], order[size:]
    if capacity > 1 and rng.random() < PLANS.shared_part:
        giver, taker = (left, right) if len(left) >= len(right) else (right, left)
        if len(taker) < capacity:
            taker.append(giver[rng.integers(len(giver))])
    return left, right


def group_distances(problem: TrainingProblem) -> Distances:
    """Return squared distances between the class means, as lists: they are read one by one."""
    means = problem.rows.group_samples.group_means
    square = np.sum(means**2, axis=1)
    return (square[:, None] + square - 2.0 * means @ means.T).tolist()


@compiled
def sides_of(labels, sides):  # type: ignore[no-untyped-def]
    """Write the plan of leaf ``labels`` to ``sides``: a class goes wherever its leaves lie."""
    n_branches, n_groups = sides.shape
    below = np.zeros((2 * n_branches + 1, n_groups), dtype=np.bool_)
    for leaf in range(n_branches + 1):
        below[n_branches + leaf, labels[leaf]] = True
    for t in range(n_branches - 1, -1, -1):
        for k in range(n_groups):
            left, right = below[2 * t + 1, k], below[2 * t + 2, k]
            below[t, k] = left or right
            sides[t, k] = BOTH
            if left and not right:
                sides[t, k] = LEFT
            elif right and not left:
                sides[t, k] = RIGHT
