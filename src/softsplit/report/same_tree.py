"""Lines of Python that give a tree again: the tree itself, and its training."""

from __future__ import annotations

import json
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from softsplit.estimators.classifier import SoftTreeClassifier
from softsplit.estimators.regressor import SoftTreeRegressor
from softsplit.formulations import formulation_of
from softsplit.persistence import ModelFileError, dumps_model
from softsplit.selection.strengths import price
from softsplit.tree.scaling import QuantileScaling

LONGEST_TREE = 200_000
"""Characters of a tree that the report offers to be copied; ranks of many features take more."""


def tree_line(tree: SoftTreeClassifier | SoftTreeRegressor) -> str | None:
    """Return the line of Python that holds a tree; None if it would be very long.

    There is none either for a tree that no file can hold.
    """
    tree = copy(tree)
    tree.tree_ = replace(tree.tree_, profile=None)  # the line is to predict
    if isinstance(tree.scaling_, QuantileScaling):
        thin = tree.scaling_.thinned(np.any(tree.weights_, axis=1))
        tree.tree_ = replace(tree.tree_, scaling=thin)
    try:
        text = json.dumps(json.loads(dumps_model(tree)), separators=(",", ":"))
    except ModelFileError:
        return None
    return f"tree = softsplit.loads_model({text!r})" if len(text) <= LONGEST_TREE else None


def training_line(tree: SoftTreeClassifier | SoftTreeRegressor) -> str:
    """Return the line of Python that trains a tree with the settings of this one."""
    defaults = type(tree)().get_params()
    given = {
        name: value
        for name, value in tree.get_params().items()
        if name not in ("n_jobs", "verbose", "time_limit", "max_iter")
        and not _same(value, defaults[name])
    }
    numbers = tree.tree_.numbers
    if numbers is None and (tree.depth != "auto" or not formulation_of(tree.loss).prunes):
        given["depth"] = tree.tree_.topology.depth if tree.depth == "auto" else tree.depth
    given["random_state"] = tree.random_state
    arguments = ", ".join(f"{name}={_plain(value)!r}" for name, value in sorted(given.items()))
    rates = numbers is not None and numbers.totals is not None and numbers.baseline is None
    rows = "X, y, exposure=exposure" if rates else "X, y"
    return f"{type(tree).__name__}({arguments}).fit({rows})"


def strength_of(tree: SoftTreeClassifier) -> float | None:
    """Return the strength of a tree, the number of --strength; None where it is "auto"."""
    if "auto" in (tree.local_strength, tree.global_strength):
        return None
    return price(float(tree.local_strength), float(tree.global_strength))


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _same(value: Any, default: Any) -> bool:
    try:
        return bool(value == default)
    except ValueError:  # an array
        return False
