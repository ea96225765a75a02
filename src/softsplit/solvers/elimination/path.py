"""Backward elimination: a path of trees of decreasing size from one fitted tree.

The size of a tree is the number of its coefficients plus FEATURE_SIZE times that of its features. A
round removes what has the least deletion cost for the size it saves (deletion_costs.py), until a
part of the size is gone, and refits the rest. A pruning step removes a single coefficient, a whole
feature, a group of features, or a branch, which one of its children replaces; a branch that has
lost its last coefficient is replaced too.

At strengths ``local`` of a coefficient and ``global_`` of a feature the best tree of the path is
the one with the least

    value + local x coefficients + global_ x features

which is the objective under the "count" penalty. So one path serves all strengths: as they grow the
best size falls, and the constant tree, the last of the path, wins in the end. Features of a group
(the columns of one variable of a table) count as one, and may be removed together. Where features
have prices, each counts by its price in the objective and in the size that a step saves. The last
weight of a required variable is never removed (rules.py): the path then ends with these variables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import or_
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.problem.feature_rules import FeatureRules
from softsplit.solvers.base import OutOfBudget
from softsplit.solvers.elimination.deletion_costs import (
    FEATURE,
    Routed,
    deletion_costs,
    removal_cost,
    routed,
    saturation_costs,
)
from softsplit.solvers.elimination.descents import RowDescents
from softsplit.solvers.elimination.objective import Shrinkage, StandardisedRows
from softsplit.solvers.elimination.support_tree import (
    FEATURE_SIZE,
    SupportTree,
    removal_matrix,
    subtree,
)
from softsplit.support.arrays import FloatArray
from softsplit.tree.ways import hard_leaves, needed_in_leaves

RIDGE = 0.3
"""Ridge of the refits, in row weights."""

REFIT_STEPS, REFIT_DECREASE = 6, 1e-5
"""L-BFGS steps after each round of pruning."""

NEGLIGIBLE = 0.02
"""Smaller weights are removed before the first round."""


@dataclass(frozen=True)
class EliminationPoint:
    """A tree of the path, the value of its log-loss with prior and ridge, and the price of its
    features."""

    tree: SupportTree
    value: float
    price: float

    @cached_property
    def squares(self) -> float:
        """Sum of the squared weights."""
        return float(np.sum(self.tree.splits[:, :-1] ** 2))

    def objective(self, local: float, global_: float) -> float:
        """The objective at two strengths of the count."""
        return self.value + local * self.tree.n_coefficients + global_ * self.price


Criterion = Callable[[EliminationPoint], float]
"""What a choice among the points of a path minimises."""


class PruningStep(NamedTuple):
    """A possible removal, and its deletion cost for each unit of size that it saves.

    Some ``columns`` (one, or several of a group) are removed from one branch, or with the branch
    FEATURE from all of them. Without columns the branch is saturated, with which ``fewer``
    coefficients and the size ``saved`` are removed.
    """

    cost_per_size: float
    branch: int
    columns: int | list[int] | None = None
    goes_left: bool = False
    fewer: int = 0
    saved: float = 0.0


class EliminationPath:
    """The path from a tree down to the constant tree, computed as far as it is asked for.

    Parameters
    ----------
    shares : array (n_groups,)
        Class shares, which the leaves of the constant tree have.

    Attributes
    ----------
    points : list of EliminationPoint
        The points so far; the constant tree comes last, once the path is at its end. Where
        variables are required there is no constant tree.
    """

    def __init__(self, descents: RowDescents, tree: SupportTree, shares: FloatArray) -> None:
        self.points: list[EliminationPoint] = []
        value = constant_value(descents.frame, shares, len(tree.splits))
        self._constant: EliminationPoint | None = EliminationPoint(
            tree.constant(shares), value, 0.0
        )
        rules = descents.problem.rules
        if rules is not None and rules.required:
            self._constant = None
        self._rest = _eliminate(descents, tree)
        self._ended = False

    def all(self) -> list[EliminationPoint]:
        """Return the whole path; it is shorter, without the constant tree, if the budget ends."""
        while not self._ended:
            self._next()
        return self._known()

    def up_to(self, criterion: Criterion, bound: Criterion) -> list[EliminationPoint]:
        """Return the points that may minimise ``criterion``, in its order.

        No point after ``point`` has a criterion below ``bound(point)``: where a known point is
        below that, the path ends.
        """
        last = [] if self._constant is None else [self._constant]
        least = min(map(criterion, [*self.points, *last]), default=np.inf)
        while not self._ended and not (self.points and bound(self.points[-1]) > least):
            n_before = len(self.points)
            self._next()
            least = min([least, *map(criterion, self.points[n_before:])])
        points = self._known()
        return sorted(points if self._ended else [*points, *last], key=criterion)

    def _next(self) -> None:
        """Add one point; a path that the budget has ended is not taken up again."""
        self._ended = True
        with suppress(OutOfBudget):
            point = next(self._rest, None)
            self._ended = point is None
            point = self._constant if point is None else point
            if point is not None:
                self.points.append(point)

    def _known(self) -> list[EliminationPoint]:
        if not self.points:
            raise OutOfBudget
        return self.points


def _eliminate(descents: RowDescents, tree: SupportTree) -> Iterator[EliminationPoint]:
    """Yield the points of the path, but for the constant tree.

    1. Branches without coefficients are replaced by a child.
    2. The rest is refitted: a point of the path.
    3. The cheapest pruning steps are taken.
    """
    rules, ridge = descents.problem.binding_rules, RIDGE * descents.unit
    tree = replace(tree, groups=descents.problem.feature_groups)
    tree = without_negligible(tree, rules)
    while tree.n_coefficients:
        # 1. idle branches
        tree = saturate_idle(descents, tree).compact()
        if not tree.n_coefficients:
            return
        # 2. refit
        rows = descents.on(tree)
        tree, value = refitted(descents, tree, rows=rows)
        yield EliminationPoint(tree, value, FeaturePrices.price(tree, rows))
        if tree.size <= 1.0 + FEATURE_SIZE:  # one coefficient
            return
        # 3. prune
        smaller = pruned(tree, rows, ridge, rules, descents.budget.check)
        if smaller is tree:
            return
        tree = smaller


def refitted(
    descents: RowDescents,
    tree: SupportTree,
    steps: int = REFIT_STEPS,
    rows: StandardisedRows | None = None,
) -> tuple[SupportTree, float]:
    """Return ``tree`` after a short descent on its support, and its value."""
    shrinkage = Shrinkage(RIDGE * descents.unit)
    return descents.descend(tree, shrinkage, steps, REFIT_DECREASE, rows=rows)[:2]


def constant_value(rows: StandardisedRows, shares: FloatArray, n_branches: int) -> float:
    """Log-loss and prior of the tree that gives all rows the class ``shares``."""
    totals = np.add.reduceat(rows.weights, rows.starts[:-1])
    return -float((totals + (n_branches + 1) * rows.pseudo) @ np.log(shares))


def without_negligible(tree: SupportTree, rules: FeatureRules | None) -> SupportTree:
    """Return ``tree`` without weights up to NEGLIGIBLE; at least one stays, and so do all of
    required variables."""
    sizes = np.abs(tree.splits[:, :-1]) * tree.support
    kept = sizes > min(NEGLIGIBLE, 0.999 * float(sizes.max(initial=0.0)))
    if rules is not None:
        kept |= tree.support & np.isin(rules.of[tree.columns], rules.required)
    return tree.with_support(kept)


def saturate_idle(descents: RowDescents, tree: SupportTree) -> SupportTree:
    """Replace every branch without coefficients by the child that fits the rows better."""
    while np.any(idle := ~tree.saturated & ~tree.support.any(axis=1)):
        branch = int(np.argmax(idle))
        under = subtree(branch, len(tree.splits))[1:]
        goes_left = tree.splits[branch, -1] > 0
        if tree.support[under].any():
            costs = saturation_costs(tree.vector, descents.on(tree), tree.shape)[branch]
            goes_left = bool(costs[0] <= costs[1])
        smaller = tree.saturate(branch, bool(goes_left))
        if not keeps_required(smaller, descents.problem.binding_rules):
            smaller = tree.saturate(branch, not goes_left)
        tree = smaller
    return tree


def keeps_required(tree: SupportTree, rules: FeatureRules | None) -> bool:
    """Whether all required variables can stay when branches without coefficients are replaced.

    Such a branch is replaced by one of its children, and the other is removed with all below it: a
    variable must be on a side that stays.
    """
    if rules is None or not rules.required:
        return True
    homes = rules.of[tree.columns]
    held = [
        reduce(or_, (1 << k for k, v in enumerate(rules.required) if np.any(kept[homes == v])), 0)
        for kept in tree.support
    ]
    idle = ~tree.saturated & ~tree.support.any(axis=1)

    def below(node: int) -> set[int]:
        """The sets of required variables, as bits, that may stay under a node."""
        if node >= len(held):
            return {0}
        left, right = below(2 * node + 1), below(2 * node + 2)
        if idle[node]:
            return left | right
        return {held[node] | a | b for a in left for b in right}

    return (1 << len(rules.required)) - 1 in below(0)


def pruned(
    tree: SupportTree,
    rows: StandardisedRows,
    ridge: float,
    rules: FeatureRules | None = None,
    check: Callable[[], None] = lambda: None,
) -> SupportTree:
    """Return ``tree`` after the cheapest pruning steps, which remove a part of its size.

    A branch is removed first or not at all: costs are those of single steps, and after others it
    may be a different branch altogether. Steps by which a variable would be lost that ``rules``
    require are left out. How much is removed in a round does not depend on prices.
    """
    wanted, gone = max(1.0, _share_to_remove(tree.size) * tree.size), 0.0
    support, in_group = tree.support.copy(), _by_group(tree, tree.support.sum(axis=0))
    for step in pruning_steps(tree, rows, ridge, int(3.0 * wanted) + 12, check):
        left = int(in_group.sum())
        # 1. A branch goes: first, or not at all.
        if step.columns is None:
            smaller, saved = tree.saturate(step.branch, step.goes_left), step.saved
            if gone or step.fewer == left or not keeps_required(smaller, rules):
                continue
            tree = smaller
            support, in_group = tree.support.copy(), _by_group(tree, tree.support.sum(axis=0))
        else:
            # 2. Or columns: as many as the round takes, none that a rule requires.
            place: Any = (slice(None) if step.branch == FEATURE else step.branch, step.columns)
            group = np.atleast_1d(tree.group_of[step.columns])[0]
            fewer = int(np.count_nonzero(support[place]))
            saved = fewer + FEATURE_SIZE * (fewer == in_group[group])
            if gone and gone + saved > 2 * wanted:
                if tree.groups is None or fewer == 0:
                    continue
                break  # groups are large: the next round's first step costs less than what is left
            if fewer in (0, left):
                continue
            before = support[place].copy()
            support[place] = False
            if rules is not None and not keeps_required(tree.with_support(support), rules):
                support[place] = before
                continue
            in_group[group] -= fewer
        gone += saved
        if gone >= wanted:
            break
    return tree.with_support(support) if gone else tree


def _share_to_remove(size: float) -> float:
    """Part of the size that a round removes: more of large trees, and half of huge ones, most of
    whose weights are near zero."""
    if size > 1000:
        return 0.5
    return 0.25 if size > 90 else 0.13


def pruning_steps(
    tree: SupportTree,
    rows: StandardisedRows,
    ridge: float,
    n_exact: int,
    check: Callable[[], None] = lambda: None,
) -> Sequence[PruningStep]:
    """Return all possible pruning steps, the cheapest first.

    Coefficients and features beyond the ``n_exact`` cheapest by a quadratic estimate are left out.
    ``check`` is called now and then, and may raise: with many rows a step takes a while.
    """
    vector, shape = tree.vector, tree.shape
    joint = np.flatnonzero(_by_group(tree, np.any(tree.support, axis=0)) > 1)
    # The estimate takes each feature for its own group: more exact costs where groups are.
    more = int(tree.support[:, np.isin(tree.group_of, joint)].sum()) if len(joint) else 0
    known = routed(vector, rows, shape)
    prices = FeaturePrices.of(tree, known[0], rows.weights)
    branches, columns, costs, saved = deletion_costs(
        vector, rows, shape, np.ascontiguousarray(tree.support), ridge, n_exact + 2 * more, known,
        prices.sizes[tree.group_of], prices.coefficients, check,
    )  # fmt: skip
    if len(joint):
        saved = _saved_in_groups(tree, branches, columns, prices)
    exact = np.isfinite(costs)
    per_size = (costs[exact] / saved[exact]).tolist()
    steps = list(map(PruningStep, per_size, branches[exact].tolist(), columns[exact].tolist()))
    for group in joint:  # all columns of a group at once
        check()
        out = tree.support & (tree.group_of == group)
        cost = removal_cost(tree.splits, rows, known, out, ridge)
        size = int(out.sum()) + float(prices.sizes[group])
        whole = np.flatnonzero(tree.group_of == group).tolist()
        steps.append(PruningStep(cost / size, FEATURE, whole))
    steps += prices.term_steps(rows, known, ridge)
    if np.count_nonzero(~tree.saturated) > 1:
        steps += _branch_steps(tree, saturation_costs(vector, rows, shape, known), prices)
    return sorted(steps, key=lambda step: step.cost_per_size)


def _branch_steps(tree: SupportTree, costs: FloatArray, prices: FeaturePrices) -> list[PruningStep]:
    """The steps that saturate a branch to the left or to the right, with the size they save."""
    support = tree.support.astype(float)
    # coefficients that a step removes, and those of the tree, by feature or group
    removed, totals = removal_matrix(len(support)) @ support, support.sum(axis=0)
    if tree.groups is not None:
        members = np.eye(tree.group_of.max(initial=-1) + 1)[tree.group_of]
        removed, totals = removed @ members, totals @ members
    fewer, whole = removed.sum(axis=1), (removed > 0) & (removed == totals)
    saved = fewer + FEATURE_SIZE * np.count_nonzero(whole, axis=1)
    per_size = costs.ravel() / np.maximum(fewer + whole @ prices.sizes, 1e-300)
    return [
        PruningStep(
            float(per_size[line]), line // 2, None, line % 2 == 0, int(fewer[line]), float(size)
        )
        for line, size in enumerate(saved)
        if not tree.saturated[line // 2] and size > 0
    ]


# --- features with prices -------------------------------------------------------------------------


@dataclass(frozen=True)
class FeaturePrices:
    """Sizes of features: what is above 1 of a price, its surplus, counts by the share of the rows
    that need the feature on their way (``TrainingProblem.unneeded``).

    Attributes
    ----------
    sizes : array (n_feature_groups,)
        Size of each feature of ``tree.group_of``, in units of a coefficient.
    terms : array (n_branches, n_feature_groups)
        Size saved if a feature is no longer asked for in one branch and stays in others; None where
        no price has a surplus.
    """

    tree: SupportTree
    sizes: FloatArray
    terms: FloatArray | None = None

    @classmethod
    def of(cls, tree: SupportTree, scores: FloatArray, weights: FloatArray) -> FeaturePrices:
        """From the scores of the rows, (n_branches, n_rows), and their weights."""
        prices = tree.group_prices
        if prices is None:
            return cls(tree, np.full(int(tree.group_of.max(initial=-1)) + 1, FEATURE_SIZE))
        surplus = np.maximum(prices - 1.0, 0.0)
        if not np.any(surplus > 0):
            return cls(tree, FEATURE_SIZE * np.minimum(prices, 1.0))
        kept = np.zeros((len(prices), len(tree.splits)), dtype=bool)
        np.logical_or.at(kept, tree.group_of, tree.support.T)
        mass = np.bincount(hard_leaves(scores), weights, len(tree.splits) + 1) / weights.sum()
        shares = needed_in_leaves(np.arange(len(prices)), len(prices), kept) @ mass
        terms = np.zeros(kept.T.shape)
        for group in np.flatnonzero(surplus > 0):
            branches = np.flatnonzero(kept[group])
            for branch in branches if len(branches) > 1 else ():
                others = kept[group : group + 1].copy()
                others[0, branch] = False
                rest = needed_in_leaves(np.zeros(1, dtype=np.intp), 1, others) @ mass
                terms[branch, group] = surplus[group] * (shares[group] - rest[0])
        sizes = np.minimum(prices, 1.0) + surplus * shares
        return cls(tree, FEATURE_SIZE * sizes, FEATURE_SIZE * np.maximum(terms, 0.0))

    @classmethod
    def price(cls, tree: SupportTree, rows: StandardisedRows) -> float:
        """The price of the features of a tree."""
        if tree.group_prices is None or not np.any(tree.group_prices > 1.0):
            return tree.price
        scores = tree.splits[:, :-1] @ rows.features + tree.splits[:, -1:]
        used = np.unique(tree.group_of[tree.support.any(axis=0)])
        return float(cls.of(tree, scores, rows.weights).sizes[used].sum()) / FEATURE_SIZE

    @cached_property
    def coefficients(self) -> FloatArray | None:
        """What ``terms`` are for single coefficients, (n_branches, n_columns): zero where others of
        the feature stay in the branch."""
        if self.terms is None:
            return None
        homes, support = self.tree.group_of, self.tree.support
        alone = np.zeros_like(self.terms)
        np.add.at(alone.T, homes, support.T)
        return np.where(support & (alone == 1)[:, homes], self.terms[:, homes], 0.0)

    def term_steps(self, rows: StandardisedRows, known: Routed, ridge: float) -> list[PruningStep]:
        """The steps that remove all columns of a feature from one branch."""
        if self.terms is None:
            return []
        steps = []
        for branch, group in zip(*np.nonzero(self.terms), strict=True):
            columns = np.flatnonzero(self.tree.support[branch] & (self.tree.group_of == group))
            if len(columns) > 1:
                out = np.zeros_like(self.tree.support)
                out[branch, columns] = True
                cost = removal_cost(self.tree.splits, rows, known, out, ridge)
                size = len(columns) + float(self.terms[branch, group])
                steps.append(PruningStep(cost / size, int(branch), columns.tolist()))
        return steps


# --- groups of features ---------------------------------------------------------------------------


def _by_group(tree: SupportTree, counts: NDArray[Any]) -> NDArray[np.intp]:
    """Sum ``counts`` of the columns over groups."""
    if tree.groups is None:
        return counts
    return np.bincount(tree.group_of, counts).astype(np.intp)


def _saved_in_groups(
    tree: SupportTree,
    branches: NDArray[np.intp],
    columns: NDArray[np.intp],
    prices: FeaturePrices,
) -> FloatArray:
    """Size, with prices, saved by removing each coefficient, or all of a column."""
    in_column = tree.support.sum(axis=0)
    in_group = _by_group(tree, in_column)[tree.group_of]
    fewer = np.where(branches == FEATURE, in_column[columns], 1)
    last = fewer == in_group[columns]
    single: FloatArray | float = 0.0
    if prices.coefficients is not None:
        # A branch that is FEATURE has an index too, whose entry does not count.
        single = np.where(branches == FEATURE, 0.0, prices.coefficients[branches, columns])
    return fewer + np.where(last, prices.sizes[tree.group_of[columns]], single)
