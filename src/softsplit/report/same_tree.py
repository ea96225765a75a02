"""Lines that give a tree again: the tree itself in Python, its training there, and the command."""

from __future__ import annotations

import json
import shlex
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from softsplit.estimators.classifier import SoftTreeClassifier
from softsplit.estimators.regressor import SoftTreeRegressor
from softsplit.formulations import formulation_of
from softsplit.persistence import ModelFileError, dumps_model
from softsplit.selection.strengths import SHARES, price, priced
from softsplit.settings.parameter import options
from softsplit.settings.table import ColumnParameters, ProblemParameters
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
    numbers = isinstance(tree, SoftTreeRegressor)
    if not numbers and (tree.depth != "auto" or not formulation_of(tree.loss).prunes):
        given["depth"] = tree.tree_.topology.depth if tree.depth == "auto" else tree.depth
    given["random_state"] = tree.random_state
    arguments = ", ".join(f"{name}={_plain(value)!r}" for name, value in sorted(given.items()))
    return f"{type(tree).__name__}({arguments}).fit(X, y)"


def strength_of(tree: SoftTreeClassifier) -> float | None:
    """Return the strength of a tree, the number of --strength; None where it is "auto"."""
    if "auto" in (tree.local_strength, tree.global_strength):
        return None
    return price(float(tree.local_strength), float(tree.global_strength))


def fit_options(tree: SoftTreeClassifier, of_table: str | None = None) -> str | None:
    """Return the options of ``softsplit fit`` for the settings of a tree; None if it has none.

    What is the same for all trees of a table comes first, as typed: ``of_table``, the options
    about columns, requirements, class weights and the effort.
    """
    formulation, strength = formulation_of(tree.loss), strength_of(tree)
    strengths = tree.local_strength, tree.global_strength
    scopes = [
        scope
        for scope, shares in SHARES.items()
        if strength is not None and np.allclose(priced(shares, strength), strengths)
    ]
    costs = _class_costs(tree)
    if not scopes or costs is None or not isinstance(tree.loss, str):
        return None
    softness = {"ridge": tree.ridge} if formulation.tunes_ridge else {}
    given: dict[str, Any] = {
        "loss": None if tree.loss == "log" else tree.loss,
        "depth": tree.tree_.topology.depth if tree.depth == "auto" else tree.depth,
        "scale": formulation.defaults["scale"] if tree.scale == "auto" else tree.scale,
        **(softness or {"steepness": tree.tree_.steepness}),
        "scope": None if formulation.choice.axes["scopes"][0] in scopes else scopes[0],
    }
    for parameter, option in options(ColumnParameters, ProblemParameters):
        value = getattr(tree, parameter.name)
        if option.kind in (int, object) and value != parameter.default:
            given[option.name.replace("_", "-")] = int(value)
    given["strength"] = strength
    written = [of_table] if of_table else []
    written += [f"--{name} {_short(value)}" for name, value in given.items() if value is not None]
    written += [f"--cost {shlex.quote(f'{k}={_short(c)}')}" for k, c in costs.items() if c != 1.0]
    return " ".join([*written, f"--seed {tree.random_state}"])


def _class_costs(tree: SoftTreeClassifier) -> dict[Any, float] | None:
    """What an error on a row of each class costs; None where that depends on the error."""
    if tree.cost_matrix is None:
        return {}
    costs = np.asarray(tree.cost_matrix, dtype=float)
    own = np.array([np.delete(line, k)[0] for k, line in enumerate(costs)])
    if not np.array_equal(costs, own[:, None] * (1 - np.eye(len(own)))):
        return None
    return dict(zip(tree.classes_.tolist(), own.tolist(), strict=True))


def _short(value: Any) -> str:
    """Return a word, or a number with as few digits as give the same float back."""
    if not isinstance(value, float):
        return str(value)
    return next(
        text for digits in range(4, 18) if float(text := f"{value:.{digits}g}") == float(value)
    )


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _same(value: Any, default: Any) -> bool:
    try:
        return bool(value == default)
    except ValueError:  # an array
        return False
