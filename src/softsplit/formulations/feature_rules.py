"""Rules about columns and their costs as users give them, checked: see problem/feature_rules.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.problem.feature_rules import FeatureRules
from softsplit.problem.size_limits import SizeLimits
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import shown
from softsplit.tree.parameters import Topology
from softsplit.variables import Coding

PARAMETERS = ("required", "forbidden_together", "at_most_one", "feature_costs")
"""Parameters of the estimators that name columns of X."""

LARGEST_COST = 1e9
"""Larger costs lose all others in rounding."""


def make_rules(
    coding: Coding | None,
    names: Sequence[str],
    *,
    required: Any = None,
    forbidden_together: Any = None,
    at_most_one: Any = None,
    feature_costs: Any = None,
) -> FeatureRules | None:
    """Return the rules of an estimator, or None if there are none.

    Parameters
    ----------
    coding : Coding or None
        None if the columns of the problem are those of the table.
    names : sequence of str
        Columns of the table.
    required, forbidden_together, at_most_one, feature_costs
        Those of the estimators.
    """
    given = (required, forbidden_together, at_most_one, feature_costs)
    if all(one is None for one in given):
        return None
    columns = Columns(names, coding)
    wanted = [] if required is None else columns.listed("required", required)
    sets = columns.sets("forbidden_together", forbidden_together, pairs=True)
    sets += columns.sets("at_most_one", at_most_one, pairs=False)
    for column in wanted:
        columns.refuse_left_out("required", column)
    for name, members in sets:
        both = [column for column in members if column in wanted]
        if len(both) > 1:
            one, other = (shown(names[column]) for column in both[:2])
            raise ValueError(
                f"required names {one} and {other}, which {name} does not allow in one tree; take "
                "one of them out of required."
            )
    costs = None if feature_costs is None else columns.costs("feature_costs", feature_costs)
    homes = np.arange(len(names))
    if coding is not None:
        homes = np.array(coding.places, dtype=np.intp)[coding.homes]
    distinct = dict.fromkeys(tuple(sorted(members)) for _, members in sets)
    return FeatureRules(homes, tuple(names), tuple(wanted), tuple(distinct), costs)


def column_costs(feature_costs: Any, names: Sequence[str]) -> FloatArray:
    """Return the cost of each of some columns, (n_columns,)."""
    return Columns(names, None).costs("feature_costs", feature_costs)


def by_position(parameters: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return the rules among the parameters of an estimator with positions in place of names."""
    columns = Columns(names, None)
    found: dict[str, Any] = {}
    for name in PARAMETERS:
        given = parameters[name]
        if isinstance(given, Mapping):
            found[name] = {columns.place(name, column): cost for column, cost in given.items()}
        elif given is not None and name == "required":
            found[name] = columns.listed(name, given)
        elif given is not None:
            found[name] = [columns.listed(name, members) for members in given]
    return found


def check_values(rules: FeatureRules | None, low: FloatArray, high: FloatArray) -> None:
    """Raise ValueError if a required variable has one value in all rows.

    ``low`` and ``high`` (n_features,) are the ends of the features of the problem.
    """
    if rules is None:
        return
    still = rules.varying(low < high).required
    lost = [v for v in rules.required if v not in still]
    if lost:
        raise ValueError(
            f"required names {shown(rules.names[lost[0]])}, which has one value in all rows: no "
            "tree can use it; take it out of required."
        )


def check_room(
    rules: FeatureRules,
    limits: SizeLimits,
    topology: Topology,
    groups: NDArray[np.intp] | None,
) -> None:
    """Raise ValueError if the required variables do not fit in the limits of the size."""
    counted = rules.of if groups is None else groups
    count = len({g for v in rules.required for g in counted[rules.of == v].tolist()})
    if groups is None:
        count = len(rules.required)
    if limits.features is not None and count > limits.features:
        raise ValueError(
            f"required names {count} columns, and max_features={limits.features} allows fewer; "
            "raise max_features, or require less."
        )
    questions = topology.n_branches if limits.questions is None else limits.questions
    if limits.terms is not None and count > limits.terms * questions:
        raise ValueError(
            f"required names {count} columns, and {questions} questions of at most max_terms="
            f"{limits.terms} columns have no room for them; raise max_terms, or require less."
        )


class Columns:
    """The columns of a table, by name or position."""

    def __init__(self, names: Sequence[str], coding: Coding | None) -> None:
        self.names = list(names)
        self.places = {name: j for j, name in enumerate(self.names)}
        self.left_out = {} if coding is None else dict(coding.left_out)

    def place(self, name: str, column: Any) -> int:
        """Return the position of a column that the parameter ``name`` names."""
        found: int | None = None
        if isinstance(column, str):
            found = self.places.get(column)
        elif isinstance(column, int | np.integer) and not isinstance(column, bool | np.bool_):
            found = int(column) if 0 <= column < len(self.names) else None
        if found is None:
            near = get_close_matches(column, self.names, 1) if isinstance(column, str) else []
            hint = f"did you mean {shown(near[0])}?" if near else "name columns of X."
            raise ValueError(f"{name} names {shown(column, 40)}, which is no column of X; {hint}")
        return found

    def listed(self, name: str, given: Any) -> list[int]:
        """Return the positions of the columns in a list."""
        if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
            raise ValueError(f"{name} must list columns of X, got {shown(given)}.")
        members = list(given)
        if not members:
            raise ValueError(f"{name} is empty; name columns of X, or leave it out.")
        found = [self.place(name, column) for column in members]
        twice = next((place for i, place in enumerate(found) if place in found[:i]), None)
        if twice is not None:
            raise ValueError(f"{name} names {shown(self.names[twice])} twice; name it once.")
        return found

    def sets(self, name: str, given: Any, *, pairs: bool) -> list[tuple[str, list[int]]]:
        """Return sets of columns, each with the name of the parameter that gave it."""
        if given is None:
            return []
        if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
            raise ValueError(f"{name} must list sets of columns, got {shown(given)}.")
        found: list[tuple[str, list[int]]] = []
        for members in given:
            if isinstance(members, str | bytes | Mapping) or not isinstance(members, Iterable):
                raise ValueError(f"{name} must hold lists of columns, got {shown(members)}.")
            columns = self.listed(name, members)
            if len(columns) < 2:
                raise ValueError(
                    f"{name} holds a set of one column, {shown(self.names[columns[0]])}; name two "
                    "columns or more, or drop a column with feature_types={...: 'drop'}."
                )
            if pairs and len(columns) > 2:
                raise ValueError(
                    f"forbidden_together holds a set of {len(columns)} columns; it takes pairs: "
                    "give sets to at_most_one."
                )
            found.append((name, columns))
        if not found:
            raise ValueError(f"{name} is empty; name columns of X, or leave it out.")
        return found

    def refuse_left_out(self, name: str, column: int) -> None:
        """Raise ValueError for a column that the coding of the table left out."""
        reason = self.left_out.get(self.names[column])
        if reason is not None:
            raise ValueError(
                f"{name} names {shown(self.names[column])}, which is not used in training "
                f"({reason}); take it out of {name}."
            )

    def costs(self, name: str, given: Any) -> FloatArray:
        """Return the cost of every column; 1 for those that are not named."""
        if not isinstance(given, Mapping):
            raise ValueError(
                f"{name} must map columns of X to costs, {{'mri': 30.0}} say, got {shown(given)}."
            )
        if not given:
            raise ValueError(f"{name} is empty; name columns of X, or leave it out.")
        found, seen = np.ones(len(self.names)), set()
        for column, cost in given.items():
            place = self.place(name, column)
            if place in seen:
                raise ValueError(f"{name} names {shown(self.names[place])} twice; name it once.")
            seen.add(place)
            number = isinstance(cost, int | float | np.integer | np.floating)
            if not number or isinstance(cost, bool) or not 0 <= cost <= LARGEST_COST:
                raise ValueError(
                    f"{name} gives {shown(self.names[place])} the cost {shown(cost)}; a cost is a "
                    f"number from 0 to {LARGEST_COST:g}."
                )
            found[place] = float(cost)
        return found
