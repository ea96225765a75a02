"""States of pickled estimators, those of former versions among them, as they are today."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from softsplit.reading.model import TreeModel
from softsplit.solvers import Status
from softsplit.tree.parameters import TreeParameters

FORMER_NAMES = ("_summary", "_steepness", "_zero_threshold")
"""Attributes of trees before there was ``tree_``."""


def with_status(solution: Any) -> Any:
    """A solution out of a pickle, its status no longer by name."""
    try:
        return replace(solution, status=Status[solution.status])
    except (KeyError, AttributeError, TypeError):
        raise ValueError(
            "this pickle was made by another version of softsplit and cannot be read by this one; "
            "use save_model and load_model for files that last."
        ) from None


def map_solutions(state: dict[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """The state of an estimator with its solutions changed."""
    changed = dict(state)
    if "solution_" in state:
        changed["solution_"] = change(state["solution_"])
    if "starts_" in state:
        changed["starts_"] = [change(solution) for solution in state["starts_"]]
    return changed


def present_state(state: dict[str, Any], known: type) -> dict[str, Any]:
    """A state of version 0.1, in which the parts of the tree stood one by one, as one of today.

    Attributes that are properties of the class ``known`` follow from the tree.
    """
    if "tree_" in state:
        return state
    kept = {
        name: value
        for name, value in state.items()
        if name not in FORMER_NAMES and not isinstance(getattr(known, name, None), property)
    }
    if "best_estimator_" in state:
        kept["tree_"] = state["best_estimator_"].tree_
    elif "weights_" in state:
        names = state.get("feature_names_in_", [f"x{j}" for j in range(state["n_features_in_"])])
        kept["tree_"] = TreeModel(
            parameters=TreeParameters(
                state["weights_"], state["thresholds_"], state["leaf_classes_"]
            ),
            steepness=state["_steepness"],
            scaling=state["scaling_"],
            classes=state["classes_"],
            feature_names=tuple(map(str, names)),
            summary=state["_summary"],
            zero_threshold=state["_zero_threshold"],
            importances=state.get("feature_importances_"),
            objective=state.get("objective_"),
            n_iter=state.get("n_iter_"),
        )
    return kept
