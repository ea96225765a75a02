"""The outline of a tree: the one walk from which texts, pictures, lists and score cards are made.

A branch whose leaves all list the same classes decides nothing. It is an *end* of the outline, as
a leaf is; every other branch is a *question*. Questions are numbered from 1 in the order of the
walk: the root first, then everything on its left, then everything on its right. All readers
therefore have the same nodes, order, numbers, conditions and words for the two sides.

A row goes left where the condition of a question holds, and its answer is then "yes". ``oriented``
puts the side of earlier classes on the left of every question, whatever the training did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.reading.equations import Split, leaf_label, listed_classes, read_split
from softsplit.reading.model import TreeModel
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import visible

ANSWER_PAIRS = (("yes", "no"), ("true", "false"), ("holds", "fails"))

SAME_SIDES = 1e-9
"""``oriented`` leaves sides alone whose mean classes differ by less than this, or of which one has
a smaller share of the rows: only rounding tells such sides apart."""


@dataclass(frozen=True)
class OutlineNode:
    """A question or an end of the outline.

    Attributes
    ----------
    node : int
        Its place in the complete tree: the root is 0, the children of t are 2 t + 1 and 2 t + 2.
    depth : int
        Questions above it.
    side : {0, 1, None}
        0 on the left of its parent, 1 on the right, None at the root.
    number : int
        The number of a question, from 1; 0 at an end.
    split : Split or None
        The condition of a question; None at an end.
    leaves : range
        The leaves below it, counted from the left.
    classes : tuple of (int, str)
        Of an end, the classes it lists, the predicted one first, each with its share as text.
    label : str
        The same as one text.
    children : tuple of OutlineNode
        Left and right of a question; empty at an end.
    """

    node: int
    depth: int
    side: int | None
    number: int
    split: Split | None
    leaves: range
    classes: tuple[tuple[int, str], ...]
    label: str
    children: tuple[OutlineNode, ...]

    def walk(self) -> Iterator[OutlineNode]:
        """This node and all below it, the left side first."""
        yield self
        for child in self.children:
            yield from child.walk()

    def questions(self) -> list[OutlineNode]:
        """The questions of the walk, in the order of their numbers."""
        return [found for found in self.walk() if found.split is not None]


def outline(model: TreeModel, written: Callable[[str], str] = visible) -> OutlineNode:
    """The root of the outline of a tree; ``written`` says how conditions put names."""
    listed = [listed_classes(model, leaf) for leaf in range(model.topology.n_leaves)]
    numbers = iter(range(1, model.topology.n_branches + 1))

    def read(node: int, depth: int, side: int | None) -> OutlineNode:
        leaves = model.topology.leaves_below(node)
        # Classes are compared and not their texts, which two classes may share.
        if len({listed[leaf] for leaf in leaves}) == 1:
            first = leaves[0]
            label = leaf_label(model, first)
            return OutlineNode(node, depth, side, 0, None, leaves, listed[first], label, ())
        number = next(numbers)
        children = tuple(read(2 * node + 1 + right, depth + 1, right) for right in (0, 1))
        split = read_split(model, node, written)
        return OutlineNode(node, depth, side, number, split, leaves, (), "", children)

    return read(0, 0, None)


# --- the two sides of a question, in words ------------------------------------------------------


def answer_words(labels: Iterable[Any]) -> tuple[str, str]:
    """The words for left and right: the first pair that no class is named after.

    With a class named "yes" or "no", these words would mean two things at once.
    """
    used = {str(label).strip().casefold() for label in labels}
    free = (pair for pair in ANSWER_PAIRS if not used & set(pair))
    return next(free, ANSWER_PAIRS[-1])


def side_classes(model: TreeModel, branch: int) -> tuple[int, int]:
    """Positions of the classes that the left and the right side of a split make more probable.

    Those whose mean share over the leaves of one side most exceeds that over the other side.
    """
    sides = [list(model.topology.leaves_below(2 * branch + side)) for side in (1, 2)]
    left, right = (model.leaf_shares[:, leaves].mean(axis=1) for leaves in sides)
    return int(np.argmax(left - right)), int(np.argmax(right - left))


def described_sides(model: TreeModel, branch: int) -> tuple[str, str]:
    """Both answers to a split, each with the class it speaks for: "yes, towards setosa"."""
    words, classes = answer_words(model.labels), side_classes(model, branch)
    left, right = (
        f"{word}, towards {visible(model.labels[k])}"
        for word, k in zip(words, classes, strict=True)
    )
    return left, right


def direction(model: TreeModel, column: int) -> str | None:
    """The class that higher values of a column speak for, if it is the same in all its splits.

    Parameters
    ----------
    column : int
        A column of the problem.
    """
    weights = model.parameters.weights[column]
    found = {side_classes(model, int(t))[int(weights[t] < 0)] for t in np.flatnonzero(weights)}
    return visible(model.labels[found.pop()]) if len(found) == 1 else None


# --- which side is on the left ------------------------------------------------------------------


def oriented(
    model: TreeModel, X: FloatArray | None = None, labels: NDArray[Any] | None = None
) -> TreeModel:
    """The same tree with the side of earlier classes on the left of every question.

    Drawings, cards and reports show trees so, and no side flips along a path of trees. The mean
    class of a side is that of the rows X; without rows, that of its leaves.
    """
    counts = _leaf_counts(model)
    if X is not None and labels is not None:
        counts = class_counts(model.reach(X), labels, range(len(counts)))
    rows = counts.sum(axis=0)
    position = np.arange(len(counts)) @ counts / np.maximum(rows, 1e-300)
    n_branches = len(model.parameters.thresholds)
    order, flips = list(range(2 * n_branches + 1)), np.ones(n_branches)
    for t in range(n_branches):
        old = order[t]
        left, right = 2 * old + 1, 2 * old + 2
        reached = min(rows[left], rows[right]) > SAME_SIDES * rows[0]
        if reached and position[left] > position[right] + SAME_SIDES:
            flips[t] = -1.0
            left, right = right, left
        order[2 * t + 1], order[2 * t + 2] = left, right
    branches, leaves = order[:n_branches], [node - n_branches for node in order[n_branches:]]
    had = model.parameters
    parameters = replace(
        had,
        weights=had.weights[:, branches] * flips,
        thresholds=had.thresholds[branches] * flips,
        leaf_classes=had.leaf_classes[:, leaves],
    )
    shares = model.distributions
    return replace(
        model,
        parameters=parameters,
        distributions=None if shares is None else shares[:, leaves],
    )


def class_counts(reach: FloatArray, labels: NDArray[Any], classes: Iterable[Any]) -> FloatArray:
    """Expected rows of each class at each node, (n_classes, n_nodes), from their reach."""
    return np.array([reach[:, labels == label].sum(axis=1) for label in classes])


def _leaf_counts(model: TreeModel) -> FloatArray:
    """The same as if equally many rows ended in every leaf, with its class shares."""
    n_branches = len(model.parameters.thresholds)
    counts = np.hstack([np.zeros((len(model.classes), n_branches)), model.leaf_shares])
    for t in reversed(range(n_branches)):
        counts[:, t] = counts[:, 2 * t + 1] + counts[:, 2 * t + 2]
    return counts
