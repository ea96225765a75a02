"""The outline of a tree: the one walk from which texts, pictures and lists are made.

A branch whose leaves all list the same classes decides nothing. It is an *end* of the outline, as
a leaf is; every other branch is a *question*. Questions are numbered from 1 in the order of the
walk: the root first, then everything on its left, then everything on its right. All readers
therefore have the same nodes, order, numbers, conditions and words for the two sides.

A row goes left where the condition of a question holds, and its answer is then "yes". The side of
earlier classes is the left one (pruning.oriented). Of a tree that predicts by its walk, a branch
that looks at no feature is no question either: what is below it is the end at which rows arrive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.fitted.model import TreeModel
from softsplit.reading.equations import Split, leaf_label, listed_classes, read_split
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import visible
from softsplit.variables.curves import slopes

ANSWER_PAIRS = (("yes", "no"), ("true", "false"), ("holds", "fails"))


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
    leaf : int
        Of an end, the leaf whose classes it lists; -1 at a question.
    classes : tuple of (int, str)
        Of an end, the classes it lists, the predicted one first, each with its share as text.
    label : str
        The same as one text, with the rows that arrive.
    children : tuple of OutlineNode
        Left and right of a question; empty at an end.
    """

    node: int
    depth: int
    side: int | None
    number: int
    split: Split | None
    leaves: range
    leaf: int
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
        return [node for node in self.walk() if node.split is not None]

    def ends(self) -> list[OutlineNode]:
        """The ends of the walk from the left; texts number them from 1."""
        return [node for node in self.walk() if node.split is None]

    def end_number(self, leaf: int) -> int:
        """The number of the end that ``leaf`` belongs to."""
        return next(n for n, end in enumerate(self.ends(), 1) if leaf in end.leaves)


def outline(model: TreeModel, written: Callable[[str], str] = visible) -> OutlineNode:
    """The root of the outline of a tree; ``written`` says how conditions put names."""
    listed = [listed_classes(model, leaf) for leaf in range(model.topology.n_leaves)]
    numbers = iter(range(1, model.topology.n_branches + 1))

    pointed = model.coding is not None and model.coding.pointed
    skips = pointed or model.numbers is not None

    def read(node: int, depth: int, side: int | None) -> OutlineNode:
        leaves, at = model.topology.leaves_below(node), _end(model, node, listed)
        if at is not None:
            label = leaf_label(model, at)
            return OutlineNode(node, depth, side, 0, None, leaves, at, listed[at], label, ())
        node = _asking(model, node) if skips else node
        number = next(numbers)
        children = tuple(read(2 * node + 1 + right, depth + 1, right) for right in (0, 1))
        split = read_split(model, node, written)
        return OutlineNode(node, depth, side, number, split, leaves, -1, (), "", children)

    return read(0, 0, None)


def _asking(model: TreeModel, node: int) -> int:
    """The first node from there on that is a leaf or asks something: of a walk, or of a tree whose
    gates without features are shut."""
    walk, tree, n_branches = model.walk, model.parameters, model.topology.n_branches
    asked, bounds = tree.weights.T, tree.thresholds
    if walk is not None:
        asked, bounds = walk.coefficients, walk.thresholds
    while node < n_branches and not np.any(asked[node]):
        node = 2 * node + (1 if bounds[node] < 0 else 2)
    return node


def _end(model: TreeModel, node: int, listed: Sequence[Any]) -> int | None:
    """The leaf that speaks for all below a node that decides nothing; None if it decides."""
    if model.walk is None and model.numbers is None:
        # Classes are compared and not their texts, which two classes may share.
        leaves = model.topology.leaves_below(node)
        return leaves[0] if len({listed[leaf] for leaf in leaves}) == 1 else None
    asking = _asking(model, node) - model.topology.n_branches
    return asking if asking >= 0 else None


# --- the two sides of a question, in words ------------------------------------------------------


def answer_words(labels: Iterable[Any]) -> tuple[str, str]:
    """The words for left and right: the first pair that no class is named after.

    With a class named "yes" or "no", these words would mean two things at once.
    """
    used = {str(label).strip().casefold() for label in labels}
    free = (pair for pair in ANSWER_PAIRS if not used & set(pair))
    return next(free, ANSWER_PAIRS[-1])


def side_words(model: TreeModel, node: OutlineNode) -> tuple[str, str]:
    """The words for left and right of one question; its statement may be the opposite of it."""
    words = answer_words(model.labels)
    points = None if node.split is None else node.split.points
    return words if points is None else points.sides(words)


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
        A column of the problem. That of a number that bends stands for its curve.
    """
    rises = model.parameters.weights[[column]]
    coding = model.coding
    if coding is not None and column in coding.firsts:
        variable = coding.variables[coding.homes[column]]
        if variable.lookups:
            changes = np.array([lookup.changes for lookup in variable.lookups])
            weights = model.parameters.weights[coding.columns_of(int(coding.homes[column]))]
            rises = (changes[:, :, None] * weights[:, None]).reshape(-1, weights.shape[1])
        if variable.knots:
            own = slice(column, column + 1 + variable.n_hinges)
            rises = slopes(model.splits[0].T[own])
    classes = {
        side_classes(model, int(t))[int(rises[piece, t] < 0)]
        for piece, t in zip(*np.nonzero(rises), strict=True)
    }
    return visible(model.labels[classes.pop()]) if len(classes) == 1 else None


def class_counts(reach: FloatArray, labels: NDArray[Any], classes: Iterable[Any]) -> FloatArray:
    """Rows of each class at each node, (n_classes, n_nodes), from their reach."""
    return np.array([reach[:, labels == label].sum(axis=1) for label in classes])
