"""Rules about the variables of a tree, and what it costs to measure them.

A variable is a column of the user's table: a category with all its levels, a number with all its
knots, a date with all its parts. With u_v = 1 where a variable has a weight that is not zero in
some branch, and 0 otherwise, a tree keeps the rules if

    required       u_v = 1                        for every required variable v
    at most one    sum over v in S of u_v <= 1    for every set S

Costs c_v >= 0 multiply the price of a variable in the global penalty, strength * sum_v c_v phi(u_v)
(problem/penalties.py). When trees are compared, what is above 1 of a cost counts by the share of
the rows that need the variable on their way (``TrainingProblem.unneeded``). Of a group of several
columns it is the largest cost in the group: what is selected together is measured together. A
required variable has no price: it is paid for anyway.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class FeatureRules:
    """Rules about variables, and their costs.

    Attributes
    ----------
    of : array of int, shape (n_features,)
        The variable of each feature of the problem.
    names : tuple of str
        All variables, which are the columns of the table.
    required : tuple of int
        Variables that must be in the tree.
    at_most_one : tuple of tuples of int
        Sets of variables of which one at most may be in the tree.
    costs : array of shape (n_variables,), optional
        None: every variable costs 1, and nothing is said about it.
    """

    of: NDArray[np.intp]
    names: tuple[str, ...]
    required: tuple[int, ...] = ()
    at_most_one: tuple[tuple[int, ...], ...] = ()
    costs: FloatArray | None = None

    @property
    def binding(self) -> bool:
        """Whether some trees break the rules."""
        return bool(self.required or self.at_most_one)

    def used(self, kept: Mask) -> Mask:
        """Return which variables a tree uses whose nonzero weights are ``kept``, (n_features,
        n_branches)."""
        mask = np.zeros(len(self.names), dtype=bool)
        mask[self.of[np.any(kept, axis=1)]] = True
        return mask

    def missing(self, used: Mask) -> list[int]:
        """Return the required variables that are not in use."""
        return [v for v in self.required if not used[v]]

    def conflicts(self, used: Mask) -> list[list[int]]:
        """Return the members in use of every set that has more than one."""
        sets = ([v for v in members if used[v]] for members in self.at_most_one)
        return [members for members in sets if len(members) > 1]

    def allow(self, kept: Mask) -> bool:
        """Whether a tree keeps the rules; ``kept`` as of ``used``."""
        used = self.used(kept)
        return not self.missing(used) and not self.conflicts(used)

    def excluded_by(self, variables: NDArray[np.integer]) -> Mask:
        """Return which variables share a set with one of ``variables``, (n_variables,)."""
        mask, given = np.zeros(len(self.names), dtype=bool), set(np.unique(variables).tolist())
        for members in self.at_most_one:
            if given & set(members):
                mask[list(members)] = True
        return mask

    def features(self, variables: Mask) -> Mask:
        """Return the features of some variables, from a mask of these."""
        return variables[self.of]

    def varying(self, varies: Mask) -> FeatureRules:
        """Return the rules for rows on which some features do not vary, (n_features,).

        A variable that has one value in all rows of a fold cannot be in the tree of that fold.
        """
        known = set(self.of[varies].tolist())
        kept = tuple(v for v in self.required if v in known)
        return self if kept == self.required else replace(self, required=kept)

    def prices(self, groups: NDArray[np.integer] | None) -> FloatArray | None:
        """Return the factor of each feature, or of each group, in the global penalty; None if all
        are one."""
        if self.costs is None and not self.required:
            return None
        costs = np.ones(len(self.names)) if self.costs is None else self.costs
        each = costs[self.of]
        paid = np.isin(self.of, self.required)
        if groups is not None:
            largest = np.zeros(int(groups.max()) + 1)
            np.maximum.at(largest, groups, each)
            largest[groups[paid]] = 0.0
            return largest
        return np.where(paid, 0.0, each)
