"""Rules about columns and their costs as users give them, checked: see problem/feature_rules.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.problem.feature_rules import FeatureRules
from softsplit.problem.size_limits import SizeLimits
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import ParameterError, shown
from softsplit.tree.parameters import Topology
from softsplit.variables import Coding
from softsplit.variables.columns import Columns

# Parameters of the estimators that name columns of X.
PARAMETERS = ("required", "forbidden_together", "at_most_one", "feature_costs")


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
    columns = Columns(names, None if coding is None else dict(coding.left_out))
    wanted = [] if required is None else columns.listed("required", required)
    sets = columns.sets("forbidden_together", forbidden_together, pairs=True)
    sets += columns.sets("at_most_one", at_most_one, pairs=False)
    for column in wanted:
        columns.refuse_left_out("required", column)
    for name, members in sets:
        both = [column for column in members if column in wanted]
        if len(both) > 1:
            one, other = (shown(names[column]) for column in both[:2])
            raise ParameterError(
                "required",
                required,
                f"names {one} and {other}, which {name} does not allow in one tree; take "
                "one of them out of required.",
                (name,),
            )
    costs = None if feature_costs is None else columns.costs("feature_costs", feature_costs)
    homes = np.arange(len(names))
    if coding is not None:
        homes = np.array(coding.places, dtype=np.intp)[coding.homes]
    distinct = dict.fromkeys(tuple(sorted(members)) for _, members in sets)
    return FeatureRules(homes, tuple(names), tuple(wanted), tuple(distinct), costs)


def by_position(parameters: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return the rules among the parameters of an estimator with positions in place of names."""
    columns = Columns(names)
    rules: dict[str, Any] = {}
    for name in PARAMETERS:
        given = parameters[name]
        if isinstance(given, Mapping):
            rules[name] = {columns.place(name, column): cost for column, cost in given.items()}
        elif given is not None and name == "required":
            rules[name] = columns.listed(name, given)
        elif given is not None:
            rules[name] = [columns.listed(name, members) for members in given]
    return rules


def check_values(rules: FeatureRules | None, low: FloatArray, high: FloatArray) -> None:
    """Raise ValueError if a required variable has one value in all rows.

    ``low`` and ``high`` (n_features,) are the ends of the features of the problem.
    """
    if rules is None:
        return
    still = rules.varying(low < high).required
    lost = [v for v in rules.required if v not in still]
    if lost:
        raise ParameterError(
            "required",
            rules.names[lost[0]],
            f"names {shown(rules.names[lost[0]])}, which has one value in all rows: "
            "no tree can use it; take it out of required.",
        )


def check_room(
    rules: FeatureRules,
    limits: SizeLimits,
    topology: Topology,
    groups: NDArray[np.intp] | None,
) -> None:
    """Raise ValueError if the rules cannot hold beside the limits of the size and the groups."""
    for members in rules.at_most_one if groups is not None else ():
        assert groups is not None
        homes = {v: set(groups[rules.of == v].tolist()) for v in members}
        both = next((pair for pair in combinations(members, 2)
                     if homes[pair[0]] & homes[pair[1]]), None)  # fmt: skip
        if both is not None:
            one, other = (shown(rules.names[v]) for v in both)
            raise ParameterError(
                "groups",
                both,
                f"selects {one} and {other} together, and forbidden_together or "
                "at_most_one does not allow both; take them out of one of the two.",
                ("forbidden_together", "at_most_one"),
            )
    counted = rules.of if groups is None else groups
    count = len({g for v in rules.required for g in counted[rules.of == v].tolist()})
    if groups is None:
        count = len(rules.required)
    if limits.features is not None and count > limits.features:
        raise ParameterError(
            "required",
            count,
            f"names {count} columns, and max_features={limits.features} allows fewer; "
            "raise max_features, or require less.",
            ("max_features",),
        )
    questions = min(topology.n_branches, limits.questions or topology.n_branches)
    if limits.terms is not None and count > limits.terms * questions:
        raise ParameterError(
            "required",
            count,
            f"names {count} columns, and {questions} questions of at most "
            f"max_terms={limits.terms} columns have no room for them; raise "
            "max_terms, or require less.",
            ("max_terms",),
        )
