"""The section "tree" of a model file: branches, leaves, the walk and monotone effects."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.fitted.model import TreeModel
from softsplit.fitted.summary import FeatureSummary
from softsplit.fitted.walk import Walk
from softsplit.persistence.limits import LIMITS
from softsplit.persistence.reader import ModelFileError, entries, items, real, reals, whole
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import MAX_DEPTH, TreeParameters
from softsplit.tree.scaling import Scaling
from softsplit.variables import MonotoneEffects


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
        "leaves": model.parameters.leaf_values.T.tolist(),
    }
    if model.distributions is not None:
        written["distributions"] = model.distributions.T.tolist()
    if model.call_costs is not None:
        written["call_costs"] = model.call_costs.tolist()
    if model.walk is not None:
        written["walk"] = _written_walk(model.walk)
    if model.monotone is not None:
        signs = [
            {"column": place, "sign": sign, "features": list(columns)}
            for (place, sign), columns in zip(
                model.monotone.signs, model.monotone.columns, strict=True
            )
        ]
        written["monotone"] = {"effects": signs, "levels": list(model.monotone.levels)}
        if model.monotone.turned:
            written["monotone"]["turned"] = list(model.monotone.turned)
    return written


def _written_walk(walk: Walk) -> dict[str, Any]:
    used = [np.flatnonzero(row) for row in walk.coefficients]
    return {
        "questions": [
            {
                "features": used[t].tolist(),
                "coefficients": walk.coefficients[t, used[t]].tolist(),
                "sign": ">" if walk.upwards[t] else "<",
                "threshold": float(walk.thresholds[t]),
                "ranks": bool(walk.ranked[t]),
            }
            for t in range(len(used))
        ],
        "rows": [[None if np.isnan(c) else c for c in row] for row in walk.counts.T.tolist()],
        "classes": walk.classes.tolist(),
    }


def _read_walk(value: Any, n_branches: int, n_features: int, n_classes: int) -> Walk:
    where = "tree.walk"
    found = entries(value, where, ("questions", "rows", "classes"))
    coefficients, thresholds = np.zeros((n_branches, n_features)), np.zeros(n_branches)
    upwards, ranked = np.zeros((2, n_branches), dtype=bool)
    listed = items(found["questions"], f"{where}.questions", n_branches)
    keys = ("features", "coefficients", "sign", "threshold", "ranks")
    for t, one in enumerate(listed):
        place = f"{where}.questions[{t}]"
        question = entries(one, place, keys)
        used = [
            whole(j, f"{place}.features", 0, n_features - 1)
            for j in items(question["features"], f"{place}.features")
        ]
        sizes = items(question["coefficients"], f"{place}.coefficients", len(used))
        coefficients[t, used] = [real(c, f"{place}.coefficients") for c in sizes]
        thresholds[t] = real(question["threshold"], f"{place}.threshold")
        if question["sign"] not in (">", "<"):
            raise ModelFileError(f"{place}.sign of the model file must be '>' or '<'.")
        if not isinstance(question["ranks"], bool):
            raise ModelFileError(f"{place}.ranks of the model file must be true or false.")
        upwards[t], ranked[t] = question["sign"] == ">", question["ranks"]
    rows = items(found["rows"], f"{where}.rows", n_branches + 1)
    counts = np.array(
        [
            [
                np.nan if c is None else real(c, f"{where}.rows", 0.0)
                for c in items(row, f"{where}.rows", n_classes)
            ]
            for row in rows
        ]
    ).T
    classes = [
        whole(k, f"{where}.classes", 0, n_classes - 1)
        for k in items(found["classes"], f"{where}.classes", n_branches + 1)
    ]
    return Walk(coefficients, thresholds, upwards, ranked, counts, np.array(classes, dtype=np.intp))


def read_tree(
    value: Any,
    scaling: Scaling,
    classes: NDArray[Any],
    names: tuple[str, ...],
    summary: FeatureSummary,
) -> TreeModel:
    """The tree; a ``ModelFileError`` if it does not fit the other sections or itself."""
    keys = ("depth", "steepness", "zero_threshold", "branches", "leaves")
    found = entries(value, "tree", keys, ("distributions", "call_costs", "walk", "monotone"))
    depth = whole(found["depth"], "tree.depth", 1, MAX_DEPTH)
    n_branches, n_features = 2**depth - 1, len(names)
    if n_branches * max(n_features, len(classes)) > LIMITS.coefficients:
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
    walk = None
    if "walk" in found:
        walk = _read_walk(found["walk"], n_branches, n_features, len(classes))
    return TreeModel(
        parameters=TreeParameters(weights, thresholds, leaves),
        steepness=real(found["steepness"], "tree.steepness", 1e-300, LIMITS.number),
        scaling=scaling,
        classes=classes,
        feature_names=names,
        summary=summary,
        zero_threshold=real(found["zero_threshold"], "tree.zero_threshold", 0.0, 1.0),
        distributions=shares,
        call_costs=costs,
        walk=walk,
        monotone=_read_monotone(found["monotone"], n_features, len(classes))
        if "monotone" in found
        else None,
    )


def _read_monotone(value: Any, n_features: int, n_classes: int) -> MonotoneEffects:
    where = "tree.monotone"
    found = entries(value, where, ("effects", "levels"), ("turned",))
    signs, columns = [], []
    for one in items(found["effects"], f"{where}.effects"):
        effect = entries(one, f"{where}.effects", ("column", "sign", "features"))
        sign = whole(effect["sign"], f"{where}.effects.sign", -1, 1)
        signs.append((whole(effect["column"], f"{where}.effects.column", 0, 2**31), sign or 1))
        listed = items(effect["features"], f"{where}.effects.features")
        last = n_features - 1
        columns.append(tuple(whole(j, f"{where}.effects.features", 0, last) for j in listed))
    levels = [
        whole(level, f"{where}.levels", 0, n_classes - 1)
        for level in items(found["levels"], f"{where}.levels", n_classes)
    ]
    turned = [
        whole(place, f"{where}.turned", 0, 2**31)
        for place in items(found.get("turned", []), f"{where}.turned")
    ]
    return MonotoneEffects(tuple(signs), tuple(levels), tuple(columns), tuple(turned))


def _read_branch(value: Any, where: str, n_features: int) -> tuple[float, list[int], FloatArray]:
    branch = entries(value, where, ("threshold", "features", "weights"))
    used = [
        whole(j, f"{where}.features", 0, n_features - 1)
        for j in items(branch["features"], f"{where}.features")
    ]
    if len(set(used)) < len(used):
        raise ModelFileError(f"{where}.features of the model file names a feature twice.")
    # Interior points may lie outside the box by their tolerance.
    sizes = reals(branch["weights"], f"{where}.weights", len(used), -LIMITS.weight, LIMITS.weight)
    return (
        real(branch["threshold"], f"{where}.threshold", -LIMITS.weight, LIMITS.weight),
        used,
        sizes,
    )


def _read_leaves(value: Any, where: str, n_leaves: int, n_classes: int) -> FloatArray:
    """Class shares, (n_classes, n_leaves), from a list for each leaf."""
    read = []
    for i, leaf in enumerate(items(value, where, n_leaves)):
        place = f"{where}[{i}]"
        shares = reals(leaf, place, n_classes, -LIMITS.share_error, 1 + LIMITS.share_error)
        if abs(shares.sum() - 1) > LIMITS.share_error:
            raise ModelFileError(
                f"the class shares of {place} of the model file do not add up to one."
            )
        read.append(shares)
    return np.array(read).T


def _read_costs(value: Any, where: str, n_classes: int) -> FloatArray:
    lines = items(value, where, n_classes)
    return np.array(
        [
            reals(line, f"{where}[{y}]", n_classes, 0.0, LIMITS.number)
            for y, line in enumerate(lines)
        ]
    )
