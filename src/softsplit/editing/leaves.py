"""Classes and probabilities of a leaf given by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from softsplit.editing.edit import changed_model, gains_of
from softsplit.editing.printed import (
    find_leaf,
)
from softsplit.fitted.leaf_shares import consistent_with
from softsplit.fitted.model import TreeModel
from softsplit.fitted.walk_rounding import rounded_shares
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import shown

SHARE_ERROR = 1e-6
"""Probabilities of a leaf that are given by hand may miss one by this much; they are divided."""


def set_leaf(model: TreeModel, leaf: Any, value: Any) -> TreeModel:
    """The tree with another class, or other class probabilities, in a leaf.

    Given a class, classes that are more probable there are lowered to it. Given probabilities (by
    class, or in the order of the classes), the leaf predicts what is best by them.
    """
    end = find_leaf(model, leaf)
    shares = model.leaf_shares[:, end.leaf].copy()
    if _is_class(model, value):
        k = model.labels.index(value)
        shares = _with_class(model, shares, k)
    else:
        shares = _probabilities(model, value)
        k = int(np.argmax(gains_of(model).T @ shares))
    places = list(end.leaves)
    leaf_values = model.parameters.leaf_values.copy()
    distributions, walk = model.distributions, model.walk
    if distributions is not None:
        distributions = distributions.copy()
        distributions[:, places] = shares[:, None]
        leaf_values[:, places] = np.eye(len(shares))[:, [k]]
    else:
        leaf_values[:, places] = shares[:, None]
    if walk is not None:
        classes = walk.classes.copy()
        classes[places] = k
        walk = replace(walk, classes=classes)
    return changed_model(
        model,
        parameters=replace(model.parameters, leaf_values=leaf_values),
        distributions=distributions,
        walk=walk,
        edits=model.edits.holding(leaves=places),
    )


def _is_class(model: TreeModel, value: Any) -> bool:
    plain = isinstance(value, str | int | float | bool | np.generic)
    if plain and value not in model.labels:
        raise ValueError(f"there is no class {shown(value)}; the classes are {model.labels}.")
    return plain


def _with_class(model: TreeModel, shares: FloatArray, k: int) -> FloatArray:
    """Probabilities of a leaf by which class k is best."""
    gains, factors = gains_of(model), model.class_factors
    if int(np.argmax(gains.T @ shares)) == k:
        return shares
    lowered = consistent_with(shares[None, :], np.array([k]), factors)[0]
    if model.walk is not None:
        return rounded_shares(lowered[:, None])[:, 0]
    if int(np.argmax(gains.T @ lowered)) != k:
        raise ValueError(
            f"under its costs a leaf with these probabilities does not predict {model.labels[k]!r};"
            " give the probabilities instead of the class."
        )
    return lowered


def _probabilities(model: TreeModel, value: Any) -> FloatArray:
    labels = model.labels
    if isinstance(value, Mapping):
        for name in value:
            if name not in labels:
                raise ValueError(f"there is no class {shown(name)}; the classes are {labels}.")
        value = [value.get(label, 0.0) for label in labels]
    try:
        given = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(
            f"a leaf takes a class or one probability for each class, got {shown(value)}."
        ) from None
    if given.shape != (len(labels),):
        raise ValueError(f"a leaf needs one probability for each of the {len(labels)} classes.")
    if not np.all(given >= 0) or not abs(given.sum() - 1) <= SHARE_ERROR:
        raise ValueError(f"probabilities must be >= 0 and add up to 1, got {given.tolist()}.")
    return given / given.sum() if given.sum() != 1.0 else given
