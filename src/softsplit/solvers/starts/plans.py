"""Plans: which classes go left, right or both ways at every branch of a tree.

A *plan* so says which class each leaf ends with. Plans that differ only by swapping the two sides
of a branch are one structure: (a, b | a, c) and (c, a | b, a) are the same tree drawn differently.
The structure a descent starts from decides which basin it ends in, so rival starts are given
different ones.

A plan is drawn branch by branch from *lots*, numbers between 0 and 1, so many for each branch:

    order     (n_classes,)  the classes that arrive, in the order of their lots
    rule      1             below a third they are parted at random, else by two class means
    near      (n_classes,)  where they are parted at random
    both      1             below a half one class goes both ways, if there is room
    which     1             of the larger side

Shapes: sides (n_branches, n_classes), labels (n_leaves,), lots (n_branches, lots_of_plan).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.problem.problem import TrainingProblem
from softsplit.support.arrays import FloatArray
from softsplit.support.compiling import compiled, in_python
from softsplit.tree.parameters import Topology

LEFT, RIGHT, BOTH = 0, 1, 2

AT_RANDOM, BOTH_WAYS = 1 / 3, 1 / 2
"""Shares of the branches where classes are parted at random, and where one more goes both ways."""

DRAWS = 2
"""Plans of a structure already there that are drawn for each tree before one is done without."""


class Plan(NamedTuple):
    """Side of every class at every branch, (n_branches, n_classes), and class of every leaf."""

    sides: NDArray[np.int64]
    leaf_labels: tuple[int, ...]


def structure(labels: tuple[int, ...]) -> object:
    """The same for two leaf labellings exactly if mirroring branches turns one into the other."""
    if len(labels) == 1:
        return labels[0]
    half = len(labels) // 2
    sides = [structure(labels[:half]), structure(labels[half:])]
    return tuple(sorted(sides, key=repr))


def draw_plans(
    problem: TrainingProblem, rng: np.random.Generator, count: int, repeat: bool = False
) -> list[Plan]:
    """Up to ``count`` plans of different structures; ``repeat`` fills up with equal ones."""
    apart = class_distances(problem)
    plans: list[Plan] = []
    spare: list[Plan] = []
    seen: set[object] = set()
    while len(plans) < count and len(spare) <= DRAWS * count:
        plan = draw_plan(problem.topology, apart, rng)
        key = structure(plan.leaf_labels)
        (spare if key in seen else plans).append(plan)
        seen.add(key)
    return plans + spare[: count - len(plans)] if repeat else plans


def draw_plan(topology: Topology, apart: FloatArray, rng: np.random.Generator) -> Plan:
    """Part the classes branch by branch, so that every class ends on a leaf.

    Not by compiled code: the few plans of a first fit would wait for it.
    """
    n_classes, n_branches = len(apart), topology.n_branches
    sides = np.empty((n_branches, n_classes), dtype=np.int64)
    labels = np.empty(topology.n_leaves, dtype=np.int64)
    in_python(draw_sides)(apart, rng.random((n_branches, lots_of_plan(n_classes))), sides, labels)
    return Plan(sides, tuple(labels.tolist()))


def class_distances(problem: TrainingProblem) -> FloatArray:
    """Squared distances between the class means, (n_classes, n_classes)."""
    means = problem.rows.few.class_means
    square = np.sum(means**2, axis=1)
    return square[:, None] + square - 2.0 * means @ means.T


def lots_of_plan(n_classes: int) -> int:
    """Lots that the plan of one branch takes."""
    return 2 * n_classes + 3


@compiled
def draw_sides(apart, lots, sides, labels):  # type: ignore[no-untyped-def]
    """A plan by ``lots`` to ``sides`` and ``labels``, every class on a leaf.

    ``apart`` are the squared distances between the class means.
    """
    n_branches, n_classes = sides.shape
    groups = np.zeros((2 * n_branches + 1, n_classes), dtype=np.int64)
    sizes = np.zeros(2 * n_branches + 1, dtype=np.int64)
    for k in range(n_classes):
        groups[0, k] = k
    sizes[0] = n_classes
    capacity = (n_branches + 1) // 2
    for t in range(n_branches):
        if t > 0 and (t & (t + 1)) == 0:  # the first branch of a level
            capacity //= 2
        left, right = 2 * t + 1, 2 * t + 2
        _part(
            groups[t], sizes[t], capacity, apart, lots[t], groups[left], groups[right],
            sizes[left : right + 1],
        )  # fmt: skip
        for k in range(n_classes):
            sides[t, k] = BOTH
        for i in range(sizes[left]):
            sides[t, groups[left, i]] = LEFT
        for i in range(sizes[right]):
            sides[t, groups[right, i]] = RIGHT
        for i in range(sizes[left]):
            for j in range(sizes[right]):
                if groups[left, i] == groups[right, j]:
                    sides[t, groups[left, i]] = BOTH
    for leaf in range(n_branches + 1):
        labels[leaf] = groups[n_branches + leaf, 0]


@compiled
def _part(classes, count, capacity, apart, lots, left, right, sizes):  # type: ignore[no-untyped-def]
    """Two groups of at most ``capacity`` classes: by the nearest of two class means, or at random.

    A single class goes both ways; so may one more where there is room. Groups to ``left`` and
    ``right``, their sizes to ``sizes``.
    """
    if count == 1:
        left[0] = right[0] = classes[0]
        sizes[0] = sizes[1] = count
        return
    n_classes = classes.size
    order, near = classes.copy(), np.empty(n_classes)
    for i in range(count):
        near[i] = lots[i]
    _sort(near, order, count)
    first, last = order[0], order[count - 1]
    before = 0
    for i in range(count):
        near[i] = apart[order[i], first] - apart[order[i], last]
        if lots[n_classes] < AT_RANDOM:
            near[i] = lots[n_classes + 1 + i] - 0.5
        if i == 0:
            near[i] = -np.inf
        elif i == count - 1:
            near[i] = np.inf
        before += near[i] < 0.0
    size = min(max(before, 1, count - capacity), capacity, count - 1)
    _sort(near, order, count)
    for i in range(count):
        if i < size:
            left[i] = order[i]
        else:
            right[i - size] = order[i]
    sizes[0], sizes[1] = size, count - size
    smaller = min(size, count - size)
    if capacity > 1 and lots[2 * n_classes + 1] < BOTH_WAYS and smaller < capacity:
        chosen = int(lots[2 * n_classes + 2] * max(size, count - size))
        if size >= count - size:
            right[count - size] = left[chosen]
            sizes[1] += 1
        else:
            left[size] = right[chosen]
            sizes[0] += 1


@compiled
def _sort(keys, order, count):  # type: ignore[no-untyped-def]
    """Bring the first so many keys into ascending order, and ``order`` with them."""
    for i in range(1, count):
        key, moved, at = keys[i], order[i], i
        while at > 0 and keys[at - 1] > key:
            keys[at], order[at] = keys[at - 1], order[at - 1]
            at -= 1
        keys[at], order[at] = key, moved


@compiled
def sides_of(labels, sides):  # type: ignore[no-untyped-def]
    """The plan that leads to these leaves, to ``sides``: a class goes wherever its leaves lie."""
    n_branches, n_classes = sides.shape
    below = np.zeros((2 * n_branches + 1, n_classes), dtype=np.bool_)
    for leaf in range(n_branches + 1):
        below[n_branches + leaf, labels[leaf]] = True
    for t in range(n_branches - 1, -1, -1):
        for k in range(n_classes):
            left, right = below[2 * t + 1, k], below[2 * t + 2, k]
            below[t, k] = left or right
            sides[t, k] = BOTH
            if left and not right:
                sides[t, k] = LEFT
            elif right and not left:
                sides[t, k] = RIGHT
