"""What a reader needs beside the splits of a tree, a sentence each."""

from __future__ import annotations

import numpy as np

from softsplit.fitted.model import TreeModel
from softsplit.fitted.monotone import monotone_lines
from softsplit.reading.outline import outline
from softsplit.reading.point_columns import level_text
from softsplit.support.messages import visible
from softsplit.support.numbers import number
from softsplit.variables.variable import CATEGORY, NO_LEVEL, ORDERED, UNKNOWN


def tree_notes(model: TreeModel) -> list[str]:
    """When classes are predicted, if not as the most probable one, and monotone effects."""
    return [*decision_notes(model), *map(visible, monotone_lines(model))]


def value_notes(model: TreeModel) -> list[str]:
    """What values of the columns count as in equations; points are printed for all values."""
    if model.coding is not None and model.coding.pointed:
        return []
    return [
        *_missing_notes(model), *_hour_notes(model), *_order_notes(model), *_other_notes(model),
    ]  # fmt: skip


def decision_notes(model: TreeModel) -> list[str]:
    """When a class is predicted, if it is not the most probable one."""
    if model.call_costs is None or model.distributions is not None:
        return []
    labels = model.labels
    if len(labels) > 2:
        even = np.allclose(model.call_costs, (1 - np.eye(len(labels))) * model.call_costs.max())
        if even:
            return []
        factors = model.call_costs.max(axis=1)
        if np.allclose(model.call_costs, factors[:, None] * (1 - np.eye(len(labels)))):
            counts = ", ".join(
                f"on {visible(labels[k])} {factors[k] / factors.min():.3g} times"
                for k in np.flatnonzero(factors > factors.min())
            )
            return [f"an error counts {counts}"]
        return ["the predicted class has the least expected cost (cost_matrix)"]
    k = int(model.decision_threshold(1) < model.decision_threshold(0))
    least = model.decision_threshold(k)
    if abs(least - 0.5) < 1e-9:
        return []
    if model.coding is not None and model.coding.pointed:  # the printed points decide
        return [f"an error on {visible(labels[k])} counts {(1 - least) / least:.3g} times"]
    return [f"{visible(labels[k])} is predicted from a probability of {100 * least:.3g} % on"]


def turning_columns(model: TreeModel) -> str:
    """Name the numbers of a tree in points that speak for a class, then against it, or back."""
    if model.coding is None or not model.coding.pointed:
        return ""
    turns = []
    for node in outline(model).questions():
        points = None if node.split is None else node.split.points
        for column in [] if points is None else points.columns:
            rise, fall = column.lookup.changes
            if column.ranged and rise and fall:
                steps = [n for n in np.diff(column.lookup.points or ()) if n]
                first = (column.lookup.slopes or steps)[0] > 0
                turns.append(
                    f"{column.name} {'rises, then falls' if first else 'falls, then rises'}"
                )
    return "; ".join(dict.fromkeys(turns))


def imputation_notes(model: TreeModel) -> list[str]:
    """What values count as for which a tree in points has no points of their own."""
    assert model.coding is not None
    notes = []
    for i in map(int, model.selected_variables):
        v = model.coding.variables[i]
        words, levels = [] if v.has_missing or not model.coding.named else [UNKNOWN], ""
        if v.kind in (CATEGORY, ORDERED) and not v.places_others and not v.part:
            words.append("new")
            levels = f"; levels of training: {', '.join(map(level_text, v.levels))}"
        if words:
            value = v.display(v.middle)
            shown = value if isinstance(value, str) else number(value, None)
            shown = level_text(shown) if v.levels else shown
            notes.append(f"{visible(v.name)}: {' or '.join(words)} counts as {shown}{levels}")
    return notes


def _missing_notes(model: TreeModel) -> list[str]:
    """What a missing value, or a new level, counts as, for the variables that are in use.

    The terms "... is unknown" of the splits come on top of it. Columns without names are a matrix,
    whose reader knows the values. Of two levels one has no term of its own, so that any other level
    must count as one of them.
    """
    if model.coding is None:
        return []
    notes = []
    for i in map(int, model.selected_variables):
        v = model.coding.variables[i]
        if not (v.has_missing or model.coding.named):
            continue
        # 1. What a missing value counts as.
        counts = NO_LEVEL if v.own_missing_level else visible(v.display_imputed)
        unknown, new = "unknown", ""
        # 2. Whether a new level counts as the same, or as another.
        if v.shares:
            unknown = "unknown, rare or new"
        elif v.kind in (CATEGORY, ORDERED) and len(v.levels) == 2 and not v.other:
            unknown = f"unknown or a level other than {' and '.join(map(visible, v.levels))}"
        elif v.kind == CATEGORY and not v.part and not _asks_for_other(model, i):
            if v.other:
                new = f"; a rare or new level counts as {v.other_name}: {NO_LEVEL} asked for"
            elif v.own_missing_level:
                unknown = "unknown or new"
            else:
                new = f"; a new level counts as {NO_LEVEL}"
        notes.append(f"{visible(v.name)}: {unknown} counts as {counts}{new}")
    return notes


def _asks_for_other(model: TreeModel, i: int) -> bool:
    """Whether a question asks if variable i is one of its unlisted levels, which share a column."""
    assert model.coding is not None
    variable, columns = model.coding.variables[i], model.coding.columns_of(i)
    if variable.lookups:
        return variable.places_others
    if not variable.other or variable.shares:
        return False
    return bool(np.any(model.parameters.weights[columns[len(variable.shown_levels)]]))


def _hour_notes(model: TreeModel) -> list[str]:
    """That an hour is a whole number, where one is asked for."""
    if model.coding is None:
        return []
    used = [model.coding.variables[i] for i in model.selected_variables]
    return [f"{visible(v.name)} is the whole hour, 0 to 23" for v in used if v.part == "hour"]


def _order_notes(model: TreeModel) -> list[str]:
    """Which number stands for which level of a variable with an order."""
    if model.coding is None:
        return []
    used = [model.coding.variables[i] for i in model.selected_variables]
    notes = []
    for variable in used:
        if variable.kind == ORDERED and len(variable.levels) > 2:
            steps = ", ".join(f"{i} {visible(level)}" for i, level in enumerate(variable.levels))
            notes.append(
                f"{visible(variable.name)} counts as {steps}; any other level counts as "
                f"{visible(variable.display_imputed)}"
            )
    return notes


def _other_notes(model: TreeModel) -> list[str]:
    """Which levels count as "other", where a question asks for it."""
    if model.coding is None:
        return []
    notes = []
    for i in map(int, model.selected_variables):
        variable = model.coding.variables[i]
        if _asks_for_other(model, i):
            levels = ", ".join(visible(level) for level in variable.levels)
            notes.append(f"{visible(variable.name)} is {variable.other_name}: none of {levels}")
    return notes
