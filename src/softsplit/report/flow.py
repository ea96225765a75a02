"""Where rows go in a tree: how many of each class reach a node, and their scores there.

A drawing has its sides in one order whatever the training did: at every question the side whose
rows are of earlier classes is on the left, so that nothing flips along a path of trees.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.reading.model import TreeModel
from softsplit.support.arrays import FloatArray
from softsplit.tree.routing import gate_probabilities, node_reach

ALIKE = 1e-9
"""Sides that differ by less in their mean class, or have a smaller share of the rows, stay as
training had them: they are told apart by rounding only."""

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
    """

    counts: FloatArray
    scores: FloatArray
    ended: FloatArray


def rows_flow(model: TreeModel, X: FloatArray, labels: NDArray[Any]) -> Flow:
    """Where these rows, with classes by position, go."""
    scores = model.scores(X)
    gates = gate_probabilities(scores, model.steepness)[0]
    reach = node_reach(gates, 1.0 - gates)
    n_classes = len(model.classes)
    counts = np.array([reach[:, labels == k].sum(axis=1) for k in range(n_classes)])
    odds = np.clip(model.steepness * scores, -SPAN, SPAN)
    places = np.minimum(((SPAN - odds) / (2 * SPAN) * BINS).astype(np.int64), BINS - 1)
    spread = np.zeros((len(scores), n_classes, BINS))
    for t in range(len(scores)):
        np.add.at(spread[t], (labels, places[t]), reach[t])
    ended = np.zeros((n_classes, len(scores) + 1))
    np.add.at(ended, (labels, np.argmax(reach[len(scores) :], axis=0)), 1.0)
    return Flow(counts, spread, ended)


def oriented(model: TreeModel, X: FloatArray, labels: NDArray[Any]) -> TreeModel:
    """The same tree with the side of earlier classes on the left of every question."""
    counts = rows_flow(model, X, labels).counts
    rows = counts.sum(axis=0)
    position = np.arange(len(counts)) @ counts / np.maximum(rows, 1e-300)
    n_branches = len(model.parameters.thresholds)
    order, flips = list(range(2 * n_branches + 1)), np.ones(n_branches)
    for t in range(n_branches):
        old = order[t]
        left, right = 2 * old + 1, 2 * old + 2
        reached = min(rows[left], rows[right]) > ALIKE * rows[0]
        if reached and position[left] > position[right] + ALIKE:
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
