"""TODO."""

from __future__ import annotations

import numpy as np

from softsplit.engines.base import Evaluation
from softsplit.engines.samples import Samples
from softsplit.engines.tree_pass import tree_pass
from softsplit.problem.loss import Loss
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.routing import split_scores

ROWS = 16_384
"""Rows evaluated at a time, so that a million of them need no array of scores."""


def evaluate(
    loss: Loss,
    samples: Samples,
    parameters: TreeParameters,
    steepness: float,
    extra_table: FloatArray | None = None,
) -> Evaluation:
    """Loss and gradient in two matrix products with the features and one pass, ROWS at a time.

    ``extra_table`` (n_classes, n_leaves) is added to the loss's table; its own dependence on
    the leaf classes is not part of the leaf gradient returned here.
    """
    table = loss.table(parameters.leaf_classes)
    if extra_table is not None:
        table = table + extra_table
    table = np.ascontiguousarray(table)
    value, mass = 0.0, np.zeros_like(table)
    weights, thresholds = np.zeros_like(parameters.weights), np.zeros(len(parameters.thresholds))
    for begin in range(0, samples.n_rows, ROWS):
        rows = slice(begin, begin + ROWS)
        features = samples.features[:, rows]
        scores, part = split_scores(parameters, features), np.empty_like(table)
        value += tree_pass(
            scores,
            scores,
            np.clip(samples.starts - begin, 0, features.shape[1]),
            samples.weights[rows],
            table,
            float(steepness),
            loss.logarithmic,
            part,
        )
        mass += part
        weights += np.dot(features, scores.T) / samples.n_features
        thresholds -= np.sum(scores, axis=1)
    return Evaluation(float(value), weights, thresholds, loss.leaf_gradient(mass), mass)
