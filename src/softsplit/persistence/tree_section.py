"""The section of a model file that holds the tree: its branches and what its leaves say."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.persistence.reader import ModelFileError, entries, items, real, reals, whole
from softsplit.reading.model import TreeModel
from softsplit.reading.summary import FeatureSummary
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import MAX_DEPTH, TreeParameters
from softsplit.tree.scaling import Scaling

MAX_COEFFICIENTS = 50_000_000
"""Features times branches: a small file must not ask for much memory."""

SUM_OF_SHARES = 1e-3
"""How far the class shares of a leaf may be from adding up to one."""

STEEPEST = 1e12
"""Largest size of a weight or threshold: trees by likelihood have no box."""

LARGEST = 8e307
"""Numbers of a file may be as large as those of any fitted tree; differences stay finite."""


def written_tree(model: TreeModel) -> dict[str, Any]:
    """The tree as plain dictionaries and lists."""
    weights = model.parameters.weights
    used = [np.flatnonzero(weights[:, t]) for t in range(weights.shape[1])]
    written = {
        "depth": model.topology.depth,
        "steepness": float(model.steepness),
        "zero_threshold": float(model.zero_threshold),
        "branches": [
            {
                "threshold": float(model.parameters.thresholds[t]),
                "features": used[t].tolist(),
                "weights": weights[used[t], t].tolist(),
            }
            for t in range(len(used))
        ],
        "leaves": model.parameters.leaf_classes.T.tolist(),
    }
    if model.distributions is not None:
        written["distributions"] = model.distributions.T.tolist()
    if model.call_costs is not None:
        written["call_costs"] = model.call_costs.tolist()
    return written


def read_tree(
    value: Any,
    scaling: Scaling,
    classes: NDArray[Any],
    names: tuple[str, ...],
    summary: FeatureSummary,
) -> TreeModel:
    """The tree; a ``ModelFileError`` if it does not fit the other sections or itself."""
    keys = ("depth", "steepness", "zero_threshold", "branches", "leaves")
    found = entries(value, "tree", keys, ("distributions", "call_costs"))
    depth = whole(found["depth"], "tree.depth", 1, MAX_DEPTH)
    n_branches, n_features = 2**depth - 1, len(names)
    if n_branches * max(n_features, len(classes)) > MAX_COEFFICIENTS:
        raise ModelFileError(
            f"the tree of the model file has {n_branches} branches and {n_features} features, "
            "more than softsplit loads."
        )
    listed = items(found["branches"], "tree.branches", n_branches)
    weights, thresholds = np.zeros((n_features, n_branches)), np.zeros(n_branches)
    for t, branch in enumerate(listed):
        thresholds[t], used, sizes = _read_branch(branch, f"tree.branches[{t}]", n_features)
        weights[used, t] = sizes
    leaves = _read_leaves(found["leaves"], "tree.leaves", n_branches + 1, len(classes))
    shares = costs = None
    if "distributions" in found:
        listed = found["distributions"]
        shares = _read_leaves(listed, "tree.distributions", n_branches + 1, len(classes))
    if "call_costs" in found:
        costs = _read_costs(found["call_costs"], "tree.call_costs", len(classes))
    return TreeModel(
        parameters=TreeParameters(weights, thresholds, leaves),
        steepness=real(found["steepness"], "tree.steepness", 1e-300, LARGEST),
        scaling=scaling,
        classes=classes,
        feature_names=names,
        summary=summary,
        zero_threshold=real(found["zero_threshold"], "tree.zero_threshold", 0.0, 1.0),
        distributions=shares,
        call_costs=costs,
    )


def _read_branch(value: Any, where: str, n_features: int) -> tuple[float, list[int], FloatArray]:
    branch = entries(value, where, ("threshold", "features", "weights"))
    used = [
        whole(j, f"{where}.features", 0, n_features - 1)
        for j in items(branch["features"], f"{where}.features")
    ]
    if len(set(used)) < len(used):
        raise ModelFileError(f"{where}.features of the model file names a feature twice.")
    # Interior points may lie outside the box by their tolerance.
    sizes = reals(branch["weights"], f"{where}.weights", len(used), -STEEPEST, STEEPEST)
    return real(branch["threshold"], f"{where}.threshold", -STEEPEST, STEEPEST), used, sizes


def _read_leaves(value: Any, where: str, n_leaves: int, n_classes: int) -> FloatArray:
    """Class shares, (n_classes, n_leaves), from a list for each leaf."""
    read = []
    for i, leaf in enumerate(items(value, where, n_leaves)):
        place = f"{where}[{i}]"
        shares = reals(leaf, place, n_classes, -SUM_OF_SHARES, 1 + SUM_OF_SHARES)
        if abs(shares.sum() - 1) > SUM_OF_SHARES:
            raise ModelFileError(
                f"the class shares of {place} of the model file do not add up to one."
            )
        read.append(shares)
    return np.array(read).T


def _read_costs(value: Any, where: str, n_classes: int) -> FloatArray:
    lines = items(value, where, n_classes)
    return np.array(
        [reals(line, f"{where}[{y}]", n_classes, 0.0, LARGEST) for y, line in enumerate(lines)]
    )
