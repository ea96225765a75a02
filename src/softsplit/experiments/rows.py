"""What one cell leaves behind: a row of numbers, and the tree that the next cell starts from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softsplit.experiments.cells import Cell
from softsplit.tree.parameters import TreeParameters

ERROR = "ERROR"
"""Status of a cell that raised instead of returning a tree; the message says what."""

CRASHED = "CRASHED"
"""Status of a cell that took its process down with it."""


@dataclass(frozen=True)
class Outcome:
    """The result columns of a row; what a method does not have is None.

    ``seconds`` is the solve alone, ``start_seconds`` the drawing of its start, ``predict_seconds``
    the prediction of the test rows.
    """

    status: str
    objective: float | None = None
    cost: float | None = None
    violation: float | None = None
    stationarity: float | None = None
    iterations: int | None = None
    train_accuracy: float | None = None
    test_accuracy: float | None = None
    test_log_loss: float | None = None
    local_sparsity: float | None = None
    global_sparsity: float | None = None
    features_used: int | None = None
    nonzeros: int | None = None
    message: str = ""
    seconds: float | None = None
    start_seconds: float | None = None
    predict_seconds: float | None = None
    tree: bytes | None = None


TIMES = ("seconds", "start_seconds", "predict_seconds")
"""The only columns in which two runs of the same cell differ."""


@dataclass(frozen=True)
class Row:
    """A cell and its outcome; ``index`` is the step of its chain."""

    cell: Cell
    index: int
    outcome: Outcome


def encode_tree(tree: TreeParameters) -> bytes:
    """All bits of a tree: three sizes, then weights, thresholds and leaf classes."""
    sizes = np.array([tree.n_features, len(tree.thresholds), tree.n_classes], dtype="<i4")
    values = np.concatenate(
        [tree.weights.ravel(), tree.thresholds, tree.leaf_classes.ravel()], dtype="<f8"
    )
    return sizes.tobytes() + values.tobytes()


def decode_tree(data: bytes) -> TreeParameters:
    """The tree that ``encode_tree`` wrote."""
    n_features, n_branches, n_classes = (int(n) for n in np.frombuffer(data, "<i4", 3))
    values = np.frombuffer(data, "<f8", offset=12).astype(np.float64)
    weights, thresholds, leaves = np.split(
        values, [n_features * n_branches, n_features * n_branches + n_branches]
    )
    return TreeParameters(
        weights.reshape(n_features, n_branches),
        thresholds,
        leaves.reshape(n_classes, n_branches + 1),
    )
