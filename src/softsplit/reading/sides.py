"""The sides of a tree in one order, whatever the training did: earlier classes on the left.

Drawings, cards and reports have them so, and nothing flips along a path of trees. At every
question the side whose rows are of earlier classes, in the mean, is on the left; without rows, the
side whose leaves say so.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.reading.model import TreeModel
from softsplit.support.arrays import FloatArray
from softsplit.tree.routing import gate_probabilities, node_reach

ALIKE = 1e-9
"""Sides that differ by less in their mean class, or have a smaller share of the rows, stay as
training had them: they are told apart by rounding only."""


def oriented(
    model: TreeModel, X: FloatArray | None = None, labels: NDArray[Any] | None = None
) -> TreeModel:
    """The same tree with the side of earlier classes on the left of every question."""
    counts = _leaf_counts(model) if X is None or labels is None else _counts(model, X, labels)
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


def _counts(model: TreeModel, X: FloatArray, labels: NDArray[Any]) -> FloatArray:
    """Expected rows of each class at each node, (n_classes, n_nodes)."""
    gates = gate_probabilities(model.scores(X), model.steepness)[0]
    reach = node_reach(gates, 1.0 - gates)
    return np.array([reach[:, labels == k].sum(axis=1) for k in range(len(model.classes))])


def _leaf_counts(model: TreeModel) -> FloatArray:
    """The same as if as many rows ended in every leaf, of the classes it says."""
    n_branches = len(model.parameters.thresholds)
    counts = np.hstack([np.zeros((len(model.classes), n_branches)), model.leaf_shares])
    for t in reversed(range(n_branches)):
        counts[:, t] = counts[:, 2 * t + 1] + counts[:, 2 * t + 2]
    return counts
