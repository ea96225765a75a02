"""The two answers to the question of a split, in words that no class of the tree has.

A row goes left where the inequality of a split holds. Its answer is then "yes", and "no" elsewhere;
where a class is called yes or no that would say two things at once, and other words are taken.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from softsplit.reading.model import TreeModel
from softsplit.support.messages import visible

PAIRS = (("yes", "no"), ("true", "false"), ("holds", "fails"))


def answers(labels: Iterable[Any]) -> tuple[str, str]:
    """The words for left and right: the first pair that the classes do not use."""
    used = {str(label).strip().casefold() for label in labels}
    free = (pair for pair in PAIRS if not used & set(pair))
    return next(free, PAIRS[-1])


def leanings(model: TreeModel, branch: int) -> tuple[int, int]:
    """Positions of the classes that rows on the left, and on the right, of a split rather are.

    Those whose mean share over the leaves of one side is largest against that of the other.
    """
    sides = [list(model.topology.leaves_below(2 * branch + side)) for side in (1, 2)]
    left, right = (model.leaf_shares[:, leaves].mean(axis=1) for leaves in sides)
    return int(np.argmax(left - right)), int(np.argmax(right - left))


def told_sides(model: TreeModel, branch: int) -> tuple[str, str]:
    """Both answers to a split, each with the class it speaks for: "yes, towards setosa"."""
    words, classes = answers(model.labels), leanings(model, branch)
    left, right = (
        f"{word}, towards {visible(model.labels[k])}"
        for word, k in zip(words, classes, strict=True)
    )
    return left, right


def direction(model: TreeModel, column: int) -> str | None:
    """The class that higher values of a column speak for, if that is the same wherever it is used.

    Parameters
    ----------
    column : int
        A column of the problem.
    """
    weights = model.parameters.weights[column]
    found = {leanings(model, int(t))[int(weights[t] < 0)] for t in np.flatnonzero(weights)}
    return visible(model.labels[found.pop()]) if len(found) == 1 else None
