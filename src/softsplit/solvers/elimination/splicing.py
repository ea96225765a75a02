"""The best tree within limits of its size: removal until they hold, then exchanges.

**Removal.** While a tree has too many questions, features or terms in a question, a round removes a
part of the excess, that of least deletion cost (deletion_costs.py), and refits the rest. Nothing
else is removed: within the limits a tree keeps all coefficients that it can use, and the path that
begins there (path.py) chooses among them.

**Exchanges.** What was removed early may be worth more than what is left. So each of the cheapest
features is taken out in turn, the rest is refitted, and the columns of the largest score statistics
there (screening.py) are tried in its place. The first tree of a lower value is kept, and so on,
until no exchange helps: splicing, by which Zhu, Wen, Zhu, Zhang and Wang (2020) find best subsets
of linear models. They take the score statistics with the feature still in the model, where its
substitutes have none. Terms of a question are exchanged in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.problem.feature_rules import FeatureRules
from softsplit.problem.size_limits import SizeLimits
from softsplit.solvers.base import OutOfBudget
from softsplit.solvers.elimination.deletion_costs import (
    quadratic_costs,
    removal_cost,
    routed,
    saturation_costs,
)
from softsplit.solvers.elimination.descents import RowDescents
from softsplit.solvers.elimination.path import (
    RIDGE,
    keeps_required,
    refitted,
    saturate_idle,
    without_negligible,
)
from softsplit.solvers.elimination.screening import branch_gains, feature_noise_threshold
from softsplit.solvers.elimination.support_tree import SupportTree, removed_branches

Mask = NDArray[np.bool_]

SHARE = 0.3
"""Part of what exceeds a limit that a round removes."""

TRIED_OUT, TRIED_IN = 3, 2
"""The cheapest features of a tree for which an exchange is tried, and the most promising columns
that are tried in the place of each."""

STEPS = 8
"""L-BFGS steps of a tree in which a feature was exchanged."""

LEAST_GAIN = 0.02
"""An exchange must lower the value by this part of the noise threshold of a feature: what is less
is as likely an accident of the rows."""

ROUNDS, COMPARED_ROUNDS = 12, 5
"""Most exchanges, and where trees are only compared."""


class SplicedTerm(NamedTuple):
    """Coefficients that leave a tree together: a group of columns in some branches.

    Attributes
    ----------
    cost : float
        Deletion cost.
    group : int
        Number of the group of the problem.
    branches : tuple of int
        One branch, or all that use the group.
    whole : bool
        Whether the feature leaves the tree.
    """

    cost: float
    group: int
    branches: tuple[int, ...]
    whole: bool


class Splicing:
    """Trees within ``limits`` on the rows of ``descents``."""

    def __init__(self, descents: RowDescents, limits: SizeLimits) -> None:
        self.descents, self.limits = descents, limits
        self._rules = descents.problem.binding_rules
        self._requires = self._rules is not None and bool(self._rules.required)

    def tree(self, start: SupportTree) -> SupportTree:
        """Return the best tree within the limits that ``start`` leads to.

        1. While it exceeds a limit, it is refitted, and a part of the excess is removed.
        2. Features and terms are exchanged for as long as that lowers the value. If the budget
           ends, the best tree so far is returned.
        """
        tree = replace(start, groups=self.descents.problem.feature_groups)
        tree = without_negligible(tree, self._rules)
        tree = saturate_idle(self.descents, tree).compact()
        # 1. removal
        while tree.n_coefficients and not self.limits.allow(tree.tree_size):
            tree = refitted(self.descents, tree)[0]
            smaller = self._smaller(tree)
            if smaller is tree:  # what is required does not fit like this
                tree = self._required_alone(start)
                break
            tree = saturate_idle(self.descents, smaller).compact()
        if not tree.n_coefficients:
            return tree
        # 2. exchanges
        tree, value = refitted(self.descents, tree, STEPS)
        with suppress(OutOfBudget):
            for _ in range(COMPARED_ROUNDS if self.descents.compared else ROUNDS):
                better = self._exchanged(tree, value)
                if better is None:
                    break
                tree, value = better
        return tree

    # --- removal ----------------------------------------------------------------------------------

    def _smaller(self, tree: SupportTree) -> SupportTree:
        """Return ``tree`` without a part of what exceeds a limit: questions, features or terms."""
        size, limits = tree.tree_size, self.limits
        if limits.questions is not None and size.questions > limits.questions:
            return self._fewer_questions(tree, size.questions - limits.questions)
        if limits.features is not None and size.features > limits.features:
            count = 1 if self._requires else _share_of(size.features - limits.features)
            leaving = self._cheapest(tree, [(_features(tree), count)])
            return without(tree, leaving) if leaving else tree
        assert limits.terms is not None
        if self._requires:
            return self._shorter(tree, limits.terms)
        long = [terms for terms in _terms_by_branch(tree) if len(terms) > limits.terms]
        counts = [_share_of(len(terms) - limits.terms) for terms in long]
        return without(tree, self._cheapest(tree, list(zip(long, counts, strict=True))))

    def _required_alone(self, start: SupportTree) -> SupportTree:
        """Return ``start`` with the required variables alone, as many in each question as may be,
        in the questions nearest to the root."""
        assert self._rules is not None
        of = self._rules.of if start.groups is None else start.groups.of
        most = self.limits.terms or len(self._rules.required)
        firsts = [int(np.flatnonzero(self._rules.of == v)[0]) for v in self._rules.required]
        groups = list(dict.fromkeys(of[firsts].tolist()))
        saturated, splits = start.saturated.copy(), start.splits.copy()
        asked = np.arange(min(-(-len(groups) // most), len(splits)))
        splits[asked[saturated[asked]], -1], saturated[asked] = 0.0, False
        tree = replace(
            start, saturated=saturated, splits=splits, groups=self.descents.problem.feature_groups
        )
        tree = tree.with_support(np.zeros_like(tree.support))
        for number, group in enumerate(groups):
            columns = np.flatnonzero((of == group) & np.isin(self._rules.of, self._rules.required))
            tree = tree.with_columns(columns, np.array([min(number // most, len(splits) - 1)]))
        return saturate_idle(self.descents, tree).compact()

    def _shorter(self, tree: SupportTree, longest: int) -> SupportTree:
        """Return ``tree`` without a term of a question that is too long.

        Where each of its terms is the last of a required variable, one moves to a question that has
        room, or takes the place of a term there that may go.
        """
        terms = _terms_by_branch(tree)
        for branch in (t for t, own in enumerate(terms) if len(own) > longest):
            leaving = self._cheapest(tree, [(terms[branch], 1)])
            if leaving:
                return without(tree, leaving)
            for other in np.flatnonzero(~tree.saturated).tolist():
                if len(terms[other]) > longest or other == branch:
                    continue
                replaced = self._cheapest(tree, [(terms[other], 1)])
                if len(terms[other]) < longest or replaced:
                    full = len(terms[other]) == longest
                    support = without(tree, replaced if full else []).support.copy()
                    columns = np.flatnonzero(_homes(tree) == terms[branch][0].group)
                    support[other, columns] = tree.support[branch, columns]
                    support[branch, columns] = False
                    return tree.with_support(support)
        return tree

    def _fewer_questions(self, tree: SupportTree, excess: int) -> SupportTree:
        """Return ``tree`` without the branch that costs least for each question that it saves."""
        asked: Mask = np.any(tree.support, axis=1)
        costs = saturation_costs(tree.vector, self.descents.on(tree), tree.shape)
        steps: list[tuple[float, int, bool]] = []
        for branch in np.flatnonzero(asked).tolist():
            for side, goes_left in enumerate((True, False)):
                fewer = int(asked[removed_branches(branch, goes_left, len(asked))].sum())
                if fewer < asked.sum() and keeps_required(
                    tree.saturate(branch, goes_left), self._rules
                ):
                    cost = float(costs[branch, side]) / min(fewer, excess)
                    steps.append((cost, branch, goes_left))
        return tree.saturate(*min(steps)[1:]) if steps else tree

    def _cheapest(
        self, tree: SupportTree, wanted: Sequence[tuple[Sequence[SplicedTerm], int]]
    ) -> list[SplicedTerm]:
        """Return, of each list of terms, so many of least cost that required variables can spare.

        Costs are exact for the cheapest by an estimate; the others are left out.
        """
        rows = self.descents.on(tree)
        known = routed(tree.vector, rows, tree.shape)
        estimates = tree.support * quadratic_costs(tree.splits, rows, *known[1:4])
        cheapest: list[SplicedTerm] = []
        for terms, count in wanted:
            terms = [t for t in terms if keeps_required(without(tree, [t]), self._rules)]
            places = [_place(tree, term) for term in terms]
            order = np.argsort([estimates[place].sum() for place in places], kind="stable")
            exact: list[SplicedTerm] = []
            for at in order[: 2 * count + 4].tolist():
                out = np.zeros_like(tree.support)
                out[places[at]] = tree.support[places[at]]
                cost = removal_cost(tree.splits, rows, known, out, RIDGE * self.descents.unit)
                exact.append(terms[at]._replace(cost=cost))
            cheapest += sorted(exact)[:count]
        return cheapest

    # --- exchanges --------------------------------------------------------------------------------

    def _exchanged(self, tree: SupportTree, value: float) -> tuple[SupportTree, float] | None:
        """Return the first tree of lower value with one feature or term exchanged; None if none."""
        least = LEAST_GAIN * feature_noise_threshold(self.descents.frame)
        for out in self._leaving(tree):
            rest = without(tree, [out])
            if np.all(rest.saturated | rest.support.any(axis=1)):
                # Leaves under a branch without coefficients would become equal.
                rest, _ = refitted(self.descents, rest, STEPS)
            for trial in self._entered(rest, out):
                exchanged, lower = refitted(self.descents, trial, STEPS)
                if lower < value - least:
                    return saturate_idle(self.descents, exchanged).compact(), lower
        return None

    def _leaving(self, tree: SupportTree) -> list[SplicedTerm]:
        """Return the cheapest features of a tree that may have no more, and the cheapest terms of
        its full questions."""
        size, limits = tree.tree_size, self.limits
        leaving: list[SplicedTerm] = []
        if limits.features is not None and size.features >= limits.features:
            leaving += self._cheapest(tree, [(_features(tree), TRIED_OUT)])
        if limits.terms is not None and size.terms >= limits.terms:
            full = [terms for terms in _terms_by_branch(tree) if len(terms) >= limits.terms]
            leaving += self._cheapest(tree, [([t for own in full for t in own], TRIED_OUT)])
        return sorted(leaving)

    def _entered(self, tree: SupportTree, out: SplicedTerm) -> Iterator[SupportTree]:
        """Yield ``tree``, which ``out`` has left, with each of the best other features there.

        1. Branches that a feature may enter: all where a whole feature has left, else those of the
           term; not those with as many terms as may be.
        2. Features that may enter: none that is there, beyond the limit, or excluded.
        3. The features of the largest score statistics in these branches.
        """
        rows, groups = self.descents.frame, self.descents.problem.feature_groups
        homes = np.arange(len(rows.features)) if groups is None else groups.of
        n_feature_groups, n_branches = int(homes.max()) + 1, len(tree.splits)
        kept = np.zeros((n_feature_groups, n_branches), dtype=bool)
        np.logical_or.at(kept, homes[tree.columns], tree.support.T)
        # 1. branches
        entered = ~tree.saturated if out.whole else np.isin(np.arange(n_branches), out.branches)
        if self.limits.terms is not None:
            entered = entered & (kept.sum(axis=0) < self.limits.terms)
        # 2. features
        used: Mask = np.any(kept, axis=1)
        allowed: Mask = ~used if out.whole else ~np.any(kept[:, list(out.branches)], axis=1)
        if self.limits.features is not None and used.sum() >= self.limits.features:
            allowed &= used
        allowed[out.group] = False
        if self._rules is not None:
            in_use = np.flatnonzero(self._rules.used(tree.on_features(len(homes))))
            barred = self._rules.excluded_by(in_use)
            barred[in_use] = False
            allowed[homes[self._rules.features(barred)]] = False
        # 3. score statistics
        worth = np.zeros((n_feature_groups, n_branches))
        np.maximum.at(worth, homes, branch_gains(tree, self.descents))
        total = np.where(allowed, worth[:, entered].sum(axis=1), 0.0)
        for group in np.argsort(-total, kind="stable")[:TRIED_IN]:
            if total[group] > 0:
                yield tree.with_columns(np.flatnonzero(homes == group), np.flatnonzero(entered))


def _share_of(excess: int) -> int:
    """How many of ``excess`` features or terms a round removes."""
    return max(1, int(SHARE * excess))


def cut(tree: SupportTree, limits: SizeLimits, rules: FeatureRules | None = None) -> SupportTree:
    """Return ``tree`` with its largest weights within the limits, where there is no time to fit;
    those of required variables count as larger than any other."""
    sizes = np.abs(tree.splits[:, :-1]) * tree.support
    if rules is not None:
        sizes[tree.support & np.isin(rules.of[tree.columns], rules.required)] += 1e6
    if limits.questions is not None:
        sizes[np.flatnonzero(sizes.any(axis=1))[limits.questions :]] = 0.0
    by_group = np.zeros((len(sizes), int(tree.group_of.max(initial=-1)) + 1))
    np.maximum.at(by_group.T, tree.group_of, sizes.T)
    if limits.features is not None:
        by_group[:, np.argsort(-by_group.max(axis=0), kind="stable")[limits.features :]] = 0.0
    if limits.terms is not None:
        order = np.argsort(-by_group, axis=1, kind="stable")
        np.put_along_axis(by_group, order[:, limits.terms :], 0.0, axis=1)
    return tree.with_support(tree.support & (by_group[:, tree.group_of] > 0))


# --- terms of a tree ------------------------------------------------------------------------------


def _homes(tree: SupportTree) -> NDArray[np.integer]:
    """Group of the problem of every column."""
    return tree.columns if tree.groups is None else tree.groups.of[tree.columns]


def _features(tree: SupportTree) -> list[SplicedTerm]:
    """All features of a tree."""
    homes = _homes(tree)
    terms: list[SplicedTerm] = []
    for group in np.unique(homes[tree.support.any(axis=0)]).tolist():
        branches = np.flatnonzero(tree.support[:, homes == group].any(axis=1))
        terms.append(SplicedTerm(0.0, group, tuple(branches.tolist()), True))
    return terms


def _terms_by_branch(tree: SupportTree) -> list[list[SplicedTerm]]:
    """All terms of each branch."""
    homes = _homes(tree)
    return [
        [SplicedTerm(0.0, group, (branch,), False) for group in np.unique(homes[kept]).tolist()]
        for branch, kept in enumerate(tree.support)
    ]


def _place(tree: SupportTree, term: SplicedTerm) -> tuple[NDArray[np.intp], ...]:
    """Index of the coefficients of a term among those of the tree."""
    return np.ix_(np.array(term.branches), np.flatnonzero(_homes(tree) == term.group))


def without(tree: SupportTree, terms: Sequence[SplicedTerm]) -> SupportTree:
    """Return ``tree`` without some of its terms."""
    support = tree.support.copy()
    for term in terms:
        support[_place(tree, term)] = False
    return tree.with_support(support)
