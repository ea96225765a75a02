"""Where rows go in a tree: how many of each class reach a node, and their scores there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.reading.model import TreeModel
from softsplit.reading.outline import class_counts
from softsplit.support.arrays import FloatArray

BINS = 24
SPAN = 6.0
"""Log-odds on each side of the threshold that a distribution shows; further ones are at its end."""


@dataclass(frozen=True)
class Flow:
    """Rows at the nodes of a tree.

    Attributes
    ----------
    counts : array of shape (n_classes, n_nodes)
        Expected rows of each class at each node.
    scores : array of shape (n_branches, n_classes, BINS)
        The same by the log-odds of yes at each question: from surely yes to surely no.
    ended : array of shape (n_classes, n_leaves)
        Whole rows by their most probable leaf: what a person meets who follows the answers. Shares
        of classes in it are those of real rows, while the shares that a leaf has as a parameter
        are mixed with those of others for every row.
    called : array of shape (n_classes, n_leaves)
        The same rows by what the tree calls them: where calls have costs that need not be the class
        of their most probable leaf.
    """

    counts: FloatArray
    scores: FloatArray
    ended: FloatArray
    called: FloatArray


def rows_flow(model: TreeModel, X: FloatArray, labels: NDArray[Any]) -> Flow:
    """Where these rows, with classes by position, go."""
    scores = model.scores(X)
    reach, n_classes = model.reach(X), len(model.classes)
    counts = class_counts(reach, labels, range(n_classes))
    odds = np.clip(model.steepness * scores, -SPAN, SPAN)
    places = np.minimum(((SPAN - odds) / (2 * SPAN) * BINS).astype(np.int64), BINS - 1)
    spread = np.zeros((len(scores), n_classes, BINS))
    for t in range(len(scores)):
        np.add.at(spread[t], (labels, places[t]), reach[t])
    ended, called = np.zeros((2, n_classes, len(scores) + 1))
    leaves = np.argmax(reach[len(scores) :], axis=0)
    np.add.at(ended, (labels, leaves), 1.0)
    np.add.at(called, (model.predict_index(X), leaves), 1.0)
    return Flow(counts, spread, ended, called)
