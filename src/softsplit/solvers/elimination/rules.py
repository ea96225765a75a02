"""Trees that keep rules about variables (problem/feature_rules.py), to begin elimination from.

**Required variables** are put into the tree where they are missing, in the branch where their score
statistic is largest. Elimination then skips every step after which one of them would be lost, also
through branches that lose their last coefficient and are replaced by a child.

**Of a set at most one.** While two variables of a set are in the tree, the one of the least
deletion cost is removed from all branches, and the rest is refitted. What was removed first may be
worth more than what stayed, so each of the most costly members of the sets is also kept in turn,
and the variables that it excludes removed. Each of these trees has a path of its own, and the best
tree of all paths is taken.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from softsplit.problem.feature_rules import FeatureRules
from softsplit.solvers.elimination.deletion_costs import removal_cost, routed
from softsplit.solvers.elimination.descents import RowDescents
from softsplit.solvers.elimination.path import RIDGE, refitted, saturate_idle
from softsplit.solvers.elimination.screening import branch_gains
from softsplit.solvers.elimination.support_tree import SupportTree

Mask = NDArray[np.bool_]

KEEPERS = 3
"""Members of sets of which one may stay that are kept in turn, beside the choice by deletion costs;
each costs an elimination of its own."""


def ruled_trees(descents: RowDescents, start: SupportTree) -> list[SupportTree]:
    """Return trees near ``start`` that keep the rules; the first one by deletion costs alone."""
    rules = descents.problem.binding_rules
    if rules is None:
        return [start]
    tree = with_required(descents, replace(start, groups=descents.problem.feature_groups), rules)
    if not rules.conflicts(rules.used(tree.on_features(len(rules.of)))):
        return [tree]
    tree = _refitted(descents, tree)
    costs = _variable_costs(descents, tree, rules)
    trees = [_resolved(descents, tree, rules)]
    stayed = rules.used(trees[0].on_features(len(rules.of)))
    for keeper in sorted(costs, key=lambda v: (-costs[v], v)):
        if len(trees) > KEEPERS:
            break
        if not stayed[keeper] and keeper not in rules.required:
            others = rules.excluded_by(np.array([keeper]))
            others[keeper] = False
            if not others[list(rules.required)].any():
                trees.append(_resolved(descents, _without(tree, rules, others), rules))
    return trees


def with_required(
    descents: RowDescents, tree: SupportTree, rules: FeatureRules | None
) -> SupportTree:
    """Return ``tree`` with the required variables that it lacks, at weight zero."""
    missing = [] if rules is None else rules.missing(rules.used(tree.on_features(len(rules.of))))
    if rules is None or not missing:
        return tree
    gains = branch_gains(tree, descents)
    gains[:, tree.saturated] = -1.0
    for variable in missing:
        columns = np.flatnonzero(rules.of == variable)
        best = gains[columns].max(axis=0)
        if np.any(tree.support):
            tree = tree.with_columns(columns, np.array([int(np.argmax(best))]))
            continue
        # A tree without features: its root asks, and leaves that are alike part with a weight.
        saturated = tree.saturated.copy()
        saturated[0] = False
        tree = replace(tree, saturated=saturated).with_columns(columns, np.array([0]))
        tree.splits[0, :-1], tree.splits[0, -1] = tree.support[0], 0.0
    return tree


def cut_to_rules(tree: SupportTree, rules: FeatureRules | None) -> SupportTree:
    """Return ``tree`` with one variable of each set, that of the largest weight, where there is no
    time to fit."""
    if rules is None:
        return tree
    while conflicts := rules.conflicts(rules.used(tree.on_features(len(rules.of)))):
        homes, sizes = rules.of[tree.columns], np.abs(tree.splits[:, :-1]).max(axis=0, initial=0.0)
        worth = {v: float(sizes[homes == v].max(initial=0.0)) for v in conflicts[0]}
        for v in rules.required:
            worth[v] = np.inf
        out = np.zeros(len(rules.names), dtype=bool)
        out[min(conflicts[0], key=lambda v: (worth[v], v))] = True
        tree = _without(tree, rules, out)
    return tree


def _without(tree: SupportTree, rules: FeatureRules, variables: Mask) -> SupportTree:
    return tree.with_support(tree.support & ~rules.features(variables)[tree.columns])


def _refitted(descents: RowDescents, tree: SupportTree) -> SupportTree:
    return refitted(descents, saturate_idle(descents, tree))[0]


def _variable_costs(
    descents: RowDescents, tree: SupportTree, rules: FeatureRules
) -> dict[int, float]:
    """Deletion costs of the variables of ``tree`` that are in conflict; required ones never go."""
    rows = descents.on(tree)
    known = routed(tree.vector, rows, tree.shape)
    homes, ridge = rules.of[tree.columns], RIDGE * descents.unit
    conflicts = rules.conflicts(rules.used(tree.on_features(len(rules.of))))
    members = {v for conflict in conflicts for v in conflict}
    costs = {}
    for v in sorted(members):
        out = tree.support & (homes == v)
        costs[v] = removal_cost(tree.splits, rows, known, out, ridge)
    return {v: np.inf if v in rules.required else cost for v, cost in costs.items()}


def _resolved(descents: RowDescents, tree: SupportTree, rules: FeatureRules) -> SupportTree:
    """Return ``tree`` without conflicts: the variable of the least deletion cost goes first."""
    while costs := _variable_costs(descents, tree, rules):
        out = np.zeros(len(rules.names), dtype=bool)
        out[min(costs, key=lambda v: (costs[v], v))] = True
        tree = _refitted(descents, _without(tree, rules, out))
    return tree
